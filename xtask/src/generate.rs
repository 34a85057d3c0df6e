//! `cargo xtask gen`: the files that are written from the code, and the check that they were.

mod difference;
mod help;
mod manifest;
mod plugin;
mod reference;

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::cargo;

pub(crate) use manifest::manifest;

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
    path: &'static str,
    content: String,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    if options.check { check().await } else { write(&files().await?) }
}

/// Fails when a file differs from what the code says.
pub(crate) async fn check() -> Result<()> {
    let files = files().await?;
    let mut wrong = Vec::new();
    for file in &files {
        let on_disk = std::fs::read_to_string(cargo::root().join(file.path)).unwrap_or_default();
        if on_disk != file.content {
            println!("{}", difference::between(file.path, &on_disk, &file.content));
            wrong.push(file.path);
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
        let path = cargo::root().join(file.path);
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
    Ok(vec![
        Generated { path: "deploy/crds.yaml", content: definitions()? },
        Generated { path: "deploy/windlass.yaml", content: manifest() },
        Generated { path: "docs/reference/replicatedstatefulset.md", content: reference::replicated_stateful_set()? },
        Generated { path: "docs/reference/logbook.md", content: reference::logbook()? },
        Generated { path: "docs/reference/permissions.md", content: manifest::permissions() },
        Generated { path: "docs/reference/windlass.md", content: help::windlass().await? },
        Generated { path: "docs/reference/kubectl-windlass.md", content: plugin::kubectl_windlass()? },
    ])
}

/// All custom resource definitions, as one stream.
fn definitions() -> Result<String> {
    let mut text = format!("# Written by `{COMMAND}` from crates/api. Do not edit.\n");
    for definition in windlass_api::custom_resource_definitions() {
        let _ = writeln!(text, "---\n{}", serde_saphyr::to_string(&definition)?.trim_end());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_definitions_are_read_back_as_they_were() {
        let text = definitions().unwrap();
        let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let meant: Vec<Value> = windlass_api::custom_resource_definitions()
            .iter()
            .map(|definition| serde_json::to_value(definition).unwrap())
            .collect();
        assert_eq!(read.len(), meant.len());
        for (read, meant) in read.iter().zip(&meant) {
            assert_eq!(read["metadata"], meant["metadata"]);
            assert_eq!(read["spec"]["names"], meant["spec"]["names"]);
        }
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    }
}
