//! One pass: observe, plan, gate, remember, execute, tell. In this order, and status always comes.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource as _;
use windlass_api::Logbook;
use windlass_api::logbook::{Intent, LogbookSpec};
use windlass_clients::members::Members;
use windlass_core::bookkeeping::{self, Change, count_edition, note_pass, record_ended, speaks_of_data, unknown_intent};
use windlass_core::claim;
use windlass_core::gate::{Door, Gate, Parted};
use windlass_core::kind::{Kind, Observed, Report};
use windlass_core::lane::Lane;
use windlass_core::memory::{Found, Memory, reprove, take_overrides};
use windlass_core::outcome::{Outcome, next_pass};
use windlass_core::plan::{Plan, Waiting};
use windlass_core::step::{Act, Action as _, Step};
use windlass_core::{reason, sync};

use crate::actor::Actor;
use crate::caches;
use crate::finalizer;
use crate::logbook;
use crate::rest::{Rest, Version};
use crate::status;
use crate::tell::Told;

/// After something that only time can mend.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// The least time between two writes of the logbook that only tell what runs.
const NOTES: Duration = Duration::from_secs(5);
/// The longest wait between two tries.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The reason of the Event that tells of it.
const NOT_WRITTEN: &str = "LogbookNotWritten";
/// A cluster that is looked at as seldom as this is at rest.
const SELDOM: Duration = Duration::from_secs(3);
/// When nothing at all is due.
pub(crate) const LATER: Duration = Duration::from_mins(10);

/// What follows a pass.
pub(crate) struct Next {
    pub(crate) outcome: &'static str,
    pub(crate) after: Duration,
    /// Whether a change of an object is a reason to pass earlier.
    pub(crate) heeds_changes: bool,
}

/// Why the logbook was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unkept {
    /// Somebody else wrote it first.
    Outrun,
    /// The write failed.
    Failed,
}

impl Next {
    pub(crate) fn new(outcome: &'static str, after: Duration) -> Self {
        Self { outcome, after, heeds_changes: true }
    }

    /// Whether nobody waits for anything: then the cluster is packed as a whole (to unpack it takes longer than the rest of some passes),
    /// and answers that say nothing new wait for the next pass.
    pub(crate) fn is_calm(&self) -> bool {
        self.after >= SELDOM
    }
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    pub(crate) async fn pass(&mut self) -> Next {
        let Some(resource) = self.shared.clusters.get(&self.key) else {
            return Next::new("Gone", LATER);
        };
        self.last_seen.clone_from(&resource.meta().uid);
        if resource.meta().deletion_timestamp.is_some() {
            // Deleting wins over everything.
            return self.end(&resource).await;
        }
        if let Some(next) = self.stand_aside(&resource).await {
            return next;
        }
        if self.shared.caches.take_doubt(&self.key) && !self.look("every step").await {
            self.shared.caches.doubt(&self.key);
            return Next::new("Retry", SOON);
        }
        let edition = self.shared.caches.edition(&self.key);
        let children = self.shared.caches.children(&self.key);
        K::forget(&mut self.facts, &children);
        let stored = self.shared.caches.logbook(&self.key);
        let uid = resource.meta().uid.clone().unwrap_or_default();
        let memory = Memory::judge(stored.as_deref().map(found), &uid, &children);
        if stored.is_none()
            && memory.lost().is_some()
            && let Some(next) = self.may_be_the_end(&resource).await
        {
            return next;
        }
        self.doubt(memory.lost());
        let shared = Arc::clone(&self.shared);
        let sight = self.sight(&resource, edition, stored.as_deref()).await;
        let facts = self.facts.clone();
        let answered = self.answered.clone();
        let running = self.running.clone();
        let observed = Observed {
            resource: &*resource,
            children: &children,
            facts: &facts,
            settings: &shared.settings,
            options: &sight.options,
            memory: &memory,
            answered: &answered,
            running: &running,
            settled: self.rest.as_ref().is_some_and(|rest| rest.holds(&sight)),
            now: sight.since,
        };
        let mut entries = self.remember(&observed, uid);
        let frozen = unknown_intent::<K>(&entries).map(freeze);
        let plan = frozen.clone().unwrap_or_else(|| K::plan(&observed));
        if !observed.settled {
            self.rest = plan.settled.then(|| sight.clone());
        }
        let gate = bookkeeping::gate::<K>(&resource, &self.running, &entries);
        let parted = gate.part(&plan);
        if let Some(next) = self.look_first(&parted, &entries).await {
            return next;
        }
        note_pass(&observed, &self.shared.identity, &plan, &gate, &parted, &mut entries);
        let spec = stored.as_deref().map(|stored| &stored.spec);
        let copies = if frozen.is_none() { copies(&observed, spec, &gate, &plan, &entries) } else { Vec::new() };
        let acts = !parted.go.is_empty() || !copies.is_empty() || finalizer::is_missing::<K>(resource.meta());
        self.claim(&mut entries, acts);
        count_edition(spec, &children, &mut entries);

        // What must be remembered is written before anything is done; what only tells of this pass, after it.
        let change = bookkeeping::change(spec, &entries);
        let mut kept = if change == Change::Duty { self.keep(&observed, stored.as_ref(), &entries).await } else { Ok(()) };
        if kept == Err(Unkept::Outrun) {
            // It may be another release that was first, and then what is told of the cluster is its to tell.
            return Next::new("Outrun", SOON);
        }
        let (mut taken, mut marked) = (Vec::new(), Ok(None));
        if kept.is_ok() {
            self.tell_overrides(&resource, spec, &entries);
            marked = self.mark(&resource).await;
            taken = self.take_steps(&observed, &parted).await;
            self.copy_labels(&resource, copies).await;
        }
        if self.is_worth_telling(change, &entries) {
            kept = self.keep(&observed, stored.as_ref(), &entries).await;
        }
        // What was started in this pass runs now: it is told so, and is not asked meanwhile.
        let running = self.running.clone();
        // The status is told over the version that the finalizer gave the object.
        let (is_marked, marked) = (marked.is_ok(), marked.ok().flatten());
        let observed = Observed { running: &running, resource: marked.as_ref().unwrap_or(&resource), ..observed };
        for probe in K::probes(&observed) {
            self.ask(probe);
        }
        // What could not be written is not told either: an acknowledgement, or a generation that was acted upon, would be taken back.
        let unwritten = kept.is_err().then(|| {
            let stored = observed.memory.entries();
            (gate.as_recorded(&stored.pause), stored)
        });
        let (told_gate, remembered) = unwritten.as_ref().map_or((&gate, &entries), |(gate, stored)| (gate, stored));
        let report = Report { plan: &plan, gate: told_gate, held: &parted.held, taken: &taken, remembered };
        self.gauges.show(&gate, parted.held.len());
        self.warn(&resource, &plan, &taken);
        self.tell_news(&observed, &report);
        let told = self.tell(&observed, &report).await;
        if told == Ok(Told::Stored) && self.withdraw(&observed, &gate, entries).await {
            return Next::new("Resumed", Duration::ZERO);
        }
        let next = self.next(&observed, &taken, kept, if is_marked { told } else { Err(()) });
        self.pack(edition, &taken, &next);
        next
    }

