//! What a spec means once it was found good. Whatever is built or planned starts from [`Validated`], never from the raw spec.
//!
//! Most bad input is refused by the schema. What passes it and is still wrong is named here: the field, and the accepted form.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ServicePort;
use thiserror::Error;
use windlass_api::ReplicatedStatefulSet;
use windlass_api::replicated::{Command, PodPolicy, ReplicatedStatefulSetSpec};
use windlass_core::kind::{Kind as _, Observed};
use windlass_core::names::ReplicatedNames;
use windlass_core::step::Owner;

use super::Replicated;
use super::duration::parse_duration;
use super::hooks::{About, Deed};

const DEFAULT_REPLICAS: u16 = 3;
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
const DEFAULT_STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// A field that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct Invalid {
    /// The path of the field.
    pub field: String,
    /// What is wrong and what is accepted.
    pub problem: String,
}

impl Invalid {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// A spec that was found good, with its defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The names of its objects.
    pub names: ReplicatedNames,
    /// The namespace.
    pub namespace: String,
    /// Who owns what is built.
    pub owner: Owner,
    /// How many members.
    pub replicas: u16,
    /// How many of them are primaries.
    pub primaries: u16,
    /// How often quiet members are asked.
    pub interval: Duration,
    /// The ports of the Services.
    pub ports: Vec<ServicePort>,
    /// The rest, as the user wrote it.
    pub spec: ReplicatedStatefulSetSpec,
}

/// Judges a spec.
pub fn validate(resource: &ReplicatedStatefulSet) -> Result<Validated, Invalid> {
    let metadata = &resource.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let spec = &resource.spec;
    let names = ReplicatedNames::new(&name).map_err(|error| Invalid::new("metadata.name", error.to_string()))?;
    let replicas = spec.replicas.unwrap_or(DEFAULT_REPLICAS);
    let primaries = spec.primaries.unwrap_or(replicas);
    if replicas > 0 && primaries > replicas {
        return Err(Invalid::new("spec.primaries", format!("{primaries} is more than spec.replicas ({replicas})")));
    }
    if replicas > 0 && primaries == 0 {
        return Err(Invalid::new("spec.primaries", "0 is no cluster; write at least 1, or leave it out"));
    }
    if primaries < replicas && spec.pod.commands.secondary.is_none() {
        return Err(Invalid::new("spec.pod.commands.secondary", "is needed when spec.primaries is smaller than spec.replicas"));
    }
    let interval = match &spec.reconcile_interval {
        None => DEFAULT_INTERVAL,
        Some(text) => parse_duration(text).map_err(|error| Invalid::new("spec.reconcileInterval", error.to_string()))?,
    };
    if interval.is_zero() {
        return Err(Invalid::new("spec.reconcileInterval", "members need a pause between two questions; leave it out for 1m"));
    }
    check_pod(&spec.pod)?;
    check_secrets(&spec.secrets)?;
    let ports = spec.service_ports.clone().unwrap_or_default();
    if ports.len() > 1 && ports.iter().any(|port| port.name.is_none()) {
        return Err(Invalid::new("spec.servicePorts", "each port needs a name when there are several"));
    }
    Ok(Validated {
        names,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        owner: Replicated::owner(resource),
        replicas,
        primaries,
        interval,
        ports,
        spec: spec.clone(),
    })
}

/// A cluster as far as it can be understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Understood {
    /// The spec, if it is good; else what runs now, with what of the spec can be used. Absent when not even its hooks can be run.
    pub(super) cluster: Option<Validated>,
    /// Why the spec is refused.
    pub(super) invalid: Option<Invalid>,
}

/// Understands a cluster, so that a refused spec stops neither clustering nor a true status: its size stays as it is.
pub(super) fn understand(observed: &Observed<'_, Replicated>) -> Understood {
    let invalid = match validate(observed.resource) {
        Ok(cluster) => return Understood { cluster: Some(cluster), invalid: None },
        Err(invalid) => invalid,
    };
    let mut usable = observed.resource.clone();
    let set = ReplicatedNames::new(usable.metadata.name.as_deref().unwrap_or_default()).map(|names| names.stateful_set());
    let size = set.ok().and_then(|set| observed.children.stateful_sets.get(&set)).map_or(0, |set| set.replicas);
    let spec = &mut usable.spec;
    spec.replicas = Some(size);
    spec.primaries =
        spec.primaries.filter(|_| spec.pod.commands.secondary.is_some()).map(|primaries| primaries.clamp(1, size.max(1)));
    spec.reconcile_interval = None;
    spec.secrets.clear();
    spec.service_ports = spec.service_ports.take().map(|ports| ports.into_iter().take(1).collect());
    Understood { cluster: validate(&usable).ok(), invalid: Some(invalid) }
}

