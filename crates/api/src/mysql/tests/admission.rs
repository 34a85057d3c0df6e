//! What an API server accepts, fills in and refuses, as far as the schema alone decides it.

use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_testkit::FakeApiServer;

use super::{FULL, FULL_POLICY, MINIMAL, POLICY, definition, document, with};
use crate::mysql::{BackupPolicy, MySQLCluster};

/// The object as the server stored it, or why it did not.
async fn create(document: Value) -> Result<Value, String> {
    let server = FakeApiServer::new();
    server.namespace("shop");
    let resource = match document["kind"].as_str().unwrap() {
        "BackupPolicy" => ApiResource::erase::<BackupPolicy>(&()),
        _ => ApiResource::erase::<MySQLCluster>(&()),
    };
    server.register_crd(definition(&resource.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(server.client(), "shop", &resource);
    let object = serde_json::from_value(document).map_err(|error| error.to_string())?;
    let stored = api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())?;
    serde_json::to_value(stored).map_err(|error| error.to_string())
}

#[rstest]
#[case::full(FULL)]
#[case::full_policy(FULL_POLICY)]
#[tokio::test]
async fn a_manifest_with_every_field_is_stored_as_it_is(#[case] manifest: &str) {
    let mut expected = document(manifest)["spec"].clone();
    // The one part of these manifests that has room for defaults.
    if let Some(job) = expected.pointer_mut("/restore/jobConfig") {
        job["threads"] = json!(4);
        job["cpu"] = json!(4);
        job["memory"] = json!("4Gi");
        job["bucketConfig"]["backendType"] = json!("s3");
    }
    assert_eq!(create(document(manifest)).await.unwrap()["spec"], expected);
}

#[rstest]
#[case(MINIMAL, "/spec/replicas", json!(1))]
#[case(MINIMAL, "/spec/maxDelaySeconds", json!(60))]
#[case(MINIMAL, "/spec/maxDelaySecondsForPodDeletion", json!(0))]
#[case(MINIMAL, "/spec/startupWaitSeconds", json!(3600))]
#[case(MINIMAL, "/spec/logRotationSize", json!(0))]
#[case(MINIMAL, "/spec/initializeTimezoneData", json!(false))]
#[case(POLICY, "/spec/concurrencyPolicy", json!("Allow"))]
#[case(POLICY, "/spec/jobConfig/threads", json!(4))]
#[case(POLICY, "/spec/jobConfig/cpu", json!(4))]
#[case(POLICY, "/spec/jobConfig/memory", json!("4Gi"))]
#[case(POLICY, "/spec/jobConfig/bucketConfig/backendType", json!("s3"))]
#[tokio::test]
async fn defaults_are_filled_in(#[case] manifest: &str, #[case] place: &str, #[case] default: Value) {
    let stored = create(document(manifest)).await.unwrap();
    assert_eq!(stored.pointer(place), Some(&default));
    // Only they are.
    let fields = |document: &Value| document["spec"].as_object().unwrap().len();
    let added = if stored["kind"] == "BackupPolicy" { 1 } else { 6 };
    assert_eq!(fields(&stored), fields(&document(manifest)) + added);
}

#[rstest]
#[case(MINIMAL, "/spec/podTemplate/spec/schedulingGroup", json!({ "name": "a" }))]
#[case(MINIMAL, "/spec/podTemplate/spec/containers/0/fromTheFuture", json!([1]))]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/spec/fromTheFuture", json!("x"))]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!(1_073_741_824))]
#[case(MINIMAL, "/spec/primaryServiceTemplate", json!({ "spec": { "fromTheFuture": true } }))]
#[case(MINIMAL, "/spec/serverIDBase", json!(0))]
#[case(POLICY, "/spec/jobConfig/workVolume/fromTheFuture", json!({ "a": 1 }))]
#[case(POLICY, "/spec/jobConfig/cpu", json!("500m"))]
#[case(POLICY, "/spec/jobConfig/maxMemory", json!(4_294_967_296_i64))]
#[tokio::test]
async fn what_is_allowed_is_stored(#[case] manifest: &str, #[case] place: &str, #[case] value: Value) {
    let stored = create(with(manifest, place, value.clone())).await.unwrap();
    assert_eq!(stored.pointer(place), Some(&value));
}

#[rstest]
#[case(MINIMAL, "/spec/podTemplate", Value::Null)]
#[case(MINIMAL, "/spec/podTemplate/spec/containers", Value::Null)]
#[case(MINIMAL, "/spec/podTemplate/spec/containers", json!([]))]
#[case(MINIMAL, "/spec/podTemplate/spec/containers/0/name", Value::Null)]
#[case(MINIMAL, "/spec/podTemplate/spec/initContainers", json!([{ "image": "busybox" }]))]
#[case(MINIMAL, "/spec/podTemplate/overwriteContainers", json!([{ "name": "mysqld" }]))]
#[case(MINIMAL, "/spec/volumeClaimTemplates", Value::Null)]
#[case(MINIMAL, "/spec/volumeClaimTemplates", json!([]))]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/metadata", Value::Null)]
#[case(MINIMAL, "/spec/volumeClaimTemplates/0/spec", Value::Null)]
#[case(MINIMAL, "/spec/replicas", json!(0))]
#[case(MINIMAL, "/spec/serverIDBase", json!(-1))]
#[case(MINIMAL, "/spec/maxDelaySeconds", json!(-1))]
#[case(MINIMAL, "/spec/maxDelaySecondsForPodDeletion", json!(-1))]
#[case(MINIMAL, "/spec/startupWaitSeconds", json!(-1))]
#[case(MINIMAL, "/spec/logRotationSize", json!(-1))]
#[case(FULL, "/spec/restore/sourceName", json!(""))]
#[case(FULL, "/spec/restore/sourceNamespace", json!(""))]
#[case(FULL, "/spec/restore/restorePoint", Value::Null)]
#[case(FULL, "/spec/restore/jobConfig", Value::Null)]
#[case(POLICY, "/spec/schedule", Value::Null)]
#[case(POLICY, "/spec/schedule", json!(""))]
#[case(POLICY, "/spec/concurrencyPolicy", json!("Perhaps"))]
#[case(POLICY, "/spec/backoffLimit", json!(-1))]
#[case(POLICY, "/spec/successfulJobsHistoryLimit", json!(-1))]
#[case(POLICY, "/spec/failedJobsHistoryLimit", json!(-1))]
#[case(POLICY, "/spec/jobConfig", Value::Null)]
#[case(POLICY, "/spec/jobConfig/serviceAccountName", json!(""))]
#[case(POLICY, "/spec/jobConfig/bucketConfig", Value::Null)]
#[case(POLICY, "/spec/jobConfig/bucketConfig/bucketName", json!(""))]
#[case(POLICY, "/spec/jobConfig/bucketConfig/backendType", json!("tape"))]
#[case(POLICY, "/spec/jobConfig/workVolume", Value::Null)]
#[case(POLICY, "/spec/jobConfig/threads", json!(0))]
#[case(POLICY, "/spec/jobConfig/cpu", json!(true))]
#[tokio::test]
async fn what_is_not_allowed_is_refused_by_name(#[case] manifest: &str, #[case] place: &str, #[case] value: Value) {
    let error = create(with(manifest, place, value)).await.unwrap_err();
    let name = place.rsplit('/').next().unwrap();
    assert!(error.contains(name), "{error}");
}
