//! `cargo xtask campaign NAME`: the long form of a test. The test is the same; it is told to do more of it.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use windlass_lab::{Lab, Progress};

use crate::cluster::Cluster;
use crate::example::Example;
use crate::report::seconds;
use crate::test::LAB_VARIABLE;
use crate::{cargo, install};

/// The lab of campaigns; a person's own, and that of the tests, go on beside it.
const LAB: &str = "campaign";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Which campaign.
    #[arg(value_enum)]
    name: Campaign,

    /// How many rounds, instead of the campaign's own number.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Campaign {
    /// Random histories of the scale planner.
    Scale,
    /// Random histories of a `ReplicatedStatefulSet` in a simulated world.
    Histories,
    /// User edits interleaved with status writes, on the fake API server.
    Edits,
    /// The controller dies around each of its calls, and around two of them.
    Crash,
    /// Fresh controllers are shown the past, at the end and after a crash.
    Stale,
    /// Each call and each event goes wrong in each way, and two of them.
    Faults,
    /// Rounds in which the leader is stopped past its Lease while another one acts, on a lab.
    Leader,
    /// Seconds without an API server, on a lab, with a hundred clusters.
    Outage,
    /// Rounds of changes while each request takes a second, on a lab.
    Slow,
    /// Random custom resources through everything that is decided about one.
    Fuzz,
    /// Random custom resources on the API server of a lab.
    FuzzServer,
    /// Random schedules of several releases with selectors that overlap and labels that flip, on the fake API server.
    Claims,
    /// Random schedules of two releases on the API server of a lab.
    ClaimsServer,
}

/// How a campaign is run.
struct Plan {
    package: &'static str,
    /// What cargo is told so that it builds no other test.
    target: &'static [&'static str],
    /// The part of the test's path that only it has.
    test: &'static str,
    /// The variable that tells the test how many rounds.
    variable: &'static str,
    count: u64,
    /// What only the test's line of figures holds.
    figures: &'static str,
    /// What else the test is told.
    also: Option<(&'static str, &'static str)>,
    /// Whether it needs a lab with Windlass in it.
    on_lab: bool,
}

/// A campaign of the crash harness: all single perturbations of these sorts, and so many pairs of them for each scenario.
fn harness(name: &'static str, pairs: u64) -> Plan {
    Plan {
        package: "windlass-engine",
        target: &["--test", "crash"],
        test: "every_perturbation_ends_as_if_nothing_had_happened",
        variable: "WINDLASS_PAIRS",
        count: pairs,
        figures: "crash harness: ",
        also: Some(("WINDLASS_CAMPAIGN", name)),
        on_lab: false,
    }
}

/// A campaign of one test on a lab.
fn on_lab(target: &'static [&'static str], test: &'static str) -> Plan {
    Plan { package: "windlass-e2e", target, test, variable: "", count: 0, figures: "", also: None, on_lab: true }
}

