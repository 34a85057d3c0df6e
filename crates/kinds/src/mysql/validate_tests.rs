use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A cluster that is good, with one place changed, given as a JSON pointer. Null removes what is there.
fn with(place: &str, value: Value) -> MySQLCluster {
    let mut document = json!({
        "apiVersion": "moco.cybozu.com/v1beta2",
        "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "uid": "u-1" },
        "spec": {
            "replicas": 3,
            "podTemplate": {
                "spec": {
                    "containers": [{ "name": "mysqld", "image": "mysql:8.4" }, { "name": "second", "image": "second:1" }],
                    "initContainers": [{ "name": "prepare", "image": "prepare:1" }],
                    "volumes": [{ "name": "scratch", "emptyDir": {} }],
                },
                "overwriteContainers": [{ "name": "agent", "resources": {}, "securityContext": {} }],
            },
            "volumeClaimTemplates": [
                { "metadata": { "name": "mysql-data" }, "spec": { "resources": { "requests": { "storage": "1Gi" } } } },
                { "metadata": { "name": "second" }, "spec": { "resources": { "requests": { "storage": "1Gi" } } } },
            ],
            "primaryServiceTemplate": { "spec": {} },
            "replicaServiceTemplate": { "spec": {} },
        },
    });
    if let Some((parent, name)) = place.rsplit_once('/') {
        match document.pointer_mut(parent) {
            Some(Value::Object(fields)) if value.is_null() => drop(fields.remove(name)),
            Some(Value::Object(fields)) => drop(fields.insert(name.to_owned(), value)),
            Some(Value::Array(list)) => list[name.parse::<usize>().unwrap()] = value,
            other => panic!("{place} lies in {other:?}"),
        }
    }
    serde_json::from_value(document).unwrap()
}

const CONTAINERS: &str = "spec.podTemplate.spec.containers";

#[rstest]
#[case::long_name("/metadata/name", json!("a".repeat(41)), "metadata.name")]
#[case::dotted_name("/metadata/name", json!("har.bour"), "metadata.name")]
#[case::dash_at_the_end("/metadata/name", json!("harbour-"), "metadata.name")]
#[case::no_name("/metadata/name", Value::Null, "metadata.name")]
#[case::even("/spec/replicas", json!(2), "spec.replicas")]
#[case::none("/spec/replicas", json!(0), "spec.replicas")]
#[case::negative_id("/spec/serverIDBase", json!(-1), "spec.serverIDBase")]
#[case::negative_delay("/spec/maxDelaySeconds", json!(-1), "spec.maxDelaySeconds")]
#[case::negative_protection("/spec/maxDelaySecondsForPodDeletion", json!(-1), "spec.maxDelaySecondsForPodDeletion")]
#[case::negative_wait("/spec/startupWaitSeconds", json!(-1), "spec.startupWaitSeconds")]
#[case::negative_size("/spec/logRotationSize", json!(-1), "spec.logRotationSize")]
#[case::no_schedule("/spec/logRotationSchedule", json!("hourly"), "spec.logRotationSchedule")]
#[case::zoned_schedule("/spec/logRotationSchedule", json!("TZ=UTC @daily"), "spec.logRotationSchedule")]
#[case::no_server("/spec/podTemplate/spec/containers/0/name", json!("mysql"), CONTAINERS)]
#[case::no_image("/spec/podTemplate/spec/containers/0/image", Value::Null, "spec.podTemplate.spec.containers[0].image")]
#[case::no_second_image("/spec/podTemplate/spec/containers/1/image", json!(""), "spec.podTemplate.spec.containers[1].image")]
#[case::no_init_image(
    "/spec/podTemplate/spec/initContainers/0/image",
    Value::Null,
    "spec.podTemplate.spec.initContainers[0].image"
)]
#[case::nameless("/spec/podTemplate/spec/containers/1/name", json!(""), "spec.podTemplate.spec.containers[1].name")]
#[case::nameless_init("/spec/podTemplate/spec/initContainers/0/name", json!(""), "spec.podTemplate.spec.initContainers[0].name")]
#[case::an_agent("/spec/podTemplate/spec/containers/1/name", json!("agent"), "spec.podTemplate.spec.containers[1].name")]
#[case::an_init("/spec/podTemplate/spec/initContainers/0/name", json!("moco-init"), "spec.podTemplate.spec.initContainers[0].name")]
#[case::a_copy("/spec/podTemplate/spec/initContainers/0/name", json!("copy-moco-init"), "spec.podTemplate.spec.initContainers[0].name")]
#[case::an_agent_first("/spec/podTemplate/spec/initContainers/0/name", json!("agent"), "spec.podTemplate.spec.initContainers[0].name")]
#[case::twice("/spec/podTemplate/spec/initContainers/0/name", json!("second"), "spec.podTemplate.spec")]
#[case::our_port("/spec/podTemplate/spec/containers/0/ports", json!([{ "containerPort": 33062 }]), "spec.podTemplate.spec.containers: mysqld: ports")]
#[case::our_port_name("/spec/podTemplate/spec/containers/0/ports", json!([{ "name": "health", "containerPort": 1 }]), "spec.podTemplate.spec.containers: mysqld: ports")]
#[case::no_probe("/spec/podTemplate/spec/containers/0/livenessProbe", json!("often"), "spec.podTemplate.spec")]
#[case::our_volume("/spec/podTemplate/spec/volumes/0/name", json!("my-cnf-secret"), "spec.podTemplate.spec.volumes[0].name")]
#[case::a_volume_that_is_used_as_well("/spec/podTemplate/spec/volumes/0/name", json!("shared"), "spec.podTemplate.spec.volumes[0].name")]
#[case::nameless_volume("/spec/podTemplate/spec/volumes/0/name", Value::Null, "spec.podTemplate.spec.volumes[0].name")]
#[case::no_resources("/spec/podTemplate/overwriteContainers/0/resources", json!({ "limits": 1 }), "spec.podTemplate.overwriteContainers[0].resources")]
#[case::no_context("/spec/podTemplate/overwriteContainers/0/securityContext", json!({ "runAsUser": "me" }), "spec.podTemplate.overwriteContainers[0].securityContext")]
#[case::no_data("/spec/volumeClaimTemplates/0/metadata/name", json!("data"), "spec.volumeClaimTemplates")]
#[case::nameless_claim("/spec/volumeClaimTemplates/1/metadata/name", Value::Null, "spec.volumeClaimTemplates[1].metadata.name")]
#[case::claim_twice("/spec/volumeClaimTemplates/1/metadata/name", json!("mysql-data"), "spec.volumeClaimTemplates[1].metadata.name")]
#[case::claim_of_ours("/spec/volumeClaimTemplates/1/metadata/name", json!("run"), "spec.volumeClaimTemplates[1].metadata.name")]
#[case::no_storage("/spec/volumeClaimTemplates/0/spec/resources/requests", json!({}), "spec.volumeClaimTemplates[0].spec.resources.requests.storage")]
#[case::no_claim("/spec/volumeClaimTemplates/0/spec/accessModes", json!(1), "spec.volumeClaimTemplates[0].spec")]
#[case::no_service("/spec/primaryServiceTemplate/spec/ports", json!("all"), "spec.primaryServiceTemplate.spec")]
#[case::no_other_service("/spec/replicaServiceTemplate/spec/type", json!([]), "spec.replicaServiceTemplate.spec")]
fn what_is_wrong_is_named_by_its_path(#[case] place: &str, #[case] value: Value, #[case] field: &str) {
    let Invalid { problems } = validate(&with(place, value)).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = problems[0].strip_prefix(&format!("{field}: ")).unwrap_or_else(|| panic!("{problems:?}"));
    assert!(problem.len() > 10, "{problem}");
}

