//! The objects of a `TidbCluster`, as they should be: those of each component, and discovery. Nothing here asks what is there already,
//! except what cannot be changed of a `StatefulSet`; which size it is to have, and how far it is rolled, is decided elsewhere.
//!
//! Components are built apart from each other, so that one that cannot be changed now holds up no other. Old objects (ConfigMaps of an
//! earlier configuration, a budget that is of no use any more) are not spoken of here.

mod claims;
mod config_map;
mod configs;
mod containers;
mod discovery;
mod disruption_budget;
mod inputs;
mod merge;
mod names;
mod pods;
mod probes;
mod scripts;
mod services;
mod stateful_set;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::tidb::{Component, keys};
use windlass_core::kept;
use windlass_core::kind::KIND_LABEL;
use windlass_core::likeness::seal;
use windlass_core::step::{Action, Manifest, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, StatefulSetView};

use super::validate::Validated;
use crate::claim_templates;

pub use crate::claim_templates::Claims;
pub use discovery::{discovery, discovery_as_kept};
pub use names::Names;

/// The value of the label that tells of which kind of cluster an object is a part.
pub const KIND: &str = "tc";
/// The protocol of all ports, and of those of the user's that name none.
const TCP: &str = "TCP";
/// The size changes on another path; claim templates cannot be changed in place.
const LEFT_OUT: &[&str] = &["replicas", "volumeClaimTemplates"];

/// What the objects of a component depend on beside the custom resource.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The size of the `StatefulSet`.
    pub replicas: u16,
    /// Pods with a lower ordinal keep the revision that they have. It has no effect where it is the user who replaces pods.
    pub partition: u16,
    /// What is there.
    pub children: &'a Children,
}

/// The objects of a component.
#[derive(Debug)]
pub struct Objects<A> {
    /// As they should be, in the order in which they are applied: the `StatefulSet` is the last one.
    pub applied: Vec<Manifest>,
    /// Steps that remove kept templates that are of no use any more.
    pub removals: Vec<Step<A>>,
    /// How the claim templates of the `StatefulSet` that is there stand to what is asked for.
    pub claims: Claims,
}

/// Every object of a component, if it is asked for.
pub fn component<A: Action>(cluster: &Validated, component: Component, inputs: &Inputs<'_>) -> Option<Objects<A>> {
    let group = cluster.group(component)?;
    let live = inputs.children.stateful_sets.get(&cluster.names().set(component));
    let config_map = config_map::config_map(cluster, group, live);
    let mut plain = services::services(cluster, component);
    let mut set = stateful_set::stateful_set(cluster, group, &config_map.object.name, inputs);
    plain.push(config_map);
    plain.extend(disruption_budget::disruption_budget(cluster, component, inputs.replicas));
    let mut applied: Vec<Manifest> = plain.into_iter().map(|manifest| seal(manifest, &[])).collect();
    if let Some(live) = live {
        keep_fixed(&mut set, live);
    }
    let claims = claim_templates::resolve(&mut set, &claims::asked(group, &format!("spec.{component}")), live);
    let kept = kept::resolve(set, &inputs::of_template(cluster, group), LEFT_OUT, inputs.children);
    let removals = kept.removals();
    applied.extend(kept.keep);
    applied.push(kept.set);
    Some(Objects { applied, removals, claims })
}

/// What cannot be changed of a `StatefulSet` stays as it is; what the user asks for instead comes when it is made again. Its selector is
/// not among these: with another one it is none of ours, and the server's refusal says so.
fn keep_fixed(set: &mut Manifest, live: &StatefulSetView) {
    let spec = live.object.spec.value();
    for field in ["podManagementPolicy", "serviceName"] {
        if let Some(value) = spec.get(field) {
            set.spec[field] = value.clone();
        }
    }
}

/// `http` or `https`, as a component tells its status.
pub fn status_scheme(cluster: &Validated, component: Component) -> &'static str {
    match component {
        Component::Tiproxy if configs::serves_https(cluster) => "https",
        Component::Tiproxy => "http",
        _ => cluster.scheme(),
    }
}

/// The labels that selectors have. Those of existing objects cannot be changed, so there are never more nor fewer.
fn base_labels(cluster: &Validated, component: &str) -> BTreeMap<String, String> {
    let base = [
        (keys::NAME, keys::NAME_TIDB_CLUSTER),
        (keys::MANAGED_BY, keys::MANAGED_BY_TIDB_OPERATOR),
        (keys::INSTANCE, cluster.name.as_str()),
        (keys::COMPONENT, component),
    ];
    base.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The labels of every object: those of selectors, and the one by which the operator finds its own.
pub fn labels(cluster: &Validated, component: Component) -> BTreeMap<String, String> {
    labels_of(cluster, component.as_str())
}

/// The label selector of a component's pods, as text.
pub fn selector(cluster: &Validated, component: Component) -> String {
    let labels = base_labels(cluster, component.as_str());
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn labels_of(cluster: &Validated, component: &str) -> BTreeMap<String, String> {
    let mut all = base_labels(cluster, component);
    all.insert(KIND_LABEL.to_owned(), KIND.to_owned());
    all
}

fn manifest(cluster: &Validated, kind: ObjectKind, component: &str, name: &str, spec: Value) -> Manifest {
    Manifest {
        object: ObjectRef { kind, namespace: cluster.namespace.clone(), name: name.to_owned() },
        labels: labels_of(cluster, component),
        annotations: BTreeMap::new(),
        owner: cluster.owner.clone(),
        spec,
        over: None,
        never_held: false,
    }
}
