//! One pass: observe, plan, gate, remember, execute, tell. In this order, and status always comes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use kube::Resource as _;
use tokio::time::Instant;
use windlass_api::Logbook;
use windlass_api::logbook::{Intent, LogbookSpec, PauseRecord, PlannedStep, PlannedSteps, Summary};
use windlass_clients::members::Members;
use windlass_core::gate::{Door, Gate, Parted};
use windlass_core::kind::{Kind, Observed, Report};
use windlass_core::lane::{Clustering, Lane, LaneType, Resources};
use windlass_core::likeness::Answered;
use windlass_core::memory::Memory;
use windlass_core::outcome::{Outcome, next_pass};
use windlass_core::plan::Plan;
use windlass_core::step::{Act, Action, Manifest, Step};

use crate::actor::Actor;
use crate::execute::Executor;
use crate::logbook;
use crate::status::{self, Committed, Urgency};

/// After something that only time can mend.
const SOON: Duration = Duration::from_secs(1);
/// The longest wait between two tries.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// When nothing at all is due.
const LATER: Duration = Duration::from_mins(10);

/// The least time between two writes of status that only change details.
const STATUS_PAUSE: Duration = Duration::from_secs(1);

/// How long after its start an operator keeps a stored status rather than tell that it knows nothing yet.
const BLINDNESS: Duration = Duration::from_secs(15);

/// What came of telling.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// The stored status is the computed one.
    Stored,
    /// Details wait this long.
    Later(Duration),
}

/// What follows a pass.
pub(crate) struct Next {
    pub(crate) outcome: &'static str,
    pub(crate) after: Duration,
}

impl Next {
    fn new(outcome: &'static str, after: Duration) -> Self {
        Self { outcome, after }
    }
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    pub(crate) async fn pass(&mut self) -> Next {
        let Some(resource) = self.shared.clusters.get(&self.key) else {
            return Next::new("Gone", LATER);
        };
        if resource.meta().deletion_timestamp.is_some() {
            // Deleting wins over everything: owner references take the children away.
            return Next::new("Deleting", LATER);
        }
        let children = self.shared.caches.children(&self.key);
        K::forget(&mut self.facts, &children);
        let stored = self.shared.caches.logbook(&self.key);
        let uid = resource.meta().uid.clone().unwrap_or_default();
        let memory = Memory::judge(stored.as_ref().map(|stored| &stored.spec), &uid, &children);
        let facts = self.facts.clone();
        let answered = self.answered.clone();
        let running = self.running.clone();
        let observed = Observed {
            resource: &*resource,
            children: &children,
            facts: &facts,
            memory: &memory,
            answered: &answered,
            running: &running,
            now: self.shared.clock.now(),
        };
        let plan = K::plan(&observed);
        let mut entries = memory.entries();
        entries.cluster_uid = uid;
        K::remember(&observed, &mut entries);
        let gate = self.gate(&resource, &entries);
        let parted = gate.part(&plan);
        remember_pass::<K>(&observed, &gate, &parted, &mut entries);

        // What must be remembered is written before anything is done; what only tells of this pass, after it.
        let first = stored.as_ref().is_none_or(|stored| !same_duty(&stored.spec, &entries));
        let mut kept = if first { self.keep(&observed, stored.as_ref(), &entries).await } else { Ok(()) };
        let taken = if kept.is_ok() { self.take_steps(&observed, &parted).await } else { Vec::new() };
        if !first {
            kept = self.keep(&observed, stored.as_ref(), &entries).await;
        }
        // What was started in this pass runs now: it is told so, and is not asked meanwhile.
        let running = self.running.clone();
        let observed = Observed { running: &running, ..observed };
        for probe in K::probes(&observed) {
            self.ask(probe);
        }
        let report = Report { plan: &plan, gate: &gate, held: &parted.held, taken: &taken, remembered: &entries };
        self.gauges.show(&gate, parted.held.len());
        self.warn(&resource, &plan, &taken);
        let told = self.tell(&observed, &report).await;
        if told == Ok(Told::Stored) && self.withdraw(&observed, &gate, entries).await {
            return Next::new("Resumed", Duration::ZERO);
        }
        let retried = taken.iter().any(|(_, outcome)| matches!(outcome, Outcome::Retry { .. }));
        let (Ok(()), Ok(told), false) = (kept, told, retried) else {
            self.troubles += 1;
            return Next::new("Retry", self.retry_after());
        };
        self.troubles = 0;
        let due = next_pass(taken.iter().map(|(_, outcome)| outcome), K::look_again(&observed));
        match told {
            Told::Stored => Next::new("Done", due),
            Told::Later(wait) => Next::new("Done", due.min(wait)),
        }
    }

    /// Later and later while trouble lasts, and for each cluster at another moment.
    fn retry_after(&self) -> Duration {
        let wait = SOON.saturating_mul(1 << self.troubles.saturating_sub(1).min(5)).min(LONGEST_RETRY);
        let spread = self.key.name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 100;
        wait + wait.saturating_mul(spread) / 200
    }

