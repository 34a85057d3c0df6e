//! The lines of the tables: what was measured of each number of clusters, with the goal and what other operators were measured at.

use crate::kind::Kind;
use crate::mysql::failover::{Failover, How};
use crate::report::{Report, Row};
use crate::table::{number, ratio};

/// One line.
pub(crate) struct Line {
    pub(crate) what: &'static str,
    pub(crate) values: Vec<String>,
    pub(crate) goal: &'static str,
    pub(crate) peers: &'static str,
}

/// A way to read a value off a row.
type Value<'a> = &'a dyn Fn(&Row) -> String;

struct Lines<'a> {
    report: &'a Report,
    all: Vec<Line>,
}

impl Lines<'_> {
    fn add(&mut self, what: &'static str, goal: &'static str, peers: &'static str, value: Value<'_>) {
        let values = self.report.rows.iter().map(value).collect();
        self.all.push(Line { what, values, goal, peers });
    }
}

/// All lines of the first table.
pub(crate) fn of(report: &Report) -> Vec<Line> {
    let mut lines = Lines { report, all: Vec::new() };
    match report.kind {
        Kind::Rss => converging(&mut lines),
        Kind::Mysql => becoming_healthy(&mut lines),
    }
    quiet(&mut lines);
    match report.kind {
        Kind::Rss => {
            lines.add("RSS, MiB", "<= 64 at 1000", "moco 282, tidb 1072 (1000)", &|row| number(row.quiet.usage.resident_mib));
            lines.add("peak RSS, MiB", "<= 96 at 1000", "", &|row| number(row.quiet.usage.peak_mib));
            changing(&mut lines);
        }
        Kind::Mysql => memory_with_connections(&mut lines),
    }
    restarting(&mut lines);
    lines.all
}

fn converging(lines: &mut Lines<'_>) {
    lines.add("bare writer, s (before, after)", "", "", &|row| {
        row.floors.iter().map(|floor| number(floor.seconds)).collect::<Vec<_>>().join(", ")
    });
    lines.add("converge, s", "", "moco 4.07/36.4, tidb 9.99/110 (100/1000, tuned)", &|row| number(row.converged.seconds));
    lines.add("converge / bare writer", "<= 1.3", "tuned 1.5 to 4.3; as shipped 6 to 82", &|row| number(row.ratio()));
    lines.add("  computed with resource and status", "", "", &|row| number(row.ratio_of_all_writes()));
    idle(lines);
    lines.add("writes per cluster until settled", "7", "", &|row| {
        number(ratio(row.converged.until_settled.writes, row.clusters))
    });
}

fn becoming_healthy(lines: &mut Lines<'_>) {
    lines.add("bare writer: objects, s", "", "", &|row| optional(row.floors.first().map(|floor| floor.seconds)));
    lines.add("bare writer: all pods ready, s", "", "", &|row| optional(row.floors.first().and_then(|floor| floor.pods_ready)));
    lines.add("all pods ready, s", "", "", &|row| optional(row.converged.pods_ready));
    lines.add("all Healthy, s", "", "", &|row| number(row.converged.seconds));
    lines.add("  / bare writer: all pods ready", "<= 1.3", "", &|row| number(row.ratio()));
    idle(lines);
    lines.add("writes per cluster until settled", "", "", &|row| {
        number(ratio(row.converged.until_settled.writes, row.clusters))
    });
    lines.add("  of these, status", "", "", &|row| {
        number(ratio(row.converged.until_settled.writes_of(&Kind::Mysql.status()), row.clusters))
    });
}

fn idle(lines: &mut Lines<'_>) {
    lines.add("idle machine then, % (writer, operator)", "", "", &|row| {
        format!("{}, {}", percent(row.floors.first().and_then(|floor| floor.idle)), percent(row.converged.idle))
    });
}

fn quiet(lines: &mut Lines<'_>) {
    let per_minute = |row: &Row, count: u64| number(ratio(count, row.clusters) * 60.0 / ratio(row.quiet.seconds, 1));
    let kind = lines.report.kind;
    lines.add("quiet: reads per cluster and minute", "0", "moco 1 to 1.4, tidb 16 to 17", &|row| {
        per_minute(row, row.quiet.requests.reads)
    });
    lines.add("quiet: writes per cluster and minute", "0", "moco 0, tidb 18 to 19", &|row| {
        per_minute(row, row.quiet.requests.writes)
    });
    if kind == Kind::Rss {
        lines.add("quiet: exec per cluster and minute", "(hooks cannot run here)", "", &|row| {
            per_minute(row, row.quiet.requests.execs)
        });
    }
    lines.add("quiet: watches started, all clusters", "<= 20 a minute", "", &|row| row.quiet.requests.watches.to_string());
    if kind == Kind::Mysql {
        lines.add("quiet: Lease renewed, all clusters", "30 a minute: every 2 s", "", &|row| {
            row.quiet.requests.renewals.to_string()
        });
        lines.add("quiet: log-ins, all clusters", "0", "moco 3 per cluster and minute (read)", &|row| {
            row.quiet.sql.as_ref().map_or_else(dash, |sql| sql.traffic.log_ins.to_string())
        });
        lines.add("quiet: SQL commands per cluster and minute", "", "moco 22 queries (read)", &|row| {
            row.quiet.sql.as_ref().map_or_else(dash, |sql| per_minute(row, sql.traffic.commands))
        });
    }
    lines.add("quiet: CPU s in that time", "<= 0.03 of a core at 1000", "moco 10 to 15, tidb 51.6 (1000, 180 s)", &|row| {
        format!("{} of {} s", number(row.quiet.processor_seconds), row.quiet.seconds)
    });
}

