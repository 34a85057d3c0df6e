//! Children of a cluster, as little of each as decisions need.
//!
//! The engine makes these from watch events. What is missing here is unknown, never "gone".

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::labels::AS_GOOD_AS;
use crate::pairs::Pairs;
use crate::shelf::Shelf;
use crate::step::{ObjectKind, ObjectRef, Over};

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    pub labels: Pairs,
    /// `metadata.annotations`
    pub annotations: Pairs,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectView {
    /// Its metadata.
    pub meta: Meta,
    /// Its `spec`, or what stands for it: see [`Manifest::spec`](crate::step::Manifest). Of a Secret it is a fingerprint of what it
    /// holds ([`secrets::fingerprint`](crate::secrets::fingerprint)), which is never kept.
    pub spec: Compact,
}

/// A `StatefulSet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// The label by which the controller of sets says of which template a pod is.
pub const REVISION: &str = "controller-revision-hash";

impl StatefulSetView {
    /// Whether a pod is known to have another template than the newest one, and one that is not as good. Pods of a set that was taken
    /// over need not be replaced for the sake of our labels.
    pub fn is_outdated(&self, pod: &PodView) -> bool {
        self.revision_of(pod).is_some_and(|(has, newest)| has != newest && !self.is_as_good(has))
    }

    /// Whether a pod is known to have the newest template, or one that is as good.
    pub fn is_current(&self, pod: &PodView) -> bool {
        self.revision_of(pod).is_some_and(|(has, newest)| has == newest || self.is_as_good(has))
    }

    /// Whether pods are on their way from one template to another: the one that the controller began with is neither the newest nor as
    /// good. A set that was taken over may be between two that are as good for as long as it lives.
    pub fn is_rolling(&self) -> bool {
        self.current_revision
            .as_deref()
            .is_some_and(|began| Some(began) != self.update_revision.as_deref() && !self.is_as_good(began))
    }

    /// Which template a pod has, and which is the newest.
    fn revision_of<'a>(&'a self, pod: &'a PodView) -> Option<(&'a str, &'a str)> {
        Some((pod.meta.labels.get(REVISION)?, self.update_revision.as_deref()?))
    }

    fn is_as_good(&self, revision: &str) -> bool {
        self.object.meta.annotations.get(AS_GOOD_AS).is_some_and(|good| good == revision)
    }
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// When the process before it ended: never, if there was none, and at the end of time if nobody knows when.
    pub ended: Option<Timestamp>,
    /// `status.podIP`
    pub address: Option<String>,
    /// The `ConfigMaps` that it has as volumes.
    pub config_maps: BTreeSet<String>,
    /// The first argument of each container that has one, by the container's name.
    pub arguments: BTreeMap<String, String>,
}

/// A claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimView {
    /// Its metadata.
    pub meta: Meta,
    /// `spec.resources.requests.storage`
    pub requested: Option<String>,
    /// `spec.storageClassName`
    pub class: Option<String>,
    /// The volume that it is bound to: `spec.volumeName`, once `status.phase` says so. A claim may ask for one that is not there.
    pub volume: Option<String>,
}

