//! The objects of a cluster, as they should be. One file per object; nothing here asks what is there already, except where the
//! live object decides a field on another path (the size of the `StatefulSet`).

mod disruption_budget;
mod services;
mod stateful_set;

use std::collections::BTreeMap;

use windlass_core::kept;
use windlass_core::kind::{KIND_LABEL, Kind as _};
use windlass_core::labels;
use windlass_core::likeness::seal;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef, Step};
use windlass_core::views::Children;

use super::Replicated;
use super::hooks::HookRun;
use super::validate::Validated;

/// The protocol of a port that names none. Ports are told apart by number and protocol, so an applied one says both.
const TCP: &str = "TCP";

/// Every object of the cluster, in the order in which they are applied. `size` is the size that the `StatefulSet` has, or gets
/// when it is made.
pub(super) fn objects(cluster: &Validated, size: u16, children: &Children) -> Objects {
    let set = stateful_set::stateful_set(cluster, size);
    let kept = kept::resolve(set, &stateful_set::inputs(cluster), stateful_set::LEFT_OUT, children);
    let removals = kept.removals();
    let plain = [services::headless(cluster), services::client(cluster), disruption_budget::disruption_budget(cluster)];
    let mut applied: Vec<Manifest> = plain.into_iter().map(|manifest| seal(manifest, &[])).collect();
    applied.extend(kept.keep);
    applied.push(kept.set);
    Objects { applied, removals }
}

/// The objects of a cluster.
pub(super) struct Objects {
    /// As they should be.
    pub(super) applied: Vec<Manifest>,
    /// Steps that remove what is of no use any more.
    pub(super) removals: Vec<Step<HookRun>>,
}

/// The labels by which the members' pods are found. They are part of the `StatefulSet`'s selector and can never change.
pub(super) fn selector(cluster: &Validated) -> BTreeMap<String, String> {
    [
        (labels::APP, cluster.names.cluster()),
        (labels::RSS_OPERATOR_MANAGED, "true"),
        (labels::MANAGED_BY, labels::MANAGED_BY_WINDLASS),
        (labels::INSTANCE, cluster.names.cluster()),
        (KIND_LABEL, Replicated::NAME),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}

fn manifest(cluster: &Validated, kind: ObjectKind, name: &str, spec: serde_json::Value) -> Manifest {
    Manifest {
        object: ObjectRef { kind, namespace: cluster.namespace.clone(), name: name.to_owned() },
        labels: selector(cluster),
        annotations: BTreeMap::new(),
        owner: cluster.owner.clone(),
        spec,
        over: None,
        never_held: false,
    }
}

#[cfg(test)]
mod tests;
