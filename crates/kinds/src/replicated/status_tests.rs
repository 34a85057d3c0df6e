use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rstest::rstest;
use windlass_core::conditions::same_but_for_times;

use super::super::facts::Of;
use super::super::fixtures::*;
use super::super::hooks::Deed;
use super::*;
use windlass_core::gate::Gate;
use windlass_core::outcome::Outcome;
use windlass_core::views::REVISION;

fn closing() -> Door {
    Door::Closing { awaiting: vec!["stop rss-orders-2".into()] }
}

fn condition<'a>(status: &'a ReplicatedStatefulSetStatus, type_: &str) -> &'a Condition {
    status.conditions.iter().find(|it| it.type_ == type_).unwrap()
}

/// `Type=Status/Reason` of each condition.
fn told(status: &ReplicatedStatefulSetStatus) -> Vec<String> {
    status.conditions.iter().map(|it| format!("{}={}/{}", it.type_, it.status, it.reason)).collect()
}

#[test]
fn a_healthy_cluster() {
    let status = Fixture::serving(3).open_status();
    let expected = [
        "Ready=True/AllMembersServe",
        "Available=True/MembersServe",
        "Progressing=False/Idle",
        "Stalled=False/NothingBlocked",
        "ReconciliationActive=True/Active",
        "ClusteringActive=True/Active",
        "Managed=True/Owned",
    ];
    assert_eq!(told(&status), expected);
    assert_eq!(status.phase, Some(Phase::Running));
    assert_eq!((status.replicas, status.restore_replicas, status.control_paused), (3, 3, false));
    assert_eq!(status.service_name, "orders-client");
    assert_eq!(status.members.primary, ["rss-orders-0", "rss-orders-1", "rss-orders-2"]);
    assert!(status.members.unready.is_empty() && status.members.failed.is_empty());
    assert!(status.selector.contains("app=orders,"), "{}", status.selector);
}

#[test]
fn a_cluster_in_creation() {
    let status = Fixture::started(3).open_status();
    assert_eq!(status.phase, Some(Phase::Creating));
    assert_eq!(condition(&status, "Ready").status, "False");
    assert_eq!(condition(&status, "Available").status, "Unknown");
    assert_eq!(condition(&status, "Progressing").status, "True");
    assert!(status.reason.contains("member 0: not asked yet"), "{}", status.reason);
}

#[test]
fn nothing_is_there_yet() {
    let fixture = Fixture::new(3);
    let taken: Vec<_> = fixture.plan().steps.into_iter().map(|step| (step, Outcome::Done { changed: true })).collect();
    let status = fixture.status(&Gate::new(Door::Open, Door::Open), &taken);
    assert_eq!(condition(&status, "Available").status, "False");
    assert_eq!(condition(&status, "Ready").reason, "Progressing");
    assert!(status.reason.starts_with("apply StatefulSet "), "{}", status.reason);
    assert_eq!(status.phase, Some(Phase::Creating));
}

#[test]
fn a_running_hook_is_told() {
    let status = Fixture::serving(3).wants(2).runs(2, Deed::Stop).open_status();
    assert_eq!(told(&status)[2], "Progressing=True/Working");
    assert!(status.reason.starts_with("stop rss-orders-2"), "{}", status.reason);
}

#[test]
fn a_stopped_cluster_says_so() {
    let mut fixture = Fixture::new(0).logbook(|logbook| logbook.counts.restore = 3);
    fixture.store(0);
    let status = fixture.open_status();
    assert_eq!(
        (condition(&status, "Ready").status.as_str(), condition(&status, "Ready").reason.as_str()),
        ("False", "Stopped")
    );
    assert_eq!(condition(&status, "Stalled").status, "False");
    assert_eq!(status.restore_replicas, 3);
}

