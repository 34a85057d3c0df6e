//! What one connection to a server costs the operator: measured by itself, in a process that has nothing but connections, since in the
//! operator they cannot be told from the rest. They are made, used and kept by the operator's own client.

use std::net::Ipv4Addr;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use windlass_kinds::mysql::facts::News;

use super::{APART, Fleet, PORT, client};

/// How many connections are made.
const COUNT: u16 = 2000;
/// How many at once: as many as the operator makes.
const AT_ONCE: usize = 256;
/// The argument by which the bench starts itself for this.
pub(crate) const ARGUMENT: &str = "--only-connections-to";

/// What the process with nothing but connections said.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Connections {
    /// How many there were.
    pub(crate) count: u16,
    /// Its memory before the first one, in KiB.
    pub(crate) before_kib: f64,
    /// Its memory with all of them.
    pub(crate) with_all_kib: f64,
}

impl Connections {
    /// The memory of one.
    pub(crate) fn each_kib(&self) -> f64 {
        (self.with_all_kib - self.before_kib) / f64::from(self.count)
    }
}

/// Lets a process of its own make connections, and tells what they cost it.
pub(crate) async fn measure(fleet: &Fleet) -> Result<Connections> {
    let pod = "moco-apart-0";
    fleet.start("apart", pod, APART);
    let program = std::env::current_exe().context("the bench cannot find itself")?;
    let output = Command::new(program)
        .args([ARGUMENT, &APART.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .context("the bench cannot be started a second time")?;
    fleet.remove("apart", pod, APART);
    ensure!(output.status.success(), "the process that makes connections failed ({})", output.status);
    serde_json::from_slice(&output.stdout).context("the process that makes connections said something else")
}

/// The work of that process: it prints what it found.
pub(crate) async fn run(address: Ipv4Addr) -> Result<()> {
    let servers = client::servers(PORT);
    // The first one pays for what all others use.
    look(&servers, address, COUNT).await?;
    let before_kib = resident_kib()?;
    // What is kept after the second question has the buffers that a connection has in the operator.
    for _ in 0..2 {
        let looks = futures::stream::iter(0..COUNT).map(|number| look(&servers, address, number)).buffer_unordered(AT_ONCE);
        looks.collect::<Vec<_>>().await.into_iter().collect::<Result<()>>()?;
    }
    let found = Connections { count: COUNT, before_kib, with_all_kib: resident_kib()? };
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

async fn look(servers: &windlass_clients::mysql::Servers, address: Ipv4Addr, number: u16) -> Result<()> {
    let fact = servers.look(&client::place("moco-apart", number, address)).await;
    ensure!(matches!(fact.news, News::Seen(_)), "a server of the bench does not answer: {fact}");
    Ok(())
}

fn resident_kib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the kernel tells no memory")?;
    Ok(line.split_whitespace().next().context("the kernel tells no memory")?.parse()?)
}
