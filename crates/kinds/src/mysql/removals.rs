//! What is of no use any more: a disruption budget of a cluster too small for one, and ConfigMaps of an earlier text.
//!
//! Only what this very cluster owns is ever removed: by owner reference and by label (the children that are looked at have it), never
//! by name. A ConfigMap that a pod, a set or a kept template still names stays, however old it is: a pod that cannot mount it never
//! starts again.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_core::step::{Act, Manifest, ObjectKind, ObjectRef, Owner, Step};
use windlass_core::views::{Children, Meta, ObjectView};

use super::build::{FLUENT_BIT, MY_CNF};
use super::deeds::Deed;

/// How many ConfigMaps of one sort are kept, the one in force among them.
const HISTORY: usize = 10;

/// The steps that remove what is of no use. `applied` is what there is to be.
pub(super) fn of_no_use(owner: &Owner, applied: &[Manifest], children: &Children) -> Vec<Step<Deed>> {
    let is_ours = |meta: &Meta| meta.owner_uid.as_deref() == Some(owner.uid.as_str()) && !meta.deleting;
    let is_wanted = |kind: ObjectKind, name: &str| applied.iter().any(|it| it.object.kind == kind && it.object.name == name);
    let budget = ObjectKind::PodDisruptionBudget;
    let budgets = children.disruption_budgets.values().map(|view| &view.meta);
    let budgets = budgets.filter(|meta| is_ours(meta) && !is_wanted(budget, &meta.name));
    let mut steps: Vec<_> = budgets.map(|meta| delete(budget, meta, "so few instances cannot miss one")).collect();
    // Without a set to be, a setting cannot be written: nobody knows then which texts are needed.
    if applied.iter().any(|it| it.object.kind == ObjectKind::StatefulSet) {
        let maps: Vec<&ObjectView> = children.config_maps.values().filter(|view| is_ours(&view.meta)).collect();
        let in_force = |view: &ObjectView| is_wanted(ObjectKind::ConfigMap, &view.meta.name);
        let old = [MY_CNF, FLUENT_BIT].into_iter().flat_map(|key| beyond_history(&maps, key, in_force));
        let why = format!("{HISTORY} newer ones are kept, and nothing names it");
        let named = named_config_maps(applied, children);
        let unnamed = old.filter(|view| !named.contains(&view.meta.name));
        steps.extend(unnamed.map(|view| delete(ObjectKind::ConfigMap, &view.meta, &why)));
    }
    steps
}

fn delete(kind: ObjectKind, meta: &Meta, why: &str) -> Step<Deed> {
    let object = ObjectRef { kind, namespace: meta.namespace.clone(), name: meta.name.clone() };
    Step::new(Act::Delete { object, over: meta.as_judged() }, why)
}

/// The ConfigMaps of one sort, which is told by the key of their text, without the newest ones and the one in force.
fn beyond_history<'a>(maps: &[&'a ObjectView], key: &str, in_force: impl Fn(&ObjectView) -> bool) -> Vec<&'a ObjectView> {
    if maps.len() <= HISTORY {
        return Vec::new();
    }
    let mut sort: Vec<&ObjectView> = maps.iter().filter(|view| view.spec.value().get(key).is_some()).copied().collect();
    sort.sort_by_key(|view| (in_force(view), view.meta.created, &view.meta.name));
    sort.truncate(sort.len().saturating_sub(HISTORY));
    sort
}

/// Every ConfigMap that something has, or will have when it is made again.
fn named_config_maps(applied: &[Manifest], children: &Children) -> BTreeSet<String> {
    let templates = children.templates.values().map(|kept| kept.spec.value());
    let sets = children.stateful_sets.values().map(|set| set.object.spec.value());
    let wanted = applied.iter().filter(|it| it.object.kind == ObjectKind::StatefulSet).map(|it| it.spec.clone());
    let of_sets = sets.chain(wanted).filter_map(|mut spec| spec.get_mut("template").map(Value::take));
    let mut named: BTreeSet<String> = templates.chain(of_sets).flat_map(|template| mounted(&template)).collect();
    named.extend(children.pods.values().flat_map(|pod| pod.config_maps.iter().cloned()));
    named
}

fn mounted(template: &Value) -> Vec<String> {
    let volumes = template.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    volumes.filter_map(|volume| volume.pointer("/configMap/name")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
#[path = "removals_tests.rs"]
mod tests;
