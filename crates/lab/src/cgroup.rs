//! The control group that is the parent of every pod of a lab: what is in it belongs to the lab.
//!
//! Works on the first version (one tree per controller), on the second, and on both at once.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::layout::Layout;
use crate::mounts;

/// Controllers that a kubelet wants to find in the second version's tree.
const CONTROLLERS: [&str; 6] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];

/// Creates the lab's group in every tree.
pub(crate) fn create(layout: &Layout) -> Result<()> {
    for mount in mounts::all()?.iter().filter(|mount| mount.kind.starts_with("cgroup")) {
        if mount.kind == "cgroup2" {
            for controller in CONTROLLERS {
                // Refused for a controller that this machine does not have or gives to the first version.
                let _ = std::fs::write(mount.path.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        let group = mount.path.join(layout.group());
        std::fs::create_dir_all(&group).with_context(|| format!("cannot create the control group {}", group.display()))?;
        // In the first version an empty set of processors admits no process.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if mount.kind == "cgroup"
                && let Ok(value) = std::fs::read_to_string(mount.path.join(file))
            {
                std::fs::write(group.join(file), value.trim())
                    .with_context(|| format!("cannot set {file} of {}", group.display()))?;
            }
        }
    }
    Ok(())
}

/// The lab's groups that exist, one per tree.
pub(crate) fn existing(layout: &Layout) -> Result<Vec<PathBuf>> {
    Ok(mounts::all()?
        .into_iter()
        .filter(|mount| mount.kind.starts_with("cgroup"))
        .map(|mount| mount.path.join(layout.group()))
        .filter(|path| path.exists())
        .collect())
}

/// Removes the lab's groups. A group in use stays, and is tried again by the caller.
pub(crate) fn remove(layout: &Layout) -> Result<()> {
    for group in existing(layout)? {
        remove_tree(&group);
    }
    Ok(())
}

/// Whether a process is in one of the lab's groups.
pub(crate) fn holds(layout: &Layout, pid: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    mentions(&text, &layout.group())
}

fn mentions(text: &str, group: &str) -> bool {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| path.split('/').any(|part| part == group))
}

fn remove_tree(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_matched_by_its_whole_name() {
        let text = "4:memory:/windlass-lab/kubepods/pod1/abc\n1:name=systemd:/\n0::/\n";
        assert!(mentions(text, "windlass-lab"));
        assert!(!mentions(text, "windlass-la"));
        assert!(!mentions("4:memory:/windlass-lab2/x\n", "windlass-lab"));
    }
}
