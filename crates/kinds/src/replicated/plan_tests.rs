use rstest::rstest;
use windlass_core::step::ObjectKind;
use windlass_core::views::{Children, Compact, REVISION};

use super::super::build;
use super::super::facts::Of;
use super::super::fixtures::*;
use super::super::hooks::{Deed, ExecEnd};

fn steps(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_cluster_gets_its_objects_in_order() {
    let expected = [
        "apply Service orders-svc",
        "apply Service orders-client",
        "apply PodDisruptionBudget rss-orders",
        &kept_name(&Fixture::new(3)),
        "apply StatefulSet rss-orders",
    ];
    let fixture = Fixture::new(3);
    assert_eq!(fixture.steps(), steps(&expected));
    assert!(fixture.plan().steps.iter().all(|step| step.reason == "it does not exist"));
}

#[rstest]
#[case(1)]
#[case(3)]
#[case(12)]
fn a_healthy_cluster_is_left_alone(#[case] replicas: u16) {
    let fixture = Fixture::serving(replicas);
    assert!(fixture.plan().is_empty(), "{:?}", fixture.plan());
}

#[rstest]
#[case::a_service_is_gone(|it: &mut Fixture| drop(it.children.services.remove("orders-client")), "apply Service orders-client")]
#[case::the_budget_is_gone(|it: &mut Fixture| it.children.disruption_budgets.clear(), "apply PodDisruptionBudget rss-orders")]
#[case::a_label_is_gone(|it: &mut Fixture| it.children.services.get_mut("orders-svc").unwrap().meta.labels.clear(), "apply Service orders-svc")]
#[case::another_owner(|it: &mut Fixture| it.set().object.meta.owner_uid = Some("uid-of-another".into()), "apply StatefulSet rss-orders")]
#[case::another_value(
    |it: &mut Fixture| {
        let set = it.set();
        let mut spec = set.object.spec.value();
        spec["template"]["spec"]["containers"][0]["image"] = "other".into();
        set.object.spec = Compact::of(&spec);
    },
    "apply StatefulSet rss-orders"
)]
fn drift_of_one_object_is_one_step(#[case] change: fn(&mut Fixture), #[case] expected: &str) {
    let mut fixture = Fixture::serving(3);
    change(&mut fixture);
    assert_eq!(fixture.steps(), steps(&[expected]));
}

/// The step that keeps the template of this spec.
fn kept_name(fixture: &Fixture) -> String {
    let objects = build::objects(&fixture.validated(), 3, &Children::default()).applied;
    let kept = objects.into_iter().find(|it| it.object.kind == ObjectKind::ControllerRevision).unwrap();
    format!("apply {}", kept.object)
}

#[test]
fn another_image_is_another_template_and_the_old_one_goes_when_it_is_applied() {
    let mut fixture = Fixture::serving(3);
    let old = fixture.children.templates.keys().next().unwrap().clone();
    fixture.resource.spec.pod.containers[0].image = Some("galera:2".into());
    assert_eq!(fixture.steps(), steps(&[&kept_name(&fixture), "apply StatefulSet rss-orders"]));
    let templates = std::mem::take(&mut fixture.children.templates);
    fixture.store(3);
    fixture.children.templates.extend(templates.iter().map(|(name, kept)| (name.clone(), kept.clone())));
    assert_eq!(fixture.steps(), steps(&[&format!("delete ControllerRevision {old}")]));
}

/// As a newer release that renders the same spec in another way finds it.
fn rendered_otherwise(fixture: &mut Fixture) {
    let mark = |spec: &Compact, path: &str| {
        let mut spec = spec.value();
        spec.pointer_mut(path).unwrap()["terminationGracePeriodSeconds"] = 7.into();
        Compact::of(&spec)
    };
    for kept in fixture.children.templates.values_mut() {
        kept.spec = mark(&kept.spec, "/spec");
    }
    let set = fixture.set();
    set.object.spec = mark(&set.object.spec, "/template/spec");
    let mut applied = build::objects(&fixture.validated(), 3, &fixture.children).applied;
    fixture.set().object.meta.annotations = applied.pop().unwrap().annotations.into();
}

