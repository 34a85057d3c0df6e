//! What every component has, and discovery.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvFromSource, EnvVar, LocalObjectReference, PodDNSConfig, PodSecurityContext, SecurityContext,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::Part;

/// Quantities by the name of the resource.
pub(super) type Quantities = BTreeMap<String, Quantity>;
/// Labels, annotations, selectors.
pub(super) type Texts = BTreeMap<String, String>;

/// What a container requests, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
    /// What may not be exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Quantities>,
}

/// What every component has. Where it says nothing, the cluster's own setting counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSpec {
    /// The whole image. Use baseImage and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image's tag. The cluster's version when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the image is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<Part<LocalObjectReference>>>,
    /// What a container requests. Of pd, tikv and pump also storage: the size of the data volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
    /// What a container may not exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Quantities>,
    /// The service account of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Use the network of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// Where pods may run, in place of the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Part<Affinity>>,
    /// The priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Who schedules the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Nodes that may run pods, beside the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<Texts>,
    /// Annotations of the pods, beside the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Texts>,
    /// Labels of the pods, beside the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Texts>,
    /// Taints that pods tolerate, in place of the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Part<Toleration>>>,
    /// The security context of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<Part<PodSecurityContext>>,
    /// The security context of the component's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<Part<SecurityContext>>,
    /// Whether another configuration restarts pods (RollingUpdate) or waits for the next restart (InPlace).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self in ['', 'InPlace', 'RollingUpdate']", "configUpdateStrategy must be InPlace or RollingUpdate"))]
    pub config_update_strategy: Option<String>,
    /// Environment variables. Their sources may be configMapKeyRef and secretKeyRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<Part<EnvVar>>>,
    /// Sources of environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<Part<EnvFromSource>>>,
    /// Containers that run first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<Part<Container>>>,
    /// Further containers. One with the name of a container of the operator's is merged into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_containers: Option<Vec<Part<Container>>>,
    /// Further volumes of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_volumes: Option<Vec<Part<Volume>>>,
    /// Where the component's container mounts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_volume_mounts: Option<Vec<Part<VolumeMount>>>,
    /// The DNS settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<Part<PodDNSConfig>>,
    /// The DNS policy of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_policy: Option<String>,
    /// How many seconds a pod has to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Who replaces pods: the operator (RollingUpdate), or you (OnDelete).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set_update_strategy: Option<String>,
    /// Whether pods are made at once (Parallel) or one after the other (OrderedReady).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_management_policy: Option<String>,
    /// How pods are spread over nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Stop the component and keep its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_action: Option<SuspendAction>,
    /// How readiness is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// Whether pods get the token of their service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
}

/// What discovery has: the program that lets the first PD found the cluster, and all others join it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverySpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How liveness is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
}

/// How pods are spread over nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// The label of nodes whose values pods are spread over.
    pub topology_key: String,
    /// By how many pods two values may differ. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_skew: Option<i32>,
    /// How many values there must be at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Whether affinity and selectors of nodes count: Honor or Ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Which pods are counted. Those of the component when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<Texts>,
}

/// What is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspendAction {
    /// Delete the StatefulSet, and keep everything else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend_stateful_set: bool,
}

/// How a component is probed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Whether a connection is opened (tcp), or the component is asked (command). tcp when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self in ['', 'tcp', 'command']", "type must be tcp or command"))]
    pub type_: Option<String>,
    /// After how many seconds the first probe comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub initial_delay_seconds: Option<i32>,
    /// How many seconds lie between two probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub period_seconds: Option<i32>,
}
