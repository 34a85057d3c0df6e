//! Kept pod templates: a release renders a component's pod template once, and keeps it for as long as nothing that the user
//! wrote changes it.
//!
//! A newer release may render the same spec in another way. It still applies the kept template, so that an upgrade of the
//! operator, a scale or a resume restarts no pod; the new rendering comes with the next change that reaches the template anyway.
//!
//! The template of a set that was taken over from another operator is kept in the same way. It gets our labels, so that pods which are
//! made of it later are found; those that run already are as good as they are.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kind::KIND_LABEL;
use crate::labels::{ADOPTED, AS_GOOD_AS, COMPONENT, INSTANCE, KEEPS, KEEPS_TEMPLATE, KEPT_FOR, MANAGED_BY, TEMPLATE_INPUTS};
use crate::likeness::{contains, seal};
use crate::step::{Act, Action, Manifest, ObjectKind, ObjectRef, Over, Step};
use crate::views::{Children, Meta, ObjectView};

/// What is added to the hash of the inputs while a template is in force that another operator rendered.
const OF_ADOPTION: &str = "-adopted";
/// The labels by which pods are found.
const FOUND_BY: [&str; 3] = [MANAGED_BY, INSTANCE, KIND_LABEL];

/// What to apply, and what else to do to keep its template.
#[derive(Debug)]
pub struct Kept {
    /// The `StatefulSet`, or the Deployment, with the template that is in force.
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

/// Puts the template that is in force into a freshly rendered `StatefulSet` or Deployment. `inputs` is the hash of what of the user's spec
/// reaches the template; `left_out` names fields of the spec that are decided elsewhere.
pub fn resolve(mut rendered: Manifest, inputs: &str, left_out: &[&str], children: &Children) -> Kept {
    let set = rendered.object.name.clone();
    let adopted = Adopted::of(&rendered, inputs, children);
    let inputs = adopted.as_ref().map_or(inputs, |adopted| adopted.inputs.as_str());
    let of_inputs = |meta: &Meta| meta.annotations.get(TEMPLATE_INPUTS).is_some_and(|has| has == inputs);
    let live = children.applied(&rendered.object).filter(|live| of_inputs(&live.meta));
    let of_set = children.templates.iter().filter(|(_, it)| it.meta.labels.get(KEPT_FOR) == Some(set.as_str()));
    let (current, others): (Vec<_>, Vec<_>) = of_set.partition(|(_, it)| of_inputs(&it.meta));
    let kept = current.first().map(|(_, it)| it.spec.value());
    let is_kept = kept.is_some();
    let template = kept.or_else(|| live.and_then(|live| another_rendering(live, &rendered)));
    let template = template.or_else(|| adopted.as_ref().and_then(|adopted| adopted.template.clone()));
    if let Some(template) = template {
        rendered.spec["template"] = template;
    }
    rendered.annotations.insert(TEMPLATE_INPUTS.to_owned(), inputs.to_owned());
    if let Some(adopted) = &adopted {
        rendered.annotations.insert(ADOPTED.to_owned(), "true".to_owned());
        rendered.annotations.extend(adopted.as_good_as.clone().map(|revision| (AS_GOOD_AS.to_owned(), revision)));
    }
    let keep = (!is_kept).then(|| kept_object(&rendered, inputs));
    let removable = others.into_iter().filter(|(_, it)| is_kept && live.is_some() && !it.meta.deleting);
    let outdated = removable.map(|(name, it)| (revision(&it.meta.namespace, name), it.meta.as_judged())).collect();
    Kept { set: seal(rendered, left_out), keep, outdated }
}

/// The same with the template that is in force, whatever renders it: for when nobody knows what the user wants instead. Nothing where no
/// template is kept.
pub fn as_kept(mut rendered: Manifest, children: &Children) -> Option<Manifest> {
    let noted = |meta: &Meta| meta.annotations.get(TEMPLATE_INPUTS).map(ToOwned::to_owned);
    let of_set = children.templates.values().filter(|it| it.meta.labels.get(KEPT_FOR) == Some(&rendered.object.name));
    let live = children.applied(&rendered.object).and_then(|live| noted(&live.meta));
    // While the set itself is missing, the newest one is as good a guess as any.
    let kept = of_set.max_by_key(|it| (noted(&it.meta) == live, it.meta.created))?;
    rendered.annotations.insert(TEMPLATE_INPUTS.to_owned(), noted(&kept.meta)?);
    rendered.spec["template"] = kept.spec.value();
    Some(seal(rendered, &[]))
}

/// What is known of a set whose template another operator rendered.
struct Adopted {
    inputs: String,
    /// The revision that its pods had.
    as_good_as: Option<String>,
    /// The template, in the first pass after it was taken over.
    template: Option<Value>,
}

impl Adopted {
    /// Such a template is in force until the user changes something that reaches it. While the set itself is missing, what is kept of it
    /// tells.
    fn of(rendered: &Manifest, inputs: &str, children: &Children) -> Option<Self> {
        let set = &rendered.object.name;
        let inputs = format!("{inputs}{OF_ADOPTION}");
        let noted = |meta: &Meta| meta.annotations.get(TEMPLATE_INPUTS).map(str::to_owned);
        let good = |meta: &Meta| meta.annotations.get(AS_GOOD_AS).map(str::to_owned);
        let Some(live) = children.stateful_sets.get(set) else {
            let is_kept =
                |meta: &&Meta| meta.labels.get(KEPT_FOR) == Some(set.as_str()) && noted(meta).as_ref() == Some(&inputs);
            let kept = children.templates.values().map(|it| &it.meta).find(is_kept)?;
            return Some(Self { as_good_as: good(kept), inputs, template: None });
        };
        let meta = &live.object.meta;
        match noted(meta) {
            Some(noted) => (noted == inputs).then(|| Self { as_good_as: good(meta), inputs, template: None }),
            // A set with another selector can never have our pods: the server refuses what we ask of it, and that is told.
            None if meta.annotations.contains_key(ADOPTED)
                && live.object.spec.value()["selector"] == rendered.spec["selector"] =>
            {
                let mut template = live.object.spec.value().get("template").cloned()?;
                // Which revision its pods have is not known yet: then they must not get another one.
                if live.update_revision.is_some() {
                    for (key, value) in rendered.labels.iter().filter(|(key, _)| FOUND_BY.contains(&key.as_str())) {
                        template["metadata"]["labels"][key] = value.clone().into();
                    }
                }
                Some(Self { as_good_as: live.update_revision.clone(), inputs, template: Some(template) })
            }
            None => None,
        }
    }
}

/// The live template of the same inputs, whose kept copy was lost, when it is another rendering than ours. (The live one has the
/// server's defaults; our own is kept as we wrote it.)
fn another_rendering(live: &ObjectView, rendered: &Manifest) -> Option<Value> {
    let template = live.spec.value().get("template").cloned()?;
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
        annotations: {
            let good = set.annotations.get(AS_GOOD_AS).map(|revision| (AS_GOOD_AS.to_owned(), revision.clone()));
            good.into_iter().chain([(TEMPLATE_INPUTS.to_owned(), inputs.to_owned())]).collect()
        },
        owner: set.owner.clone(),
        spec: set.spec["template"].clone(),
        over: None,
        never_held: set.never_held,
    }
}
