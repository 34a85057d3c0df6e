//! What the user asks for.

#![expect(clippy::struct_excessive_bools, reason = "the fields are those that users know")]

use k8s_openapi::api::core::v1::{Affinity, LocalObjectReference, PodDNSConfig, PodSecurityContext, Toleration};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::{DiscoverySpec, SuspendAction, Texts, TopologySpreadConstraint};
use super::clients::{PumpSpec, TicdcSpec, TidbSpec, TiproxySpec};
use super::pd::{PdMicroService, PdSpec};
use super::service::ServiceType;
use super::status::TidbClusterStatus;
use super::stores::{TiflashSpec, TikvSpec};
use crate::part::Part;

/// What the user asks for.
#[allow(clippy::duplicated_attributes, reason = "each printer column repeats its type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "pingcap.com",
    version = "v1alpha1",
    kind = "TidbCluster",
    plural = "tidbclusters",
    namespaced,
    shortname = "tc",
    category = "windlass",
    status = "TidbClusterStatus",
    derive = "PartialEq",
    doc = "A TiDB cluster: PD, TiKV, TiDB, TiFlash, TiCDC, TiProxy and Pump.",
    scale(
        spec_replicas_path = ".spec.tikv.replicas",
        status_replicas_path = ".status.tikv.statefulSet.replicas",
        label_selector_path = ".status.tikv.selector"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "PD", type_ = "string", description = "The image of PD", json_path = ".status.pd.image"),
    printcolumn(
        name = "Storage",
        type_ = "string",
        description = "The size of PD's volumes",
        json_path = ".spec.pd.requests.storage"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        description = "How many PDs are ready",
        json_path = ".status.pd.statefulSet.readyReplicas"
    ),
    printcolumn(
        name = "Desire",
        type_ = "integer",
        description = "How many PDs are asked for",
        json_path = ".spec.pd.replicas"
    ),
    printcolumn(name = "TiKV", type_ = "string", description = "The image of TiKV", json_path = ".status.tikv.image"),
    printcolumn(
        name = "Storage",
        type_ = "string",
        description = "The size of TiKV's volumes",
        json_path = ".spec.tikv.requests.storage"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        description = "How many TiKVs are ready",
        json_path = ".status.tikv.statefulSet.readyReplicas"
    ),
    printcolumn(
        name = "Desire",
        type_ = "integer",
        description = "How many TiKVs are asked for",
        json_path = ".spec.tikv.replicas"
    ),
    printcolumn(name = "TiDB", type_ = "string", description = "The image of TiDB", json_path = ".status.tidb.image"),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        description = "How many TiDBs are ready",
        json_path = ".status.tidb.statefulSet.readyReplicas"
    ),
    printcolumn(
        name = "Desire",
        type_ = "integer",
        description = "How many TiDBs are asked for",
        json_path = ".spec.tidb.replicas"
    ),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TidbClusterSpec {
    /// The version of all components: the tag of their images, as v8.5.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Stops the operator: nothing is written for this cluster, its objects and its members stay as they are. Status goes on, and so
    /// does discovery.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Stop all components and keep their data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_action: Option<SuspendAction>,
    /// The cluster is restored from snapshots of volumes: TiKV waits for them, and TiDB for the end of this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovery_mode: bool,
    /// What becomes of volumes whose claims are deleted: Retain, Delete or Recycle. Retain when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pv_reclaim_policy: Option<String>,
    /// Delete the claims of members that were removed.
    #[serde(default, rename = "enablePVReclaim", skip_serializing_if = "Option::is_none")]
    pub enable_pv_reclaim: Option<bool>,
    /// Replace volumes by others when their claims cannot be changed.
    #[serde(default, rename = "enablePVCReplace", skip_serializing_if = "Option::is_none")]
    pub enable_pvc_replace: Option<bool>,
    /// Whether another configuration restarts pods (RollingUpdate) or waits for the next restart (InPlace). InPlace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self in ['', 'InPlace', 'RollingUpdate']", "configUpdateStrategy must be InPlace or RollingUpdate"))]
    pub config_update_strategy: Option<String>,
    /// When images are pulled. IfNotPresent when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<Part<LocalObjectReference>>>,
    /// Who schedules the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Nodes that may run pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<Texts>,
    /// Taints that pods tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Part<Toleration>>>,
    /// Where pods may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Part<Affinity>>,
    /// The priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Use the network of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// The DNS settings of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<Part<PodDNSConfig>>,
    /// The DNS policy of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_policy: Option<String>,
    /// The security context of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<Part<PodSecurityContext>>,
    /// How pods are spread over nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Texts>,
    /// Labels of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Texts>,
    /// The service account of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Who replaces pods: the operator (RollingUpdate), or you (OnDelete). RollingUpdate when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set_update_strategy: Option<String>,
    /// Whether pods are made at once (Parallel) or one after the other (OrderedReady). Parallel when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_management_policy: Option<String>,
    /// The time zone of the pods. UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Certificates between components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cluster: Option<TlsCluster>,
    /// Another TidbCluster whose PD the components join. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRef>,
    /// The DNS domain of this Kubernetes, as cluster.local. Hosts are named without one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_domain: Option<String>,
    /// Whether the cluster runs on more than one Kubernetes. Not supported yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across_k8s: bool,
    /// PDs elsewhere that the cluster's PDs join. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pd_addresses: Option<Vec<String>>,
    /// Tell others where each TiKV tells its status, so that its configuration can be changed by SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_dynamic_configuration: Option<bool>,
    /// Which scripts start the components: v1 or v2. v1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self in ['', 'v1', 'v2']", "startScriptVersion must be v1 or v2"))]
    pub start_script_version: Option<String>,
    /// What the scripts of v2 do beside: WaitForDnsNameIpMatch, PreferPDAddressesOverDiscovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_script_v2_feature_flags: Option<Vec<String>>,
    /// Prefer addresses of IPv6.
    #[serde(default, rename = "preferIPv6", skip_serializing_if = "std::ops::Not::not")]
    pub prefer_ipv6: bool,
    /// The containers that print logs and set kernel parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<HelperSpec>,
    /// The types of Services. Use the service field of each component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<ServiceType>>,
    /// The program that lets the first PD found the cluster, and all others join it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoverySpec>,
    /// PD: metadata, time, and who holds what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pd: Option<PdSpec>,
    /// Parts of PD that run on their own. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdms: Option<Vec<PdMicroService>>,
    /// TiKV: the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tikv: Option<TikvSpec>,
    /// TiDB: speaks SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tidb: Option<TidbSpec>,
    /// TiFlash: the columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiflash: Option<TiflashSpec>,
    /// TiCDC: tells others of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticdc: Option<TicdcSpec>,
    /// TiProxy: stands before TiDB and moves connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiproxy: Option<TiproxySpec>,
    /// Pump: writes binlogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pump: Option<PumpSpec>,
}

/// Certificates between components.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsCluster {
    /// Whether components show certificates to each other. They are in the Secrets NAME-COMPONENT-cluster-secret and
    /// NAME-cluster-client-secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Whether discovery does as well. Its certificate is in the Secret NAME-discovery-cluster-secret.
    #[serde(default, rename = "enableDiscoveryMTLS", skip_serializing_if = "std::ops::Not::not")]
    pub enable_discovery_mtls: bool,
}

/// Names another TidbCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// Its namespace. This one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The DNS domain of its Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_domain: Option<String>,
}

/// The containers that print logs and set kernel parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelperSpec {
    /// Their image. busybox:1.26.2 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When that is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
}
