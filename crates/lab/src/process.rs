//! Long-lived processes of a lab: started so that they outlive the caller, and found again by
//! process id together with start time, so that a reused id is never signalled.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::layout::Layout;

/// What to start.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) executable: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// A process that was started, as kept in the lab's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) identity: Identity,
    pub(crate) since: Timestamp,
}

/// One process, for as long as the machine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// Clock ticks between boot and the start of the process.
    pub(crate) started: u64,
    pub(crate) boot: String,
}

impl Identity {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let (state, started) = stat(pid)?;
        // A zombie holds nothing any more; it only waits for its parent to look.
        (state != 'Z' && state != 'X').then(|| Self { pid, started, boot: boot() })
    }

    pub(crate) fn alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Kills exactly this process; that it is gone already is fine.
    pub(crate) fn kill(&self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // The descriptor pins the process, and only then is its identity compared.
        if let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty())
            && self.alive()
        {
            let _ = pidfd_send_signal(descriptor, Signal::KILL);
        }
    }
}

/// Starts `program` in the lab's network namespace and in a session of its own, and records it.
pub(crate) fn start(layout: &Layout, program: &Program) -> Result<Record> {
    let log = layout.log().join(format!("{}.log", program.name));
    let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone().with_context(|| format!("cannot write {}", log.display()))?;
    // `setsid` and `nsenter` replace themselves, so the id of the child is that of the program.
    // Not `ip netns exec`: it mounts /sys anew and hides the control groups.
    let child = Command::new("setsid")
        .arg("nsenter")
        .arg(format!("--net={}", layout.network_namespace().display()))
        .arg("--")
        .arg(&program.executable)
        .args(&program.arguments)
        .current_dir(&layout.state)
        // A proxy of the caller's environment would be a way out of the machine.
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", &layout.state)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot start {}", program.name))?;
    let identity = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(Identity::of)
        .with_context(|| format!("{} ended at once: see {}", program.name, log.display()))?;
    let record = Record { name: program.name.to_owned(), identity, since: Timestamp::now() };
    let path = layout.records().join(format!("{}.json", program.name));
    std::fs::write(&path, serde_json::to_vec(&record)?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(record)
}

/// Every process the lab recorded, dead or alive, in the order of their start.
pub(crate) fn records(layout: &Layout) -> Vec<Record> {
    let mut records: Vec<Record> = std::fs::read_dir(layout.records())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok())
        .collect();
    records.sort_by_key(|record| record.since);
    records
}

/// The ids of all processes of the machine.
pub(crate) fn all() -> Vec<i32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The arguments of a process.
pub(crate) fn arguments(pid: i32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The file a process runs.
pub(crate) fn executable(pid: i32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // The kernel marks a file that was replaced since.
    let text = path.to_string_lossy();
    Some(text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), |text| Path::new(text).to_owned()))
}

fn stat(pid: i32) -> Option<(char, u64)> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State and start time; the command name before them may hold spaces and brackets.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some((fields.first()?.chars().next()?, fields.get(19)?.parse().ok()?))
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_read_behind_a_name_with_brackets() {
        let text = "42 (a ) b) S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200";
        assert_eq!(parse_stat(text), Some(('S', 98765)));
    }

    #[test]
    fn this_process_is_alive_and_one_with_another_start_time_is_not() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let mine = Identity::of(pid).unwrap();
        assert!(mine.alive());
        let reused = Identity { started: mine.started + 1, ..mine };
        assert!(!reused.alive());
    }

    #[tokio::test]
    async fn a_killed_process_is_gone_and_a_stranger_with_its_id_is_spared() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        let identity = Identity::of(pid).unwrap();
        Identity { started: identity.started + 1, ..identity.clone() }.kill();
        assert!(identity.alive());
        identity.kill();
        child.wait().await.unwrap();
        assert!(!identity.alive());
    }
}
