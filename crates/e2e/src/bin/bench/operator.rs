//! The operator under test: a child process outside the cluster, so that the kernel tells what it costs. Its flags are the default ones,
//! but for what it looks after and where it is.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::cluster::IMAGE;
use crate::stage::Stage;

/// How long it may take until it is ready.
const STARTING: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(2);
/// Linux counts the time of processes in hundredths of a second on every common machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// The program that is measured.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Program {
    /// Where it is, below the repository.
    pub(crate) path: PathBuf,
    /// How it was built.
    pub(crate) build: &'static str,
    /// Whether a source file is newer than it.
    pub(crate) outdated: bool,
}

/// What the kernel says of a process.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    /// Its memory now, in MiB.
    pub(crate) resident_mib: f64,
    /// As much of it is the program itself, which the kernel can read again and takes away where memory is short.
    pub(crate) program_mib: f64,
    /// The most it ever was, in MiB.
    pub(crate) peak_mib: f64,
    /// The processor time it used so far.
    pub(crate) processor_seconds: f64,
}

/// The one that was given; else the static program of the image.
pub(crate) fn program(given: Option<&Path>) -> Result<Program> {
    let root = root();
    if let Some(path) = given {
        ensure!(path.is_file(), "{} is no program", path.display());
        return Ok(Program { path: path.canonicalize()?, build: "given program", outdated: false });
    }
    let target = format!("target/static/{}-unknown-linux-gnu/release/windlass", std::env::consts::ARCH);
    let path = PathBuf::from(target);
    let finished = std::fs::metadata(root.join(&path))
        .and_then(|it| it.modified())
        .with_context(|| format!("{} is not there: `cargo xtask bench` builds it", path.display()))?;
    let outdated = ["api", "core", "kinds", "clients", "engine", "operator"]
        .iter()
        .any(|name| changed_since(&root.join("crates").join(name).join("src"), finished));
    Ok(Program { path, build: "static release build", outdated })
}

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).unwrap_or(crates).to_owned()
}

fn changed_since(directory: &Path, moment: SystemTime) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => changed_since(&entry.path(), moment),
        Ok(found) => found.modified().is_ok_and(|modified| modified > moment),
        Err(_) => false,
    })
}

/// A running operator; it is killed when this is dropped.
pub(crate) struct Operator {
    child: Child,
    address: SocketAddr,
    started: Instant,
    log: PathBuf,
}

impl Operator {
    /// Starts it for the clusters of this run. Its log is kept until the next start.
    pub(crate) fn start(stage: &Stage, program: &Program) -> Result<Self> {
        let log = root().join("target/bench-operator.log");
        let output = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let address = free_address()?;
        let mut command = Command::new(root().join(&program.path));
        command.args(["controller", "--listen", &address.to_string(), "--selector", &stage.selector()]);
        command.args(["--release-namespace", &stage.release, "--agent-image", IMAGE]);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WINDLASS_") {
                command.env_remove(name);
            }
        }
        command.env("KUBECONFIG", &stage.operator).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", program.path.display()))?;
        Ok(Self { child, address, started, log })
    }

    /// Waits until it says that it is ready; tells how long that took since its start.
    pub(crate) async fn ready(&mut self) -> Result<Duration> {
        loop {
            if is_ready(self.address).await {
                return Ok(self.started.elapsed());
            }
            self.check()?;
            ensure!(
                self.started.elapsed() < STARTING,
                "the operator is not ready after {} s: see {}",
                STARTING.as_secs(),
                self.log.display()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    /// Fails when it ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the operator ended ({status}): see {}", self.log.display()),
            None => Ok(()),
        }
    }

    pub(crate) fn usage(&mut self) -> Result<Usage> {
        self.check()?;
        let pid = self.child.id().context("the operator ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        parse(&status, &stat).context("what the kernel says of the operator cannot be understood")
    }

    /// Kills it as a crash would.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("the operator cannot be killed")
    }
}

fn free_address() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?)
}

async fn is_ready(address: SocketAddr) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        Some(text.starts_with("HTTP/1.1 200"))
    };
    tokio::time::timeout(Duration::from_secs(1), answer).await.ok().flatten().unwrap_or(false)
}

fn parse(status: &str, stat: &str) -> Option<Usage> {
    let mebibytes = |key: &str| -> Option<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    };
    // The name in brackets may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(Usage {
        resident_mib: mebibytes("VmRSS:")?,
        program_mib: mebibytes("RssFile:")?,
        peak_mib: mebibytes("VmHWM:")?,
        processor_seconds: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_read_from_the_kernels_text() {
        let status = "Name:\twindlass\nVmHWM:\t    4096 kB\nVmRSS:\t    2048 kB\nRssFile:\t    1024 kB\n";
        let stat = "7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 98765 1000 200";
        let Usage { resident_mib, program_mib, peak_mib, processor_seconds } = parse(status, stat).unwrap();
        assert_eq!((resident_mib, program_mib, peak_mib, processor_seconds), (2.0, 1.0, 4.0, 2.0));
    }
}
