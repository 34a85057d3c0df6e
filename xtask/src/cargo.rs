//! Calling cargo, and finding what it built.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::process::Command;

/// The directory that holds the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The cargo that runs this program, in the workspace.
///
/// `cargo run` describes this package to its children by variables; to a cargo among them they would be a changed environment, and a
/// reason to build things again.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

/// A file for what something prints that runs beside something else.
pub(crate) fn log_file(name: &str) -> Result<(PathBuf, File)> {
    let directory = root().join("target/xtask");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let log = directory.join(format!("{name}.log"));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    Ok((log, file))
}

/// Runs a prepared command whose output is for the reader.
pub(crate) async fn show(mut command: Command) -> Result<()> {
    let shown = describe(&command);
    let status = command.status().await.with_context(|| format!("cannot run `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs a prepared command and returns what it printed; its complaints are shown.
pub(crate) async fn read(mut command: Command) -> Result<String> {
    let shown = describe(&command);
    // Not `output`, which would keep the complaints to itself.
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let output = child.with_context(|| format!("cannot run `{shown}`"))?.wait_with_output().await?;
    if !output.status.success() {
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something that is no text"))
}

/// Builds one program and says where it is.
pub(crate) async fn build(mut command: Command, name: &str) -> Result<PathBuf> {
    command.args(["--message-format", "json-render-diagnostics"]);
    let messages = read(command).await?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .find(|path| path.file_name().is_some_and(|file| file == name))
        .with_context(|| format!("cargo built {name} but did not say where it is"))
}

/// Builds `windlass` as one file that needs no library, for an image that holds nothing else.
///
/// Its own target directory: other flags would make cargo build everything anew at each change between the two.
pub(crate) async fn build_static_operator(features: &[&str]) -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = command(&["build", "--release", "--locked", "--package", "windlass-operator", "--bin", "windlass"]);
    command.args(features.iter().flat_map(|feature| ["--features", *feature]));
    // With `--target`, the flags do not reach build scripts and macros, which cannot be static.
    command
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(root().join("target/static"))
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    build(command, "windlass").await.context("cannot build the static windlass")
}

fn describe(command: &Command) -> String {
    let command = command.as_std();
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
