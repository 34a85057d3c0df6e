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

use anyhow::Result;

pub(crate) use fleet::{Fleet, Traffic};

use crate::way::{Range, Serving, Way, bind};

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
/// The addresses of the pods.
pub(crate) const RANGE: Range = Range(240);
/// The last one is kept for a server that belongs to no cluster.
const APART: Ipv4Addr = RANGE.address(0x00ff_fffe);

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
        let serving = server::start(fleet.clone(), bind(PORT)?)?;
        Ok(Self { fleet, _serving: serving, _way: Way::open(RANGE)? })
    }
}