impl Campaign {
    fn plan(self) -> Plan {
        match self {
            Self::Scale => Plan {
                package: "windlass-core",
                target: &["--lib"],
                test: "scale::simulation::",
                variable: "WINDLASS_HISTORIES",
                count: 5_000_000,
                figures: " random histories, ",
                also: None,
                on_lab: false,
            },
            Self::Histories => Plan {
                package: "windlass-kinds",
                target: &["--lib"],
                test: "every_history_is_safe_and_ends_at_rest",
                variable: "WINDLASS_HISTORIES",
                count: 1_000_000,
                figures: " histories from seed ",
                also: None,
                on_lab: false,
            },
            Self::Edits => Plan {
                package: "windlass-engine",
                target: &["--test", "edits"],
                test: "no_byte_of_the_user_is_lost",
                variable: "WINDLASS_INTERLEAVINGS",
                count: 50_000,
                figures: " interleavings, ",
                also: None,
                on_lab: false,
            },
            Self::Leader => Plan {
                variable: "WINDLASS_ROUNDS",
                count: 100,
                figures: " rounds of a stopped leader, ",
                ..on_lab(&["--features", "lab", "--test", "leader"], "a_stopped_leader_changes_nothing")
            },
            Self::Outage => Plan {
                variable: "WINDLASS_AWAY",
                count: 120,
                figures: "API server away for ",
                also: Some(("WINDLASS_OUTAGE_CLUSTERS", "99")),
                ..on_lab(&["--features", "lab", "--test", "outage"], "an_operator_survives_the_absence")
            },
            Self::Slow => Plan {
                variable: "WINDLASS_SLOW_ROUNDS",
                count: 20,
                figures: " on every request: ",
                ..on_lab(&["--features", "lab", "--test", "slow"], "an_operator_keeps_up_with_a_slow_api_server")
            },
            Self::Crash => harness("crash", 500),
            Self::Stale => harness("stale", 200),
            Self::Faults => harness("faults", 500),
            Self::Fuzz => Plan {
                package: "windlass-kinds",
                target: &["--lib"],
                test: "every_document_is_accepted_or_refused_by_name_and_none_panics",
                variable: "WINDLASS_DOCUMENTS",
                count: 1_000_000,
                figures: " random documents from seed ",
                also: None,
                on_lab: false,
            },
            Self::FuzzServer => Plan {
                variable: "WINDLASS_FUZZ_DOCUMENTS",
                count: 2_000,
                figures: " documents on the server from seed ",
                ..on_lab(&["--features", "lab", "--test", "fuzz"], "every_document_is_refused_or_told_about")
            },
            Self::Claims => Plan {
                package: "windlass-engine",
                target: &["--test", "schedules"],
                test: "there_are_never_two_writers_to_one_cluster",
                variable: "WINDLASS_SCHEDULES",
                count: 1_000,
                figures: " schedules from seed ",
                also: None,
                on_lab: false,
            },
            Self::ClaimsServer => Plan {
                variable: "WINDLASS_LAB_SCHEDULES",
                count: 20,
                figures: " schedules of two releases on the lab from seed ",
                ..on_lab(
                    &["--features", "lab", "--test", "schedules"],
                    "there_are_never_two_writers_to_one_cluster_on_a_real_server",
                )
            },
        }
    }
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let plan = options.name.plan();
    let count = options.count.unwrap_or(plan.count);
    eprintln!("{count} rounds of {} in {}", plan.test, plan.package);
    let began = Instant::now();
    let figures = if plan.on_lab { run_on_lab(&plan, count).await? } else { run_test(&plan, count).await? };
    // A test that does not listen would make the short form look like the long one.
    if !figures.contains(&count.to_string()) {
        bail!("{count} rounds were asked for with {}, but the test says `{figures}`", plan.variable);
    }
    println!("{figures} ({})", seconds(began.elapsed()));
    Ok(())
}

/// Runs the test on a lab of its own, which is gone afterwards.
async fn run_on_lab(plan: &Plan, count: u64) -> Result<String> {
    let (lab, progress) = (Lab::named(LAB)?, Progress::new());
    lab.up(&progress).await?;
    let played = async {
        let image = install::build_image(&progress).await?;
        install::load(&lab, &image, &progress).await?;
        install::install(&Cluster::of_lab(&lab), &image, &progress).await?;
        Example::Galera.load_image(&lab, &progress).await?;
        run_test(plan, count).await
    }
    .await;
    let ended = lab.down(&progress).await;
    played.and_then(|figures| ended.map(|()| figures))
}

/// Runs the test, shows what it prints, and returns its line of figures.
async fn run_test(plan: &Plan, count: u64) -> Result<String> {
    // On a lab the time goes by elsewhere.
    let profile: &[&str] = if plan.on_lab { &[] } else { &["--release"] };
    let mut child = cargo::command(&["test", "--locked", "--package", plan.package])
        .args(profile)
        .args(plan.target)
        .env(LAB_VARIABLE, LAB)
        .args(["--", "--nocapture", plan.test])
        .env(plan.variable, count.to_string())
        .envs(plan.also)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut figures = None;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains(plan.figures) {
            figures = Some(without_name(&line).to_owned());
        } else {
            eprintln!("{line}");
        }
    }
    let status = child.wait().await?;
    if !status.success() {
        bail!("the test {} of {} failed ({status})", plan.test, plan.package);
    }
    figures.with_context(|| {
        format!("no test of {} whose path has `{}` printed a line with `{}`", plan.package, plan.test, plan.figures)
    })
}

/// The test harness writes the test's name before the first line that the test prints.
fn without_name(line: &str) -> &str {
    line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")).map_or(line, |(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_test_is_no_figure() {
        assert_eq!(without_name("test a::b ... 7 rounds"), "7 rounds");
        assert_eq!(without_name("7 rounds ... or so"), "7 rounds ... or so");
    }
}
