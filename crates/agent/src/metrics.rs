//! The metrics of an instance, under the names that dashboards of the existing agent know.
//!
//! Its counters are called `…_count`. A counter of this library would be shown as `…_count_total`, so they are gauges that only rise:
//! `rate()` and `increase()` do not mind. Its summaries are histograms here: `…_sum` and `…_count` stay.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A gauge of seconds.
type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Instance {
    name: String,
    index: String,
}

pub(crate) struct Metrics {
    registry: Registry,
    instance: Instance,
    delay: Family<Instance, Seconds>,
    clones: Family<Instance, Gauge>,
    clone_failures: Family<Instance, Gauge>,
    clone_seconds: Family<Instance, Histogram, fn() -> Histogram>,
    clone_runs: Family<Instance, Gauge>,
    rotations: Gauge,
    rotation_failures: Gauge,
    rotation_seconds: Histogram,
}

fn long() -> Histogram {
    Histogram::new([1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0])
}

impl Metrics {
    pub(crate) fn new(cluster: &str, ordinal: u16) -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("moco_instance"),
            instance: Instance { name: cluster.to_owned(), index: ordinal.to_string() },
            delay: Family::default(),
            clones: Family::default(),
            clone_failures: Family::default(),
            clone_seconds: Family::new_with_constructor(long),
            clone_runs: Family::default(),
            rotations: Gauge::default(),
            rotation_failures: Gauge::default(),
            rotation_seconds: Histogram::new([0.001, 0.01, 0.1, 1.0, 10.0]),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "replication_delay_seconds",
            "How far applying is behind receiving, on a replica",
            self.delay.clone(),
        );
        registry.register("clone_count", "Clones that were started", self.clones.clone());
        registry.register("clone_failure_count", "Clones that failed", self.clone_failures.clone());
        registry.register("clone_duration_seconds", "How long clones took", self.clone_seconds.clone());
        registry.register("clone_in_progress", "Whether a clone runs", self.clone_runs.clone());
        registry.register("log_rotation_count", "Rotations of the slow log", self.rotations.clone());
        registry.register(
            "log_rotation_failure_count",
            "Rotations of the slow log that failed",
            self.rotation_failures.clone(),
        );
        registry.register("log_rotation_duration_seconds", "How long rotations took", self.rotation_seconds.clone());
        // From the start, so that a rise from nothing is seen as one.
        self.clones.get_or_create(&self.instance).set(0);
        self.clone_failures.get_or_create(&self.instance).set(0);
        self.clone_runs.get_or_create(&self.instance).set(0);
        self
    }

    /// The metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _infallible = encode(&mut text, &self.registry);
        text
    }

    /// Shows the delay of a replica; nothing for a server that is none, or does not answer.
    pub(crate) fn show_delay(&self, delay: Option<f64>) {
        match delay {
            Some(delay) => {
                self.delay.get_or_create(&self.instance).set(delay);
            }
            None => {
                self.delay.remove(&self.instance);
            }
        }
    }

    pub(crate) fn clone_started(&self) {
        self.clones.get_or_create(&self.instance).inc();
        self.clone_runs.get_or_create(&self.instance).set(1);
    }

    pub(crate) fn clone_ended(&self, succeeded: bool, took: Duration) {
        self.clone_runs.get_or_create(&self.instance).set(0);
        self.clone_seconds.get_or_create(&self.instance).observe(took.as_secs_f64());
        if !succeeded {
            self.clone_failures.get_or_create(&self.instance).inc();
        }
    }

    pub(crate) fn rotated(&self, succeeded: bool, took: Duration) {
        self.rotations.inc();
        self.rotation_seconds.observe(took.as_secs_f64());
        if !succeeded {
            self.rotation_failures.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_that_dashboards_know() {
        let metrics = Metrics::new("a", 2);
        metrics.show_delay(Some(1.5));
        metrics.clone_started();
        metrics.clone_ended(false, Duration::from_secs(3));
        metrics.rotated(true, Duration::ZERO);
        let text = metrics.text();
        for line in [
            "moco_instance_replication_delay_seconds{name=\"a\",index=\"2\"} 1.5",
            "moco_instance_clone_count{name=\"a\",index=\"2\"} 1",
            "moco_instance_clone_failure_count{name=\"a\",index=\"2\"} 1",
            "moco_instance_clone_duration_seconds_sum{name=\"a\",index=\"2\"} 3.0",
            "moco_instance_clone_in_progress{name=\"a\",index=\"2\"} 0",
            "moco_instance_log_rotation_count 1",
            "moco_instance_log_rotation_failure_count 0",
            "moco_instance_log_rotation_duration_seconds_count 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_primary_has_no_delay() {
        let metrics = Metrics::new("a", 0);
        metrics.show_delay(Some(1.5));
        metrics.show_delay(None);
        assert!(!metrics.text().contains("replication_delay_seconds{"));
    }
}
