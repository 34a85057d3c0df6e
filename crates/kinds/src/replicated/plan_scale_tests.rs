use rstest::rstest;

use windlass_core::views::ClaimView;

use super::super::fixtures::*;
use super::super::hooks::Deed;

#[rstest]
#[case(3, 5, "scale StatefulSet rss-orders from 3 to 5")]
#[case(1, 99, "scale StatefulSet rss-orders from 1 to 99")]
fn out_goes_at_once(#[case] from: u16, #[case] to: u16, #[case] step: &str) {
    assert_eq!(Fixture::serving(from).wants(to).moves(), [step]);
}

#[test]
fn out_carries_what_was_judged() {
    let mut fixture = Fixture::serving(3).wants(5);
    fixture.set().object.meta.resource_version = "77".into();
    let plan = fixture.plan();
    let windlass_core::step::Act::SetReplicas { over, .. } = &plan.steps[0].act else { panic!("{plan:?}") };
    assert_eq!((over.uid.as_str(), over.resource_version.as_str()), ("uid-StatefulSet-rss-orders", "77"));
}

#[rstest]
#[case::one_of_three(3, 2, &["stop rss-orders-2"])]
#[case::a_quorum_stays(5, 1, &["stop rss-orders-3", "stop rss-orders-4"])]
#[case::of_two(2, 1, &["stop rss-orders-1"])]
#[case::to_nothing_one_at_a_time(5, 0, &["stop rss-orders-4"])]
#[case::the_last_one(1, 0, &["stop rss-orders-0"])]
fn in_stops_the_highest_first(#[case] from: u16, #[case] to: u16, #[case] expected: &[&str]) {
    assert_eq!(Fixture::serving(from).wants(to).moves(), expected);
}

/// A set of three that somebody made larger by hand; its members have volumes, or they have not.
fn too_large(replicas: u16, volumes: bool) -> Fixture {
    let mut fixture = Fixture::serving(3);
    fixture.set().replicas = replicas;
    if volumes {
        fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
        for ordinal in 0..4 {
            fixture.children.claims.insert(format!("data-rss-orders-{ordinal}"), ClaimView::default());
        }
    }
    fixture
}

#[test]
fn members_that_were_never_there_go_and_those_with_volumes_stay() {
    let fixture = too_large(60_000, true);
    let plan = fixture.plan();
    let to = plan.steps.iter().find_map(|step| match &step.act {
        windlass_core::step::Act::SetReplicas { to, .. } => Some(*to),
        _ => None,
    });
    assert_eq!(to, Some(4), "{:?}", plan.waiting);
    assert_eq!(fixture.said("Scaling"), Some((false, "member 3: could not be observed".into())));
}

#[test]
fn however_many_wait_for_the_same_it_is_said_once() {
    let fixture = too_large(60_000, false);
    assert_eq!(fixture.said("Scaling"), Some((false, "members 3 to 59999: could not be observed".into())));
    assert!(fixture.open_status().reason.len() < 1_000);
}

#[test]
fn a_leaving_member_loses_its_label_before_it_is_stopped() {
    let expected = ["label Pod rss-orders-2 rss-active-member=false", "stop rss-orders-2"];
    assert_eq!(Fixture::serving(3).wants(2).steps(), expected);
    // Also while its answer is awaited.
    let fixture = Fixture::serving(3).wants(2).runs(2, Deed::Stop);
    assert_eq!(fixture.steps(), ["label Pod rss-orders-2 rss-active-member=false"]);
}

#[test]
fn only_the_finished_prefix_is_written() {
    let fixture = Fixture::serving(5).wants(2).role(4, STOPPED).runs(3, Deed::Stop).role(2, STOPPED);
    assert_eq!(fixture.moves(), ["scale StatefulSet rss-orders from 5 to 4"]);
    let fixture = Fixture::serving(5).wants(2).runs(4, Deed::Stop).role(3, STOPPED).role(2, STOPPED);
    assert!(fixture.moves().is_empty(), "{:?}", fixture.plan());
}