/// Everything of one cluster that the caches hold, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Children {
    /// `StatefulSets`
    pub stateful_sets: Shelf<StatefulSetView>,
    /// Services
    pub services: Shelf<ObjectView>,
    /// Disruption budgets
    pub disruption_budgets: Shelf<ObjectView>,
    /// Pods
    pub pods: Shelf<PodView>,
    /// Claims
    pub claims: Shelf<ClaimView>,
    /// Kept pod templates, with the template as `spec`
    pub templates: Shelf<ObjectView>,
    /// `ConfigMaps`
    pub config_maps: Shelf<ObjectView>,
    /// Secrets, without what they hold
    pub secrets: Shelf<ObjectView>,
    /// `ServiceAccounts`
    pub service_accounts: Shelf<ObjectView>,
    /// Deployments
    pub deployments: Shelf<ObjectView>,
    /// Roles
    pub roles: Shelf<ObjectView>,
    /// `RoleBindings`
    pub role_bindings: Shelf<ObjectView>,
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
            ObjectKind::Deployment => &self.deployments,
            ObjectKind::Role => &self.roles,
            ObjectKind::RoleBinding => &self.role_bindings,
        };
        all.get(&object.name)
    }

    /// Makes them as small as they can be.
    pub fn pack(&mut self) {
        let Self {
            stateful_sets,
            services,
            disruption_budgets,
            pods,
            claims,
            templates,
            config_maps,
            secrets,
            service_accounts,
            deployments,
            roles,
            role_bindings,
        } = self;
        stateful_sets.pack();
        pods.pack();
        claims.pack();
        let applied = [services, disruption_budgets, templates, config_maps, secrets, service_accounts, deployments, roles];
        applied.into_iter().chain([role_bindings]).for_each(Shelf::pack);
    }

    /// Whether they are as small as they can be.
    pub fn are_closed(&self) -> bool {
        let applied = self.all_applied().into_iter().all(Shelf::is_closed);
        applied && self.stateful_sets.is_closed() && self.pods.is_closed() && self.claims.is_closed()
    }

    /// Whether any of them are packed, looked into or not.
    pub fn are_packed(&self) -> bool {
        let applied = self.all_applied().into_iter().any(Shelf::is_packed);
        applied || self.stateful_sets.is_packed() || self.pods.is_packed() || self.claims.is_packed()
    }

    /// All kinds that are applied as a whole and have nothing else to tell.
    fn all_applied(&self) -> [&Shelf<ObjectView>; 9] {
        [
            &self.services,
            &self.disruption_budgets,
            &self.templates,
            &self.config_maps,
            &self.secrets,
            &self.service_accounts,
            &self.deployments,
            &self.roles,
            &self.role_bindings,
        ]
    }

    /// Whether anything exists that tells of a cluster that was there before.
    pub fn tell_of_a_past(&self) -> bool {
        !(self.stateful_sets.is_empty() && self.pods.is_empty() && self.claims.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::the_newest(Some("r2"), Some("r2"), None, false, true)]
    #[case::an_older_one(Some("r1"), Some("r2"), None, true, false)]
    #[case::one_that_is_as_good(Some("r1"), Some("r2"), Some("r1"), false, true)]
    #[case::another_one_is_as_good(Some("r0"), Some("r2"), Some("r1"), true, false)]
    #[case::a_pod_that_does_not_say(None, Some("r2"), None, false, false)]
    #[case::a_set_that_does_not_say(Some("r1"), None, None, false, false)]
    fn a_pod_beside_the_newest_template(
        #[case] has: Option<&str>,
        #[case] newest: Option<&str>,
        #[case] as_good: Option<&str>,
        #[case] outdated: bool,
        #[case] current: bool,
    ) {
        let mut set = StatefulSetView { update_revision: newest.map(Into::into), ..StatefulSetView::default() };
        set.object.meta.annotations.extend(as_good.map(|good| (AS_GOOD_AS.to_owned(), good.to_owned())));
        let mut pod = PodView::default();
        pod.meta.labels.extend(has.map(|has| (REVISION.to_owned(), has.to_owned())));
        assert_eq!((set.is_outdated(&pod), set.is_current(&pod)), (outdated, current));
    }

    #[rstest]
    #[case::at_rest(Some("r2"), Some("r2"), None, false)]
    #[case::on_the_way(Some("r1"), Some("r2"), None, true)]
    #[case::from_one_that_is_as_good(Some("r1"), Some("r2"), Some("r1"), false)]
    #[case::another_one_is_as_good(Some("r0"), Some("r2"), Some("r1"), true)]
    #[case::just_made(None, Some("r2"), None, false)]
    fn a_set_between_two_templates(
        #[case] began: Option<&str>,
        #[case] newest: Option<&str>,
        #[case] as_good: Option<&str>,
        #[case] rolls: bool,
    ) {
        let (current_revision, update_revision) = (began.map(Into::into), newest.map(Into::into));
        let mut set = StatefulSetView { update_revision, current_revision, ..StatefulSetView::default() };
        set.object.meta.annotations.extend(as_good.map(|good| (AS_GOOD_AS.to_owned(), good.to_owned())));
        assert_eq!(set.is_rolling(), rolls);
    }
}
