//! Runs the server, as the first process of its container, and decides how it ends when it is told to.
//!
//! A server that stops by itself tells clients of commits that nobody acknowledged (see [`crate::farewell`]), so it is not told to stop
//! before the agent has disconnected them. Where the agent cannot, the server is killed: what it has told of is on its disk, and it
//! tells nobody more. It never stops a server for a reason of its own, and never starts it twice.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::farewell;

/// How long the clients may take to be disconnected.
const FAREWELL: Duration = Duration::from_secs(10);
/// Between two attempts to reach the agent, and between two looks at whether the server still runs.
const AGAIN: Duration = Duration::from_millis(100);

/// What is run, and where the agent is met.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The server.
    pub program: OsString,
    /// What it is told.
    pub arguments: Vec<OsString>,
    /// A directory that the agent sees as well.
    pub directory: PathBuf,
}

impl Guard {
    /// Runs the server to its end, and returns how it ended.
    pub async fn run(&self) -> io::Result<ExitStatus> {
        let _held = hold(&self.directory);
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (mut hang_up, mut user) = (signal(SignalKind::hangup())?, signal(SignalKind::user_defined1())?);
        let mut server = Command::new(&self.program).args(&self.arguments).spawn()?;
        loop {
            tokio::select! {
                end = server.wait() => return end,
                // It opens its logs again, for one.
                _ = hang_up.recv() => send(&server, Signal::HUP),
                _ = user.recv() => send(&server, Signal::USR1),
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        tokio::select! {
            end = server.wait() => return end,
            parted = part(&self.directory) => match parted {
                Ok(()) => send(&server, Signal::TERM),
                Err(why) => {
                    tracing::warn!(%why, "the server is killed, not stopped: it would tell clients of commits that nobody acknowledged");
                    send(&server, Signal::KILL);
                }
            }
        }
        server.wait().await
    }
}

/// What a process ends with whose child ended so.
pub fn exit_code(end: ExitStatus) -> u8 {
    let code = end.code().or_else(|| end.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Returns when no server runs under a guard that shares this directory.
pub async fn until_no_server_runs(directory: &Path) {
    loop {
        match File::open(lock_in(directory)) {
            // No guard was ever there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Ok(file) if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() => return,
            _ => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Held for as long as the server runs. The agent stays for as long, since it is needed at its end.
fn hold(directory: &Path) -> Option<File> {
    let path = lock_in(directory);
    let held = File::create(&path).and_then(|file| Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| file)?));
    held.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "the agent cannot know that the server runs")).ok()
}

fn lock_in(directory: &Path) -> PathBuf {
    directory.join("windlass-mysqld.lock")
}

fn send(server: &Child, what: Signal) {
    // None after its end, which is seen elsewhere.
    if let Some(pid) = server.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
        && let Err(error) = kill_process(pid, what)
    {
        tracing::warn!(%error, ?what, "the server could not be sent a signal");
    }
}

/// Has the agent disconnect everybody. It is tried until there is no time left: the agent may be starting.
async fn part(directory: &Path) -> Result<(), String> {
    let mut last = "the agent did not answer".to_owned();
    let trying = async {
        loop {
            match ask(directory).await {
                Ok(said) if said == farewell::DONE => return,
                Ok(said) => last = said,
                Err(error) => last = format!("the agent cannot be reached: {error}"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    let in_time = tokio::time::timeout(FAREWELL, trying).await.is_ok();
    if in_time { Ok(()) } else { Err(format!("its clients were not disconnected within {} s: {last}", FAREWELL.as_secs())) }
}

async fn ask(directory: &Path) -> io::Result<String> {
    let mut agent = UnixStream::connect(farewell::socket_in(directory)).await?;
    let mut said = String::new();
    agent.read_to_string(&mut said).await?;
    Ok(said)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
