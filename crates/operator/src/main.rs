//! The `windlass` binary: one program, one image; each component is a subcommand.

mod arguments;
mod controller;
mod descriptors;
mod discovery;
mod mysql;
mod telemetry;
mod webhook;

use std::process::ExitCode;

use arguments::{Arguments, Component};
use clap::Parser as _;
use tikv_jemallocator::Jemalloc;

/// It gives back what is free between what is kept: after a thousand clusters were created, the system's would be half of holes.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.component {
        Component::Controller(options) => controller::run(options),
        Component::Webhook(options) => webhook::run(options),
        Component::Discovery(options) => discovery::run(options),
        Component::Crds => print_definitions(),
        Component::MysqlInit(options) => mysql::initialise(options),
        Component::MysqlRun(options) => return ended(mysql::run_server(options)),
        Component::MysqlAgent(options) => mysql::serve(options),
        Component::MysqlSave(options) => mysql::save(&options),
        Component::CopySelf { to } => mysql::copy_self(&to),
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("windlass: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_definitions() -> anyhow::Result<()> {
    for definition in windlass_api::custom_resource_definitions() {
        println!("---\n{}", serde_saphyr::to_string(&definition)?.trim_end());
    }
    Ok(())
}
