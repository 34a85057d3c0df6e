use rstest::rstest;
use serde_json::json;

use super::*;
use crate::{condition_type, reason};

const HEALTHY: ConditionType = condition_type!("Healthy");

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_words_of_others_are_cut_between_characters() {
    assert_eq!(brief("short"), "short");
    let cut = brief(&"ü".repeat(10_000));
    assert!(cut.starts_with("üü") && cut.ends_with("operator's log)") && cut.chars().count() < 700, "{cut}");
}

fn ready(truth: Truth) -> Conditions {
    let mut conditions = Conditions::new(7, &[]);
    conditions.set(Common::Ready, truth, reason!("AllServing"), "");
    conditions
}

fn since(conditions: &[Condition], type_: &str) -> String {
    let condition = conditions.iter().find(|one| one.type_ == type_).unwrap();
    condition.last_transition_time.0.to_string()
}

#[test]
fn all_types_are_present_in_one_order() {
    let built = Conditions::new(7, &[HEALTHY]).build(&Previous::default(), at("2026-01-01T00:00:00Z"));
    let types: Vec<&str> = built.iter().map(|one| one.type_.as_str()).collect();
    assert_eq!(
        types,
        ["Ready", "Available", "Progressing", "Stalled", "ReconciliationActive", "ClusteringActive", "Managed", "Healthy"]
    );
    assert!(
        built.iter().all(|one| one.status == "Unknown" && one.reason == "NotObserved" && one.observed_generation == Some(7))
    );
}

#[test]
fn setting_twice_keeps_one_and_the_order() {
    let mut conditions = Conditions::new(7, &[]);
    conditions
        .set(Common::Stalled, true, reason!("InvalidSpec"), "first")
        .set(HEALTHY, false, reason!("MemberLost"), "")
        .set(Common::Stalled, false, reason!("Fine"), "second")
        .set_at(Common::ClusteringActive, false, reason!("Paused"), "", 9);
    let built = conditions.build(&Previous::default(), at("2026-01-01T00:00:00Z"));
    assert_eq!(built.len(), 8);
    assert_eq!((built[3].status.as_str(), built[3].message.as_str()), ("False", "second"));
    assert_eq!(built[3].observed_generation, Some(7));
    assert_eq!(built[5].observed_generation, Some(9));
    assert_eq!(built[7].type_, "Healthy");
    assert_eq!(conditions.truth(Common::Stalled), Truth::False);
    assert_eq!(conditions.truth(Common::Ready), Truth::Unknown);
}

#[rstest]
#[case(Truth::True, "2026-01-01T00:00:00Z")]
#[case(Truth::False, "2026-03-03T03:03:03Z")]
#[case(Truth::Unknown, "2026-03-03T03:03:03Z")]
fn time_moves_only_when_the_status_flips(#[case] truth: Truth, #[case] expected: &str) {
    let before = ready(Truth::True).build(&Previous::default(), at("2026-01-01T00:00:00Z"));
    let mut conditions = Conditions::new(8, &[]);
    conditions.set(Common::Ready, truth, reason!("Another"), "another message");
    let after = conditions.build(&Previous::from(before.as_slice()), at("2026-03-03T03:03:03.999999999Z"));
    assert_eq!(since(&after, "Ready"), expected);
    assert_eq!(after[0].reason, "Another");
    assert_eq!(after[0].observed_generation, Some(8));
}

#[test]
fn same_pass_twice_builds_the_same_list() {
    let conditions = ready(Truth::True);
    let first = conditions.build(&Previous::default(), at("2026-01-01T00:00:00.7Z"));
    let stored = serde_json::to_value(&first).unwrap();
    let second = conditions.build(&Previous::read(&stored), at("2026-01-01T00:00:00.8Z"));
    let third = conditions.build(&Previous::read(&stored), at("2027-01-01T00:00:00Z"));
    assert_eq!(first, second);
    assert_eq!(first, third);
}

#[test]
fn seconds_are_cut_off_on_both_sides_of_1970() {
    assert_eq!(whole_seconds(at("2026-01-01T00:00:00.999Z")), at("2026-01-01T00:00:00Z"));
    assert_eq!(whole_seconds(at("1969-12-31T23:59:58.5Z")), at("1969-12-31T23:59:58Z"));
    assert_eq!(whole_seconds(at("1969-12-31T23:59:58Z")), at("1969-12-31T23:59:58Z"));
}

#[rstest]
#[case(json!(null))]
#[case(json!("Ready"))]
#[case(json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}))]
#[case(json!([null, 5, "Ready", [], {}]))]
#[case(json!([{"type": "Ready"}]))]
#[case(json!([{"type": "Ready", "status": "True"}]))]
#[case(json!([{"type": "Ready", "status": true, "lastTransitionTime": "2026-01-01T00:00:00Z"}]))]
#[case(json!([{"type": "Ready", "status": "true", "lastTransitionTime": "2026-01-01T00:00:00Z"}]))]
#[case(json!([{"type": "Ready", "status": "True", "lastTransitionTime": "yesterday"}]))]
#[case(json!([{"type": "Ready", "status": "True", "lastTransitionTime": null}]))]
#[case(json!([{"type": 4, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]))]
#[case(json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2099-01-01T00:00:00Z"}]))]
fn stored_junk_is_healed(#[case] stored: Value) {
    let now = at("2026-05-05T05:05:05Z");
    let built = ready(Truth::True).build(&Previous::read(&stored), now);
    assert_eq!(built, ready(Truth::True).build(&Previous::default(), now));
}

#[test]
fn readable_entry_beside_junk_keeps_its_time() {
    let stored = json!([
        7,
        {"type": "Ready", "status": "Perhaps", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T02:00:00.5+02:00", "extra": []},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-02-02T00:00:00Z"},
        {"type": "Invented", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]);
    let built = ready(Truth::True).build(&Previous::read(&stored), at("2026-05-05T05:05:05Z"));
    assert_eq!(since(&built, "Ready"), "2026-01-01T00:00:00Z");
    assert!(built.iter().all(|one| one.type_ != "Invented"));
}

#[test]
fn message_is_cut_where_the_server_would_refuse_it() {
    let mut conditions = Conditions::new(1, &[]);
    conditions.set(Common::Ready, false, reason!("Long"), "ä".repeat(40_000));
    let built = conditions.build(&Previous::default(), at("2026-01-01T00:00:00Z"));
    assert_eq!(built[0].message.chars().count(), 32_768);
}

#[rstest]
#[case("QuorumLost", true)]
#[case("A", true)]
#[case("Tls13", true)]
#[case("", false)]
#[case("quorumLost", false)]
#[case("Quorum lost", false)]
#[case("Quorum_Lost", false)]
#[case("9Lives", false)]
#[case("Größe", false)]
fn reasons_are_camel_case(#[case] word: &str, #[case] good: bool) {
    assert_eq!(is_camel_case(word), good);
}

#[test]
fn comparison_leaves_the_times_of_conditions_aside() {
    let one = json!({"replicas": 3, "since": "a", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "x", "lastUpdateTime": "y"}]});
    let times =
        json!({"replicas": 3, "since": "a", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "z"}]});
    let status =
        json!({"replicas": 3, "since": "a", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "x"}]});
    let elsewhere = json!({"replicas": 3, "since": "b", "conditions": one["conditions"]});
    assert!(same_but_for_times(&one, &times));
    assert!(!same_but_for_times(&one, &status));
    assert!(!same_but_for_times(&one, &elsewhere));
    assert!(!same_but_for_times(&one, &json!(null)));
    assert!(same_but_for_times(&json!({"conditions": 5}), &json!({"conditions": 5})));
}
