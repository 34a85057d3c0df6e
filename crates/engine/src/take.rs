//! Takes the steps of a pass, each with a permit that is asked for right before it.

use std::collections::BTreeMap;

use futures::future::join_all;
use kube::Resource as _;
use windlass_clients::members::Members;
use windlass_core::bookkeeping;
use windlass_core::claim::is_held_by;
use windlass_core::gate::{Gate, Parted, Permit};
use windlass_core::kind::{Kind, Observed};
use windlass_core::labels::ADOPT;
use windlass_core::lane::{Clustering, LaneType, Resources, Unpaused};
use windlass_core::likeness::Answered;
use windlass_core::outcome::Outcome;
use windlass_core::step::{Act, Manifest, ObjectKind, Step};

use crate::actor::Actor;
use crate::execute::Executor;

impl<K: Kind, M: Members<K>> Actor<K, M> {
    /// Takes the steps. Objects are independent of each other and are applied side by side, the rest one after another.
    pub(crate) async fn take_steps(
        &mut self,
        observed: &Observed<'_, K>,
        parted: &Parted<K::Action>,
    ) -> Vec<(Step<K::Action>, Outcome)> {
        let applies = parted.go.iter().filter_map(|step| match &step.act {
            Act::Apply(manifest) => Some((step, manifest)),
            _ => None,
        });
        let this = &*self;
        let answers: Vec<_> =
            join_all(applies.map(async |(step, manifest)| (step, manifest, this.apply(manifest).await))).await;
        let mut taken = Vec::new();
        let mut applied_objects = Vec::new();
        for (step, manifest, (outcome, answered)) in answers {
            applied_objects.push(manifest.object.clone());
            self.answered.extend(answered.map(|answered| (manifest.object.clone(), answered)));
            taken.push((step.clone(), outcome));
        }
        for step in parted.go.iter().filter(|step| !matches!(step.act, Act::Apply(_))) {
            let outcome = match &step.act {
                // It has another version now; what the size rests on is looked at again in the next pass.
                Act::SetReplicas { object, .. } if applied_objects.contains(object) => {
                    Outcome::Waiting { why: format!("{object} was just applied") }
                }
                _ => self.take_step(step).await,
            };
            taken.push((step.clone(), outcome));
        }
        for (step, outcome) in &taken {
            self.shared.metrics.step(K::NAME, step.name(), outcome.name());
            self.tell_step(observed.resource, step, outcome);
        }
        self.note_outrun(&taken);
        taken
    }

    /// Whoever was faster shows in the next events. When the same step is outrun over the same state again, they will not come: then
    /// what the caches have of the cluster is not to be relied on.
    fn note_outrun(&mut self, taken: &[(Step<K::Action>, Outcome)]) {
        let outrun = taken.iter().filter(|(_, outcome)| *outcome == Outcome::Outrun).filter_map(|(step, _)| step.judged());
        let outrun: Vec<_> = outrun.map(|(object, over)| (object.clone(), over.cloned())).collect();
        if outrun.iter().any(|it| self.outrun.contains(it)) {
            self.shared.caches.doubt(&self.key);
        }
        self.outrun = outrun;
    }

    async fn apply(&self, manifest: &Manifest) -> (Outcome, Option<Answered>) {
        let Some(permit) = self.gate().and_then(|gate| gate.permit_to_make(manifest)) else { return (closed(), None) };
        self.executor().apply(&permit, manifest).await
    }