#[test]
fn another_way_to_render_the_same_spec_changes_nothing() {
    let mut fixture = Fixture::serving(3);
    rendered_otherwise(&mut fixture);
    assert_eq!(fixture.steps(), steps(&[]));
    // Nor when the kept template is lost: the live one is kept again.
    fixture.children.templates.clear();
    let live = fixture.set().object.spec.value()["template"].clone();
    for step in fixture.plan().steps {
        let windlass_core::step::Act::Apply(manifest) = step.act else { panic!("{step}") };
        let template =
            if manifest.object.kind == ObjectKind::StatefulSet { &manifest.spec["template"] } else { &manifest.spec };
        assert_eq!(*template, live, "{}", manifest.object);
    }
}

#[test]
fn what_the_user_changes_outside_the_template_renders_nothing_anew() {
    let mut fixture = Fixture::serving(3).wants(4);
    rendered_otherwise(&mut fixture);
    fixture.resource.spec.reconcile_interval = Some("7s".into());
    assert_eq!(fixture.steps(), steps(&["scale StatefulSet rss-orders from 3 to 4"]));
}

#[rstest]
#[case::with_all_that_may_hold_data(3, 5, 5)]
#[case::with_all_that_are_wanted(6, 5, 6)]
#[case::with_none_when_none_is_wanted(0, 5, 0)]
fn a_set_that_was_deleted_comes_back(#[case] wanted: u16, #[case] restore: u16, #[case] size: u64) {
    let mut fixture = Fixture::serving(5).wants(wanted).logbook(|logbook| logbook.counts.restore = restore);
    fixture.children.stateful_sets.clear();
    let plan = fixture.plan();
    let windlass_core::step::Act::Apply(manifest) = &plan.steps[0].act else { panic!("{plan:?}") };
    assert_eq!(manifest.spec["replicas"], size);
    assert!(!fixture.steps().iter().any(|step| step.starts_with("stop") || step.starts_with("scale")), "{plan:?}");
}

/// A cluster whose spec was edited into one that is refused.
fn refused(mut fixture: Fixture) -> Fixture {
    fixture.resource.spec.replicas = Some(1);
    fixture.resource.spec.primaries = Some(9);
    fixture.resource.spec.pod.containers[0].image = Some("galera:2".into());
    fixture
}

#[test]
fn a_refused_spec_is_told_with_its_field_and_touches_no_object() {
    let fixture = refused(Fixture::serving(3));
    assert!(fixture.steps().is_empty(), "{:?}", fixture.plan());
    let (stalled, message) = fixture.said("InvalidSpec").unwrap();
    assert!(stalled && message.contains("spec.primaries"), "{message}");
}

#[test]
fn a_refused_spec_does_not_keep_members_from_being_looked_after() {
    let fixture = refused(Fixture::serving(3).role(2, STOPPED));
    assert_eq!(fixture.steps(), steps(&["label Pod rss-orders-2 rss-active-member=false", "start as primary rss-orders-2"]));
}

#[test]
fn a_lost_logbook_blocks_seed_and_removal_but_not_drift_repair() {
    let mut fixture = Fixture::stopped(3).holds(0, NO_DATA).holds(1, NO_DATA).holds(2, NO_DATA).lost();
    for ordinal in 0..3 {
        fixture = fixture.active(ordinal, "false");
    }
    fixture.children.services.remove("orders-svc");
    assert_eq!(fixture.steps(), steps(&["apply Service orders-svc"]));
    assert!(fixture.said("LogbookLost").unwrap().0);

    let fixture = Fixture::serving(5).wants(3).lost();
    assert!(fixture.steps().is_empty(), "{:?}", fixture.plan());
}

#[test]
fn a_lost_logbook_does_not_keep_a_member_from_joining() {
    let fixture = Fixture::serving(3).role(2, STOPPED).active(2, "false").lost();
    assert_eq!(fixture.steps(), steps(&["start as primary rss-orders-2"]));
}

#[test]
fn the_seed_is_alone_and_gets_no_peers() {
    let fixture = Fixture::stopped(2)
        .active(0, "false")
        .active(1, "false")
        .holds(0, &position(HISTORY, 1))
        .holds(1, &position(HISTORY, 2));
    let plan = fixture.plan();
    assert_eq!(fixture.steps(), steps(&["seed the cluster from rss-orders-1"]));
    let windlass_core::step::Act::Member(run) = &plan.steps[0].act else { panic!("{plan:?}") };
    assert_eq!(run.exec.command, ["/hooks/seed"]);
}

