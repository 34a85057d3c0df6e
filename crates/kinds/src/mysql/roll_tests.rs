use rstest::rstest;
use windlass_core::views::REVISION;

use super::super::deeds::{Deed, Task};
use super::super::facts::{End, News};
use super::super::fixture::{Fixture, pod_name};
use super::*;

/// A cluster of which these pods have an outdated template.
fn outdated(size: u16, numbers: &[u16]) -> Fixture {
    let mut fixture = Fixture::healthy(size);
    fixture.settle("r2");
    for number in 0..size {
        let revision = if numbers.contains(&number) { "r1" } else { "r2" };
        fixture.pod(number).meta.labels.insert(REVISION.into(), revision.into());
    }
    fixture
}

fn force(fixture: &mut Fixture) {
    fixture.annotate(keys::FORCE_ROLLING_UPDATE, "true");
    // The set gets the annotation as well.
    fixture.carry_out();
    fixture.settle("r2");
}

fn deletes(fixture: &Fixture) -> Vec<String> {
    fixture.steps().into_iter().filter(|step| step.starts_with("delete Pod ")).collect()
}

#[rstest]
#[case::the_highest_first(3, &[0, 1, 2], "delete Pod moco-harbour-2")]
#[case::then_the_next(3, &[0, 1], "delete Pod moco-harbour-1")]
#[case::the_primary_last(3, &[0], "delete Pod moco-harbour-0")]
#[case::by_number_not_by_name(11, &[0, 2, 10], "delete Pod moco-harbour-10")]
#[case::one_alone(1, &[0], "delete Pod moco-harbour-0")]
fn one_pod_at_a_time(#[case] size: u16, #[case] numbers: &[u16], #[case] expected: &str) {
    assert_eq!(deletes(&outdated(size, numbers)), [expected]);
}

#[test]
fn the_primary_is_last_whatever_its_number() {
    let mut fixture = outdated(3, &[0, 1, 2]);
    fixture.logbook.mysql.as_mut().unwrap().primary = 2;
    force(&mut fixture);
    assert_eq!(deletes(&fixture), ["delete Pod moco-harbour-1"]);
}

#[rstest]
fn a_primary_whose_replicas_are_far_behind_waits_forced_or_not(#[values(true, false)] forced: bool) {
    let mut fixture = outdated(3, &[0]);
    if forced {
        force(&mut fixture);
    }
    assert_eq!(deletes(&fixture).len(), 1);
    fixture.resource.spec.max_delay_seconds_for_pod_deletion = Some(10);
    let pod = fixture.pod(2).clone();
    let mut known = fixture.facts.of(&pod).unwrap().known.clone().unwrap();
    known.replication.as_mut().unwrap().behind = Some(11);
    fixture.hear(2, News::Seen(Box::new(known)));
    assert_eq!(deletes(&fixture), Vec::<String>::new());
    assert!(fixture.waits().iter().any(|it| it.contains("instance 2 is not far behind any more")), "{:?}", fixture.waits());
}

#[rstest]
#[case::a_pod_ends(|it: &mut Fixture| it.pod(2).meta.deleting = true, "no other one is on its way: moco-harbour-2 ends")]
#[case::a_pod_is_missing(|it: &mut Fixture| drop(it.children.pods.remove(&pod_name(2))), "no other one is on its way: moco-harbour-2 is made")]
#[case::a_new_pod_is_broken(|it: &mut Fixture| it.silence(2), "the cluster is healthy; it is Degraded (moco-harbour-2 not ready)")]
#[case::the_set_changes(|it: &mut Fixture| it.resource.spec.pod_template.spec.containers[0].rest.extend([("image".into(), "mysql:9.8".into())]), "the StatefulSet is as it should be")]
#[case::something_runs(|it: &mut Fixture| {
    let deed = Deed { place: it.place(2), task: Task::StopReceiving };
    it.running.push(deed);
}, "nothing else is in hand")]
#[case::something_failed_and_is_tried_again(|it: &mut Fixture| {
    let pod = it.pod(2).clone();
    let mut known = it.facts.of(&pod).unwrap().known.clone().unwrap();
    known.acknowledges = false;
    it.hear(2, News::Seen(Box::new(known.clone())));
    let task = it.plan().steps.into_iter().find_map(|step| if let Act::Member(deed) = step.act { Some(deed.task) } else { None });
    it.hear(2, News::Ended { task: task.unwrap(), end: End::Failed { why: "no".into() } });
    it.hear(2, News::Seen(Box::new(known)));
}, "nothing else is in hand")]
fn a_pod_that_works_waits_and_it_is_said_for_what(#[case] change: fn(&mut Fixture), #[case] expected: &str) {
    let mut fixture = outdated(3, &[0, 1]);
    change(&mut fixture);
    assert_eq!(deletes(&fixture), Vec::<String>::new());
    let expected = format!("RollingOut: moco-harbour-1 has an outdated template; it is replaced when {expected}");
    assert!(fixture.waits().contains(&expected), "{:#?}", fixture.waits());
}

