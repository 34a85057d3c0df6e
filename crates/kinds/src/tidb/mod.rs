//! `TidbCluster`: PD, TiKV, TiDB, TiFlash, TiCDC, TiProxy and Pump.

pub mod admission;
mod adoption;
pub mod answers;
pub mod build;
pub mod component;
pub mod deeds;
pub mod discovery;
mod evictions;
pub mod facts;
mod failover;
mod figures;
#[cfg(test)]
mod fixture;
mod guard;
mod labels;
mod membership;
mod news;
mod objects;
mod order;
mod pd;
mod places;
mod plan;
mod probes;
mod reclaim;
mod remember;
mod restart;
mod roll;
mod scaling;
mod scene;
mod servers;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod standing;
mod status;
mod stores;
mod suspend;
mod unheeded;
pub mod validate;
mod volumes;
mod walk;
mod wishes;
#[cfg(test)]
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::{Component, TidbCluster, TidbClusterStatus};
use windlass_core::gate::{PauseRequest, PauseRequests};
use windlass_core::kind::{Figures, Kind, News, Observed, Report};
use windlass_core::labels as keys;
use windlass_core::memory::Entry;
use windlass_core::metrics::Described;
use windlass_core::plan::Plan;
use windlass_core::views::Children;

use deeds::{Deed, Probe};
use facts::{Fact, Facts};

/// The names of the tasks that are announced.
const EVICT_LEADERS: &str = "EvictLeaders";
const DELETE_STORE: &str = "DeleteStore";
const DELETE_PD_MEMBER: &str = "DeletePdMember";
const INTENTS: &[&str] = &[EVICT_LEADERS, DELETE_STORE, DELETE_PD_MEMBER];

/// The kind `TidbCluster`.
#[derive(Clone, Copy, Debug)]
pub enum Tidb {}

/// What the operator was told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image with discovery: the operator's own.
    pub discovery_image: String,
    /// Whether it may change volumes. They are in no namespace: an operator that is bound to one has no right to.
    pub manages_volumes: bool,
    /// Whether failed members are replaced.
    pub auto_failover: bool,
    /// For how long a member must have failed before it is.
    pub failover_period: Duration,
    /// The same of single components, where it differs.
    pub failover_periods: BTreeMap<Component, Duration>,
}

impl Settings {
    /// For how long a member of a component must have failed before it is replaced.
    fn failover_period(&self, component: Component) -> Duration {
        self.failover_periods.get(&component).copied().unwrap_or(self.failover_period)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            discovery_image: String::new(),
            manages_volumes: true,
            auto_failover: true,
            failover_period: Duration::from_mins(5),
            failover_periods: BTreeMap::new(),
        }
    }
}

impl Kind for Tidb {
    type Resource = TidbCluster;
    type Status = TidbClusterStatus;
    type Action = Deed;
    type Probe = Probe;
    type Fact = Fact;
    type Facts = Facts;
    type Told = news::Told;
    type Settings = Settings;

    const NAME: &'static str = build::KIND;
    const INTENTS: &'static [&'static str] = INTENTS;
    const METRICS: &'static [Described] = figures::METRICS;

    fn stored_status(resource: &TidbCluster) -> Option<&TidbClusterStatus> {
        resource.status.as_ref()
    }

    fn pause(resource: &TidbCluster) -> PauseRequests {
        let annotations = resource.metadata.annotations.as_ref();
        let says = |key| annotations.and_then(|all| all.get(key)).is_some_and(|value| value == "true");
        let reason = annotations.and_then(|all| all.get(keys::PAUSE_REASON)).cloned().unwrap_or_default();
        let request = |key| PauseRequest { paused: resource.spec.paused || says(key), reason: reason.clone() };
        PauseRequests { resources: request(keys::RESOURCES_PAUSED), clustering: request(keys::CLUSTERING_PAUSED) }
    }

    fn learn(facts: &mut Facts, fact: Fact, now: Timestamp) -> bool {
        facts.learn(fact, now);
        true
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

    fn note_intents(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec) {
        remember::note_intents(observed, logbook);
    }

    fn is_invalid(observed: &Observed<'_, Self>) -> bool {
        validate::validate(observed.resource).is_err()
    }

    fn is_blind(observed: &Observed<'_, Self>) -> bool {
        probes::is_blind(observed)
    }

    fn proves(observed: &Observed<'_, Self>) -> Vec<Entry> {
        remember::proven(observed)
    }

    fn status(observed: &Observed<'_, Self>, report: &Report<'_, Deed>) -> TidbClusterStatus {
        status::status(observed, report)
    }

    fn figures(observed: &Observed<'_, Self>, report: &Report<'_, Deed>, _status: &TidbClusterStatus) -> Figures {
        figures::figures(observed, report)
    }

    fn news(told: &mut news::Told, observed: &Observed<'_, Self>, report: &Report<'_, Deed>) -> Vec<News> {
        news::news(told, observed, report)
    }

    fn named(fact: &Fact) -> (&'static str, &'static str) {
        fact.named()
    }

    fn look_again(observed: &Observed<'_, Self>) -> Duration {
        probes::look_again(observed)
    }
}
