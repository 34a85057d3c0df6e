//! The parts of the control plane and the node: one module each, which writes the part's
//! configuration and says how it is started. None of them waits or starts anything itself.

pub(crate) mod apiserver;
pub(crate) mod containerd;
pub(crate) mod coredns;
pub(crate) mod etcd;
pub(crate) mod kubelet;
pub(crate) mod managers;
pub(crate) mod provisioner;
pub(crate) mod proxy;

use std::path::Path;

use anyhow::{Context as _, Result};

/// `--name=value`, where the value is a path.
fn path_flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
