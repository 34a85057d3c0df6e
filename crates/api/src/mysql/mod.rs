//! `MySQLCluster` and `BackupPolicy` (moco.cybozu.com/v1beta2): MySQL with semi-synchronous replication, and its backups.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

mod backup;
pub mod conditions;
mod job;
pub mod keys;
mod restore;
mod spec;
mod status;
mod template;
#[cfg(test)]
mod tests;

pub use crate::part::{Part, read};
pub use backup::{BackupPolicy, BackupPolicySpec, ConcurrencyPolicy};
pub use job::{BackendType, BucketConfig, DEFAULT_BACKEND_TYPE, DEFAULT_CPU, DEFAULT_MEMORY, DEFAULT_THREADS, JobConfig};
pub use restore::RestoreSpec;
pub use spec::{DEFAULT_MAX_DELAY_SECONDS, DEFAULT_REPLICAS, DEFAULT_STARTUP_WAIT_SECONDS, MySQLCluster, MySQLClusterSpec};
pub use status::{BackupStatus, MySQLClusterStatus, ReconcileInfo};
pub use template::{
    ClaimResources, ClaimSpec, ClaimTemplate, ContainerTemplate, Metadata, OverwriteContainer, PodSpecTemplate, PodTemplate,
    PortTemplate, ServiceTemplate, SystemContainer, VolumeTemplate,
};

/// Their definitions. They are not installed before something serves them: nobody would answer.
pub fn custom_resource_definitions() -> Vec<CustomResourceDefinition> {
    [MySQLCluster::crd(), BackupPolicy::crd()].into_iter().map(crate::schema::fit).collect()
}

/// What a cron schedule looks like: five fields or a word, after a time zone or not. It is nothing at all where a schedule may be
/// left out. A pattern cannot tell that the 31st of February never comes; whoever makes the schedule run finds out.
const SCHEDULE: &str = r"^(((CRON_)?TZ=\S+\s+)?(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|@every \S+|\s*[0-9A-Za-z*/,?-]+(\s+[0-9A-Za-z*/,?-]+){4}\s*))?$";
