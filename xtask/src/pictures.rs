//! `cargo xtask pictures`: what a person sees on a terminal, for the documentation. Taken from a cluster on the lab, never drawn.

mod terminal;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use tokio::process::Command;
use windlass_lab::Lab;

use crate::example::Example;
use crate::{cargo, lab, up};

/// The lab of the pictures.
const LAB: &str = "pictures";
/// Where they are, seen from the workspace.
const FOLDER: &str = "docs/pictures";
/// How wide the terminal is.
const COLUMNS: usize = 118;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Leave the lab up afterwards.
    #[arg(long)]
    keep: bool,
}

/// Something that is typed.
enum Scene {
    /// To bring the cluster where it should be for the next picture.
    Typed(&'static str),
    /// To be shown, in a file of this name.
    Shown(&'static str, &'static str),
}

const SCENES: [Scene; 8] = [
    Scene::Shown("status.svg", "kubectl windlass status rss/galera -n galera"),
    Scene::Typed("kubectl windlass pause rss/galera -n galera --reason 'a look inside'"),
    Scene::Typed("kubectl windlass scale rss/galera -n galera --replicas 5 --no-wait"),
    // The operator notices in its own time.
    Scene::Typed("timeout 60 bash -c 'until kubectl windlass plan rss/galera -n galera | grep -q scale; do sleep 0.5; done'"),
    Scene::Shown("plan.svg", "kubectl windlass plan rss/galera -n galera"),
    Scene::Typed("kubectl windlass resume rss/galera -n galera"),
    Scene::Typed("kubectl windlass scale rss/galera -n galera --replicas 3"),
    Scene::Shown("log.svg", "kubectl windlass log rss/galera -n galera"),
];

pub(crate) async fn run(options: &Options) -> Result<()> {
    let place = Lab::named(LAB)?;
    up::on_lab(&place, Example::Galera, &windlass_lab::Progress::new()).await?;
    let taken = take(&place).await;
    if !options.keep {
        lab::down(LAB).await?;
    }
    taken
}

async fn take(place: &Lab) -> Result<()> {
    let folder = cargo::root().join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for scene in SCENES {
        match scene {
            Scene::Typed(line) => drop(type_in(place, line).await?),
            Scene::Shown(name, line) => {
                let picture = terminal::picture(line, &type_in(place, line).await?, COLUMNS);
                std::fs::write(folder.join(name), picture).with_context(|| format!("cannot write {name}"))?;
                println!("written    {FOLDER}/{name}");
            }
        }
    }
    Ok(())
}

/// Types a line into a terminal, and returns what it shows.
async fn type_in(place: &Lab, line: &str) -> Result<String> {
    let (kubeconfig, path) = lab::environment(place)?;
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &format!("stty cols {COLUMNS} rows 60; {line}"), "/dev/null"])
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", path)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .output()
        .await
        .context("cannot run script, which Debian has in its package bsdutils")?;
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("`{line}` ended with {}: {shown}", output.status);
    }
    Ok(shown)
}
