//! A plan: what a pass wants to do, and what it wants to say about it.

use std::collections::BTreeMap;

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
    /// Whether all objects are as they should be. That holds until the custom resource, a child, the logbook or the user's `ConfigMap`
    /// changes; only what depends on the time is looked at again after a while.
    pub settled: bool,
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self { steps: Vec::new(), waiting: Vec::new(), settled: false }
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
