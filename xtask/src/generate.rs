//! `cargo xtask gen`: the files that are written from the code, and the check that they were.

mod charts;
mod difference;
mod help;
mod metrics;
mod permissions;
mod plugin;
mod reference;

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::cargo;

/// The command that writes the files, as their first lines name it.
const COMMAND: &str = "cargo xtask gen";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a file differs from what the code says.
    #[arg(long)]
    check: bool,
}

/// A file that is written from the code.
struct Generated {
    /// Relative to the workspace.
    path: Cow<'static, str>,
    content: String,
}

impl Generated {
    fn new(path: impl Into<Cow<'static, str>>, content: String) -> Self {
        Self { path: path.into(), content }
    }
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    if options.check { check().await } else { write(&files().await?) }
}

/// Fails when a file differs from what the code says.
pub(crate) async fn check() -> Result<()> {
    let files = files().await?;
    let mut wrong = Vec::new();
    for file in &files {
        let on_disk = std::fs::read_to_string(cargo::root().join(&*file.path)).unwrap_or_default();
        if on_disk != file.content {
            println!("{}", difference::between(&file.path, &on_disk, &file.content));
            wrong.push(&*file.path);
        }
    }
    if !wrong.is_empty() {
        bail!("not what the code says: {}; `{COMMAND}` writes them, and they belong into the same commit", wrong.join(", "));
    }
    println!("{} files are what the code says", files.len());
    Ok(())
}

fn write(files: &[Generated]) -> Result<()> {
    for file in files {
        let path = cargo::root().join(&*file.path);
        if std::fs::read_to_string(&path).is_ok_and(|on_disk| on_disk == file.content) {
            println!("unchanged  {}", file.path);
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        std::fs::write(&path, &file.content).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written    {}", file.path);
    }
    Ok(())
}

async fn files() -> Result<Vec<Generated>> {
    let mut files = charts::files()?;
    files.extend([
        Generated::new("docs/reference/replicatedstatefulset.md", reference::replicated_stateful_set()?),
        Generated::new("docs/reference/mysqlcluster.md", reference::mysql_cluster()?),
        Generated::new("docs/reference/tidbcluster.md", reference::tidb_cluster()?),
        Generated::new("docs/reference/logbook.md", reference::logbook()?),
        Generated::new("docs/reference/permissions.md", permissions::page()),
        Generated::new("docs/reference/metrics.md", metrics::page()),
        Generated::new("docs/reference/windlass.md", help::windlass().await?),
        Generated::new("docs/reference/kubectl-windlass.md", plugin::kubectl_windlass()?),
        Generated::new("docs/reference/kubectl-moco.md", plugin::kubectl_moco()),
    ]);
    Ok(files)
}
