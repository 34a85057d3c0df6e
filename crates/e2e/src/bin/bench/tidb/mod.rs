//! Servers of TiDB clusters that are none: they have the addresses of the fake kubelet's pods and answer over HTTP what the operator asks
//! of PD, TiKV and TiDB, so that a cluster is brought up, kept and changed by the operator as it is.
//!
//! What is fake is said where the figures are ([`FAKES`]): these servers hold no data, take no time, and know no certificate.

mod answers;
mod cluster;
mod fleet;
pub(crate) mod resource;
mod server;
#[cfg(test)]
mod tests;

use anyhow::Result;
use windlass_api::tidb::Component;
use windlass_kinds::tidb::component::status_port;

pub(crate) use fleet::{Fleet, Traffic};

use crate::way::{Range, Serving, Way, bind};

/// What a reader of the figures has to know.
pub(crate) const FAKES: [&str; 4] = [
    "the API server, its controllers and the operator are real; scheduler, kubelet, PD, TiKV and TiDB are fakes in the bench's own process",
    "a fake server answers at once, unencrypted; PD's members and stores are numbers that obey; a pod is ready 0.5 s after it started, its \
     claims are never bound, and nobody answers in the pods of discovery",
    "the operator makes PD first, then TiKV, then TiDB, and waits 0.5 s and more for the pods of each; the bare writer makes all at once",
    "a black hole takes the operator's connections, reads what it asks, and never answers",
];

/// The addresses of the pods.
pub(crate) const RANGE: Range = Range(241);
/// The components whose servers answer.
const COMPONENTS: [Component; 3] = [Component::Pd, Component::Tikv, Component::Tidb];

/// The running servers. When this is dropped they end, and so does the way to them.
pub(crate) struct Fakes {
    pub(crate) fleet: Fleet,
    _serving: Serving,
    _way: Way,
}

impl Fakes {
    /// Starts to answer.
    pub(crate) fn start() -> Result<Self> {
        let fleet = Fleet::default();
        // Whoever has the ports has the addresses as well.
        let sockets = COMPONENTS.map(|component| bind(status_port(component))).into_iter().collect::<Result<Vec<_>>>()?;
        let serving = server::start(fleet.clone(), sockets)?;
        Ok(Self { fleet, _serving: serving, _way: Way::open(RANGE)? })
    }
}
