//! The disruption budget: how many members may be evicted at once so that the rest still has a quorum.

use serde_json::json;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{manifest, selector};

pub(super) fn disruption_budget(cluster: &Validated) -> Manifest {
    // One or two members have no quorum to keep; an eviction stops them gracefully, and forbidding it would only block drains.
    let may_leave = (cluster.replicas.saturating_sub(1) / 2).max(1);
    let spec = json!({ "maxUnavailable": may_leave, "selector": { "matchLabels": selector(cluster) } });
    manifest(cluster, ObjectKind::PodDisruptionBudget, &cluster.names.disruption_budget(), spec)
}
