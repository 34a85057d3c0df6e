//! `cargo xtask bench`: starts the lab when needed, and hands over to the program that measures.

use anyhow::Result;
use clap::Args;
use windlass_lab::{Lab, Progress};

use crate::{LabName, cargo};

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    lab: LabName,

    /// What the measuring program is to do; `-- --help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    // What is deployed is what is measured, and never one of yesterday; unless another one is named.
    if !options.arguments.iter().any(|argument| argument.starts_with("--operator")) {
        cargo::build_static_operator(&[]).await?;
    }
    let lab = Lab::named(&options.lab.name)?;
    lab.up(&Progress::new()).await?;
    let mut command = cargo::command(&["run", "--release", "--locked", "--package", "windlass-e2e", "--bin", "bench", "--"]);
    command.args(&options.arguments).env(crate::test::LAB_VARIABLE, lab.name());
    cargo::show(command).await
}
