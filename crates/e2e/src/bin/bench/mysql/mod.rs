//! MySQL servers that are none: they have the addresses of the fake kubelet's pods, speak MySQL's protocol, and obey the operator's own
//! statements, so that a cluster is brought up, kept and failed over by the operator as it is.
//!
//! What is fake is said where the figures are ([`FAKES`]): these servers hold no data, take no time, and know no password.

mod answers;
mod client;
mod cluster;
pub(crate) mod connections;
pub(crate) mod failover;
mod fleet;
pub(crate) mod resource;
mod server;
mod statement;
#[cfg(test)]
mod tests;
mod wire;

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

pub(crate) use fleet::{Fleet, Traffic};
use server::Serving;

/// What a reader of the figures has to know.
pub(crate) const FAKES: [&str; 4] = [
    "the API server, its controllers and the operator are real; kubelet and mysqld are fakes in the bench's own process",
    "a fake server answers at once, keeps transactions as numbers only, and lets everybody in after one round trip, unencrypted; its pod is \
     ready 0.5 s after it started, its claims are never bound, and no agent runs",
    "in each cluster clients write once a second, and replicas have it at once",
    "failover is the operator's part alone: what MySQL takes to recover, and the network to lead clients elsewhere, is not in it",
];

/// The administrative port of servers, which the operator knows.
const PORT: u16 = 33062;
/// The addresses of the pods. No network has addresses of this range, so none is hidden by leading it to this machine.
const RANGE: (u8, &str) = (240, "240.0.0.0/8");
/// The last one is kept for a server that belongs to no cluster.
const APART: Ipv4Addr = Ipv4Addr::new(240, 255, 255, 254);

/// The address of the n-th pod.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    let [_, second, third, fourth] = number.to_be_bytes();
    Ipv4Addr::new(RANGE.0, second, third, fourth)
}

/// The running servers. When this is dropped they end, and so does the way to them.
pub(crate) struct Fakes {
    pub(crate) fleet: Fleet,
    _serving: Serving,
    _way: Way,
}

impl Fakes {
    /// Starts to answer for clusters of this size.
    pub(crate) fn start(members: u16) -> Result<Self> {
        let fleet = Fleet::new(members);
        // Whoever has the port has the addresses as well.
        let serving = server::start(fleet.clone(), server::bind(PORT)?)?;
        Ok(Self { fleet, _serving: serving, _way: Way::open()? })
    }
}

/// The route by which this machine finds the addresses of the pods in itself. They are not in 127.0.0.0/8, which would need none:
/// Kubernetes refuses such addresses for the endpoints of Services, and would try again and again.
struct Way;

impl Way {
    fn open() -> Result<Self> {
        route("replace").context("pods of the bench need addresses that lead to this machine")?;
        Ok(Self)
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Err(error) = route("delete") {
            crate::say(format!("the route of the bench's pods stays: {error:#}"));
        }
    }
}

fn route(verb: &str) -> Result<()> {
    let words = ["route", verb, "local", RANGE.1, "dev", "lo", "table", "main"];
    let output = Command::new("ip").args(words).output().context("cannot run ip: install iproute2")?;
    ensure!(
        output.status.success(),
        "`ip {}` failed, which needs to be root: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
