//! The operator's metrics. Labels come from closed sets; a cluster's name is only on gauges, which go when the cluster goes.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::Figures;
use windlass_core::lane::Lane;
use windlass_core::metrics;

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
    pass_seconds: Family<KindLabel, Histogram, fn() -> Histogram>,
    steps: Family<StepLabels, Counter>,
    operation_seconds: Family<StepLabels, Histogram, fn() -> Histogram>,
    question_seconds: Family<StepLabels, Histogram, fn() -> Histogram>,
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
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &'static str, metric: &M) {
    registry.register(name, metrics::help(name), metric.clone());
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
            question_seconds: Family::new_with_constructor(quick),
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

    pub(crate) fn cluster(self: &Arc<Self>, kind: &'static str, key: &Key) -> ClusterMetrics {
        self.clusters.get_or_create(&KindLabel { kind }).inc();
        let labels = ClusterLabels { kind, namespace: key.namespace.clone(), name: key.name.clone() };
        ClusterMetrics { metrics: Arc::clone(self), labels, shown: Figures::default() }
    }
}

/// The gauges of one cluster. They go when this goes.
pub(crate) struct ClusterMetrics {
    metrics: Arc<Metrics>,
    labels: ClusterLabels,
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

    /// Shows what status tells.
    pub(crate) fn show_figures(&mut self, figures: Figures) {
        if figures == self.shown {
            return;
        }
        self.hide_figures();
        if let Some(phase) = figures.phase {
            self.metrics.phase.get_or_create(&self.phase(phase)).set(1);
        }
        for (state, count) in &figures.members {
            self.metrics.members.get_or_create(&self.state(state)).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.shown = figures;
    }

    fn hide_figures(&self) {
        if let Some(phase) = self.shown.phase {
            self.metrics.phase.remove(&self.phase(phase));
        }
        for (state, _) in &self.shown.members {
            self.metrics.members.remove(&self.state(state));
        }
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
        self.hide_figures();
        for lane in [Lane::Resources, Lane::Clustering] {
            self.metrics.paused.remove(&self.lane(lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::metrics::{Described, METRICS, Sort};

    /// Something of every metric, so that all of them show.
    fn shown() -> (Arc<Metrics>, ClusterMetrics) {
        let metrics = Arc::new(Metrics::default());
        let key = Key { kind: "rss".into(), namespace: "n".into(), name: "a".into() };
        let mut cluster = metrics.cluster("rss", &key);
        cluster.show(&Gate::new(Door::Open, Door::Open), 0);
        cluster.show_figures(Figures { phase: Some("Running"), members: vec![("ready", 3)] });
        metrics.pass("rss", "Done", Duration::ZERO);
        metrics.step("rss", "Apply", "Done");
        metrics.operation("rss", ("Seed", "Done"), Duration::ZERO);
        metrics.question("rss", ("Status", "Answered"), Duration::ZERO);
        metrics.status_write("rss", "Done");
        metrics.logbook_write("rss", "Done");
        metrics.watch_failed("pods");
        metrics.unreadable("pods");
        metrics.overlap("rss");
        metrics.panic("rss");
        (metrics, cluster)
    }

    /// The labels of the first line of a metric.
    fn labels(text: &str, metric: &Described) -> Option<Vec<String>> {
        let name = match metric.sort {
            Sort::Counter => format!("windlass_{}_total", metric.name),
            Sort::Gauge => format!("windlass_{}", metric.name),
            Sort::Histogram => format!("windlass_{}_sum", metric.name),
        };
        let line = text.lines().find_map(|line| line.strip_prefix(&name).filter(|rest| rest.starts_with(['{', ' '])))?;
        let labels = line.trim_start_matches('{').split('}').next().filter(|_| line.starts_with('{')).unwrap_or_default();
        Some(labels.split(',').filter_map(|label| label.split_once('=')).map(|(key, _)| key.to_owned()).collect())
    }

    #[test]
    fn the_reference_tells_every_metric_with_its_labels() {
        let (metrics, _cluster) = shown();
        let text = metrics.text();
        for metric in METRICS {
            assert_eq!(
                labels(&text, metric).as_deref(),
                Some(&metric.labels.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{metric:?}\n{text}"
            );
        }
        assert_eq!(text.matches("# HELP ").count(), METRICS.len(), "{text}");
        assert!(!text.contains("# HELP windlass_members .\n"), "{text}");
    }

    #[test]
    fn a_phase_that_is_over_is_not_shown_and_nothing_outlives_its_cluster() {
        let (metrics, mut cluster) = shown();
        cluster.show_figures(Figures { phase: Some("Failed"), members: vec![("failed", 3)] });
        let text = metrics.text();
        assert!(text.contains("phase=\"Failed\"} 1") && !text.contains("phase=\"Running\""), "{text}");
        assert!(text.contains("state=\"failed\"} 3") && !text.contains("state=\"ready\""), "{text}");
        drop(cluster);
        assert!(!metrics.text().contains("namespace="), "{}", metrics.text());
    }
}
