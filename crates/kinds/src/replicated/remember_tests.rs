use rstest::rstest;
use windlass_api::logbook::Intent;

use super::super::fixtures::*;
use super::*;

fn remembered(fixture: &Fixture) -> LogbookSpec {
    let mut logbook = fixture.memory.entries();
    remember(&fixture.observed(), &mut logbook);
    logbook
}

/// A cluster of three of which five held data.
fn shrunk() -> Fixture {
    Fixture::serving(3).logbook(|logbook| logbook.counts.restore = 5)
}

#[test]
fn the_count_falls_when_the_smaller_cluster_is_settled() {
    assert_eq!(remembered(&shrunk()).counts.restore, 3);
}

#[rstest]
#[case::a_member_is_stopped(|it: Fixture| it.role(1, STOPPED))]
#[case::a_member_is_silent(|it: Fixture| it.silent(1))]
#[case::a_removed_pod_is_still_there(|it: Fixture| { let mut it = it; it.add(pod(4)); it })]
#[case::the_controller_is_behind(|it: Fixture| { let mut it = it; it.set().object.meta.generation = Some(2); it })]
#[case::more_are_wanted(|it: Fixture| it.wants(4))]
#[case::fewer_are_wanted(|it: Fixture| it.wants(2))]
#[case::none_is_wanted(|it: Fixture| it.wants(0))]
#[case::the_set_is_gone(|it: Fixture| { let mut it = it; it.children.stateful_sets.clear(); it })]
fn until_then_the_count_stays(#[case] change: fn(Fixture) -> Fixture) {
    assert_eq!(remembered(&change(shrunk())).counts.restore, 5);
}

#[test]
fn a_stopped_cluster_remembers_how_many_hold_data() {
    let mut fixture = Fixture::new(0).logbook(|logbook| logbook.counts.restore = 3);
    fixture.store(0);
    assert_eq!(remembered(&fixture).counts.restore, 3);
}

#[rstest]
#[case::nothing_was_ever_there(Fixture::started(3), 0)]
#[case::all_are_empty(Fixture::stopped(3).holds(0, NO_DATA), 0)]
#[case::a_history_is_known(Fixture::started(3).logbook(|it| it.histories = vec![HISTORY.into()]), 3)]
#[case::the_history_is_told_now(Fixture::started(3).role(0, PRIMARY).holds(0, &position(HISTORY, 1)), 3)]
#[case::a_primary_has_data_whatever_it_tells(Fixture::started(3).role(0, PRIMARY), 3)]
#[case::there_was_data_without_a_history(Fixture::started(3).logbook(|it| it.counts.restore = 2), 3)]
fn the_count_rises_with_the_size_once_there_is_data(#[case] fixture: Fixture, #[case] restore: u16) {
    assert_eq!(remembered(&fixture).counts.restore, restore);
}

#[test]
fn the_largest_size_never_falls() {
    let fixture = Fixture::serving(3).logbook(|logbook| logbook.counts.largest = 7);
    assert_eq!(remembered(&fixture).counts.largest, 7);
    assert_eq!(remembered(&Fixture::started(4)).counts.largest, 4);
}

#[test]
fn a_history_is_taken_once_and_only_from_a_primary() {
    let fixture = Fixture::started(3).role(0, PRIMARY).role(1, PRIMARY).role(2, STOPPED);
    let fixture = fixture.holds(0, &position("a", 1)).holds(1, &position("a", 1)).holds(2, &position("b", 1));
    assert_eq!(remembered(&fixture).histories, ["a"]);
    // Another history than the known one is never made good by being seen.
    let known = fixture.logbook(|logbook| logbook.histories = vec!["known".into()]);
    assert_eq!(remembered(&known).histories, ["known"]);
    let stopped = Fixture::stopped(1).holds(0, &position("b", 1));
    assert!(remembered(&stopped).histories.is_empty());
}

#[rstest]
#[case::no_primary_yet(Fixture::stopped(2), 2)]
#[case::a_primary_shows_that_it_ended(Fixture::stopped(2).role(1, PRIMARY), 1)]
fn an_announced_seed_is_kept_until_a_primary_is_seen(#[case] fixture: Fixture, #[case] kept: usize) {
    let intent = |act: &str| Intent {
        act: act.into(),
        target: "rss-orders-0".into(),
        uid: "u".into(),
        announced: fixture.now,
        ..Intent::default()
    };
    let intents = vec![intent("Seed"), intent("Another")];
    let fixture = fixture.logbook(|logbook| logbook.intents = intents);
    assert_eq!(remembered(&fixture).intents.len(), kept);
}

#[test]
fn an_invalid_spec_changes_nothing() {
    let mut fixture = shrunk();
    fixture.resource.spec.primaries = Some(0);
    assert_eq!(remembered(&fixture), fixture.memory.entries());
}

#[rstest]
#[case::all_serve(Fixture::serving(3), true)]
#[case::one_is_silent(Fixture::serving(3).silent(0), false)]
#[case::none_is_wanted(Fixture::serving(3).wants(0), false)]
#[case::nothing_is_there(Fixture::new(3), false)]
fn memory_is_proven_by_all_members(#[case] fixture: Fixture, #[case] proven: bool) {
    assert_eq!(!super::proven(&fixture.observed()).is_empty(), proven);
}

/// A cluster of five that was stopped, of which three are asked for; the status is our own, but for this number.
fn below_restore_with(told: u16) -> Fixture {
    let mut fixture = Fixture::new(3).logbook(|logbook| {
        logbook.counts.restore = 5;
        logbook.counts.largest = 7;
    });
    fixture.store(0);
    let mut status = fixture.open_status();
    assert_eq!(status.restore_replicas, 5);
    status.restore_replicas = told;
    fixture.resource.status = Some(status);
    fixture
}

#[rstest]
#[case::smaller(3, 3)]
#[case::larger(7, 7)]
#[case::the_same(5, 5)]
#[case::none(0, 5)]
#[case::more_than_ever_were(8, 5)]
fn a_user_may_say_how_many_are_enough_while_that_blocks(#[case] told: u16, #[case] restore: u16) {
    let logbook = remembered(&below_restore_with(told));
    assert_eq!(logbook.counts.restore, restore);
    assert_eq!(logbook.overrides.len(), usize::from(restore != 5), "it is on record");
}

#[rstest]
#[case::the_rest_of_the_status_is_not_ours(|it: &mut Fixture| it.resource.status.as_mut().unwrap().reason = "junk".into())]
#[case::nothing_blocks(|it: &mut Fixture| it.resource.spec.replicas = Some(5))]
#[case::it_is_stopped(|it: &mut Fixture| it.resource.spec.replicas = Some(0))]
#[case::it_runs(|it: &mut Fixture| it.set().replicas = 5)]
fn at_any_other_time_it_is_not_obeyed(#[case] change: fn(&mut Fixture)) {
    let mut fixture = below_restore_with(3);
    change(&mut fixture);
    assert_eq!(remembered(&fixture).counts.restore, 5);
}
