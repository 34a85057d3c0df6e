//! Tells what came of a pass: status, Events, warnings, each only when there is something new.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use kube::Resource as _;
use tokio::time::Instant;
use windlass_api::logbook::{LogbookSpec, Override};
use windlass_clients::members::Members;
use windlass_core::kind::{Kind, News, Observed, Report};
use windlass_core::outcome::Outcome;
use windlass_core::plan::Plan;
use windlass_core::step::{Act, Action as _, Step};

use crate::actor::Actor;
use crate::status::{self, Committed, Urgency};

/// The least time between two writes of status that only change details.
const STATUS_PAUSE: Duration = Duration::from_secs(1);
/// How long after its start an operator keeps a stored status rather than tell that it knows nothing yet.
const BLINDNESS: Duration = Duration::from_secs(15);
/// How long the same step on the same target is not told again as an Event: it is only tried again. The log and metrics have it.
const REPEATED: Duration = Duration::from_mins(5);

/// What came of telling.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The stored status is the computed one.
    Stored,
    /// Details wait this long.
    Later(Duration),
}

/// What stands for a text that is only compared.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    /// Commits the status. Details that moved right after another write wait a moment, together with those that follow.
    pub(crate) async fn tell(&mut self, observed: &Observed<'_, K>, report: &Report<'_, K::Action>) -> Result<Told, ()> {
        let status = K::status(observed, report);
        self.gauges.show_figures(K::figures(observed, report, &status));
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

    /// What the kind has to tell of its own accord.
    pub(crate) fn tell_news(&mut self, observed: &Observed<'_, K>, report: &Report<'_, K::Action>) {
        let about = observed.resource.object_ref(&());
        for news in K::news(&mut self.news_told, observed, report) {
            match news {
                News::Event { warning: true, reason, note } => {
                    tracing::warn!(cluster = %self.key, %reason, "{note}");
                    self.shared.events.warning(&about, reason.as_str(), note);
                }
                News::Event { warning: false, reason, note } => {
                    tracing::info!(cluster = %self.key, %reason, "{note}");
                    self.shared.events.normal(&about, reason.as_str(), note);
                }
                News::Measured(measure) => self.gauges.add(measure),
            }
        }
    }

    /// Whether this was not told of the step's target just now.
    fn is_new(&mut self, step: &Step<K::Action>, note: &str) -> bool {
        let target = match &step.act {
            Act::Member(action) => format!("{} {}", action.target(), action.target_uid()),
            _ => step.judged().map_or_else(String::new, |(object, over)| {
                format!("{object} {}", over.map(|over| over.uid.as_str()).unwrap_or_default())
            }),
        };
        self.steps_told.retain(|_, (_, at)| at.elapsed() < REPEATED);
        let (target, note) = (hash(&target), hash(note));
        if self.steps_told.get(&target).is_some_and(|(told, _)| *told == note) {
            return false;
        }
        self.steps_told.insert(target, (note, Instant::now()));
        true
    }

    pub(crate) fn tell_step(&mut self, resource: &K::Resource, step: &Step<K::Action>, outcome: &Outcome) {
        let about = resource.object_ref(&());
        match outcome {
            Outcome::Failed { why } | Outcome::Foreign { why } => {
                tracing::error!(cluster = %self.key, %step, why, "step refused");
                let note = format!("{step}: {why}");
                if self.is_new(step, &note) {
                    self.shared.events.warning(&about, "StepFailed", note);
                }
            }
            Outcome::Retry { why, .. } => tracing::warn!(cluster = %self.key, %step, why, "step is tried again"),
            Outcome::Waiting { .. } | Outcome::Done { changed: true } => {
                tracing::info!(cluster = %self.key, %step, reason = step.reason, "step taken");
                // That an object was made shows in the object itself.
                let note = format!("{step}: {}", step.reason);
                if step.reason != "it does not exist" && self.is_new(step, &note) {
                    self.shared.events.normal(&about, step.name(), note);
                }
            }
            Outcome::Outrun => tracing::info!(cluster = %self.key, %step, "the object changed meanwhile, it is judged again"),
            Outcome::Done { changed: false } => {}
        }
    }

    /// What the user overrode is told when it is on record.
    pub(crate) fn tell_overrides(&self, resource: &K::Resource, stored: Option<&LogbookSpec>, entries: &LogbookSpec) {
        let is_known = |used: &Override| {
            let mut known = stored.iter().flat_map(|stored| &stored.overrides);
            known.any(|it| (&it.entry, &it.uid, it.used) == (&used.entry, &used.uid, used.used))
        };
        for used in entries.overrides.iter().filter(|used| !is_known(used)) {
            let note = format!("the user says of {}: {} (bound to {})", used.entry, used.value, used.uid);
            tracing::warn!(cluster = %self.key, "{note}");
            self.shared.events.normal(&resource.object_ref(&()), "OverrideTaken", note);
        }
    }

    /// Tells once that something waits for a person.
    pub(crate) fn warn(&mut self, resource: &K::Resource, plan: &Plan<K::Action>, taken: &[(Step<K::Action>, Outcome)]) {
        let failed = taken.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed { .. } | Outcome::Foreign { .. }));
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