fn changing(lines: &mut Lines<'_>) {
    let of = |row: &Row, value: &dyn Fn(&crate::latency::Latency) -> String| {
        row.changed.as_ref().map_or_else(dash, |changed| value(&changed.latency))
    };
    lines.add("spec -> StatefulSet p50, ms", "<= 10", "moco 27 to 30, tidb 55 to 61", &|row| of(row, &|it| number(it.p50)));
    lines.add("spec -> StatefulSet p99, ms", "<= 30", "moco 47 to 62, tidb 1000 to 20300", &|row| {
        of(row, &|it| {
            let lost = if it.lost > 0 { format!(" ({} lost)", it.lost) } else { String::new() };
            format!("{}{lost}", number(it.p99))
        })
    });
    lines.add("  samples; one PATCH then, p50 ms", "", "", &|row| {
        of(row, &|it| format!("{}; {}", it.samples, number(it.patch_p50)))
    });
}

fn memory_with_connections(lines: &mut Lines<'_>) {
    let each = lines.report.connections;
    lines.add("RSS, MiB", "", "moco 282 (1000)", &|row| number(row.quiet.usage.resident_mib));
    lines.add("  connections", "4 per cluster of 3", "moco 0 kept", &|row| {
        row.quiet.sql.as_ref().map_or_else(dash, |sql| sql.connections.to_string())
    });
    lines.add("  RSS per connection, KiB (measured apart)", "<= 32", "", &|_| optional(each.map(|each| each.each_kib())));
    lines.add("  RSS without connections, MiB", "<= 128 at 1000", "", &|row| {
        optional(each.and_then(|each| row.connections_mib(&each)).map(|mib| row.quiet.usage.resident_mib - mib))
    });
    lines.add("  of this, the program's own pages, MiB", "", "", &|row| number(row.quiet.usage.program_mib));
    lines.add("peak RSS, MiB", "<= 1.5 x RSS", "", &|row| number(row.quiet.usage.peak_mib));
}

fn restarting(lines: &mut Lines<'_>) {
    let peak = match lines.report.kind {
        Kind::Rss => "<= 96 at 1000",
        Kind::Mysql => "",
    };
    lines.add("restart: ready after, s", "<= 1.5 at 1000", "", &|row| number(row.restarted.ready_seconds));
    lines.add("restart: writes", "0", "", &|row| row.restarted.requests.writes.to_string());
    lines.add("restart: peak RSS, MiB", peak, "", &|row| number(row.restarted.usage.peak_mib));
    lines.add("came to rest", "yes", "", &|row| (if row.settled { "yes" } else { "NO" }).to_owned());
    lines.add("load at the end of the row", "", "", &|row| row.machine.load.clone());
}

/// The heads of the table of failovers.
pub(crate) const FAILOVER: [&str; 10] =
    ["clusters", "lost by", "at once", "samples", "decided p50", "p50", "p99", "longest", "goal p50, p99", "Healthy again, s"];

/// Its lines.
pub(crate) fn failovers(report: &Report) -> Vec<Vec<String>> {
    report.rows.iter().flat_map(|row| row.failovers.iter().map(|it| failover(row.clusters, it))).collect()
}

fn failover(clusters: usize, it: &Failover) -> Vec<String> {
    let (how, goal) = match it.how {
        How::Killed => ("a kill", "1000, 2000"),
        How::Hangs => ("a hang", "-, 5000"),
    };
    let samples = if it.lost > 0 { format!("{} ({} LOST)", it.samples, it.lost) } else { it.samples.to_string() };
    vec![
        clusters.to_string(),
        how.to_owned(),
        it.at_once.to_string(),
        samples,
        number(it.decided_p50),
        number(it.p50),
        number(it.p99),
        number(it.longest),
        goal.to_owned(),
        number(it.healthy_seconds),
    ]
}

fn percent(value: Option<u64>) -> String {
    value.map_or_else(dash, |value| value.to_string())
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(dash, number)
}

fn dash() -> String {
    "-".to_owned()
}
