//! Whole histories: a small world that carries plans out, in part, late and out of order.
//!
//! The world keeps its own account of what is true and checks every plan against it. Members
//! finish draining in any order, a drain that was called off takes a while to stop or turns out to
//! be finished, the user changes her mind in the middle, observations go missing, and an executor
//! dies between two steps. Then the changes stop, and the cluster must reach what is wanted, with an
//! empty plan, in a bounded number of passes.

use std::num::NonZeroU16;

use windlass_dice::Dice;

use super::*;
use crate::ordinals::{Layout, Ordinal, Ordinals};

/// How many histories a test runs; `WINDLASS_HISTORIES` says another number.
const HISTORIES: u64 = 100_000;
const FIRST_SEED: u64 = 0x0077_696e_646c_6173;

fn parallelism(dice: &mut Dice) -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(dice.below(4))
}

fn layout(dice: &mut Dice, slotted: bool, at_least: u16) -> Layout {
    let replicas = at_least + dice.below(8 - at_least);
    let mut slots = Ordinals::new();
    if slotted {
        for _ in 0..dice.below(4) {
            slots.insert(Ordinal::new(dice.below(10)));
        }
    }
    Layout::with_slots(replicas, slots)
}

struct World {
    dice: Dice,
    slotted: bool,
    /// Members that must never be drained away, whatever is wanted.
    floor: u16,
    limits: Limits,
    /// What is true. What is observed of it may have holes.
    truth: View,
    /// Draining members that were told to stop and have not stopped yet.
    called_off: Ordinals,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let slotted = dice.chance(50);
        let floor = dice.below(3);
        let actual = layout(&mut dice, slotted, 0);
        let desired = layout(&mut dice, slotted, floor);
        let mut truth = View::at_rest(actual, desired);
        truth.prepared = (0..20).filter(|_| dice.chance(70)).collect();
        let limits = Limits {
            scale_in_parallelism: parallelism(&mut dice),
            scale_out_parallelism: parallelism(&mut dice),
            guard: Guard::Open,
            unguarded: Ordinals::new(),
        };
        Self { dice, slotted, floor, limits, truth, called_off: Ordinals::new() }
    }

    fn count(&self, wanted: Drain) -> u16 {
        let count = self.truth.drains.values().filter(|drain| **drain == wanted);
        u16::try_from(count.count()).unwrap()
    }

    /// Changes what is true of a member, which must have been so before.
    fn turn(&mut self, ordinal: Ordinal, before: Drain, after: Drain) {
        let was = self.truth.drains.insert(ordinal, after);
        assert_eq!(was, Some(before), "member {ordinal} is to be {after:?}");
        self.called_off.remove(ordinal);
    }

    /// Carries a plan out; with `lossy`, any step may get lost.
    fn carry_out(&mut self, scale: &Scale, lossy: bool) {
        let lost = |dice: &mut Dice| lossy && dice.chance(20);
        for ordinal in &scale.start {
            if !lost(&mut self.dice) {
                self.turn(ordinal, Drain::NotStarted, Drain::Draining);
            }
        }
        for ordinal in &scale.cancel {
            if !lost(&mut self.dice) {
                self.turn(ordinal, Drain::Draining, Drain::Draining);
                self.called_off.insert(ordinal);
            }
        }
        for ordinal in &scale.replace {
            if !lost(&mut self.dice) {
                self.turn(ordinal, Drain::Finished, Drain::NotStarted);
            }
        }
        for ordinal in &scale.prepare {
            if !lost(&mut self.dice) && self.dice.chance(60) {
                self.truth.prepared.insert(ordinal);
            }
        }
        if let Some(layout) = &scale.write
            && !lost(&mut self.dice)
        {
            self.write(layout);
        }
    }

    /// Writes a layout the way a `StatefulSet` takes it, and checks what that does.
    fn write(&mut self, layout: &Layout) {
        let (before, after) = (self.truth.actual.members(), layout.members());
        let wanted = self.truth.desired.members();
        let (removed, added) = (before.without(&after), after.without(&before));
        for ordinal in &removed {
            let drain = self.truth.drains.remove(&ordinal);
            assert_eq!(drain, Some(Drain::Finished), "removal of {ordinal}");
            self.truth.prepared.remove(ordinal);
            self.truth.joining.remove(ordinal);
        }
        for ordinal in &added {
            let clear = self.truth.prepared.contains(ordinal);
            assert!(clear, "{ordinal} is added on what another left");
            self.truth.drains.insert(ordinal, Drain::NotStarted);
            self.truth.joining.insert(ordinal);
        }
        if let Some(lowest) = removed.lowest() {
            assert!(wanted.without(&before).is_empty(), "in before out");
            let passed = after.without(&wanted).highest();
            assert!(passed < Some(lowest), "{passed:?} is above a removed one");
        }
        if let (Some(highest), Some(passed)) = (added.highest(), wanted.without(&after).lowest()) {
            assert!(passed > highest, "{passed} is below an added one");
        }
        let most = usize::from(self.limits.scale_out_parallelism.get());
        let joining = self.truth.joining.shared_with(&wanted).len();
        assert!(added.is_empty() || joining <= most, "{joining} are joining");
        assert!(self.slotted || layout.slots.is_empty(), "slots in a plain set");
        self.truth.actual = layout.clone();
    }

    /// Time passes: drains finish or stop in any order, members join.
    fn live(&mut self) {
        let dice = &mut self.dice;
        let draining: Ordinals = self
            .truth
            .drains
            .iter()
            .filter(|(_, drain)| **drain == Drain::Draining)
            .map(|(ordinal, _)| *ordinal)
            .filter(|_| dice.chance(40))
            .collect();
        for ordinal in &draining {
            // A drain that was called off may have been over already.
            let stops = self.called_off.contains(ordinal) && self.dice.chance(80);
            let end = if stops { Drain::NotStarted } else { Drain::Finished };
            self.turn(ordinal, Drain::Draining, end);
        }
        if !self.truth.joining.is_empty() {
            let dice = &mut self.dice;
            let joining = self.truth.joining.iter().filter(|_| !dice.chance(50));
            self.truth.joining = joining.collect();
        }
    }

    /// One pass of an operator; tells whether it had nothing to do.
    fn pass(&mut self, undisturbed: bool) -> bool {
        self.limits.guard =
            Guard::AtMost { more: self.count(Drain::NotStarted).saturating_sub(self.floor), because: "the floor".to_owned() };
        let busy = self.count(Drain::Draining);
        let scale = if undisturbed {
            plan(&self.truth, &self.limits)
        } else {
            let mut seen = self.truth.clone();
            let dice = &mut self.dice;
            seen.drains.retain(|_, _| !dice.chance(10));
            plan(&seen, &self.limits)
        };
        self.carry_out(&scale, !undisturbed);
        let (draining, parallelism) = (self.count(Drain::Draining), self.limits.scale_in_parallelism.get());
        assert!(
            draining <= parallelism || draining <= busy && scale.start.is_empty(),
            "{draining} drain, {busy} before, at most {parallelism} may"
        );
        assert!(scale.start.is_empty() || self.count(Drain::NotStarted) >= self.floor, "below the floor");
        scale.is_empty()
    }

    /// Lives through a history; tells how many passes it took.
    fn run(&mut self) -> u64 {
        let mut passes = 0;
        for _ in 0..self.dice.below(3) {
            for _ in 0..self.dice.below(5) {
                self.pass(false);
                self.live();
                passes += 1;
            }
            self.truth.desired = layout(&mut self.dice, self.slotted, self.floor);
            if self.dice.chance(20) {
                self.limits.scale_in_parallelism = parallelism(&mut self.dice);
            }
        }
        // From here on nobody interferes.
        for _ in 0..400 {
            passes += 1;
            if self.pass(true) {
                let View { actual, desired, drains, .. } = &self.truth;
                assert_eq!(actual, desired, "the end is not what is wanted");
                assert!(drains.values().all(|drain| *drain == Drain::NotStarted), "a member was left half drained: {drains:?}");
                return passes;
            }
            self.live();
        }
        panic!("no end after 400 quiet passes: {:?}", self.truth);
    }
}

#[test]
fn every_history_ends_at_the_desired_members_with_an_empty_plan() {
    let histories = std::env::var("WINDLASS_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(HISTORIES);
    let workers = 2;
    let passes: u64 = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    (worker..histories)
                        .step_by(usize::try_from(workers).unwrap())
                        .map(|history| run_seed(FIRST_SEED + history))
                        .sum::<u64>()
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).sum()
    });
    println!("scale planner: {histories} random histories, {passes} passes, from seed {FIRST_SEED}");
    assert!(passes > histories);
}

fn run_seed(seed: u64) -> u64 {
    match std::panic::catch_unwind(|| World::new(seed).run()) {
        Ok(passes) => passes,
        Err(cause) => {
            eprintln!("scale planner: the history with seed {seed} failed");
            std::panic::resume_unwind(cause);
        }
    }
}