    /// The state of the lanes, from the newest known wish of the user.
    fn gate(&self, resource: &K::Resource, entries: &LogbookSpec) -> Gate {
        let requests = K::pause(resource);
        let running = self.running.iter().map(ToString::to_string).collect();
        let resources = Door::decide(requests.resources.paused, entries.pause.resources.is_some(), Vec::new());
        let clustering = Door::decide(requests.clustering.paused, entries.pause.clustering.is_some(), running);
        Gate::new(resources, clustering)
    }

    /// Writes the logbook. Nothing is done before what must be remembered is written.
    async fn keep(&self, observed: &Observed<'_, K>, stored: Option<&Arc<Logbook>>, entries: &LogbookSpec) -> Result<(), ()> {
        if observed.memory.lost().is_some() && !K::proves_memory(observed) {
            return Ok(());
        }
        let owner = K::owner(observed.resource);
        match logbook::commit(&self.shared.calls, &self.shared.caches, &self.key, &owner, stored, entries).await {
            Ok(written) => {
                if written {
                    self.shared.metrics.logbook_write(K::NAME, "Done");
                }
                Ok(())
            }
            Err(error) => {
                let outcome = if error.is_conflict() { "Conflict" } else { "Failed" };
                self.shared.metrics.logbook_write(K::NAME, outcome);
                tracing::warn!(cluster = %self.key, %error, "logbook not written, no step is taken in this pass");
                Err(())
            }
        }
    }

    /// Takes the steps. Objects are independent of each other and are applied side by side, the rest one after another.
    async fn take_steps(&mut self, observed: &Observed<'_, K>, parted: &Parted<K::Action>) -> Vec<(Step<K::Action>, Outcome)> {
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
        taken
    }

    async fn apply(&self, manifest: &Manifest) -> (Outcome, Option<Answered>) {
        let Some(permit) = self.permit::<Resources>() else { return (closed(), None) };
        let executor = Executor { calls: &self.shared.calls, caches: &self.shared.caches };
        executor.apply(&permit, manifest).await
    }

    async fn take_step(&mut self, step: &Step<K::Action>) -> Outcome {
        let shared = Arc::clone(&self.shared);
        let executor = Executor { calls: &shared.calls, caches: &shared.caches };
        match &step.act {
            Act::Apply(manifest) => self.apply(manifest).await.0,
            Act::Delete { object, uid, resource_version } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                executor.delete(&permit, object, uid, resource_version).await
            }
            Act::SetReplicas { object, uid, resource_version, to, .. } => {
                let Some(permit) = self.permit::<Resources>() else {
                    return closed();
                };
                executor.set_replicas(&permit, object, uid, resource_version, *to).await
            }
            Act::Label { object, uid, labels } => {
                let Some(permit) = self.permit::<Clustering>() else {
                    return closed();
                };
                executor.label(&permit, object, uid, labels).await
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

    /// Asks the gate again, with the newest object: the user may have paused since the pass began.
    fn permit<L: LaneType>(&self) -> Option<windlass_core::gate::Permit<L>> {
        let resource = self.shared.clusters.get(&self.key)?;
        let entries = self.shared.caches.logbook(&self.key).map(|stored| stored.spec.clone()).unwrap_or_default();
        self.gate(&resource, &entries).permit()
    }

    /// Commits the status. Details that moved right after another write wait a moment, together with those that follow.
    async fn tell(&mut self, observed: &Observed<'_, K>, report: &Report<'_, K::Action>) -> Result<Told, ()> {
        let status = K::status(observed, report);
        let since = self.told.map_or(STATUS_PAUSE, |told| told.elapsed());
        let stored = K::stored_status(observed.resource).is_some();
        if stored && self.told.is_none() && self.born.elapsed() < BLINDNESS && K::is_blind(observed) {
            return Ok(Told::Later(STATUS_PAUSE));
        }
        match status::urgency::<K>(observed.resource, &status) {
            Urgency::None => return Ok(Told::Stored),
            Urgency::Details if since < STATUS_PAUSE => return Ok(Told::Later(STATUS_PAUSE.saturating_sub(since))),
            Urgency::Details | Urgency::Now => {}
        }
        let outcome = match status::commit::<K>(&self.shared.calls, observed.resource, &status).await {
            Ok(Committed::Written(fresh)) => {
                self.told = Some(Instant::now());
                self.shared.clusters.put(&self.key, *fresh);
                "Done"
            }
            Ok(Committed::Outdated(fresh)) => {
                self.shared.clusters.put(&self.key, *fresh);
                "Outdated"
            }
            Ok(Committed::Gone) => "Gone",
            Err(error) => {
                tracing::warn!(cluster = %self.key, %error, "status not written");
                "Failed"
            }
        };
        self.shared.metrics.status_write(K::NAME, outcome);
        if outcome == "Done" { Ok(Told::Stored) } else { Err(()) }
    }

    /// Opens lanes whose acknowledgement the status does not show any more. True when one was opened.
    async fn withdraw(&self, observed: &Observed<'_, K>, gate: &Gate, mut entries: LogbookSpec) -> bool {
        let opening = |lane| *gate.door(lane) == Door::Opening;
        if !opening(Lane::Resources) && !opening(Lane::Clustering) {
            return false;
        }
        if opening(Lane::Resources) {
            entries.pause.resources = None;
        }
        if opening(Lane::Clustering) {
            entries.pause.clustering = None;
        }
        let stored = self.shared.caches.logbook(&self.key);
        self.keep(observed, stored.as_ref(), &entries).await.is_ok()
    }

    fn tell_step(&self, resource: &K::Resource, step: &Step<K::Action>, outcome: &Outcome) {
        let about = resource.object_ref(&());
        match outcome {
            Outcome::Failed { why } => {
                tracing::error!(cluster = %self.key, %step, why, "step refused");
                self.shared.events.warning(&about, "StepFailed", format!("{step}: {why}"));
            }
            Outcome::Retry { why, .. } => tracing::warn!(cluster = %self.key, %step, why, "step is tried again"),
            Outcome::Waiting { .. } | Outcome::Done { changed: true } => {
                tracing::info!(cluster = %self.key, %step, reason = step.reason, "step taken");
                // That an object was made shows in the object itself.
                if step.reason != "it does not exist" {
                    self.shared.events.normal(&about, step.name(), format!("{step}: {}", step.reason));
                }
            }
            Outcome::Done { changed: false } => {}
        }
    }

    /// Tells once that something waits for a person.
    fn warn(&mut self, resource: &K::Resource, plan: &Plan<K::Action>, taken: &[(Step<K::Action>, Outcome)]) {
        let failed = taken.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed { .. }));
        let stalled = plan.waiting.iter().find(|waiting| waiting.stalled);
        let said = stalled.map(|waiting| waiting.message.clone());
        if let Some(waiting) = stalled
            && said != self.warned
        {
            tracing::warn!(cluster = %self.key, reason = %waiting.reason, "stalled: {}", waiting.message);
            self.shared.events.warning(&resource.object_ref(&()), waiting.reason.as_str(), waiting.message.clone());
        }
        if !failed {
            self.warned = said;
        }
    }
}

