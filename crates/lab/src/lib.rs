//! A real single-node Kubernetes on one Debian machine, from packages alone.
//!
//! A lab has a name, a network namespace of its own without a way out, and a directory in the
//! cache. Several labs run at once under different names. [`Lab::up`] starts afresh unless the lab
//! is healthy already; [`Lab::down`] leaves no process, mount, namespace, interface or control
//! group behind.

mod apt;
mod artifacts;
mod cache;
mod certificates;
mod cgroup;
mod cleanup;
mod command;
mod components;
mod gobuild;
pub mod image;
mod kubeconfig;
mod layout;
mod loading;
mod manifests;
mod mounts;
mod network;
mod outage;
mod process;
mod progress;
pub mod provisioner;
mod startup;
mod status;
pub mod tidb;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::certificates::Authority;
use crate::layout::Layout;
use crate::startup::Facts;

pub use crate::artifacts::KUBERNETES_VERSION;
pub use crate::cache::root as cache_directory;
pub use crate::components::apiserver::TOLD_IN_FULL;
pub use crate::manifests::STORAGE_CLASS;
pub use crate::progress::Progress;
pub use crate::status::{LabStatus, ProcessStatus};

/// The name of the lab that is meant when nobody says which.
pub const DEFAULT_NAME: &str = "windlass";

/// One lab, whether it is up or not.
#[derive(Clone, Debug)]
pub struct Lab {
    layout: Layout,
    kubernetes: PathBuf,
    helm: PathBuf,
}

impl Lab {
    /// The lab of this name. Nothing is read or started yet.
    pub fn named(name: &str) -> Result<Self> {
        Ok(Self {
            layout: Layout::new(name)?,
            kubernetes: artifacts::kubernetes_directory()?,
            helm: artifacts::helm_directory()?,
        })
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.layout.name
    }

    /// Brings the lab up; returns at once when it is healthy. A lab that is not is cleared and
    /// started afresh, with nothing in its cluster.
    pub async fn up(&self, progress: &Progress) -> Result<()> {
        require_root()?;
        let _lock = self.lock(progress).await?;
        if self.status().await.healthy {
            return Ok(());
        }
        let artifacts = artifacts::ensure(progress).await?;
        if !cleanup::leftovers(&self.layout)?.is_empty() {
            progress.step("clearing what an earlier run left", cleanup::clear(&self.layout)).await?;
        }
        startup::start(&self.layout, &artifacts, progress).await.with_context(|| {
            format!("the lab {} did not come up; its logs are in {}", self.layout.name, self.layout.log().display())
        })
    }

    /// Ends the lab. Its logs stay until the next [`Lab::up`].
    pub async fn down(&self, progress: &Progress) -> Result<()> {
        require_root()?;
        let _lock = self.lock(progress).await?;
        progress.step(format!("ending the lab {}", self.layout.name), cleanup::clear(&self.layout)).await?;
        // Volumes, images and the store are of no use to anybody now, and can be large.
        for name in ["addresses", "containerd", "etcd", "images", "kubelet", "volumes"] {
            cache::remove(&self.layout.state.join(name))?;
        }
        Ok(())
    }

    /// What runs, and since when.
    pub async fn status(&self) -> LabStatus {
        status::of(&self.layout).await
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig("admin")
    }

    /// A kubeconfig for a user with no rights but those of roles bound to the user or the groups.
    pub fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let facts = Facts::read(&self.layout).with_context(|| format!("the lab {} is not up", self.layout.name))?;
        let authority = Authority::open(&self.layout)?;
        let signed = authority.client(user, groups)?;
        let file: String = user.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
        let path = self.layout.kubeconfig(&format!("user-{file}"));
        kubeconfig::write(&path, &self.layout, facts.link, &authority, user, &signed)?;
        Ok(path)
    }

    /// The directory that holds `kubectl`.
    pub fn bin_dir(&self) -> PathBuf {
        self.kubernetes.clone()
    }

    /// Where `helm` is, once the lab was up.
    pub fn helm(&self) -> PathBuf {
        self.helm.join("helm")
    }

    /// The directories of programs for people, for a PATH.
    pub fn path(&self) -> Vec<PathBuf> {
        vec![self.kubernetes.clone(), self.helm.clone()]
    }

    /// The API server's audit log: one JSON object per line and finished request.
    pub fn audit_log(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// Where everything of the lab is on the network.
    pub fn network_namespace(&self) -> PathBuf {
        self.layout.network_namespace()
    }

    /// The directory of the logs of all parts.
    pub fn log_dir(&self) -> PathBuf {
        self.layout.log()
    }

    /// Imports an image archive, such as those of [`image`]. Costs nothing when the lab has this
    /// very archive under this reference already.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        loading::load(&self.layout, archive)
            .await
            .with_context(|| format!("cannot load {} into the lab {}", archive.display(), self.layout.name))
    }

    /// What of this lab is on the machine: processes, mounts, namespaces, interfaces, control
    /// groups. Empty when it is down.
    pub fn leftovers(&self) -> Result<Vec<String>> {
        cleanup::leftovers(&self.layout)
    }

    /// Gets the slow things into the cache: Debian packages and Go programs.
    pub async fn build_artifacts(&self, progress: &Progress) -> Result<()> {
        artifacts::ensure(progress).await.map(drop)
    }

    async fn lock(&self, progress: &Progress) -> Result<cache::Lock> {
        let (progress, name) = (*progress, self.layout.name.clone());
        cache::lock(self.layout.lock(), move || {
            progress.note(&format!("somebody else works on the lab {name}: waiting"));
        })
        .await
    }
}

/// Helm, for any cluster; built first when the cache does not have it. Needs neither a lab nor root.
pub async fn helm(progress: &Progress) -> Result<PathBuf> {
    artifacts::ensure_helm(progress).await
}

fn require_root() -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the lab makes network namespaces and mounts, which only root may: run this as root (for example with sudo)"
    );
    Ok(())
}
