//! Whether a lost primary may be replaced, and by whom.

use std::collections::BTreeSet;

use windlass_core::ordinals::Ordinal;

use super::{Record, Transactions, Voter};

/// A member that receives nothing any more, and what it has: received and executed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T> {
    /// Who it is now.
    pub voter: Voter,
    /// What it has.
    pub has: T,
}

/// Who becomes the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion<T> {
    /// The member.
    pub ordinal: Ordinal,
    /// What it has, and so what the cluster has from then on. Whatever a former primary has beyond it was told to nobody.
    pub set: T,
}

/// Why nobody may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Commits are told to clients without any other member having them.
    NobodyAcknowledges,
    /// Those that are missing may be the ones that have a commit, or may still acknowledge one.
    TooFewHeard {
        /// Who is missing.
        missing: Vec<Ordinal>,
        /// How many of them may be missing.
        allowed: usize,
    },
    /// All data came from elsewhere, and too few instances can be heard to say what most of them have.
    NoMajority {
        /// How many were heard.
        heard: usize,
        /// Of how many.
        size: usize,
    },
    /// Two have what the other has not: no order of commits explains that.
    Diverged {
        /// One of them.
        one: Ordinal,
        /// The other one.
        other: Ordinal,
    },
    /// Even the one with most lacks what clients were told before.
    BelowFloor {
        /// The one with most.
        best: Ordinal,
    },
}

/// Judges, from what was recorded and what was read after nobody receives anything any more.
pub fn judge<T: Transactions>(record: &Record<T>, readings: &[Reading<T>]) -> Result<Promotion<T>, Refusal> {
    let council = record.covering();
    if council.count == 0 {
        return Err(Refusal::NobodyAcknowledges);
    }
    let heard: BTreeSet<Voter> = readings.iter().map(|reading| reading.voter.clone()).collect();
    if !council.outvotes_the_rest(&heard) {
        let missing: BTreeSet<Ordinal> = council.voters.difference(&heard).map(|voter| voter.ordinal).collect();
        return Err(Refusal::TooFewHeard { missing: missing.into_iter().collect(), allowed: council.count - 1 });
    }
    // Who was never recorded is no proof of anything; but what it has must not be lost sight of either.
    let most = most(readings)?;
    if record.floor.as_ref().is_some_and(|floor| !most.has.contains(floor)) {
        return Err(Refusal::BelowFloor { best: most.voter.ordinal });
    }
    Ok(Promotion { ordinal: most.voter.ordinal, set: most.has.clone() })
}

/// Judges a cluster of this size in which nobody acknowledges, because all that it has came from a server elsewhere. Whatever most of
/// its instances have is at one of those that were heard, if these are most of them, or all that there are. Who has nothing is not
/// among the readings: its volume was lost, and it tells nothing of what there was.
pub fn judge_copies<T: Transactions>(size: usize, all: bool, readings: &[Reading<T>]) -> Result<Promotion<T>, Refusal> {
    let heard = readings.iter().map(|reading| reading.voter.ordinal).collect::<BTreeSet<_>>().len();
    if heard == 0 || (heard <= size / 2 && !all) {
        return Err(Refusal::NoMajority { heard, size });
    }
    let most = most(readings)?;
    Ok(Promotion { ordinal: most.voter.ordinal, set: most.has.clone() })
}

/// The one that has all that the others have.
fn most<T: Transactions>(readings: &[Reading<T>]) -> Result<&Reading<T>, Refusal> {
    let Some(first) = readings.first() else {
        return Err(Refusal::TooFewHeard { missing: Vec::new(), allowed: 0 });
    };
    let most = readings.iter().fold(first, |most, reading| {
        let more = reading.has.contains(&most.has) && !most.has.contains(&reading.has);
        let same = reading.has == most.has && reading.voter.ordinal < most.voter.ordinal;
        if more || same { reading } else { most }
    });
    if let Some(other) = readings.iter().find(|reading| !most.has.contains(&reading.has)) {
        return Err(Refusal::Diverged { one: most.voter.ordinal, other: other.voter.ordinal });
    }
    Ok(most)
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |ordinals: &[Ordinal]| ordinals.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::NobodyAcknowledges => {
                write!(f, "no other member acknowledges commits, so only the primary can have the last ones")
            }
            Self::TooFewHeard { missing, allowed } => write!(
                f,
                "instances {} cannot be heard, and at most {allowed} may be missing: they may have commits that clients were told of",
                named(missing)
            ),
            Self::NoMajority { heard, size } => {
                write!(f, "{heard} of {size} instances can be heard and have data, and more than half of them have to")
            }
            Self::Diverged { one, other } => {
                write!(f, "instances {one} and {other} each have transactions that the other has not")
            }
            Self::BelowFloor { best } => write!(
                f,
                "instance {best} has most of those that can be heard, and lacks transactions that clients were told of before"
            ),
        }
    }
}
