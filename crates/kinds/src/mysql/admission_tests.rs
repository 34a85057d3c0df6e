use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::mysql::{BackupPolicy, MySQLCluster};

use super::{complete, judge_cluster, judge_policy, judge_removal};

fn cluster(replicas: u16) -> MySQLCluster {
    serde_json::from_value(json!({
        "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "shop" },
        "spec": {
            "replicas": replicas,
            "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }] } },
            "volumeClaimTemplates": [{
                "metadata": { "name": "mysql-data" },
                "spec": { "resources": { "requests": { "storage": "1Gi" } } },
            }],
        },
    }))
    .unwrap()
}

fn with(change: impl FnOnce(&mut MySQLCluster)) -> MySQLCluster {
    let mut cluster = cluster(3);
    change(&mut cluster);
    cluster
}

fn rotates(schedule: &str) -> MySQLCluster {
    with(|it| it.spec.log_rotation_schedule = Some(schedule.to_owned()))
}

#[rstest]
#[case::good(None, cluster(3), None)]
#[case::even(None, cluster(2), Some("spec.replicas"))]
#[case::bad_schedule(None, rotates("often"), Some("spec.logRotationSchedule"))]
#[case::made_bad(Some(cluster(3)), rotates("often"), Some("spec.logRotationSchedule"))]
#[case::bad_before_and_still(Some(rotates("often")), rotates("often"), None)]
#[case::bad_before_and_mended(Some(rotates("often")), cluster(3), None)]
#[case::bad_in_another_way(Some(rotates("often")), rotates("seldom"), Some("seldom"))]
#[case::a_long_name_stays_editable(
    Some(with(|it| it.metadata.name = Some("a".repeat(41)))),
    with(|it| { it.metadata.name = Some("a".repeat(41)); it.spec.offline = true }),
    None
)]
fn only_what_becomes_worse_is_refused(
    #[case] old: Option<MySQLCluster>,
    #[case] new: MySQLCluster,
    #[case] refused: Option<&str>,
) {
    let answer = judge_cluster(old.as_ref(), &new).map_err(|invalid| invalid.to_string());
    match refused {
        None => assert_eq!(answer, Ok(())),
        Some(word) => assert!(answer.as_ref().is_err_and(|why| why.contains(word)), "{answer:?}"),
    }
}

#[test]
fn nothing_holds_up_a_deletion() {
    let mut ending = rotates("often");
    ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(judge_cluster(Some(&cluster(3)), &ending), Ok(()));
}

fn policy(schedule: &str) -> BackupPolicy {
    let mut policy = BackupPolicy::new("daily", windlass_api::mysql::BackupPolicySpec::default());
    policy.spec.schedule = schedule.to_owned();
    policy
}

#[rstest]
#[case("@daily", None)]
#[case("0 3 * * *", None)]
#[case("0 25 * * *", Some("hour"))]
#[case("now and then", Some("3 fields"))]
#[case("TZ=UTC 0 3 * * *", Some("spec.timeZone"))]
fn a_schedule_must_be_readable(#[case] schedule: &str, #[case] refused: Option<&str>) {
    let answer = judge_policy(None, &policy(schedule)).map_err(|invalid| invalid.to_string());
    assert_eq!(answer.as_ref().err().is_some(), refused.is_some(), "{answer:?}");
    if let (Err(why), Some(word)) = (&answer, refused) {
        assert!(why.contains(word), "{why}");
    }
    assert_eq!(judge_policy(Some(&policy(schedule)), &policy(schedule)), Ok(()), "it was so before");
}

#[test]
fn a_policy_that_is_used_stays() {
    let clusters =
        [("a".to_owned(), Some("daily".to_owned())), ("b".to_owned(), None), ("c".to_owned(), Some("hourly".to_owned()))];
    let refused = judge_removal("shop", "daily", &clusters).unwrap_err();
    assert_eq!(refused.to_string(), "MySQLCluster shop/a has a reference to this policy");
    assert_eq!(judge_removal("shop", "weekly", &clusters), Ok(()));
}

const FINALIZER: &str = "moco.cybozu.com/mysqlcluster";

fn paths(operations: &[Value]) -> Vec<&str> {
    operations.iter().map(|it| it["path"].as_str().unwrap()).collect()
}

#[rstest]
#[case::bare(json!({ "metadata": {}, "spec": {} }), &["/metadata/finalizers", "/spec/serverIDBase"])]
#[case::zero(json!({ "metadata": { "finalizers": ["x"] }, "spec": { "serverIDBase": 0 } }), &["/metadata/finalizers/-", "/spec/serverIDBase"])]
#[case::complete(json!({ "metadata": { "finalizers": [FINALIZER] }, "spec": { "serverIDBase": 7 } }), &[])]
#[case::nonsense(json!({ "metadata": { "finalizers": null }, "spec": "x" }), &["/metadata/finalizers"])]
fn what_a_new_cluster_lacks_is_filled_in(#[case] sent: Value, #[case] expected: &[&str]) {
    assert_eq!(paths(&complete(&sent, 41)), expected);
}

#[rstest]
#[case(0, 1)]
#[case(41, 42)]
#[case(u32::MAX, 1 << 30)]
fn a_server_id_is_between_one_and_two_to_the_thirtieth(#[case] number: u32, #[case] expected: u32) {
    let operations = complete(&json!({ "metadata": { "finalizers": [FINALIZER] }, "spec": {} }), number);
    assert_eq!(operations[0]["value"], expected);
}
