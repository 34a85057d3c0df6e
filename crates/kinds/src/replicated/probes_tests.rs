use rstest::rstest;

use super::super::fixtures::*;
use super::super::hooks::Deed;
use super::*;

/// The questions that are due, as `status 0`.
fn asked(fixture: &Fixture) -> Vec<String> {
    due(&fixture.observed())
        .into_iter()
        .map(|question| {
            let about: &str = question.about.into();
            format!("{} {}", about.to_lowercase(), question.exec.ordinal)
        })
        .collect()
}

#[test]
fn the_first_question_is_due_at_once() {
    assert_eq!(asked(&Fixture::started(2)), ["status 0", "status 1"]);
}

#[test]
fn a_question_names_pod_process_container_and_time() {
    let questions = due(&Fixture::started(1).observed());
    let exec = &questions[0].exec;
    assert_eq!((exec.pod_uid.as_str(), exec.process.as_str()), ("uid-rss-orders-0-a", "containerd://0-a"));
    assert_eq!((exec.container.as_str(), exec.command.as_slice()), ("galera", ["/hooks/status".to_owned()].as_slice()));
    assert_eq!(exec.timeout, Duration::from_secs(10));
}

#[rstest]
#[case::settled_before_the_interval(Fixture::serving(2), 59, &[])]
#[case::settled_after_the_interval(Fixture::serving(2), 60, &["status 0", "status 1"])]
#[case::unsettled_before_two_seconds(Fixture::serving(2).role(1, STARTING), 1, &[])]
#[case::unsettled_after_two_seconds(Fixture::serving(2).role(1, STARTING), 2, &["status 0", "status 1"])]
#[case::another_size_is_unsettled(Fixture::serving(2).wants(1), 2, &["status 0", "status 1"])]
fn the_pace_follows_the_state(#[case] fixture: Fixture, #[case] seconds: i64, #[case] expected: &[&str]) {
    assert_eq!(asked(&fixture.later(seconds)), expected);
}

#[test]
fn a_shorter_interval_is_the_pace_of_the_unsettled_too() {
    let mut fixture = Fixture::serving(1).role(0, STARTING);
    fixture.resource.spec.reconcile_interval = Some("1s".into());
    assert_eq!(asked(&fixture.later(1)), ["status 0"]);
}

#[test]
fn a_pod_that_is_not_ready_any_more_is_asked_soon() {
    let mut fixture = Fixture::serving(2);
    fixture.pod(1).ready = false;
    assert_eq!(asked(&fixture.later(2)), ["status 1"]);
}

#[rstest]
#[case(1, 2)]
#[case(2, 4)]
#[case(3, 8)]
#[case(5, 32)]
#[case(6, 60)]
#[case(40, 60)]
fn who_does_not_answer_is_asked_less_and_less_often(#[case] misses: u32, #[case] seconds: i64) {
    let fixture = (0..misses).fold(Fixture::started(1), |fixture, _| fixture.silent(0));
    assert!(asked(&fixture.clone().later(seconds - 1)).is_empty());
    assert_eq!(asked(&fixture.later(seconds)), ["status 0"]);
}

#[test]
fn an_answer_ends_the_back_off() {
    let fixture = Fixture::started(1).silent(0).silent(0).silent(0).role(0, STOPPED).holds(0, NO_DATA);
    assert_eq!(asked(&fixture.later(2)), ["status 0"]);
}

#[rstest]
#[case::leaderless_and_stopped(Fixture::stopped(2), &["sequence 0", "sequence 1"])]
#[case::known_already(Fixture::stopped(2).holds(0, NO_DATA), &["sequence 1"])]
#[case::not_of_one_that_starts(Fixture::stopped(2).role(1, STARTING), &["sequence 0"])]
#[case::not_beside_a_primary(Fixture::serving(2).role(1, STOPPED), &[])]
#[case::history_known(Fixture::serving(2), &[])]
#[case::history_unknown(Fixture::serving(2).logbook(|it| it.histories.clear()), &["sequence 0", "sequence 1"])]
#[case::history_just_told(
    Fixture::serving(2).logbook(|it| it.histories.clear()).holds(0, &position(HISTORY, 3)),
    &["sequence 1"]
)]
fn the_sequence_is_asked_for_only_when_it_is_needed(#[case] fixture: Fixture, #[case] expected: &[&str]) {
    assert_eq!(asked(&fixture), expected);
}

