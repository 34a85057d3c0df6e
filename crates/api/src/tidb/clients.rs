//! The components that hold no data of the cluster's: TiDB, TiCDC, TiProxy and Pump.

use k8s_openapi::api::core::v1::Lifecycle;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::{ComponentSpec, Resources};
use super::config::Config;
use super::service::TidbServiceSpec;
use super::storage::StorageVolume;
use super::stores::ScalePolicy;
use crate::part::Part;

/// TiDB: speaks SQL.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many servers there are.
    pub replicas: u16,
    /// The image without its tag. pingcap/tidb when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// The Service that clients use. There is none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<TidbServiceSpec>,
    /// Whether binlogs are written. They are when there is a Pump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog_enabled: Option<bool>,
    /// How many servers may be added in place of failed ones; none with 0. 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failover_count: Option<u16>,
    /// Whether a container of its own prints the log of slow queries. It does when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate_slow_log: Option<bool>,
    /// The volume of the log of slow queries. One that ends with the pod when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_log_volume_name: Option<String>,
    /// The container that prints the log of slow queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_log_tailer: Option<SlowLogTailer>,
    /// Certificates between clients and servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client: Option<TlsClient>,
    /// Whether clients may show tokens instead of passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_based_auth_enabled: Option<bool>,
    /// Plugins that servers load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<String>>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// What happens after a container starts and before it ends, as in a Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Part<Lifecycle>>,
    /// Volumes that each server gets of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_volumes: Option<Vec<StorageVolume>>,
    /// The storage class of these volumes. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// What is done once, when the cluster begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<TidbInitializer>,
    /// A ConfigMap with statements, in its key bootstrap-sql, that run once, when the cluster begins. It is said when the cluster is
    /// created.
    #[serde(default, rename = "bootstrapSQLConfigMapName", skip_serializing_if = "Option::is_none")]
    pub bootstrap_sql_config_map_name: Option<String>,
    /// How many servers are added or removed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_policy: Option<ScalePolicy>,
    /// A program of your own that tells whether a server has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customized_startup_probe: Option<CustomizedProbe>,
    /// Further arguments of the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
}

/// The container that prints the log of slow queries.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowLogTailer {
    /// Its resources.
    #[serde(flatten)]
    pub resources: Resources,
    /// Its image. Use helper.image of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When that is pulled. Use helper.imagePullPolicy of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
}

/// Certificates between clients and TiDB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsClient {
    /// Whether servers show a certificate. It is in the Secret NAME-tidb-server-secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Ask clients for no certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_client_authn: bool,
    /// Let the cluster's own clients take any certificate of servers.
    #[serde(default, rename = "skipInternalClientCA", skip_serializing_if = "std::ops::Not::not")]
    pub skip_internal_client_ca: bool,
}

/// What is done once, when the cluster begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbInitializer {
    /// Give root a password, and keep it in a Secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_password: bool,
}

/// A program that tells whether a server has started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizedProbe {
    /// The image with the program, at its root.
    pub image: String,
    /// The program's name.
    pub binary_name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// After how many seconds the first probe comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay_seconds: Option<i32>,
    /// How many seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// How many seconds lie between two probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// How many successes count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<i32>,
    /// How many failures count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<i32>,
}

/// TiCDC: tells others of changes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicdcSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many captures there are.
    pub replicas: u16,
    /// Secrets with the certificates that are shown to those who are told, mounted at /var/lib/sink-tls/NAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client_secret_names: Option<Vec<String>>,
    /// The image without its tag. pingcap/ticdc when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Volumes that each capture gets of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_volumes: Option<Vec<StorageVolume>>,
    /// The storage class of these volumes. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// How long a capture may take to hand its tables over before it is ended, as 10m. 10m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_shutdown_timeout: Option<String>,
}

/// TiProxy: stands before TiDB and moves connections.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiproxySpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many proxies there are.
    pub replicas: u16,
    /// Whether connections to TiDB are encrypted.
    #[serde(default, rename = "sslEnableTiDB", skip_serializing_if = "std::ops::Not::not")]
    pub ssl_enable_tidb: bool,
    /// The Secret with the certificate that is shown to TiDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_client_secret_name: Option<String>,
    /// How certificates are laid out: v1 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_layout: Option<String>,
    /// The image without its tag. pingcap/tiproxy when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Volumes that each proxy gets of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_volumes: Option<Vec<StorageVolume>>,
    /// The storage class of these volumes. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// Pump: writes binlogs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.requests) && 'storage' in self.requests", "pump.requests.storage is needed: the size of its data volume"))]
pub struct PumpSpec {
    /// What every component has.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many pumps there are.
    pub replicas: u16,
    /// The image without its tag. pingcap/tidb-binlog when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<String>,
    /// The storage class of the data volume. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Its configuration: a map, or the text of a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Config>,
    /// Whether pods get the cluster's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_time_zone: Option<bool>,
}