#[rstest]
#[case::all_who_stay_are_stopped(|it: Fixture| it.role(0, STOPPED).role(1, STOPPED))]
#[case::all_who_stay_are_silent(|it: Fixture| it.silent(0).silent(1))]
#[case::all_who_stay_start(|it: Fixture| it.role(0, STARTING).role(1, STARTING))]
fn nobody_leaves_when_no_primary_would_stay(#[case] change: fn(Fixture) -> Fixture) {
    let fixture = change(Fixture::serving(4).wants(2));
    assert!(!fixture.steps().iter().any(|step| step.starts_with("stop") || step.starts_with("scale")), "{:?}", fixture.plan());
    assert!(fixture.said("Scaling").is_some(), "{:?}", fixture.plan());
}

#[test]
fn a_pod_that_never_ran_may_go() {
    let mut fixture = Fixture::serving(3).wants(2);
    let pod = fixture.pod(2);
    pod.phase = "Pending".into();
    pod.process = None;
    pod.ready = false;
    assert_eq!(fixture.moves(), ["scale StatefulSet rss-orders from 3 to 2"]);
}

#[rstest]
#[case::silent(|it: Fixture| it.silent(2))]
#[case::its_container_crashed(|it: Fixture| { let mut it = it; it.pod(2).process = None; it })]
#[case::not_asked(|it: Fixture| { let mut it = it; it.pod(2).process = Some("another".into()); it })]
#[case::no_pod(|it: Fixture| { let mut it = it; it.children.pods.remove("rss-orders-2"); it })]
#[case::another_hook_runs(|it: Fixture| it.runs(2, Deed::Primary))]
fn an_unknown_member_is_neither_stopped_nor_removed(#[case] change: fn(Fixture) -> Fixture) {
    let fixture = change(Fixture::serving(3).wants(1));
    let touched: Vec<String> =
        fixture.moves().into_iter().filter(|step| step.ends_with("-2") || step.starts_with("scale")).collect();
    assert!(touched.is_empty(), "{:?}", fixture.plan());
    assert!(
        fixture.waiting().iter().any(|(_, _, message)| message == "member 2: could not be observed"),
        "{:?}",
        fixture.plan()
    );
}

#[test]
fn a_failed_member_that_leaves_is_stopped_too() {
    assert_eq!(Fixture::serving(3).wants(2).role(2, FAILED).moves(), ["stop rss-orders-2"]);
}

#[test]
fn down_to_nothing_needs_no_primary() {
    let fixture = Fixture::stopped(3).wants(0);
    assert_eq!(fixture.moves(), ["scale StatefulSet rss-orders from 3 to 0"]);
}

#[rstest]
#[case::below(2, 3, None)]
#[case::as_many(3, 3, Some("scale StatefulSet rss-orders from 0 to 3"))]
#[case::more(4, 3, Some("scale StatefulSet rss-orders from 0 to 4"))]
fn from_nothing_all_that_hold_data_come_back(#[case] wanted: u16, #[case] restore: u16, #[case] step: Option<&str>) {
    let mut fixture = Fixture::new(wanted).logbook(|logbook| logbook.counts.restore = restore);
    fixture.store(0);
    assert_eq!(fixture.moves(), Vec::from_iter(step));
    let said = fixture.said("ReplicasBelowRestore");
    assert_eq!(said.is_some(), step.is_none());
    if let Some((stalled, message)) = said {
        assert!(stalled && message.contains("set it to 3 or more"), "{message}");
    }
}

#[test]
fn while_it_stops_a_member_is_not_started_again() {
    let fixture = Fixture::serving(3).wants(2).role(2, STOPPED);
    assert_eq!(fixture.moves(), ["scale StatefulSet rss-orders from 3 to 2"]);
}

#[test]
fn a_member_that_is_wanted_again_joins_again() {
    let fixture = Fixture::serving(3).role(2, STOPPED).active(2, "false");
    assert_eq!(fixture.moves(), ["start as primary rss-orders-2"]);
}
