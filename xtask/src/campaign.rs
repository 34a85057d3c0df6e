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

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Which campaign.
    #[arg(value_enum)]
    name: Campaign,

    /// How many rounds, instead of the campaign's own number.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,

    /// The lab that it runs on, which it ends. A person's own, and that of the tests, go on beside it; with another name, so does another
    /// campaign.
    #[arg(long = "name", value_name = "LAB", default_value = "campaign")]
    lab: String,
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
    /// Rounds in which all servers of a Galera are killed under writes, on a lab.
    Galera,
    /// Failovers of MySQL clusters under writes, by a fault of each sort in turn, on a lab.
    Mysql,
    /// Minutes of lost packets and stalls in which no primary of MySQL may be replaced, on a lab.
    MysqlNetwork,
    /// Random histories of a `MySQLCluster` in a simulated world.
    MysqlHistories,
    /// Stores of TiKV that leave and come at every parallelism, on the real PD of a lab.
    Tidb,
    /// Minutes in which a paused TiDB cluster is provoked and must stay as it is, on the real PD of a lab.
    TidbPause,
    /// Random histories of a `TidbCluster` in a simulated world.
    TidbHistories,
    /// Rounds in which the leader is stopped past its Lease while another one acts, on a lab.
    Leader,
    /// Seconds without an API server, on a lab, with a hundred clusters.
    Outage,
    /// Rounds of changes while each request takes a second, on a lab.
    Slow,
    /// An upgrade of so many clusters to a version that renders pod templates in another way, on a lab.
    Upgrade,
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
    /// What the lab has that it needs, if it needs one.
    lab: Option<Installed>,
}

/// Which versions of Windlass a lab has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Installed {
    Release,
    /// Besides the release, the image of a later version.
    WithTheNext,
}

impl Plan {
    /// A test of the crates without a lab.
    fn off_lab(package: &'static str, target: &'static [&'static str], test: &'static str) -> Self {
        Self { package, target, test, variable: "", count: 0, figures: "", also: None, lab: None }
    }

    /// A test on a lab with Windlass in it.
    fn on_lab(target: &'static [&'static str], test: &'static str) -> Self {
        Self { lab: Some(Installed::Release), ..Self::off_lab("windlass-e2e", target, test) }
    }

    /// How often, told by this variable, and what only the test's line of figures holds.
    fn times(self, count: u64, variable: &'static str, figures: &'static str) -> Self {
        Self { variable, count, figures, ..self }
    }

    /// Random histories of a kind in its simulated world.
    fn histories(test: &'static str, count: u64, figures: &'static str) -> Self {
        Self::off_lab("windlass-kinds", &["--lib"], test).times(count, "WINDLASS_HISTORIES", figures)
    }

    /// A campaign of the crash harness: all single perturbations of these sorts, and so many pairs of them for each scenario.
    fn harness(name: &'static str, pairs: u64) -> Self {
        let test = "every_perturbation_ends_as_if_nothing_had_happened";
        let plan = Self::off_lab("windlass-engine", &["--test", "crash"], test);
        let plan = plan.times(pairs, "WINDLASS_PAIRS", "crash harness: ");
        Self { also: Some(("WINDLASS_CAMPAIGN", name)), ..plan }
    }
}

