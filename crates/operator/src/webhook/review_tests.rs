use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn cluster(track: &str, replicas: u16) -> Value {
    json!({
        "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "labels": { "track": track } },
        "spec": {
            "replicas": replicas,
            "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }] } },
            "volumeClaimTemplates": [{
                "metadata": { "name": "mysql-data" },
                "spec": { "resources": { "requests": { "storage": "1Gi" } } },
            }],
        },
    })
}

fn policy() -> Value {
    json!({ "apiVersion": "moco.cybozu.com/v1beta2", "kind": "BackupPolicy", "metadata": { "name": "daily", "labels": { "track": "ours" } } })
}

pub(crate) fn review(resource: &str, operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": { "group": "moco.cybozu.com", "version": "v1beta2", "kind": "any" },
            "resource": { "group": "moco.cybozu.com", "version": "v1beta2", "resource": resource },
            "name": "daily", "namespace": "shop", "operation": operation, "object": object, "oldObject": old,
            "userInfo": { "username": "admin" }, "options": null, "dryRun": false,
        },
    })
}

fn request(resource: &str, operation: &str, object: &Value, old: &Value) -> Request {
    read(review(resource, operation, object, old).to_string().as_bytes()).unwrap()
}

fn ours() -> Selector {
    "track=ours".parse().unwrap()
}

fn judged(request: &Request) -> Verdict {
    request.validate(&ours(), &Ok(vec![("harbour".into(), Some("daily".into()))]))
}

fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refused(_))
}

#[rstest]
#[case::good("CREATE", cluster("ours", 3), Value::Null, false)]
#[case::bad("CREATE", cluster("ours", 2), Value::Null, true)]
#[case::bad_and_not_ours("CREATE", cluster("theirs", 2), Value::Null, false)]
#[case::it_becomes_bad("UPDATE", cluster("ours", 4), cluster("ours", 3), true)]
#[case::it_leaves_our_selector("UPDATE", cluster("theirs", 4), cluster("ours", 3), false)]
#[case::it_comes_into_our_selector("UPDATE", cluster("ours", 4), cluster("theirs", 3), true)]
#[case::it_comes_as_it_was("UPDATE", cluster("ours", 4), cluster("theirs", 4), false)]
#[case::it_cannot_be_read("CREATE", json!({ "metadata": { "labels": { "track": "ours" } }, "spec": 1 }), Value::Null, true)]
#[case::nobody_asks_about_its_end("DELETE", Value::Null, cluster("ours", 2), false)]
fn a_cluster_is_judged_by_what_it_becomes_where_it_is_ours(
    #[case] operation: &str,
    #[case] object: Value,
    #[case] old: Value,
    #[case] refused: bool,
) {
    let verdict = judged(&request("mysqlclusters", operation, &object, &old));
    assert_eq!(is_refused(&verdict), refused, "{verdict:?}");
}

fn tidb(track: &str, pd: u16) -> Value {
    let storage = json!({ "storage": "1Gi" });
    json!({
        "apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "labels": { "track": track } },
        "spec": { "version": "v8.5.2", "pd": { "replicas": pd, "requests": storage }, "tikv": { "replicas": 3, "requests": storage } },
    })
}

#[rstest]
#[case::good("CREATE", tidb("ours", 3), Value::Null, false)]
#[case::bad("CREATE", tidb("ours", 0), Value::Null, true)]
#[case::bad_and_not_ours("CREATE", tidb("theirs", 0), Value::Null, false)]
#[case::pd_is_taken_away("UPDATE", tidb("ours", 0), tidb("ours", 3), true)]
#[case::it_leaves_our_selector("UPDATE", tidb("theirs", 0), tidb("ours", 3), false)]
#[case::it_cannot_be_read("CREATE", json!({ "metadata": { "labels": { "track": "ours" } }, "spec": 1 }), Value::Null, true)]
fn a_cluster_of_tidb_is_judged_as_well(
    #[case] operation: &str,
    #[case] object: Value,
    #[case] old: Value,
    #[case] refused: bool,
) {
    let verdict = judged(&request("tidbclusters", operation, &object, &old));
    assert_eq!(is_refused(&verdict), refused, "{verdict:?}");
}

#[test]
fn metadata_of_a_bad_cluster_is_free_and_so_is_its_end() {
    let bad = json!({ "metadata": { "labels": { "track": "ours" }, "finalizers": ["a"] }, "spec": 1 });
    let mut freed = bad.clone();
    freed["metadata"]["finalizers"] = Value::Null;
    assert_eq!(judged(&request("mysqlclusters", "UPDATE", &freed, &bad)), Verdict::Allowed);
    let mut ending = cluster("ours", 2);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judged(&request("mysqlclusters", "UPDATE", &ending, &cluster("ours", 3))), Verdict::Allowed);
}

#[test]
fn a_policy_in_use_cannot_go_and_without_an_answer_it_can() {
    let request = request("backuppolicies", "DELETE", &Value::Null, &policy());
    assert!(request.needs_clusters(&ours()));
    assert_eq!(judged(&request), Verdict::Refused("MySQLCluster shop/harbour has a reference to this policy".into()));
    let unknown = request.validate(&ours(), &Err("no answer".into()));
    assert!(matches!(&unknown, Verdict::Doubted(why) if why.contains("no answer")), "{unknown:?}");
    assert_eq!(request.answer(unknown)["response"]["allowed"], true);
    assert!(!request.needs_clusters(&"track=theirs".parse().unwrap()));
    assert_eq!(request.validate(&"track=theirs".parse().unwrap(), &Ok(Vec::new())), Verdict::Allowed);
}

#[test]
fn a_new_cluster_is_completed_and_others_are_not() {
    let request_of = |operation, track| request("mysqlclusters", operation, &cluster(track, 3), &Value::Null);
    let Verdict::Completed(operations) = request_of("CREATE", "ours").mutate(&ours(), 41) else { panic!("not completed") };
    assert_eq!(operations.len(), 2);
    assert_eq!(request_of("CREATE", "theirs").mutate(&ours(), 41), Verdict::Allowed);
    assert_eq!(request_of("UPDATE", "ours").mutate(&ours(), 41), Verdict::Allowed);
    let answer = request_of("CREATE", "ours").answer(Verdict::Completed(operations.clone()));
    let patch: ByteString = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&patch.0).unwrap(), Value::from(operations));
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    assert_eq!(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
}

#[rstest]
#[case("rubbish")]
#[case("{}")]
#[case(r#"{"request":{"operation":"CREATE"}}"#)]
fn what_is_no_review_is_said_to_be_none(#[case] body: &str) {
    assert!(read(body.as_bytes()).is_err());
}
