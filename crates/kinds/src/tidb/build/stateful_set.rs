//! The `StatefulSet` of a component: its parts put together. How many pods it has and how far it is rolled is the caller's to say.

use serde_json::json;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::{Group, Validated};
use super::{Inputs, base_labels, claims, containers, manifest, pods};
use crate::fields::{fields_of, without_nothing};

pub(super) fn stateful_set(cluster: &Validated, group: &Group, config_map: &str, inputs: &Inputs<'_>) -> Manifest {
    let (names, component) = (cluster.names(), group.component);
    let parts = containers::parts(cluster, group, config_map);
    // A pod is replaced when the partition comes down to it, and not before: by then the component is ready for it.
    let strategy = if group.replaced_by_user {
        json!({ "type": "OnDelete" })
    } else {
        json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": inputs.partition } })
    };
    let spec = json!({
        "replicas": inputs.replicas,
        "serviceName": names.headless_service(component),
        "podManagementPolicy": if group.ordered { "OrderedReady" } else { "Parallel" },
        "updateStrategy": strategy,
        "selector": { "matchLabels": base_labels(cluster, component.as_str()) },
        "template": pods::template(cluster, group, &parts),
        "volumeClaimTemplates": claims::templates(cluster, group),
    });
    let spec = without_nothing(fields_of(&spec)).into();
    manifest(cluster, ObjectKind::StatefulSet, component.as_str(), &names.set(component), spec)
}
