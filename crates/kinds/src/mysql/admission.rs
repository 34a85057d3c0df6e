//! What the webhook answers: the controller's own rules, told before an object is stored, and what is filled in at a cluster's birth.
//!
//! Only what a request makes worse is refused. What was wrong before must not keep anybody from changing something else, from deleting the
//! cluster, or the controller from taking its finalizer off. What the definitions refuse (fewer instances, another source of replication,
//! another restore) is not told twice.

use serde_json::{Value, json};
use windlass_api::mysql::{BackupPolicy, MySQLCluster, keys};

use super::scene::SERVER_IDS;
use super::validate::{Invalid, check_schedule, validate};

/// Judges a cluster that is made, or changed from another state.
pub fn judge_cluster(old: Option<&MySQLCluster>, new: &MySQLCluster) -> Result<(), Invalid> {
    if new.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let problems = |cluster| validate(cluster).err().map(|it: Invalid| it.problems).unwrap_or_default();
    let before = old.map(problems).unwrap_or_default();
    refuse(problems(new).into_iter().filter(|problem| !before.contains(problem)).collect())
}

/// Judges a policy that is made, or changed from another state.
pub fn judge_policy(old: Option<&BackupPolicy>, new: &BackupPolicy) -> Result<(), Invalid> {
    let schedule = new.spec.schedule.as_str();
    if new.metadata.deletion_timestamp.is_some() || old.is_some_and(|old| old.spec.schedule == schedule) {
        return Ok(());
    }
    let zoned = schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=");
    let wrong = if zoned { Some("write the time zone into spec.timeZone".to_owned()) } else { check_schedule(schedule).err() };
    refuse(wrong.map(|why| format!("spec.schedule: {schedule:?}: {why}")).into_iter().collect())
}

/// Judges the end of a policy, by the clusters of its namespace and the policies that they name.
pub fn judge_removal(namespace: &str, policy: &str, clusters: &[(String, Option<String>)]) -> Result<(), Invalid> {
    let users = clusters.iter().filter(|(_, named)| named.as_deref() == Some(policy));
    refuse(users.map(|(name, _)| format!("MySQLCluster {namespace}/{name} has a reference to this policy")).collect())
}

fn refuse(problems: Vec<String>) -> Result<(), Invalid> {
    if problems.is_empty() { Ok(()) } else { Err(Invalid { problems }) }
}

/// What a new cluster lacks, as operations of a JSON Patch: the finalizer, and the first server id, made of this number. The object is
/// as the user sent it, and nobody has looked at it yet.
pub fn complete(cluster: &Value, number: u32) -> Vec<Value> {
    let mut operations = Vec::new();
    match cluster["metadata"]["finalizers"].as_array() {
        None => operations.push(json!({ "op": "add", "path": "/metadata/finalizers", "value": [keys::FINALIZER] })),
        Some(all) if !all.iter().any(|it| it == keys::FINALIZER) => {
            operations.push(json!({ "op": "add", "path": "/metadata/finalizers/-", "value": keys::FINALIZER }));
        }
        Some(_) => {}
    }
    let base = &cluster["spec"]["serverIDBase"];
    if cluster["spec"].is_object() && (base.is_null() || *base == 0) {
        operations.push(json!({ "op": "add", "path": "/spec/serverIDBase", "value": number % SERVER_IDS + 1 }));
    }
    operations
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
