//! The tasks of the project: what a person types after `cargo xtask`.
//!
//! Decides nothing about clusters. Each command is one module; this one only says what can be typed.

mod bench;
mod campaign;
mod cargo;
mod cluster;
#[cfg(test)]
mod dependencies;
mod example;
mod generate;
mod install;
mod lab;
mod pictures;
mod plugin;
mod rbac;
mod report;
mod test;
mod up;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use windlass_lab::DEFAULT_NAME;

/// The tasks of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// A real Kubernetes on this machine, Windlass in it, and a healthy example cluster.
    Up(up::Options),
    /// Ends the lab.
    Down(LabName),
    /// The lab by itself.
    Lab(lab::Options),
    /// Everything that CI runs.
    Test(test::Options),
    /// The long form of a test; prints one line of figures at the end.
    Campaign(campaign::Options),
    /// Measures Windlass on the lab.
    Bench(bench::Options),
    /// Writes the charts' definitions and permissions and the reference pages from the code.
    Gen(generate::Options),
    /// Takes the documentation's pictures of a terminal, from a cluster on a lab.
    Pictures(pictures::Options),
}

/// Which lab is meant.
#[derive(Debug, Args)]
struct LabName {
    /// The lab's name: several run at once under different names.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.task {
        Task::Up(options) => up::run(options).await,
        Task::Down(lab) => lab::down(&lab.name).await,
        Task::Lab(options) => lab::run(options).await,
        Task::Test(options) => Box::pin(test::run(options)).await,
        Task::Campaign(options) => campaign::run(options).await,
        Task::Bench(options) => bench::run(options).await,
        Task::Gen(options) => generate::run(&options).await,
        Task::Pictures(options) => pictures::run(&options).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_unknown_campaign_lists_the_known_ones_and_ends_with_2() {
        let error = Arguments::try_parse_from(["cargo xtask", "campaign", "nonsense"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains("scale") && text.contains("edits"), "{text}");
    }
}
