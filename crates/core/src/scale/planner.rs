//! The planner itself: from a view and limits to what may be done now.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;

use super::view::{Drain, Limits, View};
use crate::ordinals::{Layout, Ordinal, Ordinals};

/// Which way a cluster is moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, strum::IntoStaticStr)]
pub enum Direction {
    /// All wanted members are there and no other.
    #[default]
    Settled,
    /// A wanted member is missing.
    Out,
    /// No wanted member is missing, and one is to leave.
    In,
}

/// What may be done now. Every list can be carried out on its own and again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scale {
    /// Which way the cluster is moving.
    pub direction: Direction,
    /// Missing ordinals whose leftovers are to be cleared away now.
    pub prepare: Ordinals,
    /// Members whose drain starts now.
    pub start: Ordinals,
    /// Members that drain and go on draining.
    pub keep: Ordinals,
    /// Members that drain but are wanted again: the drain is called off.
    pub cancel: Ordinals,
    /// Members that are wanted again but already drained: they are replaced in their place.
    pub replace: Ordinals,
    /// The replicas and delete slots to write now.
    pub write: Option<Layout>,
    /// What cannot go on yet, and why.
    pub held: BTreeMap<Ordinal, Hold>,
}

impl Scale {
    /// Whether there is nothing to do and nothing to wait for.
    pub fn is_empty(&self) -> bool {
        let Self { direction: _, prepare, start, keep, cancel, replace, write, held } = self;
        [prepare, start, keep, cancel, replace].iter().all(|ordinals| ordinals.is_empty()) && write.is_none() && held.is_empty()
    }

    /// What cannot go on yet, in words: each reason once, with all who wait for it.
    pub fn holds(&self) -> Vec<String> {
        let mut together: BTreeMap<String, Ordinals> = BTreeMap::new();
        for (ordinal, hold) in &self.held {
            together.entry(hold.to_string()).or_default().insert(*ordinal);
        }
        together.into_iter().map(|(hold, members)| format!("{}: {hold}", members.in_words())).collect()
    }
}

/// Why a member cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is to leave, but missing members come first.
    OutFirst,
    /// As many are under way as may be at once.
    NoPlace {
        /// How many may be.
        parallelism: NonZeroU16,
    },
    /// The kind lets no further member go.
    Guarded {
        /// The kind's rule.
        because: String,
    },
    /// It is ready, but this other one must be first.
    Behind(Ordinal),
    /// Its progress could not be observed.
    ProgressUnknown,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutFirst => f.write_str("waits until the missing members are added"),
            Self::NoPlace { parallelism } => {
                write!(f, "waits for a place, at most {parallelism} may be under way")
            }
            Self::Guarded { because } => write!(f, "may not leave now: {because}"),
            Self::Behind(ordinal) => write!(f, "is ready and waits for member {ordinal}"),
            Self::ProgressUnknown => f.write_str("could not be observed"),
        }
    }
}

/// Decides what may be done now. See the [module](super) for the rules.
pub fn plan(view: &View, limits: &Limits) -> Scale {
    let members = view.actual.members();
    let wanted = view.desired.members();
    let mut scale = Scale::default();
    sort_drains(view, &members, &wanted, &mut scale);

    let missing = wanted.without(&members);
    let leaving = members.without(&wanted);
    let target = if missing.is_empty() {
        let removed = scale_in(view, limits, &members, &leaving, &mut scale);
        members.without(&removed)
    } else {
        let staying = members.shared_with(&wanted);
        let added = scale_out(view, limits, &staying, &missing, &mut scale);
        hold_removals(view, &leaving, &mut scale);
        members.joined_with(&added)
    };

    // A layout that differs in slots which change nothing is only worth a write at the end.
    if target != members || target == wanted {
        let layout = Layout::of(&target, &view.desired.slots);
        scale.write = Some(layout).filter(|layout| *layout != view.actual);
    }
    scale.direction = if !missing.is_empty() {
        Direction::Out
    } else if !leaving.is_empty() {
        Direction::In
    } else {
        Direction::Settled
    };
    scale
}

