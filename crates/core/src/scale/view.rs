//! What the planner is told: facts and limits, nothing decided.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use crate::ordinals::{Layout, Ordinal, Ordinals};

/// How far the removal of a member is, as observed by the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Drain {
    /// Nothing has been done to it.
    NotStarted,
    /// It is giving up what it holds. Can still be called off.
    Draining,
    /// It is proven that its pod may go. Cannot be called off.
    Finished,
    /// It could not be observed, and it may be draining.
    Unknown,
}

/// The facts a plan rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// What the `StatefulSet` says now. A kind that runs on a plain `StatefulSet` leaves the slots
    /// empty, in `desired` too.
    pub actual: Layout,
    /// What the user wants.
    pub desired: Layout,
    /// The progress of removals. **A member of `actual` that is missing here is
    /// [`Drain::Unknown`].** A kind that knows from its own record that a member was never
    /// drained says `NotStarted`, even if the member does not answer.
    pub drains: BTreeMap<Ordinal, Drain>,
    /// Ordinals outside the `StatefulSet` whose pod may be created: nothing of an earlier member is
    /// left. What is missing here is not prepared.
    pub prepared: Ordinals,
    /// Members that exist but have not joined yet; they hold a place of the scale-out. Kinds that
    /// let any number join at once leave it empty.
    pub joining: Ordinals,
}

impl View {
    /// A view in which no member drains, nothing is prepared and nobody is joining.
    pub fn at_rest(actual: Layout, desired: Layout) -> Self {
        let drains = actual.members().iter().map(|ordinal| (ordinal, Drain::NotStarted)).collect();
        Self { actual, desired, drains, prepared: Ordinals::new(), joining: Ordinals::new() }
    }

    /// A view for members that hold nothing: whoever is to leave may leave at once, and whoever is
    /// to come may come.
    pub fn without_drain(actual: Layout, desired: Layout) -> Self {
        let wanted = desired.members();
        let mut view = Self::at_rest(actual, desired);
        for (ordinal, drain) in &mut view.drains {
            if !wanted.contains(*ordinal) {
                *drain = Drain::Finished;
            }
        }
        view.prepared = wanted;
        view
    }

    /// The progress of one member; what was not observed is unknown.
    pub fn drain(&self, ordinal: Ordinal) -> Drain {
        self.drains.get(&ordinal).copied().unwrap_or(Drain::Unknown)
    }

    /// How many places of the scale-in are taken: everybody who drains or may be draining,
    /// wanted or not, with or without a pod.
    pub(super) fn places_taken(&self, members: &Ordinals) -> u16 {
        let told = self.drains.values().filter(|drain| matches!(drain, Drain::Draining | Drain::Unknown)).count();
        let untold = members.iter().filter(|ordinal| !self.drains.contains_key(ordinal)).count();
        u16::try_from(told + untold).unwrap_or(u16::MAX)
    }
}

/// How many more members the kind lets go, beside those that already drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The kind sets no bound.
    Open,
    /// At most this many drains may be started now.
    AtMost {
        /// How many.
        more: u16,
        /// The rule behind it, for people: `3 of 4 stores must stay up`.
        because: String,
    },
}

impl Guard {
    /// The number of drains that may be started.
    pub(super) fn more(&self) -> u16 {
        match self {
            Self::Open => u16::MAX,
            Self::AtMost { more, .. } => *more,
        }
    }

    /// The rule in words.
    pub(super) fn because(&self) -> &str {
        match self {
            Self::Open => "",
            Self::AtMost { because, .. } => because,
        }
    }
}

/// How much may be under way at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Members that may drain at once.
    pub scale_in_parallelism: NonZeroU16,
    /// Members that may be prepared at once, and that may be joining at once.
    pub scale_out_parallelism: NonZeroU16,
    /// How many more members may go.
    pub guard: Guard,
    /// Members that the guard does not count: they give nothing, so that nothing is missing when they go.
    pub unguarded: Ordinals,
}

/// One at a time and no guard: what an absent scale policy means.
impl Default for Limits {
    fn default() -> Self {
        let one = NonZeroU16::MIN;
        Self { scale_in_parallelism: one, scale_out_parallelism: one, guard: Guard::Open, unguarded: Ordinals::new() }
    }
}
