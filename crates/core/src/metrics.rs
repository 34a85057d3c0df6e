//! What is measured, and what each metric means: the one place from which the registry and the reference page are made.

/// A metric, as a reader of the reference sees it.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name without the prefix, and without what the format adds (`_total`, `_bucket`).
    pub name: &'static str,
    /// What sort of metric.
    pub sort: Sort,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

/// A sort of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Sort {
    /// Only grows.
    Counter,
    /// Goes up and down, and goes away with its cluster.
    Gauge,
    /// Durations, in seconds.
    Histogram,
}

const fn described(name: &'static str, sort: Sort, labels: &'static [&'static str], help: &'static str) -> Described {
    Described { name, sort, labels, help }
}

/// All metrics.
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
    described("pass_seconds", Sort::Histogram, &["kind"], "How long passes took"),
    described(
        "steps",
        Sort::Counter,
        &["kind", "step", "outcome"],
        "Steps that were taken, seeds and promotions among them, by what came of them",
    ),
    described(
        "operation_seconds",
        Sort::Histogram,
        &["kind", "step", "outcome"],
        "How long operations on members took, by what came of them",
    ),
    described(
        "question_seconds",
        Sort::Histogram,
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

/// What a metric tells.
pub fn help(name: &str) -> &'static str {
    METRICS.iter().find(|metric| metric.name == name).map_or("", |metric| metric.help)
}