impl Campaign {
    fn plan(self) -> Plan {
        match self {
            Self::Scale => Plan::off_lab("windlass-core", &["--lib"], "scale::simulation::").times(
                5_000_000,
                "WINDLASS_HISTORIES",
                " random histories, ",
            ),
            Self::Histories => Plan::histories("every_history_is_safe_and_ends_at_rest", 1_000_000, " histories from seed "),
            Self::Edits => Plan::off_lab("windlass-engine", &["--test", "edits"], "no_byte_of_the_user_is_lost").times(
                50_000,
                "WINDLASS_INTERLEAVINGS",
                " interleavings, ",
            ),
            Self::Crash => Plan::harness("crash", 500),
            Self::Stale => Plan::harness("stale", 200),
            Self::Faults => Plan::harness("faults", 500),
            Self::Fuzz => {
                let test = "every_document_is_accepted_or_refused_by_name_and_none_panics";
                Plan::off_lab("windlass-kinds", &["--lib"], test).times(
                    1_000_000,
                    "WINDLASS_DOCUMENTS",
                    " random documents from seed ",
                )
            }
            Self::Claims => {
                let test = "there_are_never_two_writers_to_one_cluster";
                Plan::off_lab("windlass-engine", &["--test", "schedules"], test).times(
                    1_000,
                    "WINDLASS_SCHEDULES",
                    " schedules from seed ",
                )
            }
            Self::Galera => Plan::on_lab(&["--features", "lab", "--test", "recovery"], "no_row_is_lost_when_all").times(
                20,
                "WINDLASS_ROUNDS",
                " times all members killed under writes: ",
            ),
            Self::Mysql => {
                let plan = Plan::on_lab(&["--features", "lab", "--test", "failover"], "whatever_befalls_the_primary");
                let plan = plan.times(200, "WINDLASS_FAILOVERS", " failovers, none lost");
                Plan { also: Some(("WINDLASS_CLUSTERS", "4")), ..plan }
            }
            Self::MysqlNetwork => Plan::on_lab(&["--features", "lab", "--test", "failover"], "a_bad_network_is_no_reason")
                .times(10, "WINDLASS_MINUTES", " min: no failover, "),
            Self::MysqlHistories => {
                Plan::histories("whatever_happens_nothing_that_was_told_is_lost", 1_000_000, " histories of MySQL from seed ")
            }
            Self::Tidb => Plan::on_lab(&["--features", "lab", "--test", "tidb_scaling"], "stores_leave_as_fast_as_they_may")
                .times(16, "WINDLASS_SCALINGS", " times stores left and came: "),
            Self::TidbPause => Plan::on_lab(&["--features", "lab", "--test", "tidb_pause"], "a_paused_cluster_stays_as_it_is")
                .times(10, "WINDLASS_PAUSED_MINUTES", " min paused and provoked; "),
            Self::TidbHistories => {
                Plan::histories("no_store_is_lost_and_every_history_ends_at_rest", 100_000, " histories of TiDB from seed ")
            }
            Self::Leader => Plan::on_lab(&["--features", "lab", "--test", "leader"], "a_stopped_leader_changes_nothing").times(
                100,
                "WINDLASS_ROUNDS",
                " rounds of a stopped leader, ",
            ),
            Self::Outage => {
                let plan = Plan::on_lab(&["--features", "lab", "--test", "outage"], "an_operator_survives_the_absence").times(
                    120,
                    "WINDLASS_AWAY",
                    "API server away for ",
                );
                Plan { also: Some(("WINDLASS_OUTAGE_CLUSTERS", "99")), ..plan }
            }
            Self::Slow => Plan::on_lab(&["--features", "lab", "--test", "slow"], "an_operator_keeps_up_with_a_slow").times(
                20,
                "WINDLASS_SLOW_ROUNDS",
                " on every request: ",
            ),
            Self::ClaimsServer => {
                let test = "there_are_never_two_writers_to_one_cluster_on_a_real_server";
                Plan::on_lab(&["--features", "lab", "--test", "schedules"], test).times(
                    20,
                    "WINDLASS_LAB_SCHEDULES",
                    " schedules of two releases on the lab from seed ",
                )
            }
            Self::FuzzServer => Plan::on_lab(&["--features", "lab", "--test", "fuzz"], "every_document_is_refused_or_told")
                .times(2_000, "WINDLASS_FUZZ_DOCUMENTS", " documents on the server from seed "),
            Self::Upgrade => {
                let plan = Plan::on_lab(&["--features", "lab", "--test", "upgrade"], "another_version_restarts_nothing").times(
                    100,
                    "WINDLASS_UPGRADE_CLUSTERS",
                    " clusters and five real ones upgraded",
                );
                Plan { lab: Some(Installed::WithTheNext), ..plan }
            }
        }
    }
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let plan = options.name.plan();
    let count = options.count.unwrap_or(plan.count);
    eprintln!("{count} rounds of {} in {}", plan.test, plan.package);
    let began = Instant::now();
    let figures = match plan.lab {
        Some(installed) => run_on_lab(&plan, installed, count, &Lab::named(&options.lab)?).await?,
        None => run_test(&plan, count, None).await?,
    };
    // A test that does not listen would make the short form look like the long one.
    if !figures.contains(&count.to_string()) {
        bail!("{count} rounds were asked for with {}, but the test says `{figures}`", plan.variable);
    }
    println!("{figures} ({})", seconds(began.elapsed()));
    Ok(())
}

/// Runs the test on a lab of its own, which is gone afterwards.
async fn run_on_lab(plan: &Plan, installed: Installed, count: u64, lab: &Lab) -> Result<String> {
    let progress = Progress::new();
    lab.up(&progress).await?;
    let played = async {
        if installed == Installed::WithTheNext {
            install::load(lab, &install::build_rehearsal(&progress).await?, &progress).await?;
        }
        let image = install::build_image(&progress).await?;
        install::load(lab, &image, &progress).await?;
        install::install(&Cluster::of_lab(lab), &image, &progress).await?;
        for example in Example::value_variants() {
            example.load_image(lab, &progress).await?;
        }
        run_test(plan, count, Some(lab)).await
    }
    .await;
    let ended = lab.down(&progress).await;
    played.and_then(|figures| ended.map(|()| figures))
}

/// Runs the test, shows what it prints, and returns its line of figures.
async fn run_test(plan: &Plan, count: u64, lab: Option<&Lab>) -> Result<String> {
    // On a lab the time goes by elsewhere.
    let profile: &[&str] = if lab.is_some() { &[] } else { &["--release"] };
    let mut child = cargo::command(&["test", "--locked", "--package", plan.package])
        .args(profile)
        .args(plan.target)
        .envs(lab.map(|lab| (LAB_VARIABLE, lab.name())))
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
