use rstest::rstest;
use windlass_api::logbook::{Intent, Override};
use windlass_core::views::{ClaimView, Meta};

use super::super::facts::{Fact, Of};
use super::super::fixtures::*;
use super::super::hooks::{About, Deed, ExecEnd};
use super::*;

fn choice(fixture: &Fixture) -> Result<Choice, Undecided> {
    let (remembered, cluster) = (fixture.memory.entries(), fixture.validated());
    let volume = |member: &Member<'_>| Volume::of(&fixture.children, &cluster, &remembered, member);
    fixture.members(|members| choose(&cluster, members, &remembered, volume))
}

fn chosen(fixture: &Fixture) -> Result<u16, Undecided> {
    choice(fixture).map(|choice| match choice {
        Choice::Seed(ordinal) => ordinal.get(),
        other => panic!("{other:?}"),
    })
}

/// One of three runs without its peers; the others are stopped at these sequences.
fn stranded(survivor: u64, others: [u64; 2], promotes: bool) -> Fixture {
    let mut fixture = holding(&[Some(0), Some(others[0]), Some(others[1])]).role(0, STRANDED);
    fixture.resource.spec.pod.commands.promote = promotes.then(|| command("promote"));
    fixture.holds(0, &position(HISTORY, survivor))
}

#[rstest]
#[case::all_are_equal(9, [9, 9], true, Choice::Promote(Ordinal::new(0)))]
#[case::the_others_are_behind(9, [8, 3], true, Choice::Promote(Ordinal::new(0)))]
#[case::another_went_on(9, [10, 3], true, Choice::Stop(vec![Ordinal::new(0)]))]
#[case::no_hook(9, [8, 3], false, Choice::Stop(vec![Ordinal::new(0)]))]
fn a_survivor_is_promoted_when_the_others_are_proven_behind(
    #[case] survivor: u64,
    #[case] others: [u64; 2],
    #[case] promotes: bool,
    #[case] expected: Choice,
) {
    assert_eq!(choice(&stranded(survivor, others, promotes)), Ok(expected));
}

#[rstest]
#[case::another_is_silent(|it: Fixture| it.silent(1))]
#[case::another_is_not_asked(|it: Fixture| { let mut it = it; it.pod(2).process = Some("another".into()); it })]
#[case::it_says_no_position(|it: Fixture| it.holds(0, "?"))]
#[case::another_history(|it: Fixture| it.holds(2, &position("b", 1)))]
fn else_it_is_not(#[case] change: fn(Fixture) -> Fixture) {
    assert!(choice(&change(stranded(9, [8, 8], true))).is_err());
}

#[test]
fn two_survivors_are_stopped_to_be_weighed() {
    let fixture = stranded(9, [8, 8], true).role(1, STRANDED).holds(1, &position(HISTORY, 9));
    assert_eq!(choice(&fixture), Ok(Choice::Stop(vec![Ordinal::new(0), Ordinal::new(1)])));
}

/// Three stopped members on volumes, of which the last one lost its volume.
fn volume_lost(held: &str) -> Fixture {
    let mut fixture = holding(&[Some(3), Some(4), Some(5)]).holds(2, held);
    fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
    for (ordinal, uid) in [(0, "a"), (1, "b"), (2, "new")] {
        let meta = Meta { uid: uid.into(), ..Meta::default() };
        fixture.children.claims.insert(format!("data-{SET}-{ordinal}"), ClaimView { meta, ..ClaimView::default() });
    }
    fixture.logbook(|logbook| {
        logbook.volumes = [("rss-orders-0", "a"), ("rss-orders-1", "b"), ("rss-orders-2", "old")]
            .map(|(pod, uid)| (pod.to_owned(), uid.to_owned()))
            .into();
    })
}

fn given_up(fixture: Fixture, uid: &str, spent: bool) -> Fixture {
    let (entry, value, uid) = ("member-2".to_owned(), "lost".to_owned(), uid.to_owned());
    fixture.logbook(|logbook| logbook.overrides.push(Override { entry, value, uid, spent, ..Override::default() }))
}

