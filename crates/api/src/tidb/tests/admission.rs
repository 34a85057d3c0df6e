//! What an API server accepts and refuses, as far as the schema alone decides it.

use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_testkit::FakeApiServer;

use super::{ADVANCED, BASIC, EVERYTHING, definition};
use crate::fixture::{document, with};
use crate::tidb::TidbCluster;

/// The object as the server stored it, or why it did not.
async fn create(document: Value) -> Result<Value, String> {
    let server = FakeApiServer::new();
    server.namespace("shop");
    server.register_crd(definition());
    let resource = ApiResource::erase::<TidbCluster>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(server.client(), "shop", &resource);
    let object = serde_json::from_value(document).map_err(|error| error.to_string())?;
    let stored = api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())?;
    serde_json::to_value(stored).map_err(|error| error.to_string())
}

#[rstest]
#[case::basic(BASIC)]
#[case::advanced(ADVANCED)]
#[case::everything(EVERYTHING)]
#[tokio::test]
async fn manifests_of_users_are_stored_as_they_are(#[case] manifest: &str) {
    assert_eq!(create(document(manifest)).await.unwrap()["spec"], document(manifest)["spec"]);
}

#[rstest]
#[case("/spec/pd/config", json!("lease = 3"))]
#[case("/spec/pd/config", json!({ "a": { "b": { "c": [1, "x"] } } }))]
#[case("/spec/pd/replicas", json!(0))]
#[case("/spec/pd/requests/storage", json!(1_073_741_824))]
#[case("/spec/affinity", json!({ "anything": { "at": "all" } }))]
#[case("/spec/tikv/additionalContainers", json!([{ "name": "a", "fromTheFuture": {} }]))]
#[case("/spec/startScriptVersion", json!(""))]
#[case("/spec/tidb", Value::Null)]
#[tokio::test]
async fn what_is_allowed_is_stored(#[case] place: &str, #[case] value: Value) {
    let stored = create(with(BASIC, place, value.clone())).await.unwrap();
    assert_eq!(stored.pointer(place).cloned().unwrap_or_default(), value);
}

#[rstest]
#[case(BASIC, "/spec/pd/replicas", Value::Null)]
#[case(BASIC, "/spec/pd/replicas", json!(-1))]
#[case(BASIC, "/spec/tikv/scalePolicy", json!({ "scaleInParallelism": 0 }))]
#[case(BASIC, "/spec/tikv/scalePolicy", json!({ "scaleOutParallelism": -1 }))]
#[case(BASIC, "/spec/tidb/service/port", json!(0))]
#[case(BASIC, "/spec/tidb/terminationGracePeriodSeconds", json!(-1))]
#[case(BASIC, "/spec/paused", json!("yes"))]
#[case(ADVANCED, "/spec/tiflash/storageClaims", Value::Null)]
#[case(ADVANCED, "/spec/tiflash/storageClaims", json!([]))]
#[case(ADVANCED, "/spec/tiflash/storageClaims", json!([7]))]
#[case(ADVANCED, "/spec/pd/storageVolumes", json!([{ "name": "log" }]))]
#[tokio::test]
async fn what_is_not_allowed_is_refused_by_name(#[case] manifest: &str, #[case] place: &str, #[case] value: Value) {
    let error = create(with(manifest, place, value)).await.unwrap_err();
    let name = place.rsplit('/').next().unwrap();
    assert!(error.contains(name), "{error}");
}
