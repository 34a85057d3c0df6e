//! `kubectl moco`: kubectl finds this program by its name on PATH.

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    windlass_kubectl::moco(std::env::args_os()).await
}
