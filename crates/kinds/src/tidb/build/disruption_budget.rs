//! The disruption budgets: how many members may be evicted at once so that the rest can still do their work.

use serde_json::json;
use windlass_api::tidb::Component;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{base_labels, manifest};

/// There is none where it could only block drains. It counts with the members that there are, not with those that are asked for.
pub(super) fn disruption_budget(cluster: &Validated, component: Component, size: u16) -> Option<Manifest> {
    let spec = json!({
        "maxUnavailable": spared(component, size)?,
        "selector": { "matchLabels": base_labels(cluster, component.as_str()) },
    });
    Some(manifest(
        cluster,
        ObjectKind::PodDisruptionBudget,
        component.as_str(),
        &cluster.names().disruption_budget(component),
        spec,
    ))
}

/// How many of so many can be missed.
fn spared(component: Component, size: u16) -> Option<u16> {
    match component {
        // The others are still a majority.
        Component::Pd => Some(size.saturating_sub(1) / 2).filter(|spared| *spared > 0),
        // Each region has most of its copies elsewhere, as long as only one store is missed.
        Component::Tikv => (size >= 3).then_some(1),
        Component::Tiflash | Component::Pump => (size >= 2).then_some(1),
        // Clients are served by the rest.
        Component::Tidb | Component::Ticdc | Component::Tiproxy => (size >= 2).then_some(size / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(Component::Pd, [None, None, None, Some(1), Some(1), Some(2)])]
    #[case(Component::Tikv, [None, None, None, Some(1), Some(1), Some(1)])]
    #[case(Component::Tiflash, [None, None, Some(1), Some(1), Some(1), Some(1)])]
    #[case(Component::Pump, [None, None, Some(1), Some(1), Some(1), Some(1)])]
    #[case(Component::Tidb, [None, None, Some(1), Some(1), Some(2), Some(2)])]
    #[case(Component::Ticdc, [None, None, Some(1), Some(1), Some(2), Some(2)])]
    #[case(Component::Tiproxy, [None, None, Some(1), Some(1), Some(2), Some(2)])]
    fn so_many_can_be_missed(#[case] component: Component, #[case] expected: [Option<u16>; 6]) {
        assert_eq!([0, 1, 2, 3, 4, 5].map(|size| spared(component, size)), expected);
    }
}
