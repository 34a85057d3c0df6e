//! A plan: what a pass wants to do, and what it wants to say about it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::conditions::Reason;
use crate::likeness::{Answered, already_so};
use crate::step::{Act, Action, Manifest, ObjectRef, Step};
use crate::views::Children;

/// What a pass wants to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<A> {
    /// In the order in which they are taken. A step that fails or waits stops no other one.
    pub steps: Vec<Step<A>>,
    /// Why there is nothing to do although the goal is not reached: what is awaited, from whom.
    pub waiting: Vec<Waiting>,
    /// What the database does because of earlier steps, and how far it is. It decides nothing.
    pub under_way: Vec<UnderWay>,
    /// Whether all objects are as they should be. That holds until the custom resource, a child, the logbook or the user's `ConfigMap`
    /// changes; only what depends on the time is looked at again after a while.
    pub settled: bool,
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self { steps: Vec::new(), waiting: Vec::new(), under_way: Vec::new(), settled: false }
    }
}

impl<A> Plan<A> {
    /// How many steps and waits there are so far: a part that adds none has nothing to do.
    pub fn len(&self) -> usize {
        self.steps.len() + self.waiting.len()
    }

    /// Whether there is nothing to do and nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_empty()
    }
}

impl<A: Action> Plan<A> {
    /// Adds a step for each object that is not as it should be.
    pub fn apply(&mut self, manifests: Vec<Manifest>, children: &Children, answered: &BTreeMap<ObjectRef, Answered>) {
        for mut manifest in manifests {
            let why = match children.applied(&manifest.object) {
                None => "it does not exist",
                Some(live) if already_so(&manifest, live, answered.get(&manifest.object)) => continue,
                Some(live) => {
                    manifest.over = Some(live.meta.as_judged());
                    "it differs from what the spec asks for"
                }
            };
            self.steps.push(Step::new(Act::Apply(Box::new(manifest)), why));
        }
    }
}

/// Something that goes on by itself and takes its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// What, in words that do not change while it goes on.
    pub what: String,
    /// When it began.
    pub since: Option<Timestamp>,
    /// How much of it is done.
    pub percent: Option<Percent>,
}

/// How much of something is done, in steps of five: finer ones would be told over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// What is done when so much of it all is left.
    pub fn of(left: u64, all: u64) -> Option<Self> {
        let steps = all.saturating_sub(left).saturating_mul(20).checked_div(all)?;
        u8::try_from(steps * 5).ok().map(Self)
    }

    /// 0 to 100.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// Something that a plan waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One word in camel case, for conditions.
    pub reason: Reason,
    /// A sentence that names the object and what is awaited from whom.
    pub message: String,
    /// Whether it goes on only with somebody's help.
    pub stalled: bool,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Percent;

    #[rstest]
    #[case(16, 16, Some(0))]
    #[case(15, 16, Some(5))]
    #[case(1, 16, Some(90))]
    #[case(0, 16, Some(100))]
    // More came meanwhile.
    #[case(20, 16, Some(0))]
    #[case(0, 0, None)]
    fn progress_goes_in_steps_of_five(#[case] left: u64, #[case] all: u64, #[case] percent: Option<u8>) {
        assert_eq!(Percent::of(left, all).map(Percent::get), percent);
    }
}
