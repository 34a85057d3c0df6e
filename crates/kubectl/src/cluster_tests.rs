use rstest::rstest;
use serde_json::json;

use super::*;
use crate::render::fixtures::{busy, claim, cluster, condition, fresh, healthy, held};

#[test]
fn ready_of_an_older_spec_is_not_ready() {
    assert_eq!(healthy().readiness().status, "True");
    let mut older = healthy();
    Arc::make_mut(&mut older.object).metadata.generation = Some(5);
    assert_eq!(older.readiness().status, "Unknown");
}

#[rstest]
#[case(false, "True", "Active", LaneState::Active)]
#[case(true, "True", "Active", LaneState::Pausing)]
#[case(true, "True", "Pausing", LaneState::Pausing)]
#[case(true, "False", "Paused", LaneState::Paused)]
#[case(false, "False", "Paused", LaneState::Resuming)]
#[case(false, "True", "Resuming", LaneState::Resuming)]
#[case(true, "Unknown", "NotObserved", LaneState::Unknown)]
fn a_lane_is_what_was_asked_and_what_was_answered(
    #[case] paused: bool,
    #[case] status: &str,
    #[case] reason: &str,
    #[case] expected: LaneState,
) {
    let told = condition("ClusteringActive", status, reason, "");
    let it = cluster(json!({ "spec": { "paused": paused }, "status": { "conditions": [told] } }), None);
    assert_eq!(it.lane(Lane::Clustering).state, expected);
    assert_eq!(it.lane(Lane::Resources).state, LaneState::Unknown);
}

#[test]
fn a_pause_is_known_since_the_logbook_noted_it_and_else_since_the_condition() {
    assert_eq!(held().lane(Lane::Clustering).since, Some("2026-11-16T00:50:02Z".parse().unwrap()));
    let mut without = held();
    without.logbook = Logbook::Absent;
    assert_eq!(without.lane(Lane::Clustering).since, Some("2026-11-16T00:46:00Z".parse().unwrap()));
}

#[test]
fn an_annotation_that_does_not_say_true_pauses_nothing() {
    let it = cluster(json!({ "metadata": { "annotations": { "windlass.dev/resources-paused": "yes" } } }), None);
    assert!(!it.is_pause_requested(Lane::Resources));
}

#[rstest]
#[case(healthy(), OwnerState::Claimed)]
#[case(busy(), OwnerState::Released)]
#[case(fresh(), OwnerState::Unclaimed)]
#[case(cluster(json!({}), Some(json!({ "clusterUid": "u1" }))), OwnerState::Unclaimed)]
#[case(cluster(json!({}), Some(json!({ "clusterUid": "another", "claim": claim() }))), OwnerState::Unknown)]
#[case(cluster(json!({}), Some(json!({ "claim": "rubbish" }))), OwnerState::Unknown)]
fn an_owner_is_told_only_from_this_clusters_logbook(#[case] it: Cluster, #[case] expected: OwnerState) {
    assert_eq!(it.owner().state, expected);
    assert_eq!(it.owner().release.is_empty(), !matches!(expected, OwnerState::Claimed | OwnerState::Released));
}

#[test]
fn what_the_logbook_says_runs_is_over_when_the_status_says_idle() {
    assert_eq!(busy().running().len(), 1);
    let idle = condition("Progressing", "False", "Idle", "nothing is in hand");
    let running = json!({ "running": [{ "step": "start as primary rss-harbour-1" }] });
    let it = cluster(json!({ "status": { "conditions": [idle] } }), Some(json!({ "clusterUid": "u1", "plan": running })));
    assert!(it.running().is_empty() && it.work().is_empty() && it.plan().steps.is_empty());
}

#[test]
fn rubbish_in_a_status_is_no_condition_and_stops_nothing() {
    let it = cluster(json!({ "status": { "conditions": [1, { "type": 2 }, { "type": "Ready" }], "phase": 3 } }), None);
    assert_eq!(it.conditions().len(), 1);
    assert_eq!(it.view().phase, None);
    assert_eq!(it.view().ready, "");
}

#[test]
fn the_shape_of_the_json_is_stable() {
    insta::assert_yaml_snapshot!(busy().status());
    insta::assert_yaml_snapshot!(held().plan());
    insta::assert_yaml_snapshot!(busy().log());
}
