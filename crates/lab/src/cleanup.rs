//! Finding and removing everything a lab put on the machine outside its own directories.
//!
//! It does not trust what the lab remembers: a lab whose processes were killed, or whose machine
//! was rebooted, is found by what is there. It touches nothing of another lab.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::mount::{UnmountFlags, unmount};
use tokio::time::Instant;

use crate::layout::Layout;
use crate::process::{self, Identity};
use crate::{cache, cgroup, mounts, network};

/// How long killed processes may take to be gone; a large address space is not freed at once.
const LIMIT: Duration = Duration::from_secs(30);
/// Where network plugins keep what they did; the path is fixed in them.
const PLUGIN_RESULTS: &str = "/var/lib/cni/results";
const POLL: Duration = Duration::from_millis(50);

/// What of the lab is on the machine: empty after a clean `down`.
pub(crate) fn leftovers(layout: &Layout) -> Result<Vec<String>> {
    let mut found: Vec<String> = processes(layout)
        .iter()
        .map(|identity| format!("process {} ({})", identity.pid, process::arguments(identity.pid).join(" ")))
        .collect();
    found.extend(mounted(layout)?.iter().map(|path| format!("mount {}", path.display())));
    found.extend(
        namespaces(layout).iter().filter(|path| path.exists()).map(|path| format!("network namespace {}", path.display())),
    );
    if network::interface_exists(&layout.interface()) {
        found.push(format!("interface {}", layout.interface()));
    }
    found.extend(cgroup::existing(layout)?.iter().map(|path| format!("control group {}", path.display())));
    found.extend(shim_sockets(layout).iter().map(|path| format!("socket {}", path.display())));
    Ok(found)
}

/// Removes all that [`leftovers`] finds, and the small files other programs keep about it.
pub(crate) async fn clear(layout: &Layout) -> Result<()> {
    kill_all(layout).await?;
    // Their paths are known only from the state below, so they go before it.
    for socket in shim_sockets(layout) {
        cache::remove(&socket)?;
    }
    for path in mounted(layout)? {
        unmount(&path, UnmountFlags::DETACH).with_context(|| format!("cannot unmount {}", path.display()))?;
    }
    network::remove(layout).await?;
    remove_traces(layout)?;
    cache::remove(&layout.run)?;
    cache::remove(&layout.records())?;
    cache::remove(&layout.facts())?;

    // The kernel takes namespaces and groups apart in the background.
    let deadline = Instant::now() + LIMIT;
    loop {
        cgroup::remove(layout)?;
        let left = leftovers(layout)?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("these parts of the lab {} could not be removed:\n{}", layout.name, left.join("\n"));
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn kill_all(layout: &Layout) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        // Looked for anew each time: a shim may have started a process while it was being killed.
        let found = processes(layout);
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let pids: Vec<String> = found.iter().map(|identity| identity.pid.to_string()).collect();
            bail!("processes of the lab {} do not end after SIGKILL: {}", layout.name, pids.join(" "));
        }
        found.iter().for_each(Identity::kill);
        tokio::time::sleep(POLL).await;
    }
}

/// The lab's processes: recorded ones, those in its namespaces, those in its control group, and
/// container shims that serve its containerd.
fn processes(layout: &Layout) -> Vec<Identity> {
    let recorded: HashSet<i32> = process::records(layout)
        .into_iter()
        .filter(|record| record.identity.alive())
        .map(|record| record.identity.pid)
        .collect();
    let namespaces: HashSet<(u64, u64)> = namespaces(layout).iter().filter_map(|path| inode(path)).collect();
    process::all()
        .into_iter()
        .filter(|pid| {
            recorded.contains(pid)
                || inode(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|inode| namespaces.contains(&inode))
                || cgroup::holds(layout, *pid)
                || runs_for(layout, *pid)
        })
        .filter_map(Identity::of)
        .collect()
}

