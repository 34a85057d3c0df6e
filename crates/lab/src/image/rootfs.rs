//! The root file system of a recipe: bootstrapped from packages, then packed as a layer.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::image::archive::{self, MODIFIED};
use crate::image::recipe::{Recipe, octal};
use crate::{cache, command};

/// Left out of every image: nobody reads them there.
const NEVER: [&str; 9] = [
    "/dev/*",
    "/proc/*",
    "/sys/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
    "/var/cache/apt/*",
    "/var/lib/apt/lists/*",
];

/// Installs the recipe's packages and writes the result as a tar file.
pub(super) async fn bootstrap(recipe: &Recipe, sources: &[String], root: &Path) -> Result<()> {
    let partial = cache::partial(root).with_extension("tar");
    let list = root.with_extension("list");
    std::fs::write(&list, sources.join("\n") + "\n").with_context(|| format!("cannot write {}", list.display()))?;
    let mut bootstrap = Command::new("mmdebstrap");
    bootstrap
        .env("SOURCE_DATE_EPOCH", MODIFIED.to_string())
        .args(["--mode=root", "--variant=essential", "--format=tar"])
        // The lists of a mirror that is a snapshot are past their date, and still signed.
        .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
        .arg("--aptopt=Acquire::Retries \"5\"")
        .arg("--aptopt=Apt::Install-Recommends \"false\"");
    if !recipe.packages.is_empty() {
        bootstrap.arg(format!("--include={}", recipe.packages.join(",")));
    }
    bootstrap.arg(&recipe.suite).arg(&partial).arg(&list);
    command::output(bootstrap).await.with_context(|| format!("cannot make the root file system of {}", recipe.name))?;
    cache::remove(&list)?;
    std::fs::rename(&partial, root).with_context(|| format!("cannot name the finished {}", root.display()))
}

/// Packs the layer: the bootstrapped files less what is left out, then the recipe's own.
pub(super) fn layer(recipe: &Recipe, directory: &Path, root: &Path, layer: &Path) -> Result<()> {
    let input = File::open(root).with_context(|| format!("cannot read {}", root.display()))?;
    let output = File::create(layer).with_context(|| format!("cannot write {}", layer.display()))?;
    let mut tar = tar::Builder::new(BufWriter::new(output));
    let mut reader = tar::Archive::new(BufReader::new(input));
    for entry in reader.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let absolute = format!("/{}", path.to_string_lossy().trim_start_matches("./").trim_matches('/'));
        let replaced = recipe.links.iter().any(|link| link.path == absolute);
        if replaced
            || NEVER.iter().copied().chain(recipe.remove.iter().map(String::as_str)).any(|pattern| matches(pattern, &absolute))
        {
            continue;
        }
        let mut header = archive::header(entry.header().mode()?, entry.header().size()?);
        header.set_entry_type(entry.header().entry_type());
        header.set_uid(entry.header().uid()?);
        header.set_gid(entry.header().gid()?);
        if let Some(target) = entry.link_name()? {
            tar.append_link(&mut header, &path, &target)?;
        } else {
            tar.append_data(&mut header, &path, &mut entry)?;
        }
    }
    for wanted in &recipe.directories {
        let mut header = archive::header(octal(wanted.mode.as_deref(), 0o755)?, 0);
        header.set_entry_type(tar::EntryType::Directory);
        header.set_uid(wanted.owner.into());
        header.set_gid(wanted.owner.into());
        tar.append_data(&mut header, format!("{}/", wanted.path.trim_matches('/')), std::io::empty())?;
    }
    for wanted in &recipe.files {
        let from = directory.join(&wanted.from);
        let bytes = std::fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        let mut header = archive::header(octal(wanted.mode.as_deref(), 0o644)?, bytes.len() as u64);
        tar.append_data(&mut header, wanted.to.trim_start_matches('/'), bytes.as_slice())?;
    }
    for link in &recipe.links {
        let mut header = archive::header(0o777, 0);
        header.set_entry_type(tar::EntryType::Symlink);
        tar.append_link(&mut header, link.path.trim_start_matches('/'), &link.to)?;
    }
    tar.into_inner()?.flush()?;
    Ok(())
}

/// Whether `path` fits `pattern`, in which `*` stands for any run of letters, also of slashes.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        assert!(matches("/usr/share/doc/*", "/usr/share/doc/dash/copyright"));
        assert!(!matches("/usr/share/doc/*", "/usr/share/docs"));
        assert!(matches("/usr/bin/mysql*upgrade", "/usr/bin/mysql_upgrade"));
        assert!(!matches("/usr/bin/mysql*upgrade", "/usr/bin/mysqld"));
        assert!(matches("/etc/motd", "/etc/motd"));
        assert!(!matches("/etc/motd", "/etc/motd.d"));
        assert!(matches("*.pyc", "/usr/lib/a.pyc"));
    }
}
