//! What the engine needs to reach the members of a kind of cluster.

use std::future::Future;
use std::pin::Pin;

use windlass_core::gate::Permit;
use windlass_core::kind::Kind;
use windlass_core::lane::Clustering;

/// What is known of an action when nobody waits for it any longer.
pub struct Acted<K: Kind> {
    /// What came of it, or that it still runs.
    pub fact: K::Fact,
    /// What comes of one that still runs, whenever that is.
    pub rest: Option<Pin<Box<dyn Future<Output = K::Fact> + Send>>>,
}

impl<K: Kind> Acted<K> {
    /// There is nothing more to come.
    pub fn all(fact: K::Fact) -> Self {
        Self { fact, rest: None }
    }
}

/// Reaches members of one kind.
pub trait Members<K: Kind>: Send + Sync + 'static {
    /// Asks a member. Never fails: what could not be found out is told as unknown.
    fn probe(&self, probe: K::Probe) -> impl Future<Output = K::Fact> + Send;

    /// Does something to a member, which needs the permit of the gate.
    fn act(&self, permit: &Permit<Clustering>, action: K::Action) -> impl Future<Output = Acted<K>> + Send;
}
