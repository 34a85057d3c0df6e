//! Who acknowledges commits, and what follows from it when the primary is lost.
//!
//! A commit is told to a client when enough members have received it. Which members, and how many of them, is recorded before it is
//! changed on any server: from the record alone it is decided whether the members that can be heard have every commit that a client
//! was told of. Settings of servers are read back and never believed; what is not recorded acknowledges nothing.
//!
//! Pure. It knows neither SQL nor Kubernetes, and it decides nothing from silence.

mod change;
mod failover;
#[cfg(test)]
mod model;

use std::collections::BTreeSet;

use windlass_core::ordinals::Ordinal;

use super::gtid::{GtidSet, Uuid};

pub use change::{Next, Settings, next};
pub use failover::{Promotion, Reading, Refusal, judge, judge_copies};

/// What a member has: a set of transactions, or in a model of it a number.
pub trait Transactions: Clone + PartialEq {
    /// Whether everything of the other is here.
    fn contains(&self, other: &Self) -> bool;
}

impl Transactions for GtidSet {
    fn contains(&self, other: &Self) -> bool {
        other.is_within(self)
    }
}

/// A member that acknowledges, as it was when it was recorded. Another server in its place, or the same one with another's data,
/// is another voter: what this one received is gone with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Voter {
    /// The member's number.
    pub ordinal: Ordinal,
    /// The UUID of its server.
    pub server: Uuid,
    /// How often its data was replaced by a clone.
    pub generation: u32,
}

/// Who may acknowledge a commit, and how many of them must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Council {
    /// Who may.
    pub voters: BTreeSet<Voter>,
    /// How many must.
    pub count: usize,
}

impl Council {
    /// Whether every commit that a client was told of is at one of these, and the rest cannot acknowledge another one.
    ///
    /// Both are the same question: those that are missing must be fewer than a commit needs.
    fn outvotes_the_rest(&self, heard: &BTreeSet<Voter>) -> bool {
        self.voters.difference(heard).count() < self.count
    }
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// The settled one, and then those that servers are on their way to.
    pub councils: Vec<Council>,
    /// Everything that was told to clients before the settled council was in force.
    pub floor: Option<T>,
}

impl<T> Record<T> {
    /// Puts a council on its way. One that was recorded before is the same one.
    pub fn add(&mut self, council: Council) {
        self.councils.retain(|known| *known != council);
        self.councils.push(council);
    }

    /// The council that covers all that may be in force: on the way from one to another, servers have any mixture of the two.
    fn covering(&self) -> Council {
        let voters = self.councils.iter().flat_map(|council| council.voters.iter().cloned()).collect();
        Council { voters, count: self.councils.iter().map(|council| council.count).min().unwrap_or(0) }
    }
}
