//! Which store or member of PD a pod is, and how it stands there. The one place that tells stores of TiKV from those of TiFlash.
//!
//! A pod is known in PD by its address. What was once seen there is on record, together with the volumes it was seen with: only so can
//! a store that has left be told from one that never was.

use windlass_api::logbook::tidb::MemberEntry;
use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_core::scale::Drain;

use super::answers::{PdMember, Store};
use super::build::Names;

/// The label of a store that says what it holds.
const ENGINE: &str = "engine";
/// How its value begins for columns.
const TIFLASH: &str = "tiflash";

/// Of which component a store is. Rows are the rule, columns say so.
pub(super) fn component_of(store: &Store) -> Component {
    match store.labels.get(ENGINE) {
        Some(engine) if engine.starts_with(TIFLASH) => Component::Tiflash,
        _ => Component::Tikv,
    }
}

/// The pod of this cluster that an address belongs to, `POD.SERVICE.NAMESPACE.svc:PORT`.
pub(super) fn pod_at(names: &Names<'_>, component: Component, address: &str) -> Option<Ordinal> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let (pod, _) = host.split_once('.')?;
    let ordinal = Ordinal::of_pod(&names.set(component), pod)?;
    // With or without the domain of this Kubernetes.
    let ours = names.host(component, ordinal);
    let is_within =
        |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    (is_within(host, &ours) || is_within(&ours, host)).then_some(ordinal)
}

/// The pod of this cluster that a member of PD is: its name is that of the pod, or begins with it.
pub(super) fn pod_of(names: &Names<'_>, member: &PdMember) -> Option<Ordinal> {
    let pod = member.name.split('.').next().unwrap_or_default();
    Ordinal::of_pod(&names.set(Component::Pd), pod)
}

/// How a pod stands in PD.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing<T> {
    /// Nobody knows.
    Unknown(String),
    /// It is a store, or a member.
    Is(T),
    /// It was one, with the volumes that it has, and has left for good.
    Left,
    /// It was one, with the volumes that it has; PD does not know it any more, and nobody announced that it would leave.
    Vanished(u64),
    /// With the volumes that it has, it never was one.
    Never,
}

/// What is known of a pod beside its standing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Whether it is to leave.
    pub(super) leaves: bool,
    /// Whether all its volumes are marked as of no use.
    pub(super) marked: bool,
    /// Whether nothing ran in it since PD was asked: what PD does not know of it then, it is not.
    pub(super) unborn: bool,
}

/// How far the removal of a pod is that stands so in PD. `draining` tells of one that is a store or a member whether it has begun to
/// leave.
pub(super) fn progress<T>(standing: &Standing<T>, around: Around, draining: impl Fn(&T) -> bool) -> Drain {
    let Around { leaves, marked, unborn } = around;
    match standing {
        Standing::Unknown(_) => Drain::Unknown,
        Standing::Is(it) if draining(it) => Drain::Draining,
        Standing::Is(_) | Standing::Vanished(_) => Drain::NotStarted,
        Standing::Left if !leaves || marked => Drain::Finished,
        Standing::Never if !leaves => Drain::NotStarted,
        // What runs, or ran a moment ago, may be one by now.
        Standing::Never if unborn && marked => Drain::Finished,
        Standing::Left | Standing::Never => Drain::Draining,
    }
}

/// What is on record of a pod with these volumes.
pub(super) fn recorded<'a>(entry: Option<&'a MemberEntry>, claims: &[&str]) -> Option<(&'a MemberEntry, u64)> {
    let entry = entry.filter(|entry| entry.claims.iter().map(String::as_str).eq(claims.iter().copied()))?;
    Some((entry, entry.id.parse().ok()?))
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
