//! Measures Windlass on the lab: what it costs to create, keep and change N clusters, beside a bare writer on the same machine.
//!
//! Says what it finds, good or bad, with the goal and other operators' figures beside it. Nothing that is measured is done as
//! an administrator, whom the API server never throttles. What the bench made is removed at the end, also after Ctrl-C.

mod audit;
mod cluster;
mod converge;
mod floor;
mod kind;
mod kubelet;
mod latency;
mod lines;
mod machine;
mod measure;
mod model;
mod mysql;
mod operator;
mod others;
mod report;
mod stage;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use tikv_jemallocator::Jemalloc;
use tokio::signal::unix::{SignalKind, signal};
use windlass_lab::{DEFAULT_NAME, Lab};

use crate::kind::Kind;
use crate::kubelet::{Kubelet, Lodging};
use crate::machine::Machine;
use crate::mysql::{Fakes, Fleet, connections};
use crate::report::Report;
use crate::stage::Stage;

/// The operator's: what a connection costs is measured in this program, and is taken off what the operator has.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Measures Windlass on the lab.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Arguments {
    /// The lab that is used; it must be up.
    #[arg(long, env = "WINDLASS_LAB", default_value = DEFAULT_NAME)]
    lab: String,

    /// Which clusters.
    #[arg(long, default_value = "rss")]
    kind: Kind,

    /// How many clusters; one row of figures for each.
    #[arg(long, value_delimiter = ',', default_value = "1,100,1000")]
    clusters: Vec<usize>,

    /// How many members each cluster has.
    #[arg(long, default_value_t = 3)]
    members: u16,

    /// How long a quiet fleet is watched. After 90 seconds the operator has closed the connections to the API server that it does not
    /// need any more: its memory is read then.
    #[arg(long, default_value_t = 90)]
    quiet_seconds: u64,

    /// How many changes of a spec are timed; 20 when there is one cluster.
    #[arg(long, default_value_t = 200)]
    samples: usize,

    /// How many clusters of MySQL lose their primary at once; with 0, none loses it at all.
    #[arg(long, default_value_t = 50)]
    failovers: usize,

    /// Nothing is compared with a bare writer, whose objects take as long to remove as the operator's.
    #[arg(long)]
    without_writer: bool,

    /// What the last row made is left as it is: for a lab that is ended afterwards. The next run on the same lab removes it.
    #[arg(long)]
    leave: bool,

    /// The fake kubelet names no processes in its pods, so that there is nobody to run a hook in.
    #[arg(long)]
    without_processes: bool,

    /// The operator that is measured; the static release build when absent.
    #[arg(long, value_name = "PROGRAM")]
    operator: Option<std::path::PathBuf>,

    /// The form of the result.
    #[arg(long, default_value = "text")]
    output: Output,

    /// Makes connections to the bench's server at this address, tells what they cost, and does nothing else.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    only_connections_to: Option<std::net::Ipv4Addr>,
}

/// What all rows of a run share.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    stage: &'a Stage,
    arguments: &'a Arguments,
    program: &'a operator::Program,
    kubelet: &'a Kubelet,
    /// The servers in the pods, where there are any.
    fleet: Option<&'a Fleet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table for people.
    Text,
    /// One JSON document.
    Json,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.clusters.iter().all(|count| *count > 0), "--clusters: each number must be 1 or more");
    ensure!(arguments.members > 0 && arguments.samples > 0, "--members and --samples must be 1 or more");
    let without = arguments.kind == Kind::Mysql && arguments.without_processes;
    ensure!(!without, "--without-processes is about hooks, and clusters of MySQL have none");
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("a crypto provider is installed already");
    }
    if let Some(address) = arguments.only_connections_to {
        return connections::run(address).await;
    }
    let lab = Lab::named(&arguments.lab)?;
    ensure!(lab.status().await.healthy, "the lab {} is not up: run `cargo xtask lab up`", lab.name());
    let program = operator::program(arguments.operator.as_deref())?;

    let mut report = Report::new(arguments, &program, Machine::now());
    report.warnings.extend(others::operators_on(&lab));
    for warning in &report.warnings {
        eprintln!("bench: warning: {warning}");
    }
    let stage = Stage::prepare(&lab).await?;
    let measured = tokio::select! {
        measured = measure_all(&stage, arguments, &program, &mut report) => measured,
        stopped = told_to_stop() => stopped.and(Err(anyhow::anyhow!("told to stop; the figures so far follow"))),
    };
    let cleared = tokio::select! {
        cleared = clear(&stage, arguments) => cleared,
        // Whoever asks twice wants out now.
        _ = told_to_stop() => Err(anyhow::anyhow!("told to stop again while clearing up; the next run clears what is left")),
    };
    report.finish(Machine::now());
    match arguments.output {
        Output::Text => print!("{}", table::text(&report)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    measured.and(cleared)?;
    ensure!(report.failures.is_empty(), "{} things failed, which are told above", report.failures.len());
    Ok(())
}

async fn clear(stage: &Stage, arguments: &Arguments) -> Result<()> {
    if arguments.leave { Ok(()) } else { stage.clear().await }
}

async fn measure_all(stage: &Stage, arguments: &Arguments, program: &operator::Program, report: &mut Report) -> Result<()> {
    let fakes = match arguments.kind {
        Kind::Rss => None,
        Kind::Mysql => Some(Fakes::start(arguments.members)?),
    };
    let fleet = fakes.as_ref().map(|fakes| &fakes.fleet);
    let lodging =
        Lodging { containers: arguments.kind.containers(), processes: !arguments.without_processes, fleet: fleet.cloned() };
    let kubelet = kubelet::start(stage, lodging).await?;
    let bench = Bench { stage, arguments, program, kubelet: &kubelet, fleet };
    let model = model::take(bench, report).await?;
    if let Some(fleet) = fleet {
        say("measuring what a connection costs");
        report.connections = Some(connections::measure(fleet).await?);
    }
    for (place, count) in arguments.clusters.iter().enumerate() {
        let is_left = arguments.leave && place + 1 == arguments.clusters.len();
        match measure::measure(bench, &model, *count, is_left).await {
            Ok(row) => report.rows.push(row),
            // The other rows are still worth having.
            Err(error) => {
                let failure = format!("{count} clusters could not be measured: {error:#}");
                say(&failure);
                report.failures.push(failure);
                stage.remove_namespaces().await?;
            }
        }
    }
    if let Some(fleet) = fleet {
        report.judge(fleet);
    }
    kubelet.check()
}

async fn told_to_stop() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        pressed = tokio::signal::ctrl_c() => pressed.context("SIGINT cannot be watched"),
    }
}

/// Tells on standard error how far the run is.
pub(crate) fn say(text: impl std::fmt::Display) {
    eprintln!("bench: {text}");
}

/// Waits for something that has a limit of its own.
pub(crate) async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, work).await.with_context(|| format!("waited {} s for {what} in vain", limit.as_secs()))?
}