    /// The logbook goes with its cluster: what looks like a loss may be the end.
    async fn may_be_the_end(&self, resource: &K::Resource) -> Option<Next> {
        match status::is_there::<K>(&self.shared.calls, resource).await {
            Ok(true) => None,
            Ok(false) => Some(Next::new("Gone", LATER)),
            Err(_) => Some(Next::new("Retry", SOON)),
        }
    }

    /// What decides about the objects in this pass.
    async fn sight(&mut self, resource: &K::Resource, edition: u64, logbook: Option<&Logbook>) -> Rest {
        Rest {
            resource: Version::of(resource.meta()),
            edition,
            logbook: logbook.map(|logbook| Version::of(&logbook.metadata)),
            options: self.read_options(resource).await,
            since: self.shared.clock.now(),
        }
    }

    /// Packs what is kept of a cluster at rest: its objects when two passes in a row saw the same and did nothing, and the rest where
    /// nobody will look at it for a while.
    fn pack(&mut self, edition: u64, taken: &[(Step<K::Action>, Outcome)], next: &Next) {
        if taken.is_empty() && self.at_rest.replace(edition) == Some(edition) {
            self.shared.caches.pack(&self.key);
            if next.is_calm() {
                self.shared.caches.pack_logbook(&self.key);
                self.shared.clusters.pack(&self.key);
            }
        }
    }

    fn next(
        &mut self,
        observed: &Observed<'_, K>,
        taken: &[(Step<K::Action>, Outcome)],
        kept: Result<(), Unkept>,
        told: Result<Told, ()>,
    ) -> Next {
        let retried = taken.iter().any(|(_, outcome)| matches!(outcome, Outcome::Retry { .. }));
        let (Ok(()), Ok(told), false) = (kept, told, retried) else {
            self.troubles += 1;
            // A logbook that is not stored as it was sent changes as well: that is no reason to send it once more.
            return Next { heeds_changes: kept.is_ok(), ..Next::new("Retry", self.retry_after()) };
        };
        self.troubles = 0;
        let due = next_pass(taken.iter().map(|(_, outcome)| outcome), K::look_again(observed));
        match told {
            Told::Stored => Next::new("Done", due),
            Told::Later(wait) => Next::new("Done", due.min(wait)),
        }
    }

    /// What was remembered, and what observation and the user add to it.
    fn remember(&self, observed: &Observed<'_, K>, uid: String) -> LogbookSpec {
        let mut entries = observed.memory.entries();
        let announced = entries.intents.clone();
        entries.cluster_uid = uid;
        K::remember(observed, &mut entries);
        reprove(&mut entries, &K::proves(observed));
        take_overrides(&mut entries, observed.resource.meta().annotations.as_ref(), observed.now);
        record_ended(&announced, &self.shared.identity, &mut entries);
        entries
    }