/// Whether a process is a program of the lab that was started for this lab. This finds those whose
/// record and namespace are gone; kubectl is somebody's tool, not a part.
fn runs_for(layout: &Layout, pid: i32) -> bool {
    let Some(executable) = process::executable(pid) else {
        return false;
    };
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tools = cache::root().is_ok_and(|root| executable.starts_with(root.join("tools")));
    let part = (tools && name != "kubectl") || name.starts_with("containerd") || executable.starts_with(&layout.state);
    part && process::arguments(pid).iter().any(|argument| mentions(argument, layout))
}

fn mentions(argument: &str, layout: &Layout) -> bool {
    let path = argument.rsplit_once('=').map_or(argument, |(_, value)| value);
    let path = path.strip_prefix("unix://").unwrap_or(path);
    Path::new(path).starts_with(&layout.state) || Path::new(path).starts_with(&layout.run)
}

/// The lab's own network namespace and those of its pods, which containerd keeps in its state.
fn namespaces(layout: &Layout) -> Vec<PathBuf> {
    let pods = layout.containerd_state().join("io.containerd.grpc.v1.cri/netns");
    std::iter::once(layout.network_namespace())
        .chain(std::fs::read_dir(pods).into_iter().flatten().flatten().map(|entry| entry.path()))
        .collect()
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The lab's mounts, the innermost first. One path may be mounted over more than once.
fn mounted(layout: &Layout) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = mounts::all()?
        .into_iter()
        .map(|mount| mount.path)
        .filter(|path| path.starts_with(&layout.state) || path.starts_with(&layout.run))
        .collect();
    paths.reverse();
    Ok(paths)
}

/// Sockets of container shims, which are outside containerd's own directories.
fn shim_sockets(layout: &Layout) -> Vec<PathBuf> {
    let tasks = layout.containerd_state().join("io.containerd.runtime.v2.task/k8s.io");
    std::fs::read_dir(tasks)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let address = std::fs::read_to_string(entry.path().join("address")).ok()?;
            Some(PathBuf::from(address.trim().strip_prefix("unix://")?))
        })
        .filter(|path| path.exists())
        .collect()
}

/// The results that network plugins keep, and the kubelet's links to the logs of containers.
fn remove_traces(layout: &Layout) -> Result<()> {
    let names: Vec<String> = std::fs::read_dir(PLUGIN_RESULTS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // The loopback interface's results are kept under a name that all labs share.
    let sandboxes: Vec<&str> = names.iter().filter_map(|name| sandbox(name, &layout.group())).collect();
    for name in names.iter().filter(|name| sandboxes.iter().any(|sandbox| name.contains(sandbox))) {
        cache::remove(&Path::new(PLUGIN_RESULTS).join(name))?;
    }
    for entry in std::fs::read_dir("/var/log/containers").into_iter().flatten().flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(&layout.state)) {
            cache::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// The sandbox of a result called `NETWORK-SANDBOX-INTERFACE`, when the network is this one.
fn sandbox<'a>(name: &'a str, network: &str) -> Option<&'a str> {
    let (sandbox, _) = name.strip_prefix(network)?.strip_prefix('-')?.split_once('-')?;
    (sandbox.len() == 64 && sandbox.chars().all(|letter| letter.is_ascii_hexdigit())).then_some(sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_the_labs_only_when_it_names_a_path_inside_it() {
        let layout = Layout::new("ltest").unwrap();
        let inside = layout.state.join("etc/kubelet.yaml");
        assert!(mentions(&format!("--config={}", inside.display()), &layout));
        assert!(mentions("unix:///run/windlass/ltest/containerd.sock", &layout));
        assert!(mentions("/run/windlass/ltest/containerd.sock", &layout));
        assert!(!mentions("/run/windlass/ltest2/containerd.sock", &layout));
        assert!(!mentions("ltest", &layout));
    }

    #[test]
    fn the_result_of_a_lab_with_a_longer_name_is_not_this_labs() {
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(sandbox(&format!("windlass-ltest-{id}-eth0"), "windlass-ltest"), Some(id.as_str()));
        assert_eq!(sandbox(&format!("windlass-ltest-one-{id}-eth0"), "windlass-ltest"), None);
    }
}