/// Whether two entries differ in nothing that a step may rest upon.
fn same_duty(stored: &LogbookSpec, entries: &LogbookSpec) -> bool {
    let mut like = stored.clone();
    like.acted_generation = entries.acted_generation;
    like.plan = entries.plan.clone();
    like.summary = entries.summary.clone();
    like == *entries
}

/// What a pass itself adds to the memory: the acknowledged pauses, the plan, the intents, the generation that was acted upon.
fn remember_pass<K: Kind>(observed: &Observed<'_, K>, gate: &Gate, parted: &Parted<K::Action>, entries: &mut LogbookSpec) {
    let requests = K::pause(observed.resource);
    let acknowledge = |lane: Lane, record: &mut Option<PauseRecord>| {
        let reason = &requests.lane(lane).reason;
        match (gate.door(lane), record) {
            (Door::Closed, record @ None) => {
                *record = Some(PauseRecord { acknowledged: whole_seconds(observed.now), reason: reason.clone() });
            }
            (Door::Closed, Some(record)) => record.reason.clone_from(reason),
            _ => {}
        }
    };
    acknowledge(Lane::Resources, &mut entries.pause.resources);
    acknowledge(Lane::Clustering, &mut entries.pause.clustering);
    let invalid = K::is_invalid(observed);
    if parted.held.is_empty() && !invalid {
        entries.acted_generation = observed.resource.meta().generation;
    }
    let held: Vec<PlannedStep> = parted.held.iter().map(planned).collect();
    entries.summary = Summary {
        held: u16::try_from(held.len()).unwrap_or(u16::MAX),
        next: held.first().map(|step| step.step.clone()).unwrap_or_default(),
    };
    entries.plan = PlannedSteps { held, ..PlannedSteps::default() };
    for step in &parted.go {
        if let Act::Member(action) = &step.act
            && action.irreversible()
            && !entries.intents.iter().any(|intent| intent.act == action.name() && intent.uid == action.target_uid())
        {
            entries.intents.push(Intent {
                act: action.name().to_owned(),
                target: action.target().to_owned(),
                uid: action.target_uid().to_owned(),
                announced: whole_seconds(observed.now),
                reason: step.reason.clone(),
                ..Intent::default()
            });
        }
    }
}

fn closed() -> Outcome {
    Outcome::Waiting { why: "its lane was paused meanwhile".into() }
}

fn planned<A: Action>(step: &Step<A>) -> PlannedStep {
    PlannedStep { lane: step.lane().to_string(), step: step.to_string(), reason: step.reason.clone() }
}

/// Stored times are in seconds; a finer one would differ from what comes back.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
