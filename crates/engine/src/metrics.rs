//! The operator's metrics. Labels come from closed sets; a cluster's name is only on what goes when the cluster goes: gauges, and what
//! a kind has of its own.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::Figures;
use windlass_core::lane::Lane;
use windlass_core::metrics::{Described, Measure, Sort, find};

use crate::caches::Key;
use crate::own_metrics::{Limits, OwnLabels, OwnMetrics};

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    kind: &'static str,
    namespace: String,
    name: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    kind: &'static str,
    namespace: String,
    name: String,
    state: &'static str,
}

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    passes: Family<OutcomeLabels, Counter>,
    pass_seconds: Family<KindLabel, Histogram, Limits>,
    steps: Family<StepLabels, Counter>,
    operation_seconds: Family<StepLabels, Histogram, Limits>,
    question_seconds: Family<StepLabels, Histogram, Limits>,
    status_writes: Family<OutcomeLabels, Counter>,
    logbook_writes: Family<OutcomeLabels, Counter>,
    watch_failures: Family<ResourceLabel, Counter>,
    unreadable: Family<ResourceLabel, Counter>,
    panics: Family<KindLabel, Counter>,
    clusters: Family<KindLabel, Gauge>,
    overlaps: Family<KindLabel, Counter>,
    leader: Gauge,
    phase: Family<PhaseLabels, Gauge>,
    members: Family<StateLabels, Gauge>,
    paused: Family<LaneLabels, Gauge>,
    held_steps: Family<ClusterLabels, Gauge>,
    own: OwnMetrics,
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &'static str, metric: &M) {
    registry.register(name, find(name).map_or("", |metric| metric.help), metric.clone());
}

/// A histogram as it is described.
fn limits(name: &str) -> Limits {
    match find(name).map(|metric| metric.sort) {
        Some(Sort::Histogram(limits)) => Limits(limits),
        _ => Limits(&[]),
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("windlass"),
            passes: Family::default(),
            pass_seconds: Family::new_with_constructor(limits("pass_seconds")),
            steps: Family::default(),
            operation_seconds: Family::new_with_constructor(limits("operation_seconds")),
            question_seconds: Family::new_with_constructor(limits("question_seconds")),
            status_writes: Family::default(),
            logbook_writes: Family::default(),
            watch_failures: Family::default(),
            unreadable: Family::default(),
            panics: Family::default(),
            clusters: Family::default(),
            overlaps: Family::default(),
            leader: Gauge::default(),
            phase: Family::default(),
            members: Family::default(),
            paused: Family::default(),
            held_steps: Family::default(),
            own: OwnMetrics::default(),
        };
        let registry = &mut metrics.registry;
        register(registry, "leader", &metrics.leader);
        register(registry, "clusters", &metrics.clusters);
        register(registry, "phase", &metrics.phase);
        register(registry, "members", &metrics.members);
        register(registry, "paused", &metrics.paused);
        register(registry, "held_steps", &metrics.held_steps);
        register(registry, "passes", &metrics.passes);
        register(registry, "pass_seconds", &metrics.pass_seconds);
        register(registry, "steps", &metrics.steps);
        register(registry, "operation_seconds", &metrics.operation_seconds);
        register(registry, "question_seconds", &metrics.question_seconds);
        register(registry, "status_writes", &metrics.status_writes);
        register(registry, "logbook_writes", &metrics.logbook_writes);
        register(registry, "watch_failures", &metrics.watch_failures);
        register(registry, "unreadable_objects", &metrics.unreadable);
        register(registry, "overlaps", &metrics.overlaps);
        register(registry, "panics", &metrics.panics);
        metrics
    }
}

impl Metrics {
    /// The metrics as text, in the form of `OpenMetrics`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _infallible = encode_registry(&mut text, &self.registry);
        self.own.write_to(&mut text);
        let _infallible = encode_eof(&mut text);
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

    pub(crate) fn operation(&self, kind: &'static str, (step, outcome): (&'static str, &'static str), took: Duration) {
        self.operation_seconds.get_or_create(&StepLabels { kind, step, outcome }).observe(took.as_secs_f64());
    }