#[test]
fn a_joining_member_is_told_of_primaries_first_and_of_all_peers() {
    let fixture = Fixture::serving(3).role(0, STOPPED).active(0, "false").role(1, STOPPED).active(1, "false");
    let plan = fixture.plan();
    // One primary hands its data to one member at a time.
    assert_eq!(fixture.steps(), steps(&["start as primary rss-orders-0"]));
    let windlass_core::step::Act::Member(run) = &plan.steps[0].act else { panic!("{plan:?}") };
    assert_eq!(run.exec.command, ["/hooks/primary", "rss-orders-2.orders-svc", "rss-orders-1.orders-svc"]);
    assert_eq!(fixture.said("MembersStarting").unwrap().1, "member 1 waits to be started");
}

#[test]
fn a_start_that_still_runs_is_waited_for_and_told() {
    let end = ExecEnd::StillRunning { after: std::time::Duration::from_secs(10) };
    let fixture = Fixture::serving(3).learns(2, Of::Deed(Deed::Primary), end).role(2, STOPPED).later(3600).role(0, PRIMARY);
    assert_eq!(fixture.moves().iter().filter(|step| step.starts_with("start")).count(), 0, "{:?}", fixture.moves());
    let (_, message) = fixture.said("MembersStarting").unwrap();
    assert!(message.contains("member 2") && message.contains("the hook primary"), "{message}");
}

#[test]
fn two_primaries_start_two_members_at_once() {
    let fixture = (2..5).fold(Fixture::serving(5), |fixture, ordinal| fixture.role(ordinal, STOPPED).active(ordinal, "false"));
    assert_eq!(fixture.steps(), steps(&["start as primary rss-orders-2", "start as primary rss-orders-3"]));
}

#[test]
fn beyond_the_wished_primaries_members_are_secondaries() {
    let mut fixture = Fixture::serving(3);
    fixture.resource.spec.primaries = Some(1);
    fixture.resource.spec.pod.commands.secondary = Some(command("secondary"));
    let fixture = fixture.role(1, SECONDARY).role(2, STOPPED).active(2, "false");
    assert_eq!(fixture.steps(), steps(&["start as secondary rss-orders-2"]));
}

#[test]
fn without_a_hook_for_secondaries_both_codes_mean_a_primary() {
    let fixture = Fixture::serving(3).role(1, SECONDARY);
    assert!(fixture.plan().is_empty(), "{:?}", fixture.plan());
}

#[test]
fn a_hook_that_failed_is_tried_again_later() {
    let failed = super::super::facts::Of::Deed(Deed::Primary);
    let fixture = Fixture::serving(3).active(2, "false").learns(2, failed, exited(1, "")).role(2, STOPPED);
    assert!(fixture.steps().is_empty(), "{:?}", fixture.plan());
    assert_eq!(fixture.later(3).steps(), steps(&["start as primary rss-orders-2"]));
}

#[test]
fn a_failed_member_is_told_with_what_to_do() {
    let mut fixture = Fixture::serving(3).role(1, FAILED);
    let label = "label Pod rss-orders-1 rss-active-member=false";
    assert_eq!(fixture.steps(), steps(&[label]), "it may have been the hook's own failure");
    fixture = fixture.later(25);
    assert_eq!(fixture.steps(), steps(&[label, "stop rss-orders-1"]));
    for _ in 0..3 {
        fixture = fixture.learns(1, Of::Deed(Deed::Stop), exited(1, "")).role(1, FAILED).later(60);
    }
    assert_eq!(fixture.steps(), steps(&[label]));
    let (stalled, message) = fixture.said("MemberFailed").unwrap();
    assert!(stalled && message.contains("member 1") && message.contains("delete its pod"), "{message}");
    // What it holds is on a volume: another pod can have it.
    fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
    assert!(fixture.moves().contains(&"delete Pod rss-orders-1".to_owned()), "{:?}", fixture.plan());
}

#[test]
fn a_member_that_lost_its_peers_is_stopped_while_the_others_go_on() {
    let fixture = Fixture::serving(3).active(1, "false").role(1, STRANDED);
    assert!(fixture.steps().is_empty(), "the network may heal by itself");
    assert_eq!(fixture.later(25).steps(), steps(&["stop rss-orders-1"]));
}

