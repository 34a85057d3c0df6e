//! The components that hold data: TiKV and TiFlash.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::{ComponentSpec, Resources};
use super::config::Config;
use super::storage::{StorageClaim, StorageVolume};

/// How many members are added or removed at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalePolicy {
    /// How many members are removed at once. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub scale_in_parallelism: Option<u16>,
    /// How many members are added at once. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub scale_out_parallelism: Option<u16>,
}

/// What becomes of members that were added in place of failed ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failover {
    /// Remove them, if status names this failoverUID.
    #[serde(default, rename = "recoverByUID", skip_serializing_if = "Option::is_none")]
    pub recover_by_uid: Option<String>,
}

/// TiKV: the rows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.requests) && 'storage' in self.requests", "tikv.requests.storage is needed: the size of its data volume"))]
pub struct TikvSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many stores there are.
    pub replicas: u16,
    /// The image without its tag. pingcap/tikv when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// Run the container with all rights of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// How many stores may be added in place of failed ones; none with 0. 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failover_count: Option<u16>,
    /// Whether a container of its own prints the log of RocksDB.
    #[serde(default, rename = "separateRocksDBLog", skip_serializing_if = "Option::is_none")]
    pub separate_rocks_db_log: Option<bool>,
    /// Whether a container of its own prints the log of Raft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate_raft_log: Option<bool>,
    /// The volume of the log of RocksDB. That of the data when absent.
    #[serde(default, rename = "rocksDBLogVolumeName", skip_serializing_if = "Option::is_none")]
    pub rocks_db_log_volume_name: Option<String>,
    /// The volume of the log of Raft. That of the data when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raft_log_volume_name: Option<String>,
    /// The resources of the containers that print logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tailer: Option<Resources>,
    /// The storage class of the data volume. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Further volumes that each store gets of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_volumes: Option<Vec<StorageVolume>>,
    /// The directory of the data inside its volume. The volume's root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sub_dir: Option<String>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Remove the stores that were added in place of failed ones, once those are back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recover_failover: bool,
    /// What becomes of stores that were added in place of failed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
    /// Whether pods get the certificate of the cluster's clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_cluster_client_secret: Option<bool>,
    /// How long leaders are waited for before a store is restarted all the same, as 25m. 1500m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict_leader_timeout: Option<String>,
    /// How long leaders are waited for after a restart, as 400s. 400s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_leader_transfer_back_timeout: Option<String>,
    /// Labels of nodes that stores get as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_labels: Option<Vec<String>>,
    /// Name the port for status in the pods.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_named_status_port: bool,
    /// How many stores are added or removed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_policy: Option<ScalePolicy>,
    /// How many stores are added while volumes are replaced. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_vol_replace_replicas: Option<u16>,
}

/// TiFlash: the columns.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiflashSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many stores there are.
    pub replicas: u16,
    /// The image without its tag. pingcap/tiflash when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// Run the container with all rights of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// How many stores may be added in place of failed ones; none with 0. 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failover_count: Option<u16>,
    /// The disks that each store gets of its own.
    #[schemars(length(min = 1, max = 100))]
    pub storage_claims: Vec<StorageClaim>,
    /// Its configuration, and that of its proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<TiflashConfig>,
    /// The resources of the container that prepares the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Resources>,
    /// The resources of the containers that print logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tailer: Option<Resources>,
    /// Remove the stores that were added in place of failed ones, once those are back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recover_failover: bool,
    /// What becomes of stores that were added in place of failed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<Failover>,
    /// How many stores are added or removed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_policy: Option<ScalePolicy>,
}

/// The configuration of TiFlash.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiflashConfig {
    /// Of TiFlash itself: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Of its proxy: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Config>,
}
