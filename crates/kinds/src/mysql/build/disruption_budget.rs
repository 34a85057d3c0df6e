//! The disruption budget: how many instances may be evicted at once so that the rest can still acknowledge commits.

use serde_json::json;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{base_labels, manifest};

/// The least number of instances of which one can be missed.
const FEWEST: u16 = 3;

/// There is none where nothing runs, and where it could only block drains. It counts with the instances that there are: more that are
/// asked for cannot acknowledge yet, and fewer that are asked for are refused.
pub(super) fn disruption_budget(cluster: &Validated, size: u16) -> Option<Manifest> {
    if cluster.offline || size < FEWEST {
        return None;
    }
    let spec = json!({ "maxUnavailable": size / 2, "selector": { "matchLabels": base_labels(cluster) } });
    Some(manifest(cluster, ObjectKind::PodDisruptionBudget, &cluster.names().disruption_budget(), spec))
}