#[rstest]
#[case::one_more(2, &[PRIMARY, SECONDARY, SECONDARY], &["start as primary rss-orders-1"])]
#[case::one_less(1, &[PRIMARY, PRIMARY, SECONDARY], &["stop rss-orders-1"])]
#[case::two_less_one_at_a_time(1, &[PRIMARY, PRIMARY, PRIMARY], &["stop rss-orders-2"])]
#[case::as_asked(2, &[PRIMARY, PRIMARY, SECONDARY], &[])]
#[case::not_while_one_is_down(1, &[PRIMARY, PRIMARY, STARTING], &[])]
fn as_many_are_primaries_as_are_asked_for(#[case] primaries: u16, #[case] roles: &[i32], #[case] expected: &[&str]) {
    let mut fixture = Fixture::serving(3);
    fixture.resource.spec.primaries = Some(primaries);
    fixture.resource.spec.pod.commands.secondary = Some(command("secondary"));
    let fixture = roles.iter().zip(0..).fold(fixture, |fixture, (role, ordinal)| fixture.role(ordinal, *role));
    assert_eq!(fixture.moves(), expected);
}

#[rstest]
#[case::it_serves(PRIMARY, None, Some("true"))]
#[case::it_serves_again(PRIMARY, Some("false"), Some("true"))]
#[case::it_is_stopped(STOPPED, Some("true"), Some("false"))]
#[case::it_starts(STARTING, Some("true"), Some("false"))]
#[case::it_failed(FAILED, Some("true"), Some("false"))]
#[case::it_never_served(STOPPED, None, None)]
#[case::it_still_serves(PRIMARY, Some("true"), None)]
fn labels_follow_roles(#[case] code: i32, #[case] has: Option<&str>, #[case] gets: Option<&str>) {
    let mut fixture = Fixture::serving(3).role(1, code);
    fixture.pod(1).meta.labels.remove("rss-active-member");
    let fixture = match has {
        Some(value) => fixture.active(1, value),
        None => fixture,
    };
    let labelled: Vec<String> = fixture.steps().into_iter().filter(|step| step.starts_with("label")).collect();
    let expected: Vec<String> =
        gets.map(|value| format!("label Pod rss-orders-1 rss-active-member={value}")).into_iter().collect();
    assert_eq!(labelled, expected);
}

#[rstest]
#[case::true_stays("true")]
#[case::false_stays("false")]
fn blindness_leaves_labels_alone(#[case] value: &str) {
    let fixture = Fixture::serving(3).silent(1).active(1, value);
    assert!(fixture.steps().is_empty(), "{:?}", fixture.plan());
}

/// A cluster whose template was edited: all pods are outdated.
fn outdated() -> Fixture {
    let mut fixture = Fixture::serving(3);
    fixture.set().update_revision = Some("r2".into());
    fixture
}

#[test]
fn a_roll_takes_secondaries_before_primaries() {
    let mut fixture = outdated();
    fixture.resource.spec.primaries = Some(2);
    fixture.resource.spec.pod.commands.secondary = Some(command("secondary"));
    assert_eq!(fixture.role(0, SECONDARY).steps(), steps(&["delete Pod rss-orders-0"]));
}

#[test]
fn a_roll_replaces_the_highest_outdated_pod_and_names_what_it_judged() {
    let mut fixture = outdated();
    fixture.pod(2).meta.labels.insert(REVISION.into(), "r2".into());
    let plan = fixture.plan();
    assert_eq!(fixture.steps(), steps(&["delete Pod rss-orders-1"]));
    let windlass_core::step::Act::Delete { over, .. } = &plan.steps[0].act else { panic!("{plan:?}") };
    assert_eq!((over.uid.as_str(), over.resource_version.as_str()), ("uid-rss-orders-1-a", "1"));
}

#[rstest]
#[case::a_member_is_not_ready(|it: Fixture| { let mut it = it; it.pod(0).ready = false; it })]
#[case::a_member_is_silent(|it: Fixture| it.silent(0))]
#[case::a_member_is_stopped(|it: Fixture| it.role(0, STOPPED))]
#[case::another_pod_ends(|it: Fixture| { let mut it = it; it.pod(0).meta.deleting = true; it })]
#[case::the_pod_ends_already(|it: Fixture| { let mut it = it; it.pod(2).meta.deleting = true; it })]
#[case::the_controller_is_behind(|it: Fixture| { let mut it = it; it.set().object.meta.generation = Some(2); it })]
#[case::the_cluster_grows(|it: Fixture| it.wants(4))]
#[case::the_cluster_shrinks(|it: Fixture| it.wants(2))]
#[case::an_object_differs(|it: Fixture| { let mut it = it; it.children.services.clear(); it })]
fn a_roll_waits(#[case] change: fn(Fixture) -> Fixture) {
    let fixture = change(outdated());
    assert!(!fixture.steps().iter().any(|step| step.starts_with("delete")), "{:?}", fixture.plan());
}
