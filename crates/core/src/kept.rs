//! Kept pod templates: a release renders a component's pod template once, and keeps it for as long as nothing that the user
//! wrote changes it.
//!
//! A newer release may render the same spec in another way. It still applies the kept template, so that an upgrade of the
//! operator, a scale or a resume restarts no pod; the new rendering comes with the next change that reaches the template anyway.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kind::KIND_LABEL;
use crate::labels::{COMPONENT, INSTANCE, KEEPS, KEEPS_TEMPLATE, KEPT_FOR, MANAGED_BY, TEMPLATE_INPUTS};
use crate::likeness::{contains, seal};
use crate::step::{Act, Action, Manifest, ObjectKind, ObjectRef, Step};
use crate::views::{Children, ObjectView, StatefulSetView};

/// What to apply, and what else to do to keep its template.
#[derive(Debug)]
pub struct Kept {
    /// The `StatefulSet`, with the template that is in force.
    pub set: Manifest,
    /// The template as an object, if it is not kept yet.
    pub keep: Option<Manifest>,
    /// Kept templates that are of no use any more.
    pub outdated: Vec<ObjectRef>,
}

/// Puts the template that is in force into a freshly rendered `StatefulSet`. `inputs` is the hash of what of the user's spec
/// reaches the template; `left_out` names fields of the spec that are decided elsewhere.
pub fn resolve(mut rendered: Manifest, inputs: &str, left_out: &[&str], children: &Children) -> Kept {
    let set = rendered.object.name.clone();
    let of_set = children.templates.iter().filter(|(_, it)| it.meta.labels.get(KEPT_FOR) == Some(&set));
    let (current, others): (Vec<_>, Vec<_>) =
        of_set.partition(|(_, it)| it.meta.annotations.get(TEMPLATE_INPUTS).is_some_and(|has| has == inputs));
    let kept = current.first().map(|(_, it)| it.spec.value());
    let is_kept = kept.is_some();
    let template = kept.or_else(|| children.stateful_sets.get(&set).and_then(|live| rendered_by_us(live, inputs, &rendered)));
    if let Some(template) = template {
        rendered.spec["template"] = template;
    }
    rendered.annotations.insert(TEMPLATE_INPUTS.to_owned(), inputs.to_owned());
    let keep = (!is_kept).then(|| kept_object(&rendered, inputs));
    let applied = children
        .stateful_sets
        .get(&set)
        .is_some_and(|live| live.object.meta.annotations.get(TEMPLATE_INPUTS).is_some_and(|has| has == inputs));
    let outdated =
        if is_kept && applied { others.into_iter().map(|(name, it)| object_of(name, it)).collect() } else { Vec::new() };
    Kept { set: seal(rendered, left_out), keep, outdated }
}

/// The live template, when it is one of these very inputs whose kept copy was lost, and another rendering than ours. (The live
/// one has the server's defaults; our own is kept as we wrote it.)
fn rendered_by_us(live: &StatefulSetView, inputs: &str, rendered: &Manifest) -> Option<Value> {
    let ours = live.object.meta.annotations.get(TEMPLATE_INPUTS).is_some_and(|has| has == inputs);
    let template = live.object.spec.value().get("template").cloned().filter(|_| ours)?;
    (!contains(&template, &rendered.spec["template"])).then_some(template)
}

fn object_of(name: &str, view: &ObjectView) -> ObjectRef {
    ObjectRef { kind: ObjectKind::ControllerRevision, namespace: view.meta.namespace.clone(), name: name.to_owned() }
}

/// Its labels must not be those of the pods: the `StatefulSet` controller takes revisions with these for its own.
fn kept_object(set: &Manifest, inputs: &str) -> Manifest {
    let own = [MANAGED_BY, INSTANCE, COMPONENT, KIND_LABEL];
    let mut labels: BTreeMap<String, String> = set
        .labels
        .iter()
        .filter(|(key, _)| own.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(KEEPS.to_owned(), KEEPS_TEMPLATE.to_owned());
    labels.insert(KEPT_FOR.to_owned(), set.object.name.clone());
    Manifest {
        object: ObjectRef {
            kind: ObjectKind::ControllerRevision,
            namespace: set.object.namespace.clone(),
            name: format!("{}-kept-{inputs}", set.object.name),
        },
        labels,
        annotations: BTreeMap::from([(TEMPLATE_INPUTS.to_owned(), inputs.to_owned())]),
        owner: set.owner.clone(),
        spec: set.spec["template"].clone(),
        over: None,
    }
}

/// The steps that remove what is of no use any more.
pub fn removals<A: Action>(outdated: &[ObjectRef], children: &Children) -> Vec<Step<A>> {
    let views = outdated.iter().filter_map(|object| Some((object, children.templates.get(&object.name)?)));
    let views = views.filter(|(_, view)| !view.meta.deleting);
    views
        .map(|(object, view)| {
            let (uid, resource_version) = (view.meta.uid.clone(), view.meta.resource_version.clone());
            Step::new(Act::Delete { object: object.clone(), uid, resource_version }, "the spec renders another template now")
        })
        .collect()
}
