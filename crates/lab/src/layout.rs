//! Every path of one lab, in one place.
//!
//! Two roots: the state directory in the cache (logs, keys, volumes, images) and a short run
//! directory for sockets, since a socket's path may have 107 bytes at most.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::cache;

/// The kubelet puts sockets up to this many bytes below its root.
const LONGEST_STATE_PATH: usize = 64;
/// Interface names have 15 bytes at most, and three go to the prefix.
const LONGEST_NAME: usize = 11;

/// The paths and derived names of one lab.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) state: PathBuf,
    pub(crate) run: PathBuf,
}

impl Layout {
    pub(crate) fn new(name: &str) -> Result<Self> {
        validate(name)?;
        let state = cache::root()?.join("labs").join(name);
        ensure!(
            state.as_os_str().len() <= LONGEST_STATE_PATH,
            "the path {} is too long for the sockets below it: set XDG_CACHE_HOME to a shorter directory",
            state.display()
        );
        Ok(Self { name: name.to_owned(), state, run: Path::new("/run/windlass").join(name) })
    }

    /// The network namespace, the host's interface: one name for both.
    pub(crate) fn interface(&self) -> String {
        format!("wl-{}", self.name)
    }

    pub(crate) fn network_namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(self.interface())
    }

    /// The name of the parent control group of every pod, and of the pod network.
    pub(crate) fn group(&self) -> String {
        format!("windlass-{}", self.name)
    }

    pub(crate) fn node(&self) -> &str {
        &self.name
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.state.with_extension("lock")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.state.join("log")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.log().join("audit.log")
    }

    pub(crate) fn pod_logs(&self) -> PathBuf {
        self.log().join("pods")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.state.join("processes")
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.state.join("pki")
    }

    pub(crate) fn key_file(&self, name: &str) -> PathBuf {
        self.keys().join(name)
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.state.join("etc")
    }

    pub(crate) fn configuration_file(&self, name: &str) -> PathBuf {
        self.configuration().join(name)
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.state.join(format!("{user}.kubeconfig"))
    }

    pub(crate) fn volumes(&self) -> PathBuf {
        self.state.join("volumes")
    }

    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.run.join("containerd.sock")
    }

    pub(crate) fn containerd_state(&self) -> PathBuf {
        self.run.join("containerd")
    }

    pub(crate) fn facts(&self) -> PathBuf {
        self.state.join("lab.json")
    }
}

fn validate(name: &str) -> Result<()> {
    let shaped = name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    ensure!(
        shaped && name.len() <= LONGEST_NAME,
        "`{name}` is no name for a lab: use 1 to {LONGEST_NAME} of a-z, 0-9 and '-', beginning with a letter \
         (it becomes part of an interface name)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_interface_names_the_kernel_accepts() {
        for name in ["windlass", "ltest", "a", "e2e-one", "abcdefghijk"] {
            validate(name).unwrap();
        }
        for name in ["", "Windlass", "1lab", "lab-", "a_b", "../etc", "abcdefghijkl"] {
            assert!(validate(name).is_err(), "{name}");
        }
    }
}