#[rstest]
#[case::it_is_empty(NO_DATA.to_owned())]
#[case::it_holds_something_older(position(HISTORY, 2))]
fn a_lost_volume_blocks_until_the_user_gives_it_up(#[case] held: String) {
    let undecided = chosen(&volume_lost(&held)).unwrap_err();
    let way_out = "windlass.dev/override.member-2=lost@old";
    assert!(undecided.stalled && undecided.message.contains(way_out), "{}", undecided.message);
    assert!(chosen(&given_up(volume_lost(&held), "another", false)).is_err(), "bound to the volume");
    assert!(chosen(&given_up(volume_lost(&held), "old", true)).is_err(), "spent");
    assert_eq!(chosen(&given_up(volume_lost(&held), "old", false)), Ok(1));
}

#[test]
fn a_member_that_was_given_up_is_not_waited_for_but_heard_when_it_answers() {
    let silent = volume_lost(NO_DATA).silent(2);
    assert_eq!(chosen(&given_up(silent, "old", false)), Ok(1));
    let back = given_up(volume_lost(&position(HISTORY, 9)), "old", false);
    assert_eq!(chosen(&back), Ok(2));
}

/// Stopped members that hold this; `None` is a member without data.
fn holding(sequences: &[Option<u64>]) -> Fixture {
    let size = u16::try_from(sequences.len()).unwrap();
    sequences.iter().zip(0..).fold(Fixture::stopped(size), |fixture, (sequence, ordinal)| match sequence {
        Some(sequence) => fixture.holds(ordinal, &position(HISTORY, *sequence)),
        None => fixture.holds(ordinal, NO_DATA),
    })
}

#[rstest]
#[case::all_empty(&[None, None, None], 0)]
#[case::one_member(&[Some(4)], 0)]
#[case::the_highest_sequence(&[Some(3), Some(9), Some(5)], 1)]
#[case::a_tie_goes_to_the_lowest(&[Some(3), Some(9), Some(9)], 1)]
#[case::empty_beside_data_is_a_joiner(&[None, None, Some(0)], 2)]
#[case::sequence_zero_is_data(&[Some(0), None, None], 0)]
#[case::numbers_not_text(&[Some(9), Some(10), Some(8)], 1)]
fn the_seed_has_all_the_data_there_is(#[case] sequences: &[Option<u64>], #[case] expected: u16) {
    assert_eq!(chosen(&holding(sequences)), Ok(expected));
}

#[rstest]
#[case::tie(&[1; 12], 0)]
#[case::second_of_twelve(&[1, 1, 7, 1, 1, 1, 1, 1, 1, 1, 7, 7], 2)]
#[case::eleventh(&[1, 1, 6, 1, 1, 1, 1, 1, 1, 1, 7, 7], 10)]
fn ordinals_are_numbers_beyond_ten(#[case] sequences: &[u64], #[case] expected: u16) {
    let sequences: Vec<Option<u64>> = sequences.iter().copied().map(Some).collect();
    assert_eq!(chosen(&holding(&sequences)), Ok(expected));
}

#[test]
fn plain_numbers_are_compared_too() {
    let fixture = Fixture::stopped(3).holds(0, "7").holds(1, "12").holds(2, "9");
    assert_eq!(chosen(&fixture), Ok(1));
}

#[test]
fn whom_is_waited_for_is_said_by_name() {
    let undecided = chosen(&holding(&[Some(1), Some(2), Some(3)]).silent(1)).unwrap_err();
    assert!(!undecided.stalled, "an answer may still come");
    assert!(undecided.message.contains("member 1: unknown (connection refused)"), "{}", undecided.message);
    assert!(undecided.message.contains("member 2: stopped, at 6f2c:3"), "{}", undecided.message);
}

