//! `cargo xtask test`: everything that CI runs, in order, until something fails.

mod background;
mod lanes;
mod output;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum as _};
use windlass_lab::{Lab, Progress};

use crate::cluster::Cluster;
use crate::example::Example;
use crate::report::Report;
use crate::{cargo, generate, install, plugin};
use background::Background;

/// Tells tests which lab to use.
pub(crate) const LAB_VARIABLE: &str = "WINDLASS_LAB";
/// The lab of the tests; a person's own goes on beside it.
const LAB: &str = "test";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Leave out what needs the lab.
    #[arg(long)]
    fast: bool,

    /// Keep the lab when a test fails.
    #[arg(long, conflicts_with = "fast")]
    keep: bool,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let mut report = Report::default();
    let result = tokio::select! {
        result = stages(&options, &mut report) => result,
        _ = tokio::signal::ctrl_c() => {
            bail!("stopped; if the lab was up already, `cargo xtask lab down --name {LAB}` ends it");
        }
    };
    println!("\n{}", report.table());
    if result.is_ok() {
        println!("everything passed");
    }
    result
}

async fn stages(options: &Options, report: &mut Report) -> Result<()> {
    let background = if options.fast { None } else { Some(Background::start()?) };
    without_lab(options, report).await?;
    if let Some(background) = background {
        report.stage("parts of the lab", background.finish()).await?;
        let lab = Lab::named(LAB)?;
        let result = Box::pin(with_lab(&lab, report)).await;
        if result.is_err() {
            explain(&lab).await;
            if options.keep {
                println!("the lab is kept: `cargo xtask lab exec --name {LAB} -- kubectl get pods -A` looks around");
                return result;
            }
        }
        let ended = report.stage("lab down", end(&lab)).await;
        result.and(ended)?;
    }
    Ok(())
}

async fn without_lab(options: &Options, report: &mut Report) -> Result<()> {
    let cargo = |arguments: &[&str]| cargo::show(cargo::command(arguments));
    report.stage("format", cargo(&["fmt", "--all", "--check"])).await?;
    let on_the_lab = "windlass-e2e/lab,windlass-lab/lab";
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--features", on_the_lab, "--", "--deny", "warnings"];
    report.stage("lints", cargo(&lints)).await?;
    let tests = ["test", "--workspace", "--locked"];
    // With the lab, the longest of them runs while the others wait for it.
    let skipped = ["--", "--skip", lanes::HARNESS];
    let tests = if options.fast { tests.to_vec() } else { [&tests[..], &skipped].concat() };
    report.stage("tests without the lab", cargo(&tests)).await?;
    report.stage("generated files", generate::check()).await
}

async fn with_lab(lab: &Lab, report: &mut Report) -> Result<()> {
    let progress = Progress::new();
    report
        .stage("lab up", async {
            lab.down(&progress).await?;
            lab.up(&progress).await
        })
        .await?;
    let plugins = report.stage("plugin", plugin::build(&progress)).await?;
    let image = report.stage("static windlass", install::build_image(&progress)).await?;
    report
        .stage("installation", async {
            install::load(lab, &image, &progress).await?;
            install::install(&Cluster::of_lab(lab), &image, &progress).await?;
            for example in Example::value_variants() {
                example.load_image(lab, &progress).await?;
            }
            Ok(())
        })
        .await?;
    report.stage("build of the tests on the lab", lanes::build()).await?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(plugins).chain(std::env::split_paths(&path)))?;
    Box::pin(lanes::run(lab, &path, report)).await
}

/// Ends the lab. It must leave nothing.
async fn end(lab: &Lab) -> Result<()> {
    lab.down(&Progress::new()).await?;
    let left = lab.leftovers()?;
    if !left.is_empty() {
        bail!("`lab down` left something on the machine:\n  {}", left.join("\n  "));
    }
    Ok(())
}

/// What somebody needs who looks at a failed run.
async fn explain(lab: &Lab) {
    let cluster = Cluster::of_lab(lab);
    if lab.status().await.api_ready {
        println!("\n==> the end of the operator's log\n{}", cluster.log_tail(install::NAMESPACE, install::DEPLOYMENT).await);
        println!("==> pods\n{}", cluster.kubectl(&["get", "pods", "--all-namespaces"]).await.unwrap_or_default());
    }
    println!("==> the lab's logs, and the audit log, are in {}", lab.log_dir().display());
}
