//! The page about metrics.

use std::fmt::Write as _;

use windlass_core::metrics::{METRICS, Sort};

use super::COMMAND;

/// `docs/reference/metrics.md`.
pub(super) fn page() -> String {
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from crates/core/src/metrics.rs. Do not edit. -->\n\
         # Metrics\n\n\
         Served as OpenMetrics text at `/metrics`. The labels `namespace` and `name`, which name a cluster, are only on gauges, and these go\n\
         with the cluster, or when another release takes it over. All other labels have a few values each, however many clusters there are.\n\n\
         | metric | sort | labels | what it tells |\n|---|---|---|---|\n"
    );
    for metric in METRICS {
        let end = if metric.sort == Sort::Counter { "_total" } else { "" };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let sort: &str = metric.sort.into();
        let _ = writeln!(page, "| `windlass_{}{end}` | {sort} | {} | {} |", metric.name, labels.join(" "), metric.help);
    }
    page
}
