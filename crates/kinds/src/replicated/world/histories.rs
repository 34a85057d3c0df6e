//! Random histories, each from its own seed.

use std::sync::atomic::{AtomicU64, Ordering};

use windlass_dice::number;

use super::World;
use super::database::Server;

const HISTORIES: u64 = 10_000;
const FIRST_SEED: u64 = 0x0072_6f70_6573;
/// Passes within which a quiet world must come to rest.
const ENOUGH: u32 = 400;

/// Names the history when an assertion ends the test.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the history of seed {:#x}: repeat it alone with WINDLASS_SEED={:#x}", self.0, self.0);
        }
    }
}

impl World {
    fn trace(&self, passed: &super::operator::Passed) {
        if std::env::var_os("WINDLASS_SEED").is_some() {
            let steps: Vec<String> = passed.plan.steps.iter().map(ToString::to_string).collect();
            let waiting: Vec<&str> = passed.plan.waiting.iter().map(|it| it.message.as_str()).collect();
            eprintln!(
                "{} wants {:?} {:?}\n    steps {steps:?}\n    waiting {waiting:?}",
                self.now, self.resource.spec.replicas, self.database.nodes
            );
        }
    }

    fn troubled_times(&mut self) {
        for _ in 0..5 + self.dice.below(8) {
            if self.dice.chance(50) {
                self.trouble();
            }
            if self.dice.chance(80) {
                self.controllers();
            }
            let passed = self.pass();
            self.trace(&passed);
            self.advance(passed.look_again);
        }
    }

    /// Passes until nothing is left to do. False when every volume that held data is lost: then the operator only tells.
    fn come_to_rest(&mut self, replicas: u16) -> bool {
        let mut unchanged = 0;
        for _ in 0..ENOUGH {
            self.controllers();
            let passed = self.pass();
            self.trace(&passed);
            if self.is_at_rest(replicas) && passed.plan.is_empty() && self.hooks.is_empty() {
                return true;
            }
            if self.database.is_void() && passed.plan.waiting.iter().any(|it| it.message.contains("but the cluster held data"))
            {
                return false;
            }
            unchanged = if passed.plan.steps.is_empty() { unchanged + 1 } else { 0 };
            let quiet = self.hooks.is_empty() && self.running.is_empty();
            if unchanged > 5 && quiet && self.help(&passed.plan) {
                unchanged = 0;
            } else if self.resource.spec.replicas != Some(replicas) && passed.plan.is_empty() {
                // What needed help has been healed.
                self.ask_for(replicas);
            }
            if !passed.resumed {
                self.advance(passed.look_again);
            }
        }
        let plan = self.pass().plan;
        panic!("not at rest with {replicas} members after {ENOUGH} passes: {:?} {plan:?}", self.database);
    }

    fn is_at_rest(&self, replicas: u16) -> bool {
        self.resource.spec.replicas == Some(replicas)
            && self.set().is_some_and(|set| set.replicas == replicas)
            && self.children.pods.len() == usize::from(replicas)
            && (0..replicas)
                .all(|ordinal| self.database.server(ordinal) == Server::Primary && self.seen_primary(ordinal).is_some())
    }

    fn stay_at_rest(&mut self, times: u32) {
        for _ in 0..times {
            self.controllers();
            let passed = self.pass();
            self.trace(&passed);
            assert!(passed.plan.is_empty(), "a quiet cluster is not left alone: {:?}", passed.plan);
            self.advance(passed.look_again);
        }
    }
}

fn live(seed: u64) -> u64 {
    let _named = Named(seed);
    let mut world = World::new(seed);
    world.troubled_times();
    let replicas = world.dice.below(super::LARGEST);
    world.calm_down(replicas);
    if world.come_to_rest(replicas) {
        world.stay_at_rest(if world.thorough { 100 } else { 2 });
    }
    world.passes
}

#[test]
fn every_history_is_safe_and_ends_at_rest() {
    if let Some(seed) = number("WINDLASS_SEED") {
        live(seed);
        return;
    }
    let histories = number("WINDLASS_HISTORIES").unwrap_or(HISTORIES);
    let (next, passes) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let history = next.fetch_add(1, Ordering::Relaxed);
            if history >= histories {
                return;
            }
            passes.fetch_add(live(FIRST_SEED + history), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    println!("{histories} histories from seed {FIRST_SEED:#x}, {} passes", passes.into_inner());
}
