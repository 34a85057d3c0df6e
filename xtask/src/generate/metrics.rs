//! The page about metrics.

use std::fmt::Write as _;

use windlass_core::kind::Kind as _;
use windlass_core::metrics::{Described, METRICS, Sort};
use windlass_kinds::mysql::MySql;
use windlass_kinds::replicated::Replicated;
use windlass_kinds::tidb::Tidb;

use super::COMMAND;

const HEAD: &str = "| metric | sort | labels | what it tells |\n|---|---|---|---|\n";

/// `docs/reference/metrics.md`.
pub(super) fn page() -> String {
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from crates/core/src/metrics.rs and the kinds. Do not edit. -->\n\
         # Metrics\n\n\
         Served as OpenMetrics text at `/metrics`. The labels `namespace` and `name` name a cluster; what has them goes with the cluster, or\n\
         when another release or another process takes it over. All other labels have a few values each, however many clusters there are.\n\
         Counters and histograms begin with nothing in every process.\n\n{HEAD}"
    );
    rows(&mut page, "windlass_", METRICS);
    let kinds =
        [("ReplicatedStatefulSet", Replicated::METRICS), ("MySQLCluster", MySql::METRICS), ("TidbCluster", Tidb::METRICS)];
    for (kind, own) in kinds {
        if own.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## Of {kind} alone\n\n{HEAD}");
        rows(&mut page, "", own);
    }
    page
}

fn rows(page: &mut String, prefix: &str, metrics: &[Described]) {
    for metric in metrics {
        let end = if metric.sort == Sort::Counter { "_total" } else { "" };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let sort: &str = metric.sort.into();
        let _ = writeln!(page, "| `{prefix}{}{end}` | {sort} | {} | {} |", metric.name, labels.join(" "), metric.help);
    }
}
