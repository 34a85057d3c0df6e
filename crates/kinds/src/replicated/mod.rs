//! `ReplicatedStatefulSet`: any replicated application through hooks; Galera first.

mod build;
mod clustering;
mod duration;
pub mod facts;
pub mod hooks;
mod members;
mod plan;
mod probes;
mod remember;
mod seed;
mod status;
mod validate;
mod volumes;

#[cfg(test)]
mod announce_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod random;
#[cfg(test)]
mod world;

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::ReplicatedStatefulSet;
use windlass_api::logbook::LogbookSpec;
use windlass_api::replicated::ReplicatedStatefulSetStatus;
use windlass_core::gate::{PauseRequest, PauseRequests};
use windlass_core::kind::{Figures, Kind, Observed, Report};
use windlass_core::labels;
use windlass_core::memory::Entry;
use windlass_core::plan::Plan;
use windlass_core::views::Children;

pub use duration::{InvalidDuration, parse_duration};
use facts::{Fact, Facts};
use hooks::{HookRun, Question};
pub use validate::{Invalid, Validated, validate};

/// The kind `ReplicatedStatefulSet`.
#[derive(Clone, Copy, Debug)]
pub enum Replicated {}

impl Kind for Replicated {
    type Resource = ReplicatedStatefulSet;
    type Status = ReplicatedStatefulSetStatus;
    type Action = HookRun;
    type Probe = Question;
    type Fact = Fact;
    type Facts = Facts;
    type Told = ();
    type Settings = ();

    const NAME: &'static str = "rss";
    const INTENTS: &'static [&'static str] = &["Seed", "Promote"];

    fn stored_status(resource: &ReplicatedStatefulSet) -> Option<&ReplicatedStatefulSetStatus> {
        resource.status.as_ref()
    }

    fn pause(resource: &ReplicatedStatefulSet) -> PauseRequests {
        let annotations = resource.metadata.annotations.as_ref();
        let says = |key| annotations.and_then(|all| all.get(key)).is_some_and(|value| value == "true");
        let reason = annotations.and_then(|all| all.get(labels::PAUSE_REASON)).cloned().unwrap_or_default();
        let request = |key| PauseRequest { paused: resource.spec.paused || says(key), reason: reason.clone() };
        PauseRequests { resources: request(labels::RESOURCES_PAUSED), clustering: request(labels::CLUSTERING_PAUSED) }
    }

    fn learn(facts: &mut Facts, fact: Fact, now: Timestamp) -> bool {
        facts.learn(fact, now);
        true
    }

    fn forget(facts: &mut Facts, children: &Children) {
        facts.forget(children);
    }

    fn probes(observed: &Observed<'_, Self>) -> Vec<Question> {
        probes::due(observed)
    }

    fn probe_target(probe: &Question) -> String {
        probe.target()
    }

    fn plan(observed: &Observed<'_, Self>) -> Plan<HookRun> {
        plan::plan(observed)
    }

    fn remember(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec) {
        remember::remember(observed, logbook);
    }

    fn is_invalid(observed: &Observed<'_, Self>) -> bool {
        !observed.settled && validate(observed.resource).is_err()
    }

    fn is_blind(observed: &Observed<'_, Self>) -> bool {
        probes::is_blind(observed)
    }

    fn note_intents(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec) {
        remember::note_intents(observed, logbook);
    }

    fn proves(observed: &Observed<'_, Self>) -> Vec<Entry> {
        remember::proven(observed)
    }

    fn status(observed: &Observed<'_, Self>, report: &Report<'_, HookRun>) -> ReplicatedStatefulSetStatus {
        status::status(observed, report)
    }

    fn figures(_observed: &Observed<'_, Self>, _report: &Report<'_, HookRun>, status: &ReplicatedStatefulSetStatus) -> Figures {
        status::figures(status)
    }

    fn named(fact: &Fact) -> (&'static str, &'static str) {
        fact.named()
    }

    fn look_again(observed: &Observed<'_, Self>) -> Duration {
        probes::look_again(observed)
    }
}
