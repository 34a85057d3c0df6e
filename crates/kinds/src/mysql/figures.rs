//! What metrics show of a cluster, under the names that dashboards and alerts of users know.
//!
//! Decides values, and nothing else: what happened, and so is counted, is decided beside the Events that tell of it.

use std::time::Duration;

use windlass_api::mysql::conditions::{self as types, State};
use windlass_api::mysql::{DEFAULT_REPLICAS, MySQLClusterStatus};
use windlass_core::gate::Door;
use windlass_core::kind::{Figures, Observed, Passed, Report};
use windlass_core::lane::Lane;
use windlass_core::metrics::{Described, Measure, Sort, own};

use super::deeds::Deed;
use super::office::Change;
use super::remember::entries;
use super::scene::Scene;
use super::{MySql, probes};

/// Limits for a look at a cluster and all that is done at once.
const PROCESSING: &[f64] = &[0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 30.0];
/// Limits for the time in which nobody takes writes.
const CHANGING: &[f64] = &[0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0];

const CHECKS: Described = own("moco_cluster_checks", Sort::Counter, "How often the cluster was looked at and judged");
pub(super) const ERRORS: Described =
    own("moco_cluster_errors", Sort::Counter, "How often something went wrong: a pass, a step, or a task on a server");
const AVAILABLE: Described =
    own("moco_cluster_available", Sort::Gauge, "1 when the primary takes writes, 0 when not, NaN while clustering is stopped");
const HEALTHY: Described = own(
    "moco_cluster_healthy",
    Sort::Gauge,
    "1 when the primary takes writes and all replicas follow, 0 when not, NaN while clustering is stopped",
);
const SWITCHOVERS: Described = own("moco_cluster_switchover", Sort::Counter, "Switchovers that this process decided");
const FAILOVERS: Described = own("moco_cluster_failover", Sort::Counter, "Failovers that this process decided");
const SWITCHOVER_TIME: Described = own(
    "moco_cluster_switchover_seconds",
    Sort::Histogram(CHANGING),
    "From the wish to hand over to the new primary taking writes",
);
const FAILOVER_TIME: Described = own(
    "moco_cluster_failover_seconds",
    Sort::Histogram(CHANGING),
    "From the primary being found lost to the new one taking writes",
);
const REPLICAS: Described = own("moco_cluster_replicas", Sort::Gauge, "Instances that the spec asks for");
const READY: Described = own(
    "moco_cluster_ready_replicas",
    Sort::Gauge,
    "Pods that are ready, the primary's included; NaN while clustering is stopped",
);
const ERRANT: Described = own(
    "moco_cluster_errant_replicas",
    Sort::Gauge,
    "Instances with transactions that the primary never had; NaN while clustering is stopped",
);
const PROCESSING_TIME: Described =
    own("moco_cluster_processing_time_seconds", Sort::Histogram(PROCESSING), "How long passes took");
const CLUSTERING_STOPPED: Described =
    own("moco_cluster_clustering_stopped", Sort::Gauge, "1 when the stop of clustering is acknowledged, 0 when not");
const RECONCILIATION_STOPPED: Described =
    own("moco_cluster_reconciliation_stopped", Sort::Gauge, "1 when the stop of reconciliation is acknowledged, 0 when not");
const CURRENT: Described =
    own("moco_cluster_current_replicas", Sort::Gauge, "Pods of the template that is being replaced; all pods when none is");
const UPDATED: Described = own("moco_cluster_updated_replicas", Sort::Gauge, "Pods of the newest template");

/// All of them.
pub(super) const METRICS: &[Described] = &[
    CHECKS,
    ERRORS,
    AVAILABLE,
    HEALTHY,
    SWITCHOVERS,
    FAILOVERS,
    SWITCHOVER_TIME,
    FAILOVER_TIME,
    REPLICAS,
    READY,
    ERRANT,
    PROCESSING_TIME,
    CLUSTERING_STOPPED,
    RECONCILIATION_STOPPED,
    CURRENT,
    UPDATED,
];

impl Change {
    pub(super) fn count(self) -> Measure {
        Measure::Count(match self {
            Self::Switchover => &SWITCHOVERS,
            Self::Failover => &FAILOVERS,
        })
    }

    pub(super) fn took(self, time: Duration) -> Measure {
        let metric = match self {
            Self::Switchover => &SWITCHOVER_TIME,
            Self::Failover => &FAILOVER_TIME,
        };
        Measure::Took(metric, time)
    }
}

pub(super) fn figures(observed: &Observed<'_, MySql>, report: &Report<'_, Deed>, status: &MySQLClusterStatus) -> Figures {
    let condition = |type_: &str| status.conditions.iter().find(|it| it.type_ == type_);
    let phase = condition(types::HEALTHY).and_then(|it| State::ALL.into_iter().find(|state| state.as_str() == it.reason));
    let (ready, errant) = (status.synced_replicas.unwrap_or(0), status.errant_replicas.unwrap_or(0));
    let stopped = |lane| *report.gate.door(lane) == Door::Closed;
    // Who is told to look away does not tell how things stand.
    let seen = |value: f64| if stopped(Lane::Clustering) { f64::NAN } else { value };
    let flag = |is: bool| f64::from(u8::from(is));
    let (current, updated) = revisions(&Scene::of(observed, entries(report.remembered)));
    let mut own = vec![
        (&REPLICAS, f64::from(observed.resource.spec.replicas.unwrap_or(DEFAULT_REPLICAS))),
        (&READY, seen(ready.into())),
        (&ERRANT, seen(errant.into())),
        (&CLUSTERING_STOPPED, flag(stopped(Lane::Clustering))),
        (&RECONCILIATION_STOPPED, flag(stopped(Lane::Resources))),
        (&CURRENT, f64::from(current)),
        (&UPDATED, f64::from(updated)),
    ];
    // Right after a start nobody was asked yet: a zero would wake somebody up for nothing.
    if stopped(Lane::Clustering) || !probes::is_blind(observed) {
        let is = |type_| flag(condition(type_).is_some_and(|it| it.status == "True"));
        own.push((&AVAILABLE, seen(is(types::AVAILABLE))));
        own.push((&HEALTHY, seen(is(types::HEALTHY))));
    }
    Figures {
        phase: phase.map(State::as_str),
        members: vec![("ready", ready.into()), ("errant", errant.into())],
        own,
        parts: Vec::new(),
    }
}

/// How many pods have a template that is being replaced, and how many the newest one.
fn revisions(scene: &Scene<'_>) -> (u16, u16) {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let pods = scene.by_pod();
    let updated = pods.values().filter(|pod| scene.set.is_some_and(|set| set.is_current(pod))).count();
    let current = if updated == pods.len() { updated } else { pods.len() - updated };
    (count(current), count(updated))
}

pub(super) fn passed(pass: &Passed) -> Vec<Measure> {
    let mut measures = vec![Measure::Count(&CHECKS), Measure::Took(&PROCESSING_TIME, pass.took)];
    if pass.failed {
        measures.push(Measure::Count(&ERRORS));
    }
    measures
}
