//! Whether the primary's pod is protected from deletion, because replicas are too far behind it.
//!
//! With `spec.maxDelaySecondsForPodDeletion` above 0, a replica that is further behind than that lets the annotation
//! `moco.cybozu.com/prevent-delete` be put on the primary's pod, and on no other; a policy of the API server refuses to delete such a pod.
//! It is taken away again when all are within half of that: a lag that moves around the limit does not write each second.
//!
//! A lag that is not known never protects, for a replica that is gone for good would protect for ever; but while a replica that should
//! follow is only silent for a moment, a protection that is there stays. Replicas that are lost, errant, stopped or broken do not count.

use std::collections::BTreeMap;

use windlass_api::mysql::keys;
use windlass_core::kind::Bond;
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, PodView};

use super::instance::Instance;
use super::plan::Planner;
use super::scene::Scene;

/// How far a replica is behind that should follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lag {
    Unknown,
    Seconds(u64),
}

impl Scene<'_> {
    /// A replica that is too far behind for the primary's pod to be deleted.
    pub(super) fn too_far_behind(&self) -> Option<Ordinal> {
        let most = self.observed.resource.spec.max_delay_seconds_for_pod_deletion.and_then(|it| u64::try_from(it).ok())?;
        if most == 0 || self.offline || !self.entries.opened {
            return None;
        }
        let protected = self.observed.children.pods.values().any(is_protected);
        let limit = if protected { most / 2 } else { most };
        let is_too_far = |lag: Lag| match lag {
            Lag::Unknown => protected,
            Lag::Seconds(lag) => lag > limit,
        };
        self.replicas().find(|it| self.lag(it).is_some_and(is_too_far)).map(|it| it.ordinal)
    }

    /// Nothing for a replica that does not count.
    fn lag(&self, replica: &Instance) -> Option<Lag> {
        if self.cluster().errant().contains(&replica.ordinal) {
            return None;
        }
        let Some(known) = &replica.known else { return (!self.is_lost(replica.ordinal)).then_some(Lag::Unknown) };
        let replication = known.replication.as_ref()?;
        let follows = replication.source_host == self.source().host && replication.applies && replication.error.is_none();
        follows.then(|| replication.behind.map_or(Lag::Unknown, Lag::Seconds))
    }
}

fn is_protected(pod: &PodView) -> bool {
    pod.meta.annotations.contains_key(keys::PREVENT_DELETE)
}

fn object(pod: &PodView) -> ObjectRef {
    ObjectRef { kind: ObjectKind::Pod, namespace: pod.meta.namespace.clone(), name: pod.meta.name.clone() }
}

/// The protections that are there.
pub(super) fn bonds(children: &Children) -> Vec<Bond> {
    let protected = children.pods.values().filter(|pod| is_protected(pod));
    protected.map(|pod| Bond { pod: object(pod), over: pod.meta.as_judged(), annotation: keys::PREVENT_DELETE }).collect()
}

impl Planner<'_> {
    /// Protects the primary's pod while a replica is too far behind, and no other pod, ever.
    pub(super) fn protect(&mut self) {
        let behind = self.scene.too_far_behind();
        let primary = self.scene.primary().pod_name(&self.scene.names.set());
        for pod in self.scene.observed.children.pods.values() {
            let wanted = (behind.is_some() && pod.meta.name == primary).then(|| "true".to_owned());
            if pod.meta.annotations.get(keys::PREVENT_DELETE) == wanted.as_deref() {
                continue;
            }
            let why = match behind.filter(|_| wanted.is_some()) {
                Some(behind) => format!("instance {behind} is further behind than spec.maxDelaySecondsForPodDeletion"),
                None => "it need not be protected from deletion".to_owned(),
            };
            self.annotate(pod, keys::PREVENT_DELETE, wanted, why);
        }
        if let (Some(behind), true) = (behind, self.scene.is_asked_to_hand_over() && !self.scene.is_to_hand_over()) {
            let message = format!(
                "instance {} is to hand over; that begins when instance {behind} is not further behind than \
                 spec.maxDelaySecondsForPodDeletion allows",
                self.scene.primary()
            );
            self.wait(reason!("PrimaryProtected"), message, false);
        }
    }

    /// In the same step as what else changes on the pod: a second one would find another version.
    fn annotate(&mut self, pod: &PodView, key: &str, value: Option<String>, why: String) {
        let object = object(pod);
        let there = self.plan.steps.iter_mut().find_map(|step| match &mut step.act {
            Act::Label { object: other, annotations, .. } if *other == object => Some(annotations),
            _ => None,
        });
        if let Some(annotations) = there {
            annotations.insert(key.to_owned(), value);
            return;
        }
        let (over, annotations) = (pod.meta.as_judged(), BTreeMap::from([(key.to_owned(), value)]));
        self.plan.steps.push(Step::new(Act::Label { object, over, labels: BTreeMap::new(), annotations }, why));
    }
}

#[cfg(test)]
#[path = "protection_tests.rs"]
mod tests;
