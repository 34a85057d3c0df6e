//! The hash of what of the user's wishes reaches a component's pod template (see `windlass_core::kept`).
//!
//! It is everything that the user says of the component and of all components, without what is known to stay outside of the template. So
//! a field that is forgotten here costs nothing but a rendering that was not needed; one that is left out by mistake would have no
//! effect. Neither our own image nor the way in which we render is part of it.

use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_core::likeness::short_hash;

use super::super::validate::{ConfigUpdate, Group, Validated};
use super::configs;
use crate::fields::fields_of;

/// What of the cluster's own settings reaches no template.
const OUTSIDE_OF_CLUSTER: &[&str] = &[
    "paused",
    "suspendAction",
    "pvReclaimPolicy",
    "enablePVReclaim",
    "enablePVCReplace",
    "configUpdateStrategy",
    "statefulSetUpdateStrategy",
    "podManagementPolicy",
    "recoveryMode",
    "services",
    "discovery",
    "pd",
    "pdms",
    "tikv",
    "tidb",
    "tiflash",
    "ticdc",
    "tiproxy",
    "pump",
    // Each component says what it runs.
    "version",
];

/// What of a component's settings reaches no template.
const OUTSIDE_OF_COMPONENT: &[&str] = &[
    "replicas",
    "service",
    "scalePolicy",
    "maxFailoverCount",
    "recoverFailover",
    "failover",
    "evictLeaderTimeout",
    "waitLeaderTransferBackTimeout",
    "gracefulShutdownTimeout",
    "storeLabels",
    "spareVolReplaceReplicas",
    "suspendAction",
    "configUpdateStrategy",
    "statefulSetUpdateStrategy",
    "podManagementPolicy",
    // Of claims only names and places reach it.
    "storageClassName",
    "storageVolumes",
    "storageClaims",
    // These are told apart below.
    "image",
    "baseImage",
    "version",
    "config",
];

pub(super) fn of_template(cluster: &Validated, group: &Group) -> String {
    let without = |value: Value, outside: &[&str]| {
        let mut fields = fields_of(&value);
        fields.retain(|name, _| !outside.contains(&name.as_str()));
        fields
    };
    let mut own = fields_of(&cluster.spec).remove(group.component.as_str()).unwrap_or_default();
    if let Some(requests) = own.get_mut("requests").and_then(Value::as_object_mut) {
        requests.remove("storage");
    }
    let claims: Vec<_> = group.claims.iter().map(|claim| (&claim.name, &claim.mount)).collect();
    let wishes = json!([
        cluster.name,
        group.image,
        without(json!(cluster.spec), OUTSIDE_OF_CLUSTER),
        without(own, OUTSIDE_OF_COMPONENT),
        claims,
        of_config(group),
        of_others(cluster, group.component),
    ]);
    short_hash(&wishes.to_string())
}

/// The same of discovery.
pub(super) fn of_discovery(cluster: &Validated) -> String {
    let mut all = fields_of(&cluster.spec);
    let own = all.remove("discovery");
    all.retain(|name, _| !OUTSIDE_OF_CLUSTER.contains(&name.as_str()));
    short_hash(&json!([cluster.name, all, own]).to_string())
}

/// The configuration, as far as it reaches the template: all of it by the name of its `ConfigMap`, or what is in a command.
fn of_config(group: &Group) -> Value {
    let all = json!([group.config, group.proxy_config]);
    match (group.config_update, group.component) {
        (ConfigUpdate::RollingUpdate, _) => json!(["by name", all]),
        // Its settings are arguments.
        (ConfigUpdate::InPlace, Component::Ticdc) => all,
        (ConfigUpdate::InPlace, Component::Tiflash) => {
            let logs = [configs::SERVER_LOG, configs::ERROR_LOG, configs::CLUSTER_LOG];
            json!(logs.map(|log| configs::log_path(group, log)))
        }
        (ConfigUpdate::InPlace, Component::Pump) => json!(group.config.get("log-level")),
        (ConfigUpdate::InPlace, _) => Value::Null,
    }
}

/// What of other components reaches the template.
fn of_others(cluster: &Validated, component: Component) -> Value {
    let spec = &cluster.spec;
    let client_tls = spec.tidb.as_ref().map(|tidb| &tidb.tls_client);
    match component {
        Component::Pd | Component::Tiproxy => json!(client_tls),
        Component::Tidb => {
            json!([spec.pump.is_some(), spec.tiproxy.as_ref().is_some_and(|tiproxy| tiproxy.replicas > 0)])
        }
        Component::Tikv | Component::Tiflash | Component::Ticdc | Component::Pump => Value::Null,
    }
}