/// What follows from a drain alone, whichever way the cluster moves.
fn sort_drains(view: &View, members: &Ordinals, wanted: &Ordinals, scale: &mut Scale) {
    for (&ordinal, drain) in &view.drains {
        match (drain, wanted.contains(ordinal)) {
            (Drain::Draining, true) => {
                scale.cancel.insert(ordinal);
            }
            (Drain::Draining, false) => {
                scale.keep.insert(ordinal);
            }
            (Drain::Finished, true) if members.contains(ordinal) => {
                scale.replace.insert(ordinal);
            }
            _ => {}
        }
    }
}

/// Prepares the lowest missing ordinals; gives those that may be added now.
fn scale_out(view: &View, limits: &Limits, staying: &Ordinals, missing: &Ordinals, scale: &mut Scale) -> Ordinals {
    let parallelism = limits.scale_out_parallelism;
    // Only members that stay hold a place: one that never joins and is to leave must not keep out
    // the member that comes in its stead, because it cannot leave before.
    let joining = view.joining.shared_with(staying).len();
    let mut room = usize::from(parallelism.get()).saturating_sub(joining);
    let mut hands = parallelism.get();
    let mut added = Ordinals::new();
    let mut unprepared = None;
    for ordinal in missing {
        if view.prepared.contains(ordinal) {
            match unprepared {
                Some(lower) => {
                    scale.held.insert(ordinal, Hold::Behind(lower));
                }
                None if room > 0 => {
                    room -= 1;
                    added.insert(ordinal);
                }
                None => {
                    scale.held.insert(ordinal, Hold::NoPlace { parallelism });
                }
            }
        } else {
            unprepared.get_or_insert(ordinal);
            if hands > 0 {
                hands -= 1;
                scale.prepare.insert(ordinal);
            } else {
                scale.held.insert(ordinal, Hold::NoPlace { parallelism });
            }
        }
    }
    added
}

/// Says of everybody who is to leave that the missing members come first.
fn hold_removals(view: &View, leaving: &Ordinals, scale: &mut Scale) {
    for ordinal in leaving {
        let hold = match view.drain(ordinal) {
            Drain::Draining => continue,
            Drain::Unknown => Hold::ProgressUnknown,
            Drain::NotStarted | Drain::Finished => Hold::OutFirst,
        };
        scale.held.insert(ordinal, hold);
    }
}

/// Starts drains from the highest ordinal down; gives the members that may be removed now.
fn scale_in(view: &View, limits: &Limits, members: &Ordinals, leaving: &Ordinals, scale: &mut Scale) -> Ordinals {
    let parallelism = limits.scale_in_parallelism;
    let mut places = parallelism.get().saturating_sub(view.places_taken(members));
    let mut more = limits.guard.more();
    let is_guarded = |ordinal| !limits.unguarded.contains(ordinal);
    let mut removed = Vec::new();
    let mut unfinished = None;
    for ordinal in leaving.iter().rev() {
        let hold = match (view.drain(ordinal), unfinished) {
            (Drain::Finished, None) => {
                removed.push(ordinal);
                continue;
            }
            (Drain::Finished, Some(higher)) => Some(Hold::Behind(higher)),
            (Drain::Draining, _) => None,
            (Drain::Unknown, _) => Some(Hold::ProgressUnknown),
            // The guard is named before the parallelism: it may need a person, a place does not.
            (Drain::NotStarted, _) if more == 0 && is_guarded(ordinal) => {
                Some(Hold::Guarded { because: limits.guard.because().to_owned() })
            }
            (Drain::NotStarted, _) if places == 0 => Some(Hold::NoPlace { parallelism }),
            (Drain::NotStarted, _) => {
                places -= 1;
                more -= u16::from(is_guarded(ordinal));
                scale.start.insert(ordinal);
                None
            }
        };
        // From here on down nobody may go before this one; of several, the highest is named.
        unfinished.get_or_insert(ordinal);
        if let Some(hold) = hold {
            scale.held.insert(ordinal, hold);
        }
    }
    removed.into()
}
