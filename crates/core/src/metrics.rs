//! What is measured, and what each metric means: the one place from which the registry and the reference page are made.

use std::time::Duration;

/// A metric, as a reader of the reference sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described {
    /// Its name without what the format adds (`_total`, `_bucket`): of those that all kinds have, without the prefix too.
    pub name: &'static str,
    /// What sort of metric.
    pub sort: Sort,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

/// A sort of metric.
#[derive(Clone, Copy, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Sort {
    /// Only grows.
    Counter,
    /// Goes up and down, and goes away with its cluster.
    Gauge,
    /// Durations, in seconds, and the limits by which they are sorted.
    Histogram(&'static [f64]),
}

/// Limits for what should take no time.
const QUICK: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Limits for what may take a while.
const SLOW: &[f64] = &[0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0];

/// Describes a metric.
pub const fn described(name: &'static str, sort: Sort, labels: &'static [&'static str], help: &'static str) -> Described {
    Described { name, sort, labels, help }
}

/// The labels of the metrics that a kind has of its own.
pub const OWN_LABELS: &[&str] = &["name", "namespace"];

/// Describes a metric that one kind has of its own, under the full name that its users know.
pub const fn own(name: &'static str, sort: Sort, help: &'static str) -> Described {
    described(name, sort, OWN_LABELS, help)
}

/// Describes a gauge that one kind has of its own, with one series for each component of a cluster.
pub const fn of_components(name: &'static str, help: &'static str) -> Described {
    described(name, Sort::Gauge, &["name", "namespace", "component"], help)
}

/// Something that adds to a metric of a kind's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// It happened once more.
    Count(&'static Described),
    /// It took this long.
    Took(&'static Described, Duration),
}

/// The metrics that all kinds have.
pub const METRICS: &[Described] = &[
    described("leader", Sort::Gauge, &[], "1 while this process holds the Lease of its release"),
    described("clusters", Sort::Gauge, &["kind"], "Clusters that this operator manages"),
    described("phase", Sort::Gauge, &["kind", "namespace", "name", "phase"], "1 for the phase that a cluster is in"),
    described(
        "members",
        Sort::Gauge,
        &["kind", "namespace", "name", "state"],
        "Members by what they were seen to be; one that serves is counted as ready and by its role",
    ),
    described(
        "paused",
        Sort::Gauge,
        &["kind", "namespace", "name", "lane"],
        "1 when a pause of the lane is acknowledged, 0 when not",
    ),
    described("held_steps", Sort::Gauge, &["kind", "namespace", "name"], "Steps that a pause holds back"),
    described("passes", Sort::Counter, &["kind", "outcome"], "Passes, by how they ended"),
    described("pass_seconds", Sort::Histogram(QUICK), &["kind"], "How long passes took"),
    described(
        "steps",
        Sort::Counter,
        &["kind", "step", "outcome"],
        "Steps that were taken, seeds and promotions among them, by what came of them",
    ),
    described(
        "operation_seconds",
        Sort::Histogram(SLOW),
        &["kind", "step", "outcome"],
        "How long operations on members took, by what came of them",
    ),
    described(
        "question_seconds",
        Sort::Histogram(QUICK),
        &["kind", "step", "outcome"],
        "How long members took to answer questions, by what came of them",
    ),
    described("status_writes", Sort::Counter, &["kind", "outcome"], "Writes of status, by what came of them"),
    described("logbook_writes", Sort::Counter, &["kind", "outcome"], "Writes of logbooks, by what came of them"),
    described("watch_failures", Sort::Counter, &["resource"], "Watches that had to be started again"),
    described("unreadable_objects", Sort::Counter, &["resource"], "Custom resources that could not be read"),
    described("overlaps", Sort::Counter, &["kind"], "Clusters that another release held although our selector matched"),
    described("panics", Sort::Counter, &["kind"], "Panics that were contained in one cluster"),
];

/// The description of a metric that all kinds have.
pub fn find(name: &str) -> Option<&'static Described> {
    METRICS.iter().find(|metric| metric.name == name)
}
