//! From one council to another, one step at a time: recorded first, then set, then read back, then settled.
//!
//! New voters are enabled before more acknowledgements are asked for, and fewer are asked for before voters are disabled: no commit
//! ever waits for somebody who is not there yet, or not any more.

use std::collections::BTreeSet;

use super::{Council, Record, Voter};

/// What servers were read to be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who acknowledges.
    pub enabled: BTreeSet<Voter>,
    /// How many the primary waits for.
    pub count: usize,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Record that this council is on its way.
    Record(Council),
    /// Let these acknowledge.
    Enable(BTreeSet<Voter>),
    /// Let the primary wait for so many.
    Count(usize),
    /// Let these not acknowledge any more.
    Disable(BTreeSet<Voter>),
    /// Read what the primary has while no commit waits that began before; that is the floor, and this council alone is in force.
    Settle,
    /// Nothing.
    Nothing,
}

/// The next step towards a council whose voters have caught up.
pub fn next<T>(record: &Record<T>, seen: &Settings, wanted: &Council) -> Next {
    if record.councils.last() != Some(wanted) {
        return Next::Record(wanted.clone());
    }
    let missing: BTreeSet<Voter> = wanted.voters.difference(&seen.enabled).cloned().collect();
    if !missing.is_empty() {
        return Next::Enable(missing);
    }
    if seen.count != wanted.count {
        return Next::Count(wanted.count);
    }
    let surplus: BTreeSet<Voter> = seen.enabled.difference(&wanted.voters).cloned().collect();
    if !surplus.is_empty() {
        return Next::Disable(surplus);
    }
    if record.councils.len() > 1 || record.floor.is_none() { Next::Settle } else { Next::Nothing }
}
