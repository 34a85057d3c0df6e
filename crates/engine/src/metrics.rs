//! The operator's metrics. Labels come from closed sets; a cluster's name is only on gauges, which go when the cluster goes.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use windlass_core::gate::{Door, Gate};
use windlass_core::lane::Lane;

use crate::caches::Key;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    kind: &'static str,
    step: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClusterLabels {
    kind: &'static str,
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabels {
    kind: &'static str,
    namespace: String,
    name: String,
    lane: &'static str,
}

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    passes: Family<OutcomeLabels, Counter>,
    pass_seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    steps: Family<StepLabels, Counter>,
    operation_seconds: Family<StepLabels, Histogram, fn() -> Histogram>,
    status_writes: Family<OutcomeLabels, Counter>,
    logbook_writes: Family<OutcomeLabels, Counter>,
    watch_failures: Family<ResourceLabel, Counter>,
    unreadable: Family<ResourceLabel, Counter>,
    panics: Family<KindLabel, Counter>,
    clusters: Family<KindLabel, Gauge>,
    overlaps: Family<KindLabel, Counter>,
    leader: Gauge,
    paused: Family<LaneLabels, Gauge>,
    held_steps: Family<ClusterLabels, Gauge>,
}

fn quick() -> Histogram {
    Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

fn slow() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0])
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("windlass"),
            passes: Family::default(),
            pass_seconds: Family::new_with_constructor(quick),
            steps: Family::default(),
            operation_seconds: Family::new_with_constructor(slow),
            status_writes: Family::default(),
            logbook_writes: Family::default(),
            watch_failures: Family::default(),
            unreadable: Family::default(),
            panics: Family::default(),
            clusters: Family::default(),
            overlaps: Family::default(),
            leader: Gauge::default(),
            paused: Family::default(),
            held_steps: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("passes", "Passes, by how they ended", metrics.passes.clone());
        registry.register("pass_seconds", "How long passes took", metrics.pass_seconds.clone());
        registry.register("steps", "Steps that were taken, by what came of them", metrics.steps.clone());
        registry.register("operation_seconds", "How long operations on members took", metrics.operation_seconds.clone());
        registry.register("status_writes", "Writes of status, by what came of them", metrics.status_writes.clone());
        registry.register("logbook_writes", "Writes of logbooks, by what came of them", metrics.logbook_writes.clone());
        registry.register("watch_failures", "Watches that had to be started again", metrics.watch_failures.clone());
        registry.register("unreadable_objects", "Custom resources that could not be read", metrics.unreadable.clone());
        registry.register("panics", "Panics that were contained in one cluster", metrics.panics.clone());
        registry.register("clusters", "Clusters that this operator manages", metrics.clusters.clone());
        registry.register(
            "overlaps",
            "Clusters that another release held although our selector matched",
            metrics.overlaps.clone(),
        );
        registry.register("leader", "1 while this process holds the Lease of its release", metrics.leader.clone());
        registry.register("paused", "1 when a pause of the lane is acknowledged, 0 when not", metrics.paused.clone());
        registry.register("held_steps", "Steps that a pause holds back", metrics.held_steps.clone());
        metrics
    }
}

impl Metrics {
    /// The metrics as text, in the form of `OpenMetrics`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _infallible = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn watch_failed(&self, resource: &str) {
        self.watch_failures.get_or_create(&ResourceLabel { resource: resource.to_owned() }).inc();
    }

    pub(crate) fn unreadable(&self, resource: &str) {
        self.unreadable.get_or_create(&ResourceLabel { resource: resource.to_owned() }).inc();
    }

    pub(crate) fn pass(&self, kind: &'static str, outcome: &'static str, took: Duration) {
        self.passes.get_or_create(&OutcomeLabels { kind, outcome }).inc();
        self.pass_seconds.get_or_create(&KindLabel { kind }).observe(took.as_secs_f64());
    }

    pub(crate) fn step(&self, kind: &'static str, step: &'static str, outcome: &'static str) {
        self.steps.get_or_create(&StepLabels { kind, step, outcome }).inc();
    }

    pub(crate) fn operation(&self, kind: &'static str, step: &'static str, took: Duration) {
        let labels = StepLabels { kind, step, outcome: "Ended" };
        self.operation_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn status_write(&self, kind: &'static str, outcome: &'static str) {
        self.status_writes.get_or_create(&OutcomeLabels { kind, outcome }).inc();
    }

    pub(crate) fn logbook_write(&self, kind: &'static str, outcome: &'static str) {
        self.logbook_writes.get_or_create(&OutcomeLabels { kind, outcome }).inc();
    }

    /// Tells whether this process holds the Lease.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    pub(crate) fn overlap(&self, kind: &'static str) {
        self.overlaps.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn panic(&self, kind: &'static str) {
        self.panics.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn cluster(self: &Arc<Self>, kind: &'static str, key: &Key) -> ClusterMetrics {
        self.clusters.get_or_create(&KindLabel { kind }).inc();
        let labels = ClusterLabels { kind, namespace: key.namespace.clone(), name: key.name.clone() };
        ClusterMetrics { metrics: Arc::clone(self), labels }
    }
}

/// The gauges of one cluster. They go when this goes.
pub(crate) struct ClusterMetrics {
    metrics: Arc<Metrics>,
    labels: ClusterLabels,
}

impl ClusterMetrics {
    fn lane(&self, lane: Lane) -> LaneLabels {
        let ClusterLabels { kind, namespace, name } = self.labels.clone();
        LaneLabels { kind, namespace, name, lane: lane.into() }
    }

    pub(crate) fn show(&self, gate: &Gate, held: usize) {
        for lane in [Lane::Resources, Lane::Clustering] {
            let paused = i64::from(*gate.door(lane) == Door::Closed);
            self.metrics.paused.get_or_create(&self.lane(lane)).set(paused);
        }
        self.metrics.held_steps.get_or_create(&self.labels).set(i64::try_from(held).unwrap_or(i64::MAX));
    }
}

impl Drop for ClusterMetrics {
    fn drop(&mut self) {
        self.metrics.clusters.get_or_create(&KindLabel { kind: self.labels.kind }).dec();
        self.metrics.held_steps.remove(&self.labels);
        for lane in [Lane::Resources, Lane::Clustering] {
            self.metrics.paused.remove(&self.lane(lane));
        }
    }
}
