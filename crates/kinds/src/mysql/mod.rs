//! `MySQLCluster`: MySQL with semi-synchronous replication.

pub mod acknowledging;
pub mod admission;
mod adoption;
mod build;
mod clustering;
pub mod deeds;
pub mod facts;
mod figures;
#[cfg(test)]
mod fixture;
mod growth;
pub mod gtid;
pub mod instance;
pub mod mycnf;
mod news;
mod office;
mod outside;
mod plan;
mod probes;
mod protection;
mod remember;
mod removals;
mod roll;
mod scene;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod state;
mod status;
mod validate;
#[cfg(test)]
mod world;

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::logbook::LogbookSpec;
use windlass_api::mysql::{MySQLCluster, MySQLClusterStatus, keys};
use windlass_core::gate::{PauseRequest, PauseRequests};
use windlass_core::kind::{Bond, Figures, Kind, News, Observed, Passed, Report};
use windlass_core::labels;
use windlass_core::memory::Entry;
use windlass_core::metrics::{Described, Measure};
use windlass_core::plan::Plan;
use windlass_core::views::Children;

use deeds::{Deed, Probe};
use facts::{Fact, Facts};
pub use validate::{Invalid, Validated, validate};

/// The names of the tasks that cannot be undone.
const OPEN_TO_WRITES: &str = "OpenToWrites";
const REPLACE: &str = "Replace";

/// The kind `MySQLCluster`.
#[derive(Clone, Copy, Debug)]
pub enum MySql {}

/// What the operator was told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The image with the agent: the operator's own.
    pub agent_image: String,
    /// Whether it has an authority that signs certificates for the agents.
    pub signs_certificates: bool,
}

impl Kind for MySql {
    type Resource = MySQLCluster;
    type Status = MySQLClusterStatus;
    type Action = Deed;
    type Probe = Probe;
    type Fact = Fact;
    type Facts = Facts;
    type Told = news::Told;
    type Settings = Settings;

    const NAME: &'static str = "mysql";
    const INTENTS: &'static [&'static str] = &[OPEN_TO_WRITES, REPLACE];
    const FINALIZER: Option<&'static str> = Some(keys::FINALIZER);
    const METRICS: &'static [Described] = figures::METRICS;

    fn stored_status(resource: &MySQLCluster) -> Option<&MySQLClusterStatus> {
        resource.status.as_ref()
    }

    fn options(resource: &MySQLCluster) -> Option<String> {
        resource.spec.mysql_config_map_name.clone()
    }

    fn pause(resource: &MySQLCluster) -> PauseRequests {
        let annotations = resource.metadata.annotations.as_ref();
        let says = |key| annotations.and_then(|all| all.get(key)).is_some_and(|value| value == "true");
        let reason = annotations.and_then(|all| all.get(labels::PAUSE_REASON)).cloned().unwrap_or_default();
        let request = |key, ours| PauseRequest { paused: says(key) || says(ours), reason: reason.clone() };
        PauseRequests {
            resources: request(keys::RECONCILIATION_STOPPED, labels::RESOURCES_PAUSED),
            clustering: request(keys::CLUSTERING_STOPPED, labels::CLUSTERING_PAUSED),
        }
    }

    fn halfway(logbook: &LogbookSpec) -> Vec<String> {
        let changing = logbook.mysql.as_ref().is_some_and(|it| it.changing);
        changing.then(|| "the change of the primary that has begun, or its undoing".to_owned()).into_iter().collect()
    }

    fn learn(facts: &mut Facts, fact: Fact, now: Timestamp) -> bool {
        let is_new = !facts.has_heard(&fact);
        facts.learn(fact, now);
        is_new
    }

    fn forget(facts: &mut Facts, children: &Children) {
        facts.forget(children);
    }

    fn probes(observed: &Observed<'_, Self>) -> Vec<Probe> {
        probes::due(observed)
    }

    fn probe_target(probe: &Probe) -> String {
        probe.target()
    }

    fn plan(observed: &Observed<'_, Self>) -> Plan<Deed> {
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

    fn proves(observed: &Observed<'_, Self>) -> Vec<Entry> {
        remember::proven(observed)
    }

    fn status(observed: &Observed<'_, Self>, report: &Report<'_, Deed>) -> MySQLClusterStatus {
        status::status(observed, report)
    }

    fn figures(observed: &Observed<'_, Self>, report: &Report<'_, Deed>, status: &MySQLClusterStatus) -> Figures {
        figures::figures(observed, report, status)
    }

    fn news(told: &mut news::Told, observed: &Observed<'_, Self>, report: &Report<'_, Deed>) -> Vec<News> {
        news::news(told, observed, report)
    }

    fn passed(pass: &Passed) -> Vec<Measure> {
        figures::passed(pass)
    }

    fn bonds(children: &Children) -> Vec<Bond> {
        protection::bonds(children)
    }

    fn named(fact: &Fact) -> (&'static str, &'static str) {
        fact.named()
    }

    fn look_again(observed: &Observed<'_, Self>) -> Duration {
        probes::look_again(observed)
    }
}
