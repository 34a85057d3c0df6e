//! Children of a cluster, as little of each as decisions need.
//!
//! The engine makes these from watch events. What is missing here is unknown, never "gone".

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::step::{ObjectKind, ObjectRef, Over};

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.creationTimestamp`
    pub created: Option<Timestamp>,
    /// `metadata.generation`, where the kind has one
    pub generation: Option<i64>,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// The UID of the controlling owner.
    pub owner_uid: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Meta {
    /// What must still be so when a step on this object is taken.
    pub fn as_judged(&self) -> Over {
        Over { uid: self.uid.clone(), resource_version: self.resource_version.clone() }
    }
}

/// JSON kept as text: a tenth of the memory of a parsed value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact(Box<str>);

impl Compact {
    /// Keeps a value.
    pub fn of(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }

    /// The value again. What cannot be read is null.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// A child that is applied as a whole: Service, disruption budget, `StatefulSet`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectView {
    /// Its metadata.
    pub meta: Meta,
    /// Its `spec`, or what stands for it: see [`Manifest::spec`](crate::step::Manifest). Of a Secret it is a fingerprint of what it
    /// holds ([`secrets::fingerprint`](crate::secrets::fingerprint)), which is never kept.
    pub spec: Compact,
}

/// A `StatefulSet`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSetView {
    /// Metadata and spec.
    pub object: ObjectView,
    /// `spec.replicas`
    pub replicas: u16,
    /// `status.observedGeneration`
    pub observed_generation: Option<i64>,
    /// `status.updateRevision`
    pub update_revision: Option<String>,
    /// `status.currentRevision`
    pub current_revision: Option<String>,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodView {
    /// Its metadata.
    pub meta: Meta,
    /// `status.phase`
    pub phase: String,
    /// Whether the condition `Ready` is true.
    pub ready: bool,
    /// Since when that is as it is.
    pub ready_since: Option<Timestamp>,
    /// The id of the first container while it runs: another id is another process.
    pub process: Option<String>,
    /// `status.podIP`
    pub address: Option<String>,
    /// The `ConfigMaps` that it has as volumes.
    pub config_maps: BTreeSet<String>,
}

/// A claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimView {
    /// Its metadata.
    pub meta: Meta,
    /// `spec.resources.requests.storage`
    pub requested: Option<String>,
    /// `spec.storageClassName`
    pub class: Option<String>,
}

/// Everything of one cluster that the caches hold, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Children {
    /// `StatefulSets`
    pub stateful_sets: BTreeMap<String, StatefulSetView>,
    /// Services
    pub services: BTreeMap<String, ObjectView>,
    /// Disruption budgets
    pub disruption_budgets: BTreeMap<String, ObjectView>,
    /// Pods
    pub pods: BTreeMap<String, PodView>,
    /// Claims
    pub claims: BTreeMap<String, ClaimView>,
    /// Kept pod templates, with the template as `spec`
    pub templates: BTreeMap<String, ObjectView>,
    /// `ConfigMaps`
    pub config_maps: BTreeMap<String, ObjectView>,
    /// Secrets, without what they hold
    pub secrets: BTreeMap<String, ObjectView>,
    /// `ServiceAccounts`
    pub service_accounts: BTreeMap<String, ObjectView>,
}

impl Children {
    /// The child of this name, if it is of a kind that is applied as a whole.
    pub fn applied(&self, object: &ObjectRef) -> Option<&ObjectView> {
        let all = match object.kind {
            ObjectKind::StatefulSet => return self.stateful_sets.get(&object.name).map(|set| &set.object),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => return None,
            ObjectKind::Service => &self.services,
            ObjectKind::PodDisruptionBudget => &self.disruption_budgets,
            ObjectKind::ControllerRevision => &self.templates,
            ObjectKind::ConfigMap => &self.config_maps,
            ObjectKind::Secret => &self.secrets,
            ObjectKind::ServiceAccount => &self.service_accounts,
        };
        all.get(&object.name)
    }

    /// Whether anything exists that tells of a cluster that was there before.
    pub fn tell_of_a_past(&self) -> bool {
        !(self.stateful_sets.is_empty() && self.pods.is_empty() && self.claims.is_empty())
    }
}
