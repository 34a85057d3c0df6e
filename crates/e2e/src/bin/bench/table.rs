//! The result for people: one table, with the goal and what other operators were measured at beside each figure.

use std::fmt::Write as _;

use crate::audit::Requests;
use crate::report::{Report, Row};

/// One line of the table.
struct Line {
    what: &'static str,
    values: Vec<String>,
    goal: &'static str,
    peers: &'static str,
}

/// The whole result as text.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    head(report, &mut text);
    let lines = lines(report);
    let mut heads = vec!["clusters".to_owned()];
    heads.extend(report.rows.iter().map(|row| row.clusters.to_string()));
    heads.extend(["goal".to_owned(), "other operators, measured".to_owned()]);
    let cells: Vec<Vec<String>> = lines
        .into_iter()
        .map(|line| {
            let ends = [line.goal.to_owned(), line.peers.to_owned()];
            std::iter::once(line.what.to_owned()).chain(line.values).chain(ends).collect()
        })
        .collect();
    table(&heads, &cells, &mut text);
    for row in &report.rows {
        requests(row, &mut text);
    }
    text
}

fn head(report: &Report, text: &mut String) {
    let load_after = report.machine_after.as_ref().map_or("-", |machine| machine.load.as_str());
    let _ = writeln!(
        text,
        "Windlass on the lab {}: {} members each, {} {}",
        report.lab,
        report.members,
        report.program.build,
        report.program.path.display()
    );
    let _ =
        writeln!(text, "{} cores, load before {}, after {load_after}", report.machine_before.cores, report.machine_before.load);
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

fn lines(report: &Report) -> Vec<Line> {
    let line = |what, goal, peers, value: &dyn Fn(&Row) -> String| Line {
        what,
        values: report.rows.iter().map(value).collect(),
        goal,
        peers,
    };
    let per_minute = |row: &Row, count: u64| number(ratio(count, row.clusters) * 60.0 / ratio(row.quiet.seconds, 1));
    vec![
        line("bare writer, s (before, after)", "", "", &|row| {
            row.floors.iter().map(|floor| number(floor.seconds)).collect::<Vec<_>>().join(", ")
        }),
        line("converge, s", "", "moco 4.07/36.4, tidb 9.99/110 (100/1000, tuned)", &|row| number(row.converged.seconds)),
        line("converge / bare writer", "<= 1.3", "tuned 1.5 to 4.3; as shipped 6 to 82", &|row| number(row.ratio())),
        line("  computed with resource and status", "", "", &|row| number(row.ratio_of_all_writes())),
        line("idle machine then, % (writer, converge)", "", "", &|row| {
            format!("{}, {}", percent(row.floors.first().and_then(|floor| floor.idle)), percent(row.converged.idle))
        }),
        line("writes per cluster until settled", "7", "", &|row| {
            number(ratio(row.converged.until_settled.writes, row.clusters))
        }),
        line("quiet: reads per cluster and minute", "0", "moco 1 to 1.4, tidb 16 to 17", &|row| {
            per_minute(row, row.quiet.requests.reads)
        }),
        line("quiet: writes per cluster and minute", "0", "moco 0, tidb 18 to 19", &|row| {
            per_minute(row, row.quiet.requests.writes)
        }),
        line("quiet: exec per cluster and minute", "(hooks cannot run here)", "", &|row| {
            per_minute(row, row.quiet.requests.execs)
        }),
        line("quiet: watches started, all clusters", "<= 20 a minute", "", &|row| row.quiet.requests.watches.to_string()),
        line("quiet: CPU s in that time", "<= 0.03 of a core at 1000", "moco 10 to 15, tidb 51.6 (1000, 180 s)", &|row| {
            format!("{} of {} s", number(row.quiet.processor_seconds), row.quiet.seconds)
        }),
        line("RSS, MiB", "<= 64 at 1000", "moco 282, tidb 1072 (1000)", &|row| number(row.quiet.usage.resident_mib)),
        line("peak RSS, MiB", "<= 96 at 1000", "", &|row| number(row.quiet.usage.peak_mib)),
        line("spec -> StatefulSet p50, ms", "<= 10", "moco 27 to 30, tidb 55 to 61", &|row| number(row.latency.p50)),
        line("spec -> StatefulSet p99, ms", "<= 30", "moco 47 to 62, tidb 1000 to 20300", &|row| {
            let lost = if row.latency.lost > 0 { format!(" ({} lost)", row.latency.lost) } else { String::new() };
            format!("{}{lost}", number(row.latency.p99))
        }),
        line("  samples; one PATCH then, p50 ms", "", "", &|row| {
            format!("{}; {}", row.latency.samples, number(row.latency.patch_p50))
        }),
        line("restart: ready after, s", "<= 1.5 at 1000", "", &|row| number(row.restarted.ready_seconds)),
        line("restart: writes", "0", "", &|row| row.restarted.requests.writes.to_string()),
        line("restart: peak RSS, MiB", "<= 96 at 1000", "", &|row| number(row.restarted.usage.peak_mib)),
        line("came to rest", "yes", "", &|row| (if row.settled { "yes" } else { "NO" }).to_owned()),
        line("load at the end of the row", "", "", &|row| row.machine.load.clone()),
    ]
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
    line("per spec change", &row.changing, row.latency.samples.max(1));
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

fn percent(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
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