fn check_pod(pod: &PodPolicy) -> Result<(), Invalid> {
    if pod.containers.is_empty() {
        return Err(Invalid::new("spec.pod.containers", "at least one container is needed; hooks run in the first one"));
    }
    for (index, container) in pod.containers.iter().enumerate() {
        if container.image.as_deref().unwrap_or_default().is_empty() {
            return Err(Invalid::new(format!("spec.pod.containers[{index}].image"), "every container needs an image"));
        }
    }
    let commands = &pod.commands;
    let all = [
        ("sequence", Some(&commands.sequence)),
        ("status", Some(&commands.status)),
        ("stop", Some(&commands.stop)),
        ("primary", Some(&commands.primary)),
        ("seed", commands.seed.as_ref()),
        ("secondary", commands.secondary.as_ref()),
        ("promote", commands.promote.as_ref()),
    ];
    for (name, command) in all.into_iter().filter_map(|(name, command)| command.map(|command| (name, command))) {
        if command.command.is_empty() {
            return Err(Invalid::new(format!("spec.pod.commands.{name}.command"), "the program to run is missing"));
        }
        if let Some(text) = &command.timeout {
            let field = format!("spec.pod.commands.{name}.timeout");
            let timeout = parse_duration(text).map_err(|error| Invalid::new(&field, error.to_string()))?;
            if timeout.is_zero() {
                return Err(Invalid::new(field, "a hook needs time; leave it out for the default"));
            }
        }
    }
    Ok(())
}

fn check_secrets(secrets: &[String]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    match secrets.iter().find(|secret| !seen.insert(secret.as_str())) {
        Some(twice) => Err(Invalid::new("spec.secrets", format!("{twice:?} is named twice"))),
        None => Ok(()),
    }
}

impl Validated {
    /// The hook that asks this, and how long it may take.
    pub fn question(&self, about: About) -> (&Command, Duration) {
        let commands = &self.spec.pod.commands;
        match about {
            About::Status => (&commands.status, timeout(&commands.status, DEFAULT_STATUS_TIMEOUT)),
            About::Sequence => (&commands.sequence, timeout(&commands.sequence, DEFAULT_TIMEOUT)),
        }
    }

    /// The hook that does this, and how long it may take.
    pub fn deed(&self, deed: Deed) -> (&Command, Duration) {
        let commands = &self.spec.pod.commands;
        let command = match deed {
            Deed::Seed => commands.seed.as_ref().unwrap_or(&commands.primary),
            Deed::Primary => &commands.primary,
            Deed::Secondary => commands.secondary.as_ref().unwrap_or(&commands.primary),
            Deed::Stop => &commands.stop,
            // Never planned without the hook; a primary refuses to start a server that runs.
            Deed::Promote => commands.promote.as_ref().unwrap_or(&commands.primary),
        };
        (command, timeout(command, DEFAULT_TIMEOUT))
    }

    /// Whether each member has volumes of its own.
    pub fn has_claims(&self) -> bool {
        self.spec.pod.volume_claim_templates.iter().flatten().next().is_some()
    }

    /// The container in which hooks run.
    pub fn hook_container(&self) -> &str {
        self.spec.pod.containers.first().map_or("", |container| container.name.as_str())
    }

    /// Whether a member that lost its peers can be promoted without a restart.
    pub fn can_promote(&self) -> bool {
        self.spec.pod.commands.promote.is_some()
    }

    /// Whether members can be secondaries at all. If not, exit code 0 of `status` means a primary.
    pub fn has_secondaries(&self) -> bool {
        self.spec.pod.commands.secondary.is_some()
    }
}

fn timeout(command: &Command, default: Duration) -> Duration {
    command.timeout.as_deref().and_then(|text| parse_duration(text).ok()).unwrap_or(default)
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
