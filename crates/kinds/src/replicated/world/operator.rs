//! The operator's side: the flow of a pass, in pure code, with every step judged against the truth before it is carried out.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_core::bookkeeping;
use windlass_core::claim::Identity;
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::{Kind as _, Observed, Options, Report};
use windlass_core::lane::Lane;
use windlass_core::memory::{Found, Memory, reprove};
use windlass_core::plan::Plan;
use windlass_core::step::{Act, Action as _, ObjectKind, Step};

use super::super::Replicated;
use super::super::facts::{Answer, Role};
use super::super::fixtures::CLUSTER_UID;
use super::super::hooks::{Deed, HookRun};
use super::super::plan::{plan, plan_with};
use super::super::probes;
use super::database::Server;
use super::kubernetes::sketches;
use super::{Ordinal, World};

/// What came of a pass.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) plan: Plan<HookRun>,
    pub(super) look_again: Timestamp,
    /// A lane was opened: the next pass follows at once.
    pub(super) resumed: bool,
}

impl World {
    pub(super) fn pass(&mut self) -> Passed {
        self.passes += 1;
        Replicated::forget(&mut self.facts, &self.children);
        let found = self.logbook.as_ref().map(|logbook| Found { logbook, uid: "logbook" });
        let memory = Memory::judge(found, CLUSTER_UID, &self.children);
        let full = self.objects_changed || self.set().is_none();
        let observed = Observed {
            resource: &self.resource,
            children: &self.children,
            settings: &(),
            options: &Options::None,
            facts: &self.facts,
            memory: &memory,
            answered: &BTreeMap::new(),
            running: &self.running,
            // All objects were found to be so, and nobody touched them since.
            settled: !full && !self.thorough,
            now: self.now,
        };
        let plan = if self.thorough { plan(&observed) } else { plan_with(&observed, sketches) };
        let mut entries = memory.entries();
        entries.cluster_uid = CLUSTER_UID.into();
        Replicated::remember(&observed, &mut entries);
        reprove(&mut entries, &Replicated::proves(&observed));
        let gate = bookkeeping::gate::<Replicated>(observed.resource, observed.running, &entries);
        let parted = gate.part(&plan);
        bookkeeping::note_pass(&observed, &Identity::default(), &plan, &gate, &parted, &mut entries);
        let questions = probes::due(&observed);
        let wait = if self.events.is_empty() { probes::look_again(&observed) } else { Duration::from_mins(1) };
        if self.passes.is_multiple_of(16) {
            let report = Report { plan: &plan, gate: &gate, held: &parted.held, taken: &[], remembered: &entries };
            let status = Replicated::status(&observed, &report);
            assert_eq!(status.conditions.len(), 7);
        }
        self.objects_changed = full && plan.steps.iter().any(|step| matches!(step.act, Act::Apply(_)));

        let kept = self.calm || !self.dice.chance(3);
        if kept {
            self.logbook = Some(entries);
            for step in &parted.go {
                self.take(step);
            }
        }
        for question in questions {
            self.ask(question);
        }
        let resumed = kept && self.withdraw(&gate);
        Passed { plan, look_again: self.now.checked_add(SignedDuration::try_from(wait).unwrap()).unwrap(), resumed }
    }

    /// Opens lanes whose acknowledgement was withdrawn in the status.
    fn withdraw(&mut self, gate: &Gate) -> bool {
        let Some(logbook) = &mut self.logbook else { return false };
        let opening = |lane| *gate.door(lane) == Door::Opening;
        if opening(Lane::Resources) {
            logbook.pause.resources = None;
        }
        if opening(Lane::Clustering) {
            logbook.pause.clustering = None;
        }
        opening(Lane::Resources) || opening(Lane::Clustering)
    }

