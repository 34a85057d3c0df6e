//! What a spec means once it was found good. Whatever is built or planned starts from [`Validated`], never from the raw spec.
//!
//! All that is wrong is told at once: the field, and what to do. What depends on other objects (the ConfigMap with settings, a storage
//! class, a policy of backups) is not judged here, and neither is a change: there is only what is asked for now.

mod pods;
mod schedule;

use std::fmt::Display;

use kube::Resource as _;
use thiserror::Error;
use windlass_api::mysql::{ContainerTemplate, DEFAULT_REPLICAS, MySQLCluster, MySQLClusterSpec, keys};
use windlass_core::step::Owner;

use super::build::Names;

/// The longest name of a cluster: what a `StatefulSet` and a CronJob that are named after it leave of theirs.
const LONGEST_NAME: usize = 40;
/// The container of the server.
pub(super) const MYSQLD: &str = "mysqld";

/// A spec that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", problems.join("; "))]
pub struct Invalid {
    /// What is wrong: each names the field and says what to do.
    pub problems: Vec<String>,
}

/// A spec that was found good.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The cluster's name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// Who owns what is built.
    pub owner: Owner,
    /// How many instances there are: an odd number.
    pub replicas: u16,
    /// Whether they are stopped, and their data is kept.
    pub offline: bool,
    /// Whether all instances may be replaced without waiting for one after the other.
    pub force_rolling_update: bool,
    /// The server's container, as the user wrote it.
    pub mysqld: ContainerTemplate,
    /// The rest, as the user wrote it.
    pub spec: MySQLClusterSpec,
}

impl Validated {
    /// The names of its objects.
    pub fn names(&self) -> Names<'_> {
        Names::new(&self.name, &self.namespace)
    }
}

/// What is wrong, as far as it was found.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn tell(&mut self, field: impl Display, problem: impl Display) {
        self.0.push(format!("{field}: {problem}"));
    }
}

/// Judges a spec.
pub fn validate(resource: &MySQLCluster) -> Result<Validated, Invalid> {
    let (metadata, spec) = (&resource.metadata, &resource.spec);
    let name = metadata.name.clone().unwrap_or_default();
    let replicas = spec.replicas.unwrap_or(DEFAULT_REPLICAS);
    let mut problems = Problems::default();
    check_name(&name, &mut problems);
    if replicas % 2 == 0 {
        let problem = format!("{replicas} is even; write 1, 3 or another odd number, and spec.offline to stop the cluster");
        problems.tell("spec.replicas", problem);
    }
    check_numbers(spec, &mut problems);
    if let Some(schedule) = spec.log_rotation_schedule.as_deref().filter(|schedule| !schedule.is_empty())
        && let Err(why) = schedule::check(schedule)
    {
        let problem = format!("{schedule:?}: {why}; write five fields such as \"*/5 * * * *\", or @hourly, @daily, @every 10m");
        problems.tell("spec.logRotationSchedule", problem);
    }
    pods::check(spec, &mut problems);
    let mysqld = spec.pod_template.spec.containers.iter().find(|container| container.name == MYSQLD);
    match mysqld {
        Some(mysqld) if problems.0.is_empty() => Ok(Validated {
            owner: Owner {
                api_version: MySQLCluster::api_version(&()).into_owned(),
                kind: MySQLCluster::kind(&()).into_owned(),
                name: name.clone(),
                uid: metadata.uid.clone().unwrap_or_default(),
            },
            name,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            replicas,
            offline: spec.offline,
            force_rolling_update: is_true(resource, keys::FORCE_ROLLING_UPDATE),
            mysqld: mysqld.clone(),
            spec: spec.clone(),
        }),
        _ => Err(Invalid { problems: problems.0 }),
    }
}

/// What is wrong with a schedule in the form of cron, if anything is.
pub(super) fn check_schedule(text: &str) -> Result<(), String> {
    schedule::check(text)
}

fn is_true(resource: &MySQLCluster, annotation: &str) -> bool {
    resource.metadata.annotations.iter().flatten().any(|(key, value)| key == annotation && value == "true")
}

fn check_name(name: &str, problems: &mut Problems) {
    let field = "metadata.name";
    if name.len() > LONGEST_NAME {
        let length = name.len();
        let problem =
            format!("it has {length} characters and may have at most {LONGEST_NAME}; create the cluster under a shorter name");
        problems.tell(field, problem);
    }
    // Custom resources may have dots in their names, Services may not.
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.ends_with('-') || !name.bytes().all(is_allowed) {
        let problem = format!(
            "{name:?} cannot be part of a Service's name: create the cluster under a name of lower-case letters, digits and \"-\", not \"-\" at its end"
        );
        problems.tell(field, problem);
    }
}

fn check_numbers(spec: &MySQLClusterSpec, problems: &mut Problems) {
    let numbers = [
        ("spec.serverIDBase", spec.server_id_base.map(i64::from), "let the operator choose"),
        ("spec.maxDelaySeconds", spec.max_delay_seconds, "let replicas lag as they like"),
        ("spec.maxDelaySecondsForPodDeletion", spec.max_delay_seconds_for_pod_deletion, "never protect the primary's pod"),
        ("spec.startupWaitSeconds", spec.startup_wait_seconds.map(i64::from), "wait as short as possible"),
        ("spec.logRotationSize", spec.log_rotation_size, "rotate logs of any size by their schedule alone"),
    ];
    for (field, number, meaning) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            problems.tell(field, format!("{number} is less than nothing; write 0 to {meaning}"));
        }
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
