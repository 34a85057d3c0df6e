//! The state that a cluster is in: one decision, the first rule that matches.
//!
//! Decides nothing but the name of the state. What is done about it, and whether it may be done, is decided elsewhere: `Failed` only
//! says that there is somebody to ask.

use std::collections::BTreeSet;

use windlass_api::mysql::conditions::State;
use windlass_core::ordinals::Ordinal;

use super::gtid::Uuid;
use super::instance::{Instance, Known};

/// A server elsewhere that a cluster follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// Its data is still to be copied.
    ToBeCloned,
    /// Its data was copied.
    Cloned,
}

/// Everything that the state depends on.
#[derive(Clone, Debug)]
pub struct Cluster<'a> {
    /// How many instances are asked for.
    pub size: usize,
    /// Whether all are to be stopped.
    pub offline: bool,
    /// The server elsewhere that it follows, if there is one.
    pub upstream: Option<Upstream>,
    /// Whether all data so far came from a server elsewhere: no instance ever took writes.
    pub is_copy: bool,
    /// Whether data is to be restored, and was not yet.
    pub restoring: bool,
    /// The recorded primary.
    pub primary: Ordinal,
    /// The server that got the office; another one in its place has lost its data.
    pub primary_server: Option<Uuid>,
    /// The host name by which replicas know the primary.
    pub primary_host: &'a str,
    /// The lowest server id; the instances have this and the following.
    pub first_server_id: u32,
    /// The instances, one for each number below the size. Those that are missing are unknown.
    pub instances: &'a [Instance],
    /// Replicas that were found errant when the primary could still be asked.
    pub remembered_errant: &'a BTreeSet<Ordinal>,
}

impl Cluster<'_> {
    fn instance(&self, ordinal: Ordinal) -> Option<&Instance> {
        self.instances.iter().find(|it| it.ordinal == ordinal)
    }

    /// What the primary said.
    pub fn primary(&self) -> Option<&Known> {
        self.instance(self.primary)?.known.as_ref()
    }

    fn replicas(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter().filter(|it| it.ordinal != self.primary)
    }

    /// Replicas with transactions that the primary never had. Without an answer of the primary, those that were found so before.
    pub fn errant(&self) -> BTreeSet<Ordinal> {
        let Some(primary) = self.primary().filter(|primary| !primary.executed.is_empty()) else {
            return self.remembered_errant.clone();
        };
        let is_errant = |known: &Known| if self.is_copy { self.made_its_own(known, primary) } else { known.is_errant(primary) };
        let errant = self.replicas().filter(|it| it.known.as_ref().is_some_and(is_errant));
        errant.map(|it| it.ordinal).collect()
    }

    /// Whether a replica in a cluster that takes no writes has transactions that an instance made. Others come from the server
    /// elsewhere: who has more of those than the primary had when it was asked is merely ahead.
    fn made_its_own(&self, known: &Known, primary: &Known) -> bool {
        let surplus = known.executed.without(&primary.has());
        let ours = self.replicas().filter_map(|it| it.known.as_ref()).map(|it| it.server);
        ours.into_iter().any(|server| !surplus.of_uuid(server).is_empty())
    }

    /// Replicas that follow the primary as they should.
    pub fn following(&self) -> Vec<Ordinal> {
        let errant = self.errant();
        let follows = |known: &Known| {
            let from = known.replication.as_ref().map(|replication| replication.source_host.as_str());
            known.super_read_only && from == Some(self.primary_host)
        };
        let good = self.replicas().filter(|it| it.ready && it.known.as_ref().is_some_and(follows));
        good.map(|it| it.ordinal).filter(|ordinal| !errant.contains(ordinal)).collect()
    }

    /// How many of the instances are registered at the primary.
    fn registered(&self, primary: &Known) -> usize {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let ours = self.first_server_id..self.first_server_id.saturating_add(size);
        primary.followers.iter().filter(|id| ours.contains(id)).collect::<BTreeSet<_>>().len()
    }

    /// Whether the primary takes writes, or follows its own source, as it should.
    fn is_in_office(&self, primary: &Known) -> bool {
        if self.upstream.is_some() { primary.super_read_only } else { !primary.read_only }
    }

    /// Whether another server is in the primary's place: then its data is gone.
    pub fn lost_its_data(&self, primary: &Known) -> bool {
        self.primary_server.is_some_and(|server| server != primary.server)
    }

    /// Whether data is still to be copied from elsewhere.
    pub fn is_cloning(&self) -> bool {
        self.upstream == Some(Upstream::ToBeCloned) && !self.primary().is_some_and(Known::is_copied)
    }

    /// Whether there is somebody to ask about what a lost primary had.
    fn can_be_asked(&self) -> bool {
        let errant = self.errant();
        let tells = |known: &Known| known.replication.is_some() && !known.executed.is_empty();
        let good = self.replicas().filter(|it| it.known.as_ref().is_some_and(tells) && !errant.contains(&it.ordinal));
        good.count() > self.size / 2
    }
}

/// The state of a cluster.
pub fn state(cluster: &Cluster<'_>) -> State {
    if cluster.offline {
        return State::Offline;
    }
    if cluster.is_cloning() {
        return State::Cloning;
    }
    if cluster.restoring {
        return State::Restoring;
    }
    let Some(primary) = cluster.primary().filter(|primary| !cluster.lost_its_data(primary)) else {
        return if cluster.can_be_asked() { State::Failed } else { State::Lost };
    };
    let (others, following) = (cluster.size.saturating_sub(1), cluster.following().len());
    let stands = cluster.is_in_office(primary) && cluster.instance(cluster.primary).is_some_and(|it| it.ready);
    if stands && following == others && cluster.registered(primary) == others {
        return State::Healthy;
    }
    // One instance alone is whole or not there; between the two is nothing.
    let enough = cluster.size / 2;
    if stands && others > 0 && following >= enough && following < others && cluster.registered(primary) >= enough {
        return State::Degraded;
    }
    State::Incomplete
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
