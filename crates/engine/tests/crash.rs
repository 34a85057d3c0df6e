//! The crash harness at work: every crash point, every fault at every call, every lost event, every stale view. See `harness`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]
#![allow(
    clippy::match_same_arms,
    clippy::needless_pass_by_value,
    clippy::similar_names,
    clippy::type_complexity,
    clippy::unchecked_time_subtraction,
    clippy::unused_self,
    reason = "tables of perturbations read better with one line for each"
)]

mod harness;

use std::time::Duration;

use harness::cases::Sort;
use harness::judge::Law;
use harness::kit::World;
use harness::mysql::Docks;
use harness::replicated::Harbour;
use harness::run::{Choice, Outcome, run, spoiled, unspoiled};
use harness::sabotage::Sabotage;
use harness::tidb::Quay;
use windlass_core::kind::Kind as _;
use windlass_kinds::mysql::MySql;
use windlass_kinds::replicated::Replicated;
use windlass_kinds::tidb::Tidb;

/// Of the perturbations of MySQL the short form takes one crash in so many, and one other in so many: they take minutes, not hours.
const MYSQL_CRASHES: usize = 13;
const MYSQL_OTHERS: usize = 113;
/// The same of TiDB.
const TIDB_CRASHES: usize = 97;
const TIDB_OTHERS: usize = 997;

/// Which sorts of perturbations a campaign is about; without a campaign, all.
fn sorts(campaign: &str) -> Vec<Sort> {
    match campaign {
        "crash" => vec![Sort::Crash],
        "stale" => vec![Sort::Stale],
        "faults" => vec![Sort::Fault, Sort::Event],
        _ => vec![Sort::Crash, Sort::Fault, Sort::Event, Sort::Stale],
    }
}

#[test]
fn every_perturbation_ends_as_if_nothing_had_happened() {
    let campaign = std::env::var("WINDLASS_CAMPAIGN").ok();
    let pairs = std::env::var("WINDLASS_PAIRS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let choice = |crashes: usize, others: usize| Choice {
        sorts: sorts(campaign.as_deref().unwrap_or_default()),
        crashes: if campaign.is_some() { 1 } else { crashes },
        others: if campaign.is_some() { 1 } else { others },
        pairs,
        long: campaign.is_some(),
    };
    let only = std::env::var("WINDLASS_KIND").ok();
    let is_asked_for = |kind: &str| only.as_deref().is_none_or(|only| only == kind);
    // The short form takes every crash point of one kind, and of everything else enough to find a law that is broken.
    let mut outcomes = Vec::new();
    if is_asked_for(Replicated::NAME) {
        outcomes.push(run::<Harbour>(&choice(1, 10)));
    }
    if is_asked_for(MySql::NAME) {
        outcomes.push(run::<Docks>(&choice(MYSQL_CRASHES, MYSQL_OTHERS)));
    }
    if is_asked_for(Tidb::NAME) {
        outcomes.push(run::<Quay>(&choice(TIDB_CRASHES, TIDB_OTHERS)));
    }
    assert!(!outcomes.is_empty(), "WINDLASS_KIND names no kind: {only:?}");
    for line in outcomes.iter().flat_map(|outcome| outcome.table.iter().chain(&outcome.failures)) {
        println!("{line}");
    }
    let figures = Outcome::figures(&outcomes);
    println!("{figures}, {pairs} pairs drawn for each scenario");
    assert!(outcomes.iter().all(|outcome| outcome.failed == 0), "{figures}");
}

fn laws_broken<W: World>(scenario: &str, sabotage: Option<Sabotage>, spoil: fn(&W)) -> Vec<Law> {
    spoiled::<W>(scenario, sabotage, spoil).into_iter().map(|breach| breach.law).collect()
}

#[test]
fn a_dropped_precondition_is_found() {
    assert!(laws_broken::<Harbour>("template", Some(Sabotage::Deletes), |_| ()).contains(&Law::DeletePrecondition));
    assert!(laws_broken::<Harbour>("create", Some(Sabotage::Patches), |_| ()).contains(&Law::WritePrecondition));
}

#[test]
fn a_skipped_intent_is_found() {
    for scenario in ["create", "scale-in", "template"] {
        assert!(laws_broken::<Harbour>(scenario, Some(Sabotage::Intents), |_| ()).contains(&Law::IntentFirst), "{scenario}");
    }
}

#[test]
fn an_act_upon_the_unknown_is_found_by_the_rows_that_it_loses() {
    assert!(laws_broken("all-crash", None, Harbour::believe_silence).contains(&Law::World));
}

#[test]
fn a_dropped_precondition_is_found_with_mysql() {
    assert!(laws_broken::<Docks>("mysql-template", Some(Sabotage::Deletes), |_| ()).contains(&Law::DeletePrecondition));
    assert!(laws_broken::<Docks>("mysql-create", Some(Sabotage::Patches), |_| ()).contains(&Law::WritePrecondition));
}

#[test]
fn a_server_that_is_opened_without_an_intent_is_found() {
    for scenario in ["mysql-create", "mysql-killed"] {
        assert!(laws_broken::<Docks>(scenario, Some(Sabotage::Intents), |_| ()).contains(&Law::IntentFirst), "{scenario}");
    }
}

#[test]
fn a_promotion_that_is_not_on_record_is_found() {
    assert_ne!(laws_broken::<Docks>("mysql-switch", Some(Sabotage::Primaries), |_| ()), []);
}

/// A quiet cluster is looked at every five seconds. Whoever waits for that after its primary ended was not woken by it.
#[test]
fn the_end_of_a_primary_is_heeded_at_once_however_quiet_its_cluster_was() {
    let closed = unspoiled::<Docks, _>("mysql-killed", Docks::longest_closed);
    assert!(closed > Duration::from_millis(600), "nobody saw the primary end");
    assert!(closed < Duration::from_secs(4), "no server took writes for {closed:?}");
}

#[test]
fn an_acknowledgement_that_proves_nothing_is_found_by_the_commits_that_it_loses() {
    assert!(laws_broken::<Docks>("mysql-power", None, Docks::acknowledge_too_soon).contains(&Law::World));
}

#[test]
fn a_dropped_precondition_is_found_with_tidb() {
    assert!(laws_broken::<Quay>("tidb-cancel", Some(Sabotage::Deletes), |_| ()).contains(&Law::DeletePrecondition));
    assert!(laws_broken::<Quay>("tidb-create", Some(Sabotage::Patches), |_| ()).contains(&Law::WritePrecondition));
}

#[test]
fn volumes_are_told_what_becomes_of_them_and_those_of_stores_that_left_go() {
    for scenario in ["tidb-policy", "tidb-reclaim"] {
        assert_eq!(laws_broken::<Quay>(scenario, None, |_| ()), [], "{scenario}");
    }
}

#[test]
fn a_store_that_is_sent_away_without_an_intent_is_found() {
    for scenario in ["tidb-in", "tidb-upgrade"] {
        assert!(laws_broken::<Quay>(scenario, Some(Sabotage::Intents), |_| ()).contains(&Law::IntentFirst), "{scenario}");
    }
}

#[test]
fn a_store_that_is_taken_for_gone_is_found_by_the_pod_that_goes_too_soon() {
    assert!(laws_broken("tidb-in", None, Quay::believe_silence).contains(&Law::World));
}