/// Two of three died at once, and one of them was noticed first: what the others said before is no ground to start it.
#[test]
fn a_stopped_member_is_started_when_a_primary_has_answered_since() {
    let dead = Fixture::serving(3).later(1).role(1, STOPPED);
    assert_eq!(asked(&dead), ["status 0", "status 2"], "whoever was a primary is asked at once");
    assert!(dead.moves().is_empty(), "{:?}", dead.moves());
    assert!(dead.clone().role(0, STRANDED).role(2, STOPPED).moves().is_empty());
    let alive = dead.role(0, PRIMARY);
    assert_eq!(asked(&alive), ["status 2"]);
    assert_eq!(alive.moves(), ["start as primary rss-orders-1"]);
}

#[test]
fn an_unreadable_sequence_is_asked_for_again_later() {
    let fixture = Fixture::stopped(1).holds(0, "no idea");
    assert!(asked(&fixture).is_empty());
    assert_eq!(asked(&fixture.later(2)), ["status 0", "sequence 0"]);
}

#[rstest]
#[case::a_hook_runs(|it: Fixture| it.runs(0, Deed::Stop))]
#[case::its_pod_ends(|it: Fixture| { let mut it = it; it.pod(0).meta.deleting = true; it })]
#[case::it_has_no_process(|it: Fixture| { let mut it = it; it.pod(0).process = None; it })]
#[case::it_has_no_pod(|it: Fixture| { let mut it = it; it.children.pods.clear(); it })]
#[case::its_hook_is_missing(|it: Fixture| { let mut it = it; it.resource.spec.pod.commands.status.command.clear(); it })]
fn nothing_is_asked_of_a_member_that_cannot_tell(#[case] change: fn(Fixture) -> Fixture) {
    assert!(asked(&change(Fixture::started(1))).is_empty());
}

#[test]
fn a_refused_spec_keeps_nobody_from_being_asked() {
    let mut fixture = Fixture::started(2);
    fixture.resource.spec.primaries = Some(9);
    assert_eq!(asked(&fixture), ["status 0", "status 1"]);
}

#[rstest]
#[case::all_answered(Fixture::serving(2), false)]
#[case::no_answer_is_an_answer(Fixture::serving(2).silent(1), false)]
#[case::one_was_not_asked(Fixture::started(2).role(0, PRIMARY), true)]
#[case::nobody_can_be_asked(Fixture::new(2), false)]
fn who_was_never_asked_leaves_us_blind(#[case] fixture: Fixture, #[case] blind: bool) {
    assert_eq!(is_blind(&fixture.observed()), blind);
}

#[test]
fn a_new_process_is_asked_at_once() {
    let mut fixture = Fixture::serving(2);
    fixture.pod(1).process = Some("containerd://1-b".into());
    assert_eq!(asked(&fixture), ["status 1"]);
}

#[rstest]
#[case::quiet(Fixture::serving(2), 60_000)]
#[case::quiet_for_a_while(Fixture::serving(2).later(45), 15_000)]
#[case::unsettled(Fixture::serving(2).role(1, STARTING), 2_000)]
#[case::silent(Fixture::serving(1).silent(0).silent(0), 4_000)]
#[case::nothing_to_ask(Fixture::new(2), 60_000)]
#[case::what_is_due_now_is_under_way(Fixture::started(2).role(0, STOPPED).holds(0, NO_DATA), 2_000)]
fn when_to_look_again(#[case] fixture: Fixture, #[case] milliseconds: u64) {
    assert_eq!(look_again(&fixture.observed()), Duration::from_millis(milliseconds));
}

#[test]
fn a_failed_hook_is_looked_at_again_when_it_may_be_tried() {
    let failed = super::super::facts::Of::Deed(Deed::Primary);
    let fixture = Fixture::serving(2).learns(1, failed, exited(1, "")).later(1).role(1, STOPPED);
    assert_eq!(look_again(&fixture.observed()), Duration::from_secs(1));
}

#[rstest]
#[case("1ms")]
#[case("1s")]
#[case("10s")]
#[case("1d")]
fn the_next_look_is_neither_at_once_nor_never(#[case] interval: &str) {
    for seconds in 0..130 {
        let mut fixture = Fixture::serving(3).role(1, STOPPED).silent(2).later(seconds);
        fixture.resource.spec.reconcile_interval = Some(interval.into());
        let wait = look_again(&fixture.observed());
        let longest = fixture.validated().interval.max(UNSETTLED);
        assert!(wait >= Duration::from_millis(50) && wait <= longest, "{wait:?} after {seconds} s");
    }
}