    /// Carries a step out, unless the request gets lost.
    fn take(&mut self, step: &Step<HookRun>) {
        self.judge(step);
        if !self.calm && self.dice.chance(5) {
            return;
        }
        match &step.act {
            Act::Apply(manifest) => drop(self.apply(manifest)),
            Act::Delete { object, .. } if object.kind == ObjectKind::ControllerRevision => {
                self.children.templates.remove(&object.name);
            }
            Act::Delete { object, over } => {
                let ordinal = Self::ordinal(&object.name);
                if self.pod(ordinal).is_some_and(|pod| pod.meta.as_judged() == *over) {
                    self.delete_pod(ordinal);
                }
            }
            Act::SetReplicas { over, to, .. } => {
                if self.set().is_some_and(|set| set.object.meta.as_judged() == *over) {
                    self.resize(*to);
                }
            }
            Act::Label { object, over, labels, .. } => {
                let version = self.fresh().to_string();
                let pod = self.children.pods.get_mut(&object.name).filter(|pod| pod.meta.uid == over.uid);
                if let Some(pod) = pod {
                    pod.meta.labels.extend(labels.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))));
                    pod.meta.resource_version = version;
                }
            }
            Act::Sync { object, annotations, .. } => {
                if let Some(pod) = self.children.pods.get_mut(&object.name) {
                    pod.meta.annotations.extend(annotations.clone());
                }
            }
            Act::DeleteAlone { .. } | Act::Grow { .. } | Act::SetReclaim { .. } | Act::TakeOver { .. } => {
                panic!("{step} is not for this kind")
            }
            Act::Member(run) => self.start(run.clone()),
        }
    }

    /// What no step may ever do.
    fn judge(&self, step: &Step<HookRun>) {
        let paused = step.lane().is_some_and(|lane| Replicated::pause(&self.resource).lane(lane).paused);
        assert!(!paused, "{step} is taken in a paused lane");
        match &step.act {
            Act::Delete { object, .. } if object.kind == ObjectKind::ControllerRevision => {
                assert!(self.children.templates.len() > 1, "{step} although it is the only one that is kept");
            }
            Act::Delete { object, over } => {
                assert_eq!(object.kind, ObjectKind::Pod, "{step}");
                assert!(!over.uid.is_empty() && !over.resource_version.is_empty(), "{step} has no precondition");
                let others = self.children.pods.values().filter(|pod| pod.meta.name != object.name);
                assert!(others.into_iter().all(|pod| !pod.meta.deleting), "{step} while another pod ends");
                self.judge_announced(step, &over.uid);
            }
            Act::SetReplicas { over, from, to, .. } => {
                if to < from {
                    self.judge_announced(step, &over.uid);
                }
                for ordinal in *to..*from {
                    let server = self.database.server(ordinal);
                    assert_eq!(server, Server::Down, "{step}, but member {ordinal} was not stopped");
                }
            }
            Act::Member(run) if run.deed == Deed::Stop => self.judge_stop(run),
            Act::Member(run) if matches!(run.deed, Deed::Seed | Deed::Promote) => {
                // A hook of which nothing was heard may have done it already.
                let itself = self.database.server(run.exec.ordinal.get()) == Server::Primary;
                assert!(self.database.primaries() == usize::from(itself), "{step} beside a primary component");
                // The same one may be tried again when its hook runs out of the operator's sight, and refuses.
                let starts = |(ordinal, hook): (&u16, &super::Hook)| {
                    let may_be_known = *ordinal != run.exec.ordinal.get() || hook.reports.is_some();
                    may_be_known && matches!(hook.deed, Deed::Seed | Deed::Promote)
                };
                assert!(!self.hooks.iter().any(starts), "{step} while another seed may come up");
                self.judge_announced(step, run.target_uid());
            }
            _ => {}
        }
    }

    fn judge_announced(&self, step: &Step<HookRun>, uid: &str) {
        let mut announced = self.logbook.iter().flat_map(|logbook| &logbook.intents);
        assert!(announced.any(|intent| intent.uid == uid), "{step} was not announced");
    }

    /// When members leave a cluster that goes on, one that was seen as a primary stays; and it is one, unless it was lost since.
    fn judge_stop(&self, stopped: &HookRun) {
        let wanted = self.resource.spec.replicas.unwrap_or(3);
        // A member that lost its peers serves nobody.
        if wanted == 0 || self.seen(stopped.exec.ordinal.get(), |role| *role == Role::Stranded).is_some() {
            return;
        }
        let stays = |ordinal: &u16| *ordinal < wanted && *ordinal != stopped.exec.ordinal.get();
        let seen: Vec<(u16, Timestamp)> =
            (0..super::LARGEST).filter(stays).filter_map(|ordinal| Some((ordinal, self.seen_primary(ordinal)?))).collect();
        assert!(!seen.is_empty(), "{stopped} although no primary is known to stay");
        let oldest = seen.iter().map(|(_, at)| *at).min().unwrap();
        let still = seen.iter().any(|(ordinal, _)| self.database.server(*ordinal) == Server::Primary);
        // An answer may be some seconds older than its arrival.
        let lost_since = self.disturbed >= oldest.checked_sub(SignedDuration::from_secs(5)).unwrap();
        assert!(still || lost_since, "{stopped} although no primary stays");
    }

    /// When the operator last saw this member as a primary.
    pub(super) fn seen_primary(&self, ordinal: u16) -> Option<Timestamp> {
        // These clusters have no hook for secondaries.
        self.seen(ordinal, |role| matches!(role, Role::Primary | Role::Secondary))
    }

    /// When the operator last saw this member so, if that is the last that it saw.
    fn seen(&self, ordinal: u16, so: impl Fn(&Role) -> bool) -> Option<Timestamp> {
        let ordinal = Ordinal::new(ordinal);
        let pod = self.children.pods.get(&ordinal.pod_name(super::SET))?;
        let role = self.facts.of(ordinal, pod)?.role.as_ref()?;
        matches!(&role.answer, Answer::Known(role) if so(role)).then_some(role.at)
    }
}
