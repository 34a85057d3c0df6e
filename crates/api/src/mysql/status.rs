//! What the operator, the backup and the restore report.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient::or_default;

/// What the operator reports.
///
/// Reading is lenient: whatever somebody wrote here, the object can still be read, and the next commit heals it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MySQLClusterStatus {
    /// The generation of the spec that was last acted upon.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the cluster, one entry per type.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The ordinal of the primary. 0 in the beginning.
    #[serde(default, deserialize_with = "or_default")]
    pub current_primary_index: u16,
    /// How many instances are ready, the primary among them.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub synced_replicas: Option<u16>,
    /// How many replicas have transactions that the primary does not have.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub errant_replicas: Option<u16>,
    /// The ordinals of these replicas.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub errant_replica_list: Vec<u16>,
    /// The last backup that succeeded.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupStatus>,
    /// When the data of spec.restore was restored.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub restored_time: Option<Time>,
    /// Whether the data of the replication source has been copied.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub cloned: bool,
    /// What was last reconciled.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub reconcile_info: Option<ReconcileInfo>,
}

/// A backup that succeeded. Written by the Job that took it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// When it was taken. Its files are named after it. Null before the first one.
    #[serde(default, deserialize_with = "or_default")]
    pub time: Option<Time>,
    /// How long it took, for example 1m30s.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<String>,
    /// The ordinal of the instance that it was taken from.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub source_index: Option<u16>,
    /// The server_uuid of that instance.
    #[serde(default, deserialize_with = "or_default", rename = "sourceUUID", skip_serializing_if = "Option::is_none")]
    pub source_uuid: Option<String>,
    /// The server_uuid of each instance that it could have been taken from, by ordinal.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub uuid_set: Option<BTreeMap<String, String>>,
    /// The binary log that the instance wrote to.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub binlog_filename: Option<String>,
    /// The transactions in the dump.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub gtid_set: Option<String>,
    /// The size of the dump in bytes.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub dump_size: Option<i64>,
    /// The size of the binary logs in bytes.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub binlog_size: Option<i64>,
    /// How many bytes of the work volume were used at most.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub work_dir_usage: Option<i64>,
    /// What went wrong without making the backup useless.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

/// What was last reconciled.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileInfo {
    /// The generation of the spec that was last reconciled.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The version of the way in which it was reconciled.
    #[serde(default, deserialize_with = "or_default")]
    pub reconcile_version: i32,
}
