//! Where stores are. PD places copies apart from each other by labels of stores; each gets those of the node that its pod is on.
//!
//! Which labels: those that PD's `location-labels` names, and `spec.tikv.storeLabels`. What a node does not have, a store does not get,
//! and what a store has beside them is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use windlass_api::tidb::Component;

use super::answers::StoreState;
use super::deeds::{Probe, Task};
use super::facts::after;
use super::membership::Standing;
use super::plan::Planner;
use super::scene::Scene;

type Labels = BTreeMap<String, String>;

/// The components whose stores have a place.
const PLACED: [Component; 2] = [Component::Tikv, Component::Tiflash];
/// After so long a node is asked for again that could not be read: a right that is missing is not given soon.
const AGAIN: Duration = Duration::from_mins(10);

/// Which labels are asked for; none while PD does not tell.
fn names(scene: &Scene<'_>) -> BTreeSet<String> {
    let config = scene.pd.as_ref().ok().and_then(|heard| heard.seen.config.as_ref().ok());
    let Some(config) = config else { return BTreeSet::new() };
    let given = scene.observed.resource.spec.tikv.as_ref().and_then(|tikv| tikv.store_labels.as_ref());
    config.location_labels.iter().chain(given.into_iter().flatten()).filter(|name| !name.is_empty()).cloned().collect()
}

/// The labels of a store by those of its node. Names of Kubernetes have a slash, which older PDs refuse: so they have short ones too.
fn place(names: &BTreeSet<String>, node: &Labels) -> Labels {
    let known_as = |name: &str| match name {
        "host" => &["kubernetes.io/hostname"][..],
        "zone" => &["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"][..],
        "region" => &["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"][..],
        _ => &[][..],
    };
    let value = |name: &str| node.get(name).or_else(|| known_as(name).iter().find_map(|name| node.get(*name)));
    names.iter().filter_map(|name| Some((name.clone(), value(name)?.clone()))).collect()
}

/// When the nodes of which pods are asked for: once each, and those that could not be read after a while.
pub(super) fn questions(scene: &Scene<'_>) -> Vec<(Timestamp, Probe)> {
    if names(scene).is_empty() {
        return Vec::new();
    }
    let stores = PLACED.into_iter().flat_map(|component| {
        let ordinals = scene.own_stores(component).keys().copied();
        ordinals
            .filter_map(move |ordinal| Some((*scene.group(component).pods.get(&ordinal)?, scene.server(component, ordinal)?)))
    });
    let asked = scene.observed.now;
    let due = |pod| match scene.observed.facts.node(pod) {
        None => Some(Timestamp::MIN),
        Some((_, Ok(_))) => None,
        Some((asked, Err(_))) => Some(after(*asked, AGAIN)),
    };
    stores.filter_map(|(pod, server)| Some((due(pod)?, Probe::Node { server, asked }))).collect()
}

impl Planner<'_> {
    /// Tells PD where stores are.
    pub(super) fn place_stores(&mut self) {
        let names = names(&self.scene);
        for component in PLACED {
            for (ordinal, store) in self.scene.own_stores(component).clone() {
                let stays =
                    matches!(self.scene.standing(component, ordinal), Standing::Is(_)) && store.state != StoreState::Offline;
                let pod = self.scene.group(component).pods.get(&ordinal).copied().filter(|_| stays);
                let Some(Ok(node)) = pod.and_then(|pod| self.scene.observed.facts.node(pod)).map(|(_, labels)| labels) else {
                    continue;
                };
                let mut labels = place(&names, node);
                labels.retain(|name, value| store.labels.get(name) != Some(value));
                if !labels.is_empty() {
                    let (about, address) = (self.scene.names.pod(component, ordinal), store.address.clone());
                    let task = Task::SetStoreLabels { store: store.id, address, labels };
                    self.pd_task(&about, Some(store.id), task, "PD places copies by where stores are");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], &[("a", "b")], &[])]
    #[case::by_its_own_name(&["rack"], &[("rack", "r1"), ("other", "x")], &[("rack", "r1")])]
    #[case::by_a_short_one(
        &["host", "zone"],
        &[("kubernetes.io/hostname", "n1"), ("topology.kubernetes.io/zone", "z1")],
        &[("host", "n1"), ("zone", "z1")],
    )]
    #[case::its_own_comes_first(&["zone"], &[("zone", "mine"), ("topology.kubernetes.io/zone", "z1")], &[("zone", "mine")])]
    #[case::older(&["region"], &[("failure-domain.beta.kubernetes.io/region", "r")], &[("region", "r")])]
    #[case::not_there(&["rack", "host"], &[("kubernetes.io/hostname", "n1")], &[("host", "n1")])]
    fn a_store_gets_what_its_node_has(
        #[case] asked: &[&str],
        #[case] node: &[(&str, &str)],
        #[case] expected: &[(&str, &str)],
    ) {
        let labels =
            |all: &[(&str, &str)]| -> Labels { all.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect() };
        let names = asked.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(place(&names, &labels(node)), labels(expected));
    }
}
