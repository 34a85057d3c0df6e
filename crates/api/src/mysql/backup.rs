//! When and how clusters are backed up.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SCHEDULE;
use super::job::JobConfig;

/// When and how the clusters that name this policy are backed up.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "moco.cybozu.com",
    version = "v1beta2",
    kind = "BackupPolicy",
    plural = "backuppolicies",
    namespaced,
    derive = "PartialEq",
    doc = "When and how MySQLClusters of this namespace are backed up. A cluster names its policy in spec.backupPolicyName."
)]
#[serde(rename_all = "camelCase")]
pub struct BackupPolicySpec {
    /// When, in the form of cron: five fields, or @daily and the like.
    #[schemars(length(min = 1), regex(pattern = SCHEDULE))]
    pub schedule: String,

    /// The time zone of the schedule. That of the CronJob controller when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,

    /// The pod that takes the backup.
    pub job_config: JobConfig,

    /// By how many seconds a backup may begin late. It does not matter when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,

    /// What happens when the next backup is due and the last one still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ConcurrencyPolicy::Allow))]
    pub concurrency_policy: Option<ConcurrencyPolicy>,

    /// How many seconds a backup may take. As long as it needs when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,

    /// How often a failed backup is tried again. 6 times when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// How many Jobs that succeeded are kept. 3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,

    /// How many Jobs that failed are kept. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What happens when the next backup is due and the last one still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Both run.
    Allow,
    /// The next one is left out.
    Forbid,
    /// The last one is ended.
    Replace,
}
