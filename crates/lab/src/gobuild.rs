//! Programs built from Go modules whose requirements are pinned in this crate.
//!
//! The module's files are part of this library, so a build does not depend on where the checkout
//! is. Go's own caches make an interrupted build continue where it stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

use crate::progress::Progress;
use crate::{cache, command};

/// The module proxy turns requests away now and then.
const FETCH_ATTEMPTS: u32 = 8;

/// One Go module and the commands to build from it.
pub(crate) struct GoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) packages: &'static [&'static str],
    /// What of the packages is built in or left out.
    pub(crate) tags: &'static str,
    pub(crate) linker_flags: &'static str,
    /// Without a C library, for a program that is alone in its image.
    pub(crate) static_only: bool,
    /// What a first build costs, for a person.
    pub(crate) cold: &'static str,
}

/// Where the programs of `tool` are, or will be.
pub(crate) fn directory(tool: &GoTool) -> Result<PathBuf> {
    let mut key =
        cache::Key::default().add("flags", tool.linker_flags.as_bytes()).add("arch", std::env::consts::ARCH.as_bytes());
    for (name, text) in tool.files {
        key = key.add(name, text.as_bytes());
    }
    for package in tool.packages {
        key = key.add("package", package.as_bytes());
    }
    if !tool.tags.is_empty() {
        key = key.add("tags", tool.tags.as_bytes());
    }
    Ok(cache::root()?.join("tools").join(format!("{}-{}-{}", tool.name, tool.version, key.finish())))
}

/// Builds `tool` unless the cache has it.
pub(crate) async fn ensure(tool: &GoTool, progress: &Progress) -> Result<()> {
    let directory = directory(tool)?;
    if directory.exists() {
        return Ok(());
    }
    let source = cache::partial(&directory).with_extension("source");
    let built = cache::partial(&directory);
    cache::remove(&source)?;
    cache::remove(&built)?;
    std::fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
    std::fs::create_dir_all(&built).with_context(|| format!("cannot create {}", built.display()))?;
    for (name, text) in tool.files {
        let path = source.join(name);
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("cannot write {name} for {}", tool.name))?;
    }
    progress.step(format!("fetching the modules of {} {}", tool.name, tool.version), fetch(&source, tool)).await?;
    progress
        .step(format!("compiling {} {}", tool.name, tool.version), async {
            let mut compile = go(&source);
            if tool.static_only {
                compile.env("CGO_ENABLED", "0");
            }
            compile
                .args(["build", "-mod=readonly", "-trimpath", "-tags", tool.tags, "-ldflags", tool.linker_flags, "-o"])
                .arg(&built)
                .args(tool.packages);
            command::output(compile).await
        })
        .await?;
    std::fs::rename(&built, &directory).with_context(|| format!("cannot name the finished {}", directory.display()))?;
    cache::remove(&source)
}

/// Fetches the modules that the packages need, and none that only their tests do.
async fn fetch(source: &Path, tool: &GoTool) -> Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut download = go(source);
        download.args(["list", "-mod=readonly", "-deps", "-tags", tool.tags]).args(tool.packages);
        match command::output(download).await {
            Ok(_) => return Ok(()),
            Err(error) if attempt == FETCH_ATTEMPTS => {
                bail!("the Go modules could not be fetched in {FETCH_ATTEMPTS} attempts; the last answer was: {error:#}")
            }
            Err(_) => tokio::time::sleep(Duration::from_secs(u64::from(attempt) * 2)).await,
        }
    }
}

fn go(directory: &Path) -> Command {
    let installed = Path::new("/usr/local/go/bin/go");
    let mut go = match std::env::var_os("PATH") {
        Some(path) if std::env::split_paths(&path).any(|entry| entry.join("go").exists()) => Command::new("go"),
        _ => Command::new(installed),
    };
    // A stamp of the checkout would change the program; a workspace file above would change its modules.
    go.current_dir(directory).env("GOFLAGS", "-buildvcs=false").env("GOWORK", "off");
    go
}
