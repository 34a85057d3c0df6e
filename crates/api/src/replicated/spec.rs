//! What the user asks for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, LocalObjectReference, PersistentVolumeClaim, PodSecurityContext, ResourceRequirements, ServicePort,
    Toleration, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::ReplicatedStatefulSetStatus;

/// What the user asks for.
#[allow(clippy::duplicated_attributes, reason = "each printer column repeats its type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "clusterlabs.org",
    version = "v1alpha1",
    kind = "ReplicatedStatefulSet",
    namespaced,
    shortname = "rss",
    category = "windlass",
    status = "ReplicatedStatefulSetStatus",
    derive = "PartialEq",
    doc = "A replicated application whose members are started, joined and stopped through hooks.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Primaries", type_ = "string", json_path = ".status.members.primary", priority = 1),
    printcolumn(
        name = "Clustering",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='ClusteringActive')].status"
    ),
    printcolumn(
        name = "Reconcile",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='ReconciliationActive')].status"
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.reason", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = ("size(self.metadata.name) <= 48", "metadata.name may have at most 48 characters: pods and their labels are named after it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.primaries) || self.primaries <= (has(self.replicas) ? self.replicas : 3) || (has(self.replicas) && self.replicas == 0)", "primaries must not be larger than replicas")
)]
pub struct ReplicatedStatefulSetSpec {
    /// How many members there are. 3 when absent; 0 stops the cluster and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99))]
    pub replicas: Option<u16>,

    /// How many members are primaries. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99))]
    pub primaries: Option<u16>,

    /// How often members are asked for their status when nothing else happens: `30s`, `2m`, `1h30m`, or a number of seconds. 1m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+|([0-9]+(ms|s|m|h|d))+)$"))]
    pub reconcile_interval: Option<String>,

    /// Stops the operator: nothing is written for this cluster, its objects and its members stay as they are. Status goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// For tests: hooks of the examples fail at random, more often with a higher level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 19))]
    pub chaos_level: Option<i32>,

    /// The ports of the Services. The first one is where clients connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub service_ports: Option<Vec<ServicePort>>,

    /// The service account of the members' pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Nodes that may run members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// Taints that members tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,

    /// Where members may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Secrets, each mounted read-only at /etc/rss/secrets/NAME in every container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub secrets: Vec<String>,

    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,

    /// What each container gets that names no resources of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// Accepted so that existing manifests go on working; it has no effect.
    #[serde(default, rename = "TLS", skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsPolicy>,

    /// Accepted so that existing manifests go on working; it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_selector: Option<LabelSelector>,

    /// The members' pods and their hooks.
    pub pod: PodPolicy,
}

/// The members' pods and their hooks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self.containers.all(c, has(c.image) && size(c.image) > 0)", "every container needs an image"))]
pub struct PodPolicy {
    /// The containers. Hooks run in the first one.
    #[schemars(length(min = 1, max = 20))]
    pub containers: Vec<Container>,

    /// Volumes that the containers mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,

    /// Claims that each member gets of its own. They are never deleted by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim_templates: Option<Vec<PersistentVolumeClaim>>,

    /// The pods' security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,

    /// Whether the service account's token is mounted. No when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,

    /// Never two members on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<bool>,

    /// Nodes that may run members, together with the selector of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// How long a pod may take to stop. 600 seconds when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,

    /// The hooks.
    pub commands: Commands,
}

/// The hooks: commands that the operator runs in the first container of a member.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Commands {
    /// Prints what the member holds: `{"history": …, "sequence": …, "safe": …, "kind": …}` or one number.
    pub sequence: Command,
    /// Exits with 8 for a primary, 0 for a secondary, 7 for a stopped member, 190 for one that is starting.
    pub status: Command,
    /// Stops the member.
    pub stop: Command,
    /// Starts the member as a primary of an existing cluster; its arguments are the other members' host names.
    pub primary: Command,
    /// Starts the first member of a cluster. `primary` without arguments when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Command>,
    /// Starts the member as a secondary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secondary: Option<Command>,
    /// Makes a surviving member that lost its peers a primary again without restarting it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promote: Option<Command>,
}

/// One hook.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// How long it may take: `30s`, `10m`, or a number of seconds. 10m when absent, 10s for `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+|([0-9]+(ms|s|m|h|d))+)$"))]
    pub timeout: Option<String>,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
}

/// Accepted so that existing manifests go on working; it has no effect.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsPolicy {
    /// Secrets made by the user.
    #[serde(default, rename = "static", skip_serializing_if = "Option::is_none")]
    pub static_: Option<StaticTls>,
}

/// Secrets made by the user.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticTls {
    /// The members' secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberTls>,
    /// The operator's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_secret: Option<String>,
}

/// The members' secrets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberTls {
    /// Between members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_secret: Option<String>,
    /// Towards clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_secret: Option<String>,
}