    async fn take_step(&mut self, step: &Step<K::Action>) -> Outcome {
        match &step.act {
            Act::Apply(manifest) => self.apply(manifest).await.0,
            Act::Delete { object, over } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().delete(&permit, object, over).await
            }
            Act::DeleteAlone { object, over } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().delete_alone(&permit, object, over).await
            }
            Act::TakeOver { object, controller, labels } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().take_over(&permit, object, controller.as_deref(), labels).await
            }
            Act::Grow { object, over, to, .. } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().grow(&permit, object, over, to).await
            }
            Act::SetReclaim { object, over, volume, policy } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().set_reclaim(&permit, (object, over), volume, policy).await
            }
            Act::SetReplicas { object, over, to, .. } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().set_replicas(&permit, object, over, *to).await
            }
            Act::Label { object, over, labels, annotations } if object.kind == ObjectKind::PersistentVolumeClaim => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                self.executor().mark(&permit, (object, over), labels, annotations).await
            }
            Act::Label { object, over, labels, annotations } => {
                let Some(permit) = self.permit::<Clustering>() else {
                    return closed();
                };
                self.executor().label(&permit, (object, over), labels, annotations).await
            }
            Act::Sync { object, over, labels, annotations } => {
                let Some(permit) = self.permit::<Unpaused>() else {
                    return closed();
                };
                self.executor().sync(&permit, object, over, labels, annotations).await
            }
            Act::Member(action) => {
                let Some(permit) = self.permit::<Clustering>() else {
                    return closed();
                };
                self.start(permit, action.clone());
                Outcome::Waiting { why: format!("{action} runs") }
            }
        }
    }

    pub(crate) fn executor(&self) -> Executor<'_> {
        let resource = self.shared.clusters.get(&self.key);
        let annotations = resource.as_ref().and_then(|resource| resource.meta().annotations.as_ref());
        let adopts = annotations.and_then(|all| all.get(ADOPT)).is_some_and(|value| value == "true");
        let authority = self.shared.authority.as_deref();
        let (calls, caches, refusals) = (&self.shared.calls, &self.shared.caches, &self.shared.refusals);
        Executor { calls, caches, adopts, authority, refusals }
    }

    /// Copies labels to the `StatefulSet`s. A copy that another field manager refuses is told once, and holds nothing up.
    pub(crate) async fn copy_labels(&mut self, resource: &K::Resource, copies: Vec<Step<K::Action>>) {
        for step in copies {
            let wish = wish_of(&step);
            if self.copy_refused == wish {
                continue;
            }
            let outcome = self.take_step(&step).await;
            self.shared.metrics.step(K::NAME, step.name(), outcome.name());
            match &outcome {
                Outcome::Failed { why } => {
                    tracing::warn!(cluster = %self.key, why, "labels not copied");
                    self.shared.events.warning(&resource.object_ref(&()), "LabelConflict", why.clone());
                    self.copy_refused = wish;
                }
                Outcome::Done { .. } => self.copy_refused = None,
                _ => {}
            }
        }
    }

    /// Asks the gate again, with the newest object and the newest logbook: since the pass began the user may have paused, or
    /// another process may have taken the claim.
    fn permit<L: LaneType>(&self) -> Option<Permit<L>> {
        self.gate()?.permit()
    }

    /// Whether this process holds the claim, by the newest logbook.
    pub(crate) fn holds_claim(&self) -> bool {
        let logbook = self.shared.caches.logbook(&self.key);
        is_held_by(logbook.as_ref().and_then(|logbook| logbook.spec.claim.as_ref()), &self.shared.identity)
    }

    fn gate(&self) -> Option<Gate> {
        let resource = self.shared.clusters.get(&self.key)?;
        let logbook = self.shared.caches.logbook(&self.key)?;
        if !is_held_by(logbook.spec.claim.as_ref(), &self.shared.identity) {
            return None;
        }
        Some(bookkeeping::gate::<K>(&resource, &self.running, &logbook.spec))
    }
}

fn closed() -> Outcome {
    Outcome::Waiting { why: "its lane was paused, or the cluster was handed over, meanwhile".into() }
}

/// What a copy wishes, whatever the version of the object.
fn wish_of<A>(step: &Step<A>) -> Option<BTreeMap<String, String>> {
    match &step.act {
        Act::Sync { labels, .. } => Some(labels.clone()),
        _ => None,
    }
}