#[rstest]
#[case::never_asked(|it: Fixture| { let mut it = it; it.pod(1).process = Some("another".into()); it }, false)]
#[case::no_process(|it: Fixture| { let mut it = it; it.pod(1).process = None; it }, false)]
#[case::no_pod(|it: Fixture| { let mut it = it; it.children.pods.remove("rss-orders-1"); it }, false)]
#[case::another_pod(|it: Fixture| { let mut it = it; it.pod(1).meta.uid = "another".into(); it }, false)]
#[case::no_answer(|it: Fixture| it.silent(1), false)]
#[case::no_position(|it: Fixture| it.holds(1, "mysqld: cannot open the log"), false)]
#[case::it_starts(|it: Fixture| it.role(1, STARTING), false)]
#[case::it_runs(|it: Fixture| it.role(1, PRIMARY), false)]
#[case::it_failed(|it: Fixture| it.role(1, FAILED), true)]
#[case::it_was_started_meanwhile(|it: Fixture| it.learns(1, Of::Deed(Deed::Primary), exited(1, "")), false)]
fn one_member_that_is_not_known_to_be_stopped_blocks(#[case] change: fn(Fixture) -> Fixture, #[case] stalled: bool) {
    let undecided = chosen(&change(holding(&[Some(1), Some(2), Some(3)]))).unwrap_err();
    assert_eq!(undecided.stalled, stalled, "{}", undecided.message);
}

#[test]
fn a_member_that_ran_again_must_say_anew_what_it_holds() {
    let fixture = holding(&[Some(5), Some(5), Some(5)]).role(2, PRIMARY).role(2, STOPPED);
    assert!(chosen(&fixture).is_err());
    assert_eq!(chosen(&fixture.holds(2, &position(HISTORY, 8))), Ok(2));
}

#[test]
fn what_a_running_member_said_is_not_what_it_holds_after_a_crash() {
    // Asked for its history while it ran, it said 5; then it wrote on, and died inside its container.
    let crashed = Fixture::serving(1).holds(0, &position(HISTORY, 5)).role(0, STOPPED);
    assert!(chosen(&crashed).is_err());
}

#[test]
fn an_answer_to_a_question_from_before_a_change_counts_for_nothing() {
    let running = Fixture::serving(1);
    let asked = running.exec(0);
    let mut crashed = running.role(0, STOPPED);
    let late = Fact { exec: asked, of: Of::Question(About::Sequence), end: exited(0, &position(HISTORY, 5)) };
    crashed.facts.learn(late, crashed.now);
    assert!(chosen(&crashed).is_err());
}

#[rstest]
#[case::two_histories(&[("a", 9), ("b", 1)], &[], "different histories")]
#[case::the_remembered_one_does_not_decide(&[("a", 9), ("b", 1)], &["a"], "different histories")]
#[case::another_than_remembered(&[("b", 9), ("b", 1)], &["a"], "but the cluster had a")]
fn histories_are_never_weighed_against_each_other(
    #[case] data: &[(&str, u64)],
    #[case] remembered: &[&str],
    #[case] problem: &str,
) {
    let fixture = data
        .iter()
        .zip(0..)
        .fold(Fixture::stopped(2), |fixture, ((history, sequence), ordinal)| {
            fixture.holds(ordinal, &position(history, *sequence))
        })
        .logbook(|logbook| logbook.histories = remembered.iter().map(ToString::to_string).collect());
    let undecided = chosen(&fixture).unwrap_err();
    assert!(undecided.stalled && undecided.message.contains(problem), "{undecided:?}");
}

#[test]
fn a_plain_number_beside_a_history_is_another_history() {
    let fixture = Fixture::stopped(2).holds(0, "3").holds(1, &position(HISTORY, 3));
    assert!(chosen(&fixture).unwrap_err().message.contains("different histories"));
}

#[test]
fn a_remembered_history_is_known_again() {
    let fixture = holding(&[Some(3), Some(4)]).logbook(|logbook| logbook.histories = vec!["old".into(), HISTORY.into()]);
    assert_eq!(chosen(&fixture), Ok(1));
}