#[test]
fn nothing_is_replaced_before_the_newest_template_was_seen() {
    let mut fixture = outdated(3, &[0, 1, 2]);
    fixture.set().observed_generation = Some(0);
    assert_eq!(deletes(&fixture), Vec::<String>::new());
    assert_eq!(fixture.waits().len(), 1, "{:?}", fixture.waits());
}

#[test]
fn what_is_offline_is_not_rolled() {
    let mut fixture = outdated(3, &[0, 1, 2]);
    fixture.resource.spec.offline = true;
    assert_eq!(deletes(&fixture), Vec::<String>::new());
}

#[rstest]
#[case::a_replica_is_dead(|it: &mut Fixture| it.silence(2), &["delete Pod moco-harbour-1"])]
#[case::one_after_the_other(|it: &mut Fixture| it.pod(2).meta.deleting = true, &[])]
#[case::not_before_it_is_made_again(|it: &mut Fixture| drop(it.children.pods.remove(&pod_name(2))), &[])]
#[case::no_server_starts_with_the_new_template(|it: &mut Fixture| {
    it.silence(2);
    it.pod(2).process = None;
}, &[])]
fn a_forced_roll_does_not_wait_for_health(#[case] change: fn(&mut Fixture), #[case] expected: &[&str]) {
    let mut fixture = outdated(3, &[0, 1]);
    force(&mut fixture);
    change(&mut fixture);
    assert_eq!(deletes(&fixture), expected, "{:?}", fixture.waits());
}

#[rstest]
#[case::only_the_word_true(keys::FORCE_ROLLING_UPDATE, "yes")]
#[case::only_this_key("windlass.dev/force-rolling-update", "true")]
fn force_is_asked_for_in_so_many_words(#[case] key: &str, #[case] value: &str) {
    let mut fixture = outdated(3, &[0, 1]);
    fixture.annotate(key, value);
    fixture.silence(2);
    assert_eq!(deletes(&fixture), Vec::<String>::new());
}

/// A broken template was rolled out to instance 2, and is taken back: the pods 0 and 1 never had it.
#[rstest]
#[case::it_never_answered(|it: &mut Fixture| it.silence(2))]
#[case::it_never_started(|it: &mut Fixture| { it.silence(2); it.pod(2).process = None; })]
#[case::only_its_sidecar_is_broken(|it: &mut Fixture| it.pod(2).ready = false)]
fn a_broken_template_does_not_stop_its_own_repair(#[case] breaks: fn(&mut Fixture)) {
    let mut fixture = outdated(3, &[2]);
    breaks(&mut fixture);
    assert_eq!(deletes(&fixture), ["delete Pod moco-harbour-2"], "{:?}", fixture.waits());
}

#[test]
fn broken_pods_come_first_and_one_at_a_time() {
    let mut fixture = outdated(5, &[0, 1, 2, 3, 4]);
    fixture.silence(1);
    fixture.silence(2);
    assert_eq!(deletes(&fixture), ["delete Pod moco-harbour-2"]);
    fixture.pod(2).meta.deleting = true;
    assert_eq!(deletes(&fixture), Vec::<String>::new());
}

#[test]
fn a_single_broken_instance_is_replaced() {
    let mut fixture = outdated(1, &[0]);
    fixture.silence(0);
    assert_eq!(deletes(&fixture), ["delete Pod moco-harbour-0"]);
}

#[rstest]
#[case::it_was_not_asked(|it: &mut Fixture| { it.pod(2).ready = false; it.pod(2).process = Some("another".into()); }, "its server was asked")]
#[case::it_may_be_the_only_one_that_acknowledges(|it: &mut Fixture| { it.pod(2).ready = false; it.silence(1); },
    "1 other instances follow the primary, for its server runs and may acknowledge; 0 do")]
fn a_pod_that_is_not_ready_may_still_be_needed(#[case] change: fn(&mut Fixture), #[case] expected: &str) {
    let mut fixture = outdated(3, &[2]);
    change(&mut fixture);
    assert_eq!(deletes(&fixture), Vec::<String>::new());
    let expected = format!("RollingOut: moco-harbour-2 has an outdated template; it is replaced when {expected}");
    assert!(fixture.waits().contains(&expected), "{:#?}", fixture.waits());
}