    /// What decides which data is the cluster's rests on a look past the caches: a volume that was lost a moment ago may still be in
    /// them. The step is taken when it is planned again from what was seen. A cluster without data has none to lose.
    async fn look_first(&mut self, parted: &Parted<K::Action>, entries: &LogbookSpec) -> Option<Next> {
        let decisive = |step: &&Step<K::Action>| matches!(&step.act, Act::Member(action) if action.irreversible());
        let planned: Vec<String> = parted.go.iter().filter(decisive).map(ToString::to_string).collect();
        let looked = std::mem::take(&mut self.looked);
        if planned.is_empty() || planned == looked || !speaks_of_data(entries) {
            return None;
        }
        if !self.look(&planned.join(", ")).await {
            return Some(Next::new("Retry", SOON));
        }
        self.looked = planned;
        Some(Next::new("Looked", Duration::ZERO))
    }

    /// Looks at the whole cluster past the caches, for the sake of something that waits for it. Returns whether it could.
    pub(crate) async fn look(&self, waits: &str) -> bool {
        let looked = caches::refresh(&self.shared.calls, &self.shared.caches, &self.key).await;
        looked
            .inspect_err(|error| tracing::warn!(cluster = %self.key, %error, "the cluster cannot be looked at, {waits} waits"))
            .is_ok()
    }

    /// Takes the claim, where this process does not hold it. One that another process of this release and version left is taken
    /// only before something is done, or when that process may have left something half done: a restart costs quiet clusters
    /// nothing.
    fn claim(&self, entries: &mut LogbookSpec, acts: bool) {
        let me = &self.shared.identity;
        let held = entries.claim.as_ref();
        let as_good = held.is_some_and(|it| !it.released && it.release == me.release && it.version == me.version);
        let half_done = !entries.intents.is_empty();
        if !claim::is_held_by(held, me) && (acts || half_done || !as_good) {
            entries.claim = Some(claim::taken(held, me, self.shared.clock.now()));
        }
    }

    /// What runs right now is told now and then; it goes along with everything else.
    fn is_worth_telling(&mut self, change: Change, entries: &LogbookSpec) -> bool {
        let worth = match change {
            Change::None | Change::Duty => false,
            // That nothing runs any more is told at once: whoever reads Ready must not read of a step that runs.
            Change::Runs => entries.plan.running.is_empty() || self.noted.is_none_or(|noted| noted.elapsed() >= NOTES),
            Change::Told => true,
        };
        if worth {
            self.noted = Some(tokio::time::Instant::now());
        }
        worth
    }

    /// Later and later while trouble lasts, and for each cluster at another moment.
    fn retry_after(&self) -> Duration {
        let wait = SOON.saturating_mul(1 << self.troubles.saturating_sub(1).min(5)).min(LONGEST_RETRY);
        let spread = self.key.name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 100;
        wait + wait.saturating_mul(spread) / 200
    }

    /// Writes the logbook. Nothing is done before what must be remembered is written.
    async fn keep(
        &self,
        observed: &Observed<'_, K>,
        stored: Option<&Arc<Logbook>>,
        entries: &LogbookSpec,
    ) -> Result<(), Unkept> {
        let owner = K::owner(observed.resource);
        match logbook::commit(&self.shared.calls, &self.shared.caches, &self.key, &owner, stored, entries).await {
            Ok(()) => {
                self.shared.metrics.logbook_write(K::NAME, "Done");
                Ok(())
            }
            Err(error) => {
                let (why, outcome) =
                    if error.is_conflict() { (Unkept::Outrun, "Conflict") } else { (Unkept::Failed, "Failed") };
                self.shared.metrics.logbook_write(K::NAME, outcome);
                tracing::warn!(cluster = %self.key, %error, "logbook not written, no step is taken in this pass");
                if why == Unkept::Failed {
                    self.shared.events.warning(&observed.resource.object_ref(&()), NOT_WRITTEN, error.to_string());
                }
                Err(why)
            }
        }
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
}

fn found(logbook: &Logbook) -> Found<'_> {
    Found { logbook: &logbook.spec, uid: logbook.metadata.uid.as_deref().unwrap_or_default() }
}

/// The labels that are copied to objects, and what else is noted on them beside the plan.
fn copies<K: Kind>(
    observed: &Observed<'_, K>,
    stored: Option<&LogbookSpec>,
    gate: &Gate,
    plan: &Plan<K::Action>,
    entries: &LogbookSpec,
) -> Vec<Step<K::Action>> {
    let mut copies = sync::steps(observed.resource.meta().labels.as_ref(), stored, gate, observed.children);
    copies.extend(bookkeeping::spare(observed, plan, entries));
    copies
}

/// The plan for a cluster in which a newer release announced something that this one does not know: nothing.
fn freeze<A>(intent: &Intent) -> Plan<A> {
    let message = format!(
        "{} on {} was announced at {}, and this release does not know what that is; nothing is done until a release that does \
         looks after the cluster",
        intent.act, intent.target, intent.announced
    );
    Plan { waiting: vec![Waiting { reason: reason!("UnknownIntent"), message, stalled: true }], ..Plan::default() }
}