#[rstest]
#[case::open(Door::Open, Door::Open, "True/Active", "True/Active", false)]
#[case::both(Door::Closed, Door::Closed, "False/Paused", "False/Paused", true)]
#[case::resources(Door::Closed, Door::Open, "False/Paused", "True/Active", false)]
#[case::clustering(Door::Open, Door::Closed, "True/Active", "False/Paused", false)]
#[case::not_yet(Door::Closed, closing(), "False/Paused", "True/Pausing", false)]
#[case::resuming(Door::Opening, Door::Opening, "True/Resuming", "True/Resuming", false)]
fn lanes_are_told_apart(
    #[case] resources: Door,
    #[case] clustering: Door,
    #[case] first: &str,
    #[case] second: &str,
    #[case] paused: bool,
) {
    let status = Fixture::serving(3).status(&Gate::new(resources, clustering), &[]);
    let told = told(&status);
    assert_eq!(told[4], format!("ReconciliationActive={first}"));
    assert_eq!(told[5], format!("ClusteringActive={second}"));
    assert_eq!(status.control_paused, paused);
    assert_eq!(status.phase == Some(Phase::Paused), paused);
}

#[test]
fn a_pause_tells_its_reason_and_what_it_awaits() {
    let mut fixture = Fixture::serving(3);
    fixture.resource.metadata.annotations =
        Some([("windlass.dev/pause-reason".to_owned(), "disk replacement".to_owned())].into());
    let status = fixture.status(&Gate::new(Door::Closed, closing()), &[]);
    assert!(condition(&status, "ReconciliationActive").message.ends_with(": disk replacement"), "{status:?}");
    assert!(condition(&status, "ClusteringActive").message.contains("stop rss-orders-2"), "{status:?}");
}

#[test]
fn held_steps_are_told_and_the_acted_generation_stays() {
    let mut fixture = Fixture::serving(3).wants(2);
    fixture.resource.metadata.generation = Some(2);
    let status = fixture.status(&Gate::new(Door::Closed, Door::Closed), &[]);
    assert_eq!(condition(&status, "Ready").reason, "HeldByPause");
    let message = &condition(&status, "Ready").message;
    assert!(message.contains("stop rss-orders-2") && message.contains("label Pod rss-orders-2"), "{message}");
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(condition(&status, "Ready").observed_generation, Some(1));
    assert_eq!(condition(&status, "ReconciliationActive").observed_generation, Some(2));
}

#[test]
fn a_stalled_cluster_names_the_cause() {
    let fixture =
        Fixture::stopped(2).holds(0, &position("a", 1)).holds(1, &position("b", 1)).logbook(|it| it.counts.restore = 2);
    let status = fixture.open_status();
    assert_eq!(told(&status)[3], "Stalled=True/SeedUndecided");
    assert_eq!(told(&status)[0], "Ready=False/SeedUndecided");
    assert_eq!(told(&status)[1], "Available=False/NoMemberServes");
    assert_eq!(status.phase, Some(Phase::Failed));
    assert!(status.reason.contains("different histories"), "{}", status.reason);
}

#[test]
fn an_invalid_spec_is_told_for_the_newest_generation() {
    let mut fixture = Fixture::serving(3);
    fixture.resource.metadata.generation = Some(2);
    fixture.resource.spec.primaries = Some(9);
    let status = fixture.open_status();
    let stalled = condition(&status, "Stalled");
    assert_eq!(
        (stalled.status.as_str(), stalled.reason.as_str(), stalled.observed_generation),
        ("True", "InvalidSpec", Some(2))
    );
    assert!(stalled.message.contains("spec.primaries"), "{}", stalled.message);
    assert_eq!(condition(&status, "Ready").status, "False");
    assert_eq!(status.observed_generation, Some(1));
}

