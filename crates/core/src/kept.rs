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
use crate::step::{Act, Action, Manifest, ObjectKind, ObjectRef, Over, Step};
use crate::views::{Children, Meta, StatefulSetView};

/// What to apply, and what else to do to keep its template.
#[derive(Debug)]
pub struct Kept {
    /// The `StatefulSet`, with the template that is in force.
    pub set: Manifest,
    /// The template as an object, if it is not kept yet.
    pub keep: Option<Manifest>,
    /// Kept templates that are of no use any more.
    outdated: Vec<(ObjectRef, Over)>,
}

impl Kept {
    /// The steps that remove what is of no use any more.
    pub fn removals<A: Action>(&self) -> Vec<Step<A>> {
        let delete = |(object, over): &(ObjectRef, Over)| {
            let act = Act::Delete { object: object.clone(), over: over.clone() };
            Step::new(act, "the spec renders another template now")
        };
        self.outdated.iter().map(delete).collect()
    }
}

/// Puts the template that is in force into a freshly rendered `StatefulSet`. `inputs` is the hash of what of the user's spec
/// reaches the template; `left_out` names fields of the spec that are decided elsewhere.
pub fn resolve(mut rendered: Manifest, inputs: &str, left_out: &[&str], children: &Children) -> Kept {
    let set = rendered.object.name.clone();
    let of_inputs = |meta: &Meta| meta.annotations.get(TEMPLATE_INPUTS).is_some_and(|has| has == inputs);
    let live = children.stateful_sets.get(&set).filter(|live| of_inputs(&live.object.meta));
    let of_set = children.templates.iter().filter(|(_, it)| it.meta.labels.get(KEPT_FOR) == Some(&set));
    let (current, others): (Vec<_>, Vec<_>) = of_set.partition(|(_, it)| of_inputs(&it.meta));
    let kept = current.first().map(|(_, it)| it.spec.value());
    let is_kept = kept.is_some();
    let template = kept.or_else(|| live.and_then(|live| another_rendering(live, &rendered)));
    if let Some(template) = template {
        rendered.spec["template"] = template;
    }
    rendered.annotations.insert(TEMPLATE_INPUTS.to_owned(), inputs.to_owned());
    let keep = (!is_kept).then(|| kept_object(&rendered, inputs));
    let removable = others.into_iter().filter(|(_, it)| is_kept && live.is_some() && !it.meta.deleting);
    let outdated = removable.map(|(name, it)| (revision(&it.meta.namespace, name), it.meta.as_judged())).collect();
    Kept { set: seal(rendered, left_out), keep, outdated }
}

/// The live template of the same inputs, whose kept copy was lost, when it is another rendering than ours. (The live one has the
/// server's defaults; our own is kept as we wrote it.)
fn another_rendering(live: &StatefulSetView, rendered: &Manifest) -> Option<Value> {
    let template = live.object.spec.value().get("template").cloned()?;
    (!contains(&template, &rendered.spec["template"])).then_some(template)
}

fn revision(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { kind: ObjectKind::ControllerRevision, namespace: namespace.to_owned(), name: name.to_owned() }
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
        object: revision(&set.object.namespace, &format!("{}-kept-{inputs}", set.object.name)),
        labels,
        annotations: BTreeMap::from([(TEMPLATE_INPUTS.to_owned(), inputs.to_owned())]),
        owner: set.owner.clone(),
        spec: set.spec["template"].clone(),
        over: None,
    }
}
