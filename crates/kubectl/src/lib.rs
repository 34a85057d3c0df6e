//! What the plugins of kubectl share: finding clusters, telling of them, asking for changes and waiting for the answer.
//!
//! Reads custom resources as plain JSON and their common conditions, so that a new kind costs one entry in [`kinds`]. Writes only
//! what a person could write by hand: the pause, the number of members, a note that restarts, and the wish to hand over. Decides nothing about clusters; the operator does.

mod advice;
mod arguments;
mod change;
mod cluster;
mod complete;
mod connect;
mod error;
mod follow;
mod kinds;
mod live;
mod moco;
mod output;
mod render;
mod tell;
mod verbs;
pub mod view;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use arguments::Arguments;
pub use moco::{moco, moco_command};
use output::Output;

/// The command line of `kubectl windlass`, for the reference page.
pub fn windlass_command() -> clap::Command {
    Arguments::command()
}

/// What kubectl runs for `kubectl windlass … <TAB>`: an executable of the name `kubectl_complete-windlass` on PATH.
pub const WINDLASS_COMPLETION_SCRIPT: &str = "#!/bin/sh\nexec kubectl-windlass __complete \"$@\"\n";

/// As above, for `kubectl moco … <TAB>`: `kubectl_complete-moco`.
pub const MOCO_COMPLETION_SCRIPT: &str = "#!/bin/sh\nexec kubectl-moco __complete \"$@\"\n";

/// Runs `kubectl windlass`.
pub async fn windlass(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    // Another crypto provider cannot be there: this is the program's first act.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let output = Output::new(arguments.global.no_color);
    match verbs::run(arguments, &output).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output.complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
