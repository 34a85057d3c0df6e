//! Debian packages: which are missing, and their installation.

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::command;
use crate::progress::Progress;

/// How long to wait for another apt that holds the lock.
const LOCK_WAIT: &str = "DPkg::Lock::Timeout=600";

/// Those of `packages` that are not installed.
pub(crate) async fn missing(packages: &[&str]) -> Result<Vec<String>> {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat", "${binary:Package} ${db:Status-Abbrev}\n"]);
    let installed = command::output(query).await.context("the lab needs a Debian machine")?;
    Ok(absent(packages, &installed))
}

/// Installs what is missing. The package lists are fetched only when apt does not know a package.
pub(crate) async fn ensure(packages: &[&str], progress: &Progress) -> Result<()> {
    let missing = missing(packages).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    ensure!(rustix::process::geteuid().is_root(), "Debian packages are missing; as root: {by_hand}");
    progress
        .step(format!("Debian packages {}", missing.join(" ")), async {
            if install(&missing).await.is_err() {
                // A source that has nothing to do with these packages may fail; the installation tells.
                let update = command::run("apt-get", &["update", "--quiet", "--option", LOCK_WAIT]).await;
                install(&missing).await.with_context(|| match update {
                    Ok(_) => format!("try by hand: {by_hand}"),
                    Err(error) => format!("try by hand: {by_hand}; the package lists could not be fetched either: {error:#}"),
                })?;
            }
            Ok(())
        })
        .await
}

async fn install(packages: &[String]) -> Result<String> {
    let mut install = Command::new("apt-get");
    install
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "--yes", "--quiet", "--no-install-recommends", "--option", LOCK_WAIT])
        .args(packages);
    command::output(install).await
}

fn absent(packages: &[&str], installed: &str) -> Vec<String> {
    packages
        .iter()
        .filter(|package| {
            !installed.lines().any(|line| {
                line.split_once(' ')
                    .is_some_and(|(name, status)| status.starts_with("ii") && name.split(':').next() == Some(**package))
            })
        })
        .map(|package| (*package).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_package_is_missing_and_an_architecture_suffix_is_not_part_of_the_name() {
        let installed = "runc ii \ncontainerd rc \nlibc6:amd64 ii \n";
        assert_eq!(absent(&["runc", "containerd", "libc6", "iptables"], installed), ["containerd", "iptables"]);
    }
}
