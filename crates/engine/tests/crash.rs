//! The crash harness at work: every crash point, every fault at every call, every lost event, every stale view. See `harness`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod harness;

use harness::replicated::Harbour;
use harness::run::{Choice, run};

#[test]
fn every_perturbation_ends_as_if_nothing_had_happened() {
    let outcome = run::<Harbour>(&Choice { sorts: Vec::new(), pairs: 0, long: false });
    for line in outcome.table.iter().chain(&outcome.failures) {
        println!("{line}");
    }
    println!("{}", outcome.figures);
    assert_eq!(outcome.failed, 0, "{}", outcome.figures);
}