#[test]
fn all_empty_where_there_was_data_is_refused() {
    let fixture = holding(&[None, None]).logbook(|logbook| logbook.histories = vec![HISTORY.into()]);
    let undecided = chosen(&fixture).unwrap_err();
    assert!(undecided.stalled && undecided.message.contains("held data of history 6f2c"), "{undecided:?}");
}

#[test]
fn every_member_that_may_hold_data_must_be_there() {
    let fixture = holding(&[Some(3), Some(4), Some(4)]).logbook(|logbook| logbook.counts.restore = 5);
    let undecided = chosen(&fixture).unwrap_err();
    assert!(undecided.stalled, "{undecided:?}");
    assert!(undecided.message.contains("set spec.replicas to 5"), "{undecided:?}");
    // An operator that has asked nobody yet knows of no trouble.
    let fresh = Fixture::started(3).logbook(|logbook| logbook.counts.restore = 5);
    assert!(!chosen(&fresh).unwrap_err().stalled);
}

fn announced(ordinal: u16, uid: &str) -> Intent {
    let target = Ordinal::new(ordinal).pod_name(SET);
    Intent { act: "Seed".into(), target, uid: uid.into(), ..Intent::default() }
}

#[test]
fn an_announced_seed_in_another_live_pod_blocks() {
    let fixture = holding(&[Some(3), Some(4)]).logbook(|logbook| logbook.intents = vec![announced(0, "uid-rss-orders-0-a")]);
    assert_eq!(fixture.steps().iter().filter(|step| step.starts_with("seed")).count(), 0);
    let (stalled, message) = fixture.said("SeedUndecided").unwrap();
    assert!(stalled && message.contains("rss-orders-0") && message.contains("delete that pod"), "{message}");
}

#[rstest]
#[case::of_a_pod_that_is_gone(0, "uid-of-an-earlier-pod")]
#[case::of_the_same_pod(1, "uid-rss-orders-1-a")]
fn an_announced_seed_does_not_block(#[case] ordinal: u16, #[case] uid: &str) {
    let fixture = holding(&[Some(3), Some(4)]).logbook(|logbook| logbook.intents = vec![announced(ordinal, uid)]);
    assert!(fixture.steps().contains(&"seed the cluster from rss-orders-1".to_owned()), "{:?}", fixture.plan());
}

/// The seed's hook did not end in its time, and the member says that it is stopped.
fn lingering(holds: [u64; 2]) -> Fixture {
    let fixture = holding(&holds.map(Some)).logbook(|logbook| logbook.intents = vec![announced(1, "uid-rss-orders-1-a")]);
    let end = ExecEnd::StillRunning { after: std::time::Duration::from_secs(10) };
    fixture.learns(1, Of::Deed(Deed::Seed), end).role(1, STOPPED).holds(1, &position(HISTORY, holds[1])).later(3600)
}

#[rstest]
#[case::it_would_be_the_seed_again([3, 4])]
#[case::another_would_be([5, 4])]
fn a_seed_that_still_runs_is_waited_for(#[case] holds: [u64; 2]) {
    let fixture = lingering(holds);
    assert_eq!(fixture.moves(), Vec::<String>::new());
    let (stalled, message) = fixture.said("SeedUndecided").unwrap();
    assert!(stalled && message.contains("rss-orders-1") && message.contains("delete that pod"), "{message}");
}

#[test]
fn a_seed_that_failed_after_all_is_tried_again() {
    let fixture = lingering([3, 4]).learns(1, Of::Deed(Deed::Seed), exited(1, "")).role(1, STOPPED);
    let fixture = fixture.holds(1, &position(HISTORY, 4)).later(3600);
    assert_eq!(fixture.moves(), ["seed the cluster from rss-orders-1"]);
}

#[test]
fn a_running_hook_anywhere_blocks() {
    let fixture = holding(&[Some(3), Some(4)]).runs(0, Deed::Stop);
    assert_eq!(fixture.steps().iter().filter(|step| step.starts_with("seed")).count(), 0);
}
