//! What the user asks for.

#![expect(clippy::struct_excessive_bools, reason = "the fields are those that users know")]

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::SCHEDULE;
use super::restore::RestoreSpec;
use super::status::MySQLClusterStatus;
use super::template::{ClaimTemplate, PodTemplate, ServiceTemplate};

/// `replicas` when absent.
pub const DEFAULT_REPLICAS: u16 = 1;
/// `maxDelaySeconds` when absent.
pub const DEFAULT_MAX_DELAY_SECONDS: i64 = 60;
/// `startupWaitSeconds` when absent.
pub const DEFAULT_STARTUP_WAIT_SECONDS: i32 = 3600;

/// What the user asks for.
#[allow(clippy::duplicated_attributes, reason = "each printer column repeats its type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "moco.cybozu.com",
    version = "v1beta2",
    kind = "MySQLCluster",
    plural = "mysqlclusters",
    namespaced,
    category = "windlass",
    status = "MySQLClusterStatus",
    derive = "PartialEq",
    doc = "A MySQL server and its replicas, with semi-synchronous replication and failover.",
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Available')].status"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Healthy')].status"
    ),
    printcolumn(name = "Primary", type_ = "integer", json_path = ".status.currentPrimaryIndex"),
    printcolumn(name = "Synced replicas", type_ = "integer", json_path = ".status.syncedReplicas"),
    printcolumn(name = "Errant replicas", type_ = "integer", json_path = ".status.errantReplicas"),
    printcolumn(
        name = "Clustering Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='ClusteringActive')].status"
    ),
    printcolumn(
        name = "Reconcile Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='ReconciliationActive')].status"
    ),
    // A string, not a date: before the first backup the time is null, and prints as it always did.
    printcolumn(name = "Last backup", type_ = "string", json_path = ".status.backup.time"),
    // Judged at birth only: a cluster that has a longer name already must stay editable.
    validation = kube::core::Rule::new("oldSelf.hasValue() || size(self.metadata.name) <= 40")
        .message("metadata.name may have at most 40 characters: StatefulSet and CronJob are named after it")
        .optional_old_self(true)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("(has(self.replicas) ? self.replicas : 1) >= (has(oldSelf.replicas) ? oldSelf.replicas : 1)", "replicas may not decrease"),
    validation = ("!has(self.replicationSourceSecretName) || (has(oldSelf.replicationSourceSecretName) && self.replicationSourceSecretName == oldSelf.replicationSourceSecretName)", "replicationSourceSecretName may be removed, but neither added to an existing cluster nor changed"),
    validation = ("has(self.restore) == has(oldSelf.restore) && (!has(self.restore) || self.restore == oldSelf.restore)", "restore may not be changed"),
    validation = ("(has(self.disableSlowQueryLogContainer) && self.disableSlowQueryLogContainer) || self.podTemplate.spec.containers.all(c, c.name != 'slow-log')", "the container name slow-log is reserved unless disableSlowQueryLogContainer is true"),
    validation = ("!has(self.collectors) || size(self.collectors) == 0 || self.podTemplate.spec.containers.all(c, c.name != 'mysqld-exporter')", "the container name mysqld-exporter is reserved when there are collectors")
)]
pub struct MySQLClusterSpec {
    /// How many instances there are: an odd number, which may grow and not shrink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = DEFAULT_REPLICAS))]
    #[x_kube(validation = ("self % 2 == 1", "replicas must be odd"))]
    pub replicas: Option<u16>,

    /// The instances' pods.
    pub pod_template: PodTemplate,

    /// Claims that each instance gets of its own. The one called mysql-data holds the data.
    #[schemars(length(min = 1, max = 100))]
    #[x_kube(validation = ("self.exists(t, has(t.metadata.name) && t.metadata.name == 'mysql-data')", "a claim must be called mysql-data"))]
    pub volume_claim_templates: Vec<ClaimTemplate>,

    /// What the Service of the primary gets beside what the operator needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_service_template: Option<ServiceTemplate>,

    /// What the Service of the replicas gets beside what the operator needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_service_template: Option<ServiceTemplate>,

    /// A ConfigMap of this namespace with settings of the server, one per key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mysql_config_map_name: Option<String>,

    /// A Secret of this namespace that names a server elsewhere, which this cluster replicates from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication_source_secret_name: Option<String>,

    /// What mysqld_exporter collects. There is no exporter when this is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collectors: Option<Vec<String>>,

    /// The server_id of the first instance; the others follow. The operator chooses when it is 0 or absent.
    #[serde(default, rename = "serverIDBase", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub server_id_base: Option<i32>,

    /// By how many seconds a replica may lag and still be ready. With 0 it may lag as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = DEFAULT_MAX_DELAY_SECONDS))]
    pub max_delay_seconds: Option<i64>,

    /// By how many seconds replicas may lag before the primary's pod is protected from deletion. With 0 it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub max_delay_seconds_for_pod_deletion: Option<i64>,

    /// How many seconds a server may take to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = DEFAULT_STARTUP_WAIT_SECONDS))]
    pub startup_wait_seconds: Option<i32>,

    /// When logs are rotated, in the form of cron: five fields, @hourly and the like, or @every 10m. Every five minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = SCHEDULE))]
    pub log_rotation_schedule: Option<String>,

    /// Logs that are larger than so many bytes are rotated too. With 0 their size does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub log_rotation_size: Option<i64>,

    /// The BackupPolicy of this namespace that says when and how the cluster is backed up. There are no backups when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_policy_name: Option<String>,

    /// Which data the cluster begins with. None when absent. It is said when the cluster is created, and never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,

    /// Leave out the container that prints the log of slow queries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_slow_query_log_container: bool,

    /// The configuration of that container, a template whose one variable is .Path: the log's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_query_log_config_tmpl: Option<String>,

    /// Reach the server's administrative port within the pod alone, as a service mesh may need it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_use_localhost: bool,

    /// Load the tables of time zones when the data directory is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub initialize_timezone_data: bool,

    /// Stop all instances and keep their data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
}
