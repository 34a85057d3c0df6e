//! What the engine needs to reach the members of a kind of cluster.

use std::future::Future;

use windlass_core::gate::Permit;
use windlass_core::kind::Kind;
use windlass_core::lane::Clustering;

/// Reaches members of one kind.
pub trait Members<K: Kind>: Send + Sync + 'static {
    /// Asks a member. Never fails: what could not be found out is told as unknown.
    fn probe(&self, probe: K::Probe) -> impl Future<Output = K::Fact> + Send;

    /// Does something to a member, which needs the permit of the gate.
    fn act(&self, permit: &Permit<Clustering>, action: K::Action) -> impl Future<Output = K::Fact> + Send;
}
