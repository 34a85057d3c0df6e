//! The result for people: one table, with the goal and what other operators were measured at beside each figure.

use std::fmt::Write as _;

use crate::audit::Requests;
use crate::kind::Kind;
use crate::lines::{self, Line};
use crate::report::{Report, Row};
use crate::{mysql, tidb};

/// The whole result as text.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    head(report, &mut text);
    let mut heads = vec!["clusters".to_owned()];
    heads.extend(report.rows.iter().map(|row| row.clusters.to_string()));
    heads.extend(["goal".to_owned(), "other operators, measured".to_owned()]);
    let cells: Vec<Vec<String>> = lines::of(report)
        .into_iter()
        .map(|line: Line| {
            let ends = [line.goal.to_owned(), line.peers.to_owned()];
            std::iter::once(line.what.to_owned()).chain(line.values).chain(ends).collect()
        })
        .collect();
    table(&heads, &cells, &mut text);
    let failovers = lines::failovers(report);
    if !failovers.is_empty() {
        let _ = writeln!(text, "\nFrom the loss of a primary to the statement that opens another one to writes, in ms:");
        table(&lines::FAILOVER.map(str::to_owned), &failovers, &mut text);
    }
    for row in &report.rows {
        requests(row, &mut text);
    }
    text
}

fn head(report: &Report, text: &mut String) {
    let what = match report.kind {
        Kind::Rss => "ReplicatedStatefulSets",
        Kind::Mysql => "MySQLClusters",
        Kind::Tidb => "TidbClusters",
    };
    let load_after = report.machine_after.as_ref().map_or("-", |machine| machine.load.as_str());
    let _ = writeln!(
        text,
        "Windlass on the lab {}: {what}, {} members each, {} {}",
        report.lab,
        report.members,
        report.program.build,
        report.program.path.display()
    );
    let _ =
        writeln!(text, "{} cores, load before {}, after {load_after}", report.machine_before.cores, report.machine_before.load);
    let fakes: &[&str] = match report.kind {
        Kind::Rss => &[],
        Kind::Mysql => &mysql::FAKES,
        Kind::Tidb => &tidb::FAKES,
    };
    for fake in fakes {
        let _ = writeln!(text, "- {fake}");
    }
    if !report.processes {
        let _ = writeln!(text, "members have no process to ask: no hook is run");
    }
    if let Some(usage) = &report.without_clusters {
        let _ = writeln!(
            text,
            "without clusters: RSS {} MiB, peak {} MiB (goal 15)",
            number(usage.resident_mib),
            number(usage.peak_mib)
        );
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "WARNING: {warning}");
    }
    for failure in &report.failures {
        let _ = writeln!(text, "FAILED: {failure}");
    }
    text.push('\n');
}

fn requests(row: &Row, text: &mut String) {
    let clusters = row.clusters;
    let _ = writeln!(text, "\nRequests of the operator at {clusters} clusters, per cluster:");
    let mut line = |what: &str, requests: &Requests, by: usize| {
        let _ = writeln!(text, "  {what}: {} ({} refused)", requests.per_cluster(by), requests.refused);
    };
    line("until converged", &row.converged.requests, clusters);
    line("until settled", &row.converged.until_settled, clusters);
    line("quiet", &row.quiet.requests, clusters);
    if let Some(jittered) = &row.jittered {
        line("while counts change", &jittered.requests, clusters);
    }
    if let Some(changed) = &row.changed {
        line("per spec change", &changed.requests, changed.latency.samples.max(1));
    }
    if let Some(disturbed) = &row.disturbed {
        line("per spec change beside black holes", &disturbed.changed.requests, disturbed.changed.latency.samples.max(1));
    }
    line("after the restart", &row.restarted.requests, clusters);
}

fn table(heads: &[String], cells: &[Vec<String>], text: &mut String) {
    let width = |column: usize| {
        let all = cells
            .iter()
            .chain(std::iter::once(&heads.to_vec()))
            .map(|row| row.get(column).map_or(0, |cell| cell.chars().count()))
            .max();
        all.unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut row = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "{}", padded.join("  ").trim_end());
    };
    row(heads);
    row(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
    for line in cells {
        row(line);
    }
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        value if value.abs() >= 99.5 => format!("{value:.0}"),
        value if value.abs() >= 9.95 => format!("{value:.1}"),
        value if value.abs() >= 0.0995 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// Counts here are far below what a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "counts of requests and clusters have fewer than 53 bits")]
pub(crate) fn ratio(count: u64, by: usize) -> f64 {
    count as f64 / by as f64
}

/// As [`ratio`].
#[expect(clippy::cast_precision_loss, reason = "counts of objects have fewer than 53 bits")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown: Vec<String> = [0.0, 0.00123, 0.25, 1.3, 12.34, 149.6, f64::NAN].into_iter().map(number).collect();
        assert_eq!(shown, ["0", "0.0012", "0.25", "1.30", "12.3", "150", "-"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut text = String::new();
        table(&["a".into(), "b".into()], &[vec!["long".into(), "x".into()]], &mut text);
        assert_eq!(text, "a     b\n----  -\nlong  x\n");
    }
}