    pub(crate) fn question(&self, kind: &'static str, (step, outcome): (&'static str, &'static str), took: Duration) {
        self.question_seconds.get_or_create(&StepLabels { kind, step, outcome }).observe(took.as_secs_f64());
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

    pub(crate) fn cluster(self: &Arc<Self>, kind: &'static str, own: &'static [Described], key: &Key) -> ClusterMetrics {
        self.clusters.get_or_create(&KindLabel { kind }).inc();
        let labels = ClusterLabels { kind, namespace: key.namespace.clone(), name: key.name.clone() };
        ClusterMetrics { metrics: Arc::clone(self), labels, own, is_shown: false, shown: Figures::default() }
    }
}

/// The metrics of one cluster. They go when this goes.
pub(crate) struct ClusterMetrics {
    metrics: Arc<Metrics>,
    labels: ClusterLabels,
    /// The metrics that its kind has of its own.
    own: &'static [Described],
    /// Whether anything is told of it: not of one that another release looks after.
    is_shown: bool,
    /// The figures that are shown.
    shown: Figures,
}

impl ClusterMetrics {
    fn lane(&self, lane: Lane) -> LaneLabels {
        let ClusterLabels { kind, namespace, name } = self.labels.clone();
        LaneLabels { kind, namespace, name, lane: lane.into() }
    }

    fn phase(&self, phase: &'static str) -> PhaseLabels {
        let ClusterLabels { kind, namespace, name } = self.labels.clone();
        PhaseLabels { kind, namespace, name, phase }
    }

    fn state(&self, state: &'static str) -> StateLabels {
        let ClusterLabels { kind, namespace, name } = self.labels.clone();
        StateLabels { kind, namespace, name, state }
    }

    fn own_labels(&self) -> OwnLabels {
        OwnLabels { name: self.labels.name.clone(), namespace: self.labels.namespace.clone(), part: None }
    }

    /// Shows how the cluster stands.
    pub(crate) fn show_figures(&mut self, figures: Figures) {
        if !self.is_shown {
            self.is_shown = true;
            self.metrics.own.begin(self.own, &self.own_labels());
        }
        if figures == self.shown {
            return;
        }
        self.hide_figures(&figures);
        if let Some(phase) = figures.phase {
            self.metrics.phase.get_or_create(&self.phase(phase)).set(1);
        }
        for (state, count) in &figures.members {
            self.metrics.members.get_or_create(&self.state(state)).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        let labels = self.own_labels();
        for (metric, value) in &figures.own {
            self.metrics.own.set(metric, &labels, *value);
        }
        for (metric, part, value) in &figures.parts {
            self.metrics.own.set(metric, &labels.of_part(metric, part), *value);
        }
        self.shown = figures;
    }

    /// Hides what is shown and not in these figures.
    fn hide_figures(&self, stays: &Figures) {
        if let Some(phase) = self.shown.phase.filter(|phase| stays.phase != Some(phase)) {
            self.metrics.phase.remove(&self.phase(phase));
        }
        let has = |state: &str| stays.members.iter().any(|(stays, _)| *stays == state);
        for (state, _) in self.shown.members.iter().filter(|(state, _)| !has(state)) {
            self.metrics.members.remove(&self.state(state));
        }
        let has = |metric: &Described| stays.own.iter().any(|(stays, _)| stays.name == metric.name);
        for (metric, _) in self.shown.own.iter().filter(|(metric, _)| !has(metric)) {
            self.metrics.own.remove(metric, &self.own_labels());
        }
        let has = |metric: &Described, part: &str| stays.parts.iter().any(|it| it.0.name == metric.name && it.1 == part);
        for (metric, part, _) in self.shown.parts.iter().filter(|(metric, part, _)| !has(metric, part)) {
            self.metrics.own.remove(metric, &self.own_labels().of_part(metric, part));
        }
    }

    pub(crate) fn show(&self, gate: &Gate, held: usize) {
        for lane in [Lane::Resources, Lane::Clustering] {
            let paused = i64::from(*gate.door(lane) == Door::Closed);
            self.metrics.paused.get_or_create(&self.lane(lane)).set(paused);
        }
        self.metrics.held_steps.get_or_create(&self.labels).set(i64::try_from(held).unwrap_or(i64::MAX));
    }

    /// Adds to a metric of the kind's own, of a cluster that is shown.
    pub(crate) fn add(&self, measure: Measure) {
        if self.is_shown {
            self.metrics.own.add(measure, &self.own_labels());
        }
    }

    /// Shows nothing of the cluster any more: it goes, or another release looks after it.
    pub(crate) fn hide(&mut self) {
        self.metrics.held_steps.remove(&self.labels);
        self.hide_figures(&Figures::default());
        self.shown = Figures::default();
        for lane in [Lane::Resources, Lane::Clustering] {
            self.metrics.paused.remove(&self.lane(lane));
        }
        self.metrics.own.forget(self.own, &self.own_labels());
        self.is_shown = false;
    }
}

impl Drop for ClusterMetrics {
    fn drop(&mut self) {
        self.metrics.clusters.get_or_create(&KindLabel { kind: self.labels.kind }).dec();
        self.hide();
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
