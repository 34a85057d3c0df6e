//! What is read and written again is what it was.

use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaimSpec, PodSpec};
use rstest::rstest;
use serde_json::{Value, json};

use super::{FULL, FULL_POLICY, MINIMAL, POLICY, document, with};
use crate::mysql::{BackupPolicy, MySQLCluster, read};

/// Read as its type, and written again.
fn again(document: &Value) -> Value {
    let read = |document: Value| match document["kind"].as_str() {
        Some("BackupPolicy") => serde_json::to_value(serde_json::from_value::<BackupPolicy>(document).unwrap()),
        _ => serde_json::to_value(serde_json::from_value::<MySQLCluster>(document).unwrap()),
    };
    read(document.clone()).unwrap()
}

#[rstest]
#[case::minimal(MINIMAL)]
#[case::full(FULL)]
#[case::policy(POLICY)]
#[case::full_policy(FULL_POLICY)]
fn a_manifest_is_read_and_written_without_loss(#[case] manifest: &str) {
    let mut document = document(manifest);
    // Quantities become text, which is what Kubernetes makes of them too; within templates even they stay as they are.
    assert_eq!(again(&document), document);
    if document["kind"] == "BackupPolicy" {
        document["spec"]["jobConfig"]["cpu"] = json!(4);
        assert_eq!(again(&document)["spec"]["jobConfig"]["cpu"], "4");
    }
}

#[rstest]
#[case(MINIMAL, "/spec/podTemplate/spec/fromTheFuture")]
#[case(MINIMAL, "/spec/podTemplate/spec/containers/0/fromTheFuture")]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/spec/fromTheFuture")]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/spec/resources/fromTheFuture")]
#[case(FULL, "/spec/podTemplate/spec/containers/0/ports/0/fromTheFuture")]
#[case(FULL, "/spec/podTemplate/spec/initContainers/0/fromTheFuture")]
#[case(FULL, "/spec/podTemplate/spec/volumes/0/fromTheFuture")]
#[case(FULL, "/spec/podTemplate/overwriteContainers/0/resources/fromTheFuture")]
#[case(FULL, "/spec/podTemplate/overwriteContainers/1/securityContext/fromTheFuture")]
#[case(FULL, "/spec/primaryServiceTemplate/spec/fromTheFuture")]
#[case(FULL, "/spec/restore/jobConfig/workVolume/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/workVolume/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/affinity/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/env/0/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/envFrom/0/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/volumes/0/fromTheFuture")]
#[case(FULL_POLICY, "/spec/jobConfig/volumeMounts/0/fromTheFuture")]
fn what_a_newer_kubernetes_knows_survives_in_a_template(#[case] manifest: &str, #[case] place: &str) {
    let document = with(manifest, place, json!({ "deep": [1, { "er": null }] }));
    assert_eq!(again(&document), document);
}

#[test]
fn parts_of_templates_are_read_as_types_of_kubernetes() {
    let cluster: MySQLCluster = serde_json::from_value(document(FULL)).unwrap();
    let template = &cluster.spec.pod_template;
    let pod: PodSpec = read(&template.spec).unwrap();
    assert_eq!((pod.termination_grace_period_seconds, pod.containers.len()), (Some(600), 2));
    let container: Container = read(&template.spec.containers[0]).unwrap();
    // It was written as a number.
    assert_eq!(container.resources.unwrap().limits.unwrap()["cpu"].0, "2");
    let claim: PersistentVolumeClaimSpec = read(&cluster.spec.volume_claim_templates[0].spec).unwrap();
    assert_eq!(claim.storage_class_name.as_deref(), Some("fast"));
    // A port without a number is no mistake: the operator knows that of mysql.
    let service = cluster.spec.primary_service_template.unwrap().spec.unwrap().read().unwrap();
    assert_eq!(service.ports.unwrap()[0].node_port, Some(30306));
}

#[rstest]
#[case(json!("rubbish"))]
#[case(json!({ "time": 7, "warnings": "none", "dumpSize": "large" }))]
fn a_broken_status_reads_as_absent(#[case] backup: Value) {
    let mut document = with(FULL, "/status/backup", backup);
    document["status"]["currentPrimaryIndex"] = json!(-1);
    document["status"]["conditions"] = json!({ "Ready": true });
    let status = serde_json::from_value::<MySQLCluster>(document).unwrap().status.unwrap();
    assert_eq!((status.current_primary_index, status.conditions.len()), (0, 0));
    assert_eq!(status.synced_replicas, Some(3));
    assert_eq!(status.backup.unwrap_or_default().time, None);
}

#[test]
fn a_backup_that_was_not_taken_yet_has_no_time_and_says_so() {
    // The column shows a null, and nothing for a field that is absent.
    assert_eq!(serde_json::to_value(crate::mysql::BackupStatus::default()).unwrap(), json!({ "time": null }));
}