#[rstest]
#[case::as_it_is("", Value::Null)]
#[case::longest_name("/metadata/name", json!("1".repeat(40)))]
#[case::alone("/spec/replicas", json!(1))]
#[case::chosen_by_the_operator("/spec/serverIDBase", json!(0))]
#[case::no_limit("/spec/maxDelaySeconds", json!(0))]
#[case::schedule("/spec/logRotationSchedule", json!("@every 10s"))]
#[case::empty_schedule("/spec/logRotationSchedule", json!(""))]
#[case::offline("/spec/offline", json!(true))]
#[case::backups("/spec/backupPolicyName", json!("nightly"))]
#[case::another_port("/spec/podTemplate/spec/containers/0/ports", json!([{ "name": "extra", "containerPort": 9999 }]))]
#[case::our_port_elsewhere("/spec/podTemplate/spec/containers/1/ports", json!([{ "name": "mysql", "containerPort": 3306 }]))]
#[case::fields_of_tomorrow("/spec/podTemplate/spec/containers/0/fromTheFuture", json!({ "deep": [1] }))]
// The image of a sidecar is the user's to name.
#[case::slow_log("/spec/podTemplate/spec/containers/1/name", json!("slow-log"))]
#[case::exporter("/spec/podTemplate/spec/containers/1/name", json!("mysqld-exporter"))]
fn what_is_unusual_is_accepted(#[case] place: &str, #[case] value: Value) {
    assert_eq!(validate(&with(place, value)).err(), None);
}

#[test]
fn a_restore_is_accepted() {
    let restore = json!({
        "sourceName": "pier", "sourceNamespace": "shop", "restorePoint": "2026-01-31T12:00:00Z",
        "jobConfig": {
            "serviceAccountName": "restorer", "bucketConfig": { "bucketName": "b" }, "workVolume": { "emptyDir": {} },
        },
    });
    assert!(validate(&with("/spec/restore", restore)).is_ok());
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut resource = with("/metadata/name", json!("Harbour"));
    resource.spec.replicas = Some(4);
    resource.spec.volume_claim_templates.clear();
    resource.spec.pod_template.spec.containers.clear();
    let invalid = validate(&resource).unwrap_err();
    assert_eq!(invalid.problems.len(), 4, "{invalid}");
    assert!(invalid.problems.iter().all(|problem| invalid.to_string().contains(problem)));
}

#[test]
fn what_was_found_good_is_taken_over() {
    let mut resource = with("/spec/replicas", Value::Null);
    resource.metadata.annotations = Some([(keys::FORCE_ROLLING_UPDATE.into(), "true".into())].into());
    let cluster = validate(&resource).unwrap();
    assert_eq!((cluster.name.as_str(), cluster.namespace.as_str(), cluster.replicas), ("harbour", "shop", 1));
    assert_eq!(cluster.mysqld, resource.spec.pod_template.spec.containers[0]);
    assert!(cluster.force_rolling_update && !cluster.offline);
    let owner = Owner {
        api_version: "moco.cybozu.com/v1beta2".into(),
        kind: "MySQLCluster".into(),
        name: "harbour".into(),
        uid: "u-1".into(),
    };
    assert_eq!(cluster.owner, owner);
    resource.metadata.annotations = Some([(keys::FORCE_ROLLING_UPDATE.into(), "yes".into())].into());
    assert!(!validate(&resource).unwrap().force_rolling_update);
}
