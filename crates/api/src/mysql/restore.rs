//! A cluster that begins with the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::JobConfig;

/// Which data a new cluster begins with.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSpec {
    /// The name of the cluster that the backup was taken of.
    #[schemars(length(min = 1))]
    pub source_name: String,
    /// The namespace of that cluster.
    #[schemars(length(min = 1))]
    pub source_namespace: String,
    /// The moment whose data is wanted, for example 2026-01-31T12:00:00Z.
    pub restore_point: Time,
    /// The pod that restores.
    pub job_config: JobConfig,
    /// The only schema to restore. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The only users to restore, with commas between them. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<String>,
}
