//! PD, and its micro services.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::base::ComponentSpec;
use super::config::Config;
use super::service::ServiceSpec;
use super::storage::StorageVolume;

/// PD: metadata, time, and who holds what.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.requests) && 'storage' in self.requests", "pd.requests.storage is needed: the size of its data volume"))]
pub struct PdSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many members there are.
    pub replicas: u16,
    /// The image without its tag. pingcap/pd when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// Its Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceSpec>,
    /// How many members may be added in place of failed ones; none with 0. 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failover_count: Option<u16>,
    /// The storage class of the data volume. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Further volumes that each member gets of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_volumes: Option<Vec<StorageVolume>>,
    /// The directory of the data inside its volume. The volume's root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sub_dir: Option<String>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// The Secret with the certificate that the dashboard shows to TiDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client_secret_name: Option<String>,
    /// Sets dashboard.internal-proxy of the configuration. Use that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_dashboard_internal_proxy: Option<bool>,
    /// Whether pods get the certificate of the cluster's clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_cluster_client_secret: Option<bool>,
    /// Use startScriptVersion of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up_script_version: Option<String>,
    /// How many seconds a member waits for its own name to be known. 30 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<u32>,
    /// How many seconds a member waits before it looks for its own name. 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_wait_time: Option<u32>,
    /// Run parts of PD as services of their own: ms. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self in ['', 'ms']", "mode must be ms or absent"))]
    pub mode: Option<String>,
    /// How many members are added while volumes are replaced. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_vol_replace_replicas: Option<u16>,
}

/// A part of PD that runs on its own. Not supported yet; kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PdMicroService {
    /// Which part: tso or scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: Map<String, Value>,
}