#[test]
fn a_refused_step_stalls_and_a_retried_one_does_not() {
    let fixture = Fixture::serving(3).wants(4);
    let step = fixture.plan().steps[0].clone();
    let gate = Gate::new(Door::Open, Door::Open);
    let refused = Outcome::Failed { why: "quota exceeded".into() };
    let status = fixture.status(&gate, &[(step.clone(), refused)]);
    assert_eq!(told(&status)[3], "Stalled=True/StepFailed");
    assert!(status.reason.contains("quota exceeded"), "{}", status.reason);
    let retried = Outcome::Retry { after: std::time::Duration::from_secs(1), why: "conflict".into() };
    let status = fixture.status(&gate, &[(step, retried)]);
    assert_eq!(told(&status)[3], "Stalled=False/NothingBlocked");
    assert!(status.reason.contains("(conflict)"), "{}", status.reason);
}

#[test]
fn a_cluster_that_lost_all_members_recovers() {
    let status = Fixture::stopped(2).logbook(|logbook| logbook.counts.restore = 2).open_status();
    assert_eq!(status.phase, Some(Phase::Recovering));
}

#[rstest]
#[case::healthy(Fixture::serving(3))]
#[case::creating(Fixture::started(3))]
#[case::seeding(Fixture::stopped(3).holds(0, NO_DATA).silent(1))]
#[case::a_hook_failed(Fixture::serving(3).learns(1, Of::Deed(Deed::Primary), exited(3, "")).role(1, STOPPED))]
#[case::shrinking(Fixture::serving(5).wants(2).runs(4, Deed::Stop))]
#[case::failed(Fixture::serving(3).role(2, FAILED))]
fn time_alone_changes_nothing_but_times(#[case] fixture: Fixture) {
    let value = |fixture: &Fixture| serde_json::to_value(fixture.open_status()).unwrap();
    let first = value(&fixture);
    // One second later: no retry becomes due, so the plan is the same.
    assert!(same_but_for_times(&first, &value(&fixture.clone().later(1))), "{first:#}");
}

#[test]
fn a_condition_that_does_not_flip_keeps_its_time() {
    let mut fixture = Fixture::serving(3);
    fixture.resource.status = Some(fixture.open_status());
    let later = fixture.clone().later(500).silent(1).open_status();
    let time = |status: &ReplicatedStatefulSetStatus, type_: &str| condition(status, type_).last_transition_time.0;
    assert_eq!(time(&later, "Available"), fixture.now);
    assert_eq!(time(&later, "Ready"), fixture.clone().later(500).now);
}

#[test]
fn a_pass_that_changes_something_is_not_ready_although_all_members_serve() {
    let mut fixture = Fixture::serving(3);
    fixture.pod(2).meta.labels.insert(REVISION.into(), "older".into());
    let plan = fixture.plan();
    assert_eq!(plan.steps.len(), 1, "{plan:?}");
    let taken: Vec<_> = plan.steps.into_iter().map(|step| (step, Outcome::Done { changed: true })).collect();
    let status = fixture.status(&Gate::new(Door::Open, Door::Open), &taken);
    assert_eq!(condition(&status, "Ready").status, "False");
}

#[test]
fn a_pass_that_gives_others_something_to_do_does_not_tell_that_nothing_is_in_hand() {
    let fixture = Fixture::serving(3).wants(4);
    let steps = fixture.plan().steps;
    let done = |changed| steps.iter().map(|step| (step.clone(), Outcome::Done { changed })).collect::<Vec<_>>();
    let told_after = |changed| told(&fixture.status(&Gate::new(Door::Open, Door::Open), &done(changed)))[2].clone();
    assert_eq!((told_after(true).as_str(), told_after(false).as_str()), ("Progressing=True/Working", "Progressing=False/Idle"));
}

#[test]
fn a_template_that_its_controller_has_not_seen_yet_is_not_ready() {
    let mut fixture = Fixture::serving(3);
    fixture.set().object.meta.generation = Some(99);
    let status = fixture.open_status();
    assert_eq!(condition(&status, "Ready").status, "False", "{}", status.reason);
}
