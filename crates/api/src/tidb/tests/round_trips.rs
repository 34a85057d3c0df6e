//! What is read and written again is what it was.

use rstest::rstest;
use serde_json::{Value, json};

use super::{ADVANCED, BASIC, EVERYTHING};
use crate::fixture::{document, with};
use crate::tidb::{Config, MemberPhase, TidbCluster};

fn read(document: Value) -> TidbCluster {
    serde_json::from_value(document).unwrap()
}

/// Quantities become text, which is what Kubernetes makes of them too.
fn with_texts(value: Value, within_quantities: bool) -> Value {
    match value {
        Value::Object(fields) => {
            let inside = |name: &str| within_quantities || name == "requests" || name == "limits";
            fields.into_iter().map(|(name, value)| (name.clone(), with_texts(value, inside(&name)))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| with_texts(item, within_quantities)).collect(),
        Value::Number(number) if within_quantities => number.to_string().into(),
        value => value,
    }
}

#[rstest]
#[case::basic(BASIC)]
#[case::advanced(ADVANCED)]
#[case::everything(EVERYTHING)]
fn a_manifest_is_read_and_written_without_loss(#[case] manifest: &str) {
    let document = document(manifest);
    assert_eq!(serde_json::to_value(read(document.clone())).unwrap(), with_texts(document, false));
}

#[rstest]
#[case("/spec/affinity/fromTheFuture")]
#[case("/spec/tolerations/0/fromTheFuture")]
#[case("/spec/dnsConfig/fromTheFuture")]
#[case("/spec/podSecurityContext/fromTheFuture")]
#[case("/spec/pd/securityContext/fromTheFuture")]
#[case("/spec/pd/env/0/fromTheFuture")]
#[case("/spec/pd/initContainers/0/fromTheFuture")]
#[case("/spec/pd/additionalContainers/0/fromTheFuture")]
#[case("/spec/pd/additionalVolumes/0/fromTheFuture")]
#[case("/spec/pd/additionalVolumeMounts/0/fromTheFuture")]
#[case("/spec/pd/config/fromTheFuture")]
#[case("/spec/pdms/0/fromTheFuture")]
#[case("/spec/tidb/lifecycle/fromTheFuture")]
#[case("/spec/tidb/service/additionalPorts/0/fromTheFuture")]
fn what_a_newer_kubernetes_knows_survives(#[case] place: &str) {
    let document = with(EVERYTHING, place, json!({ "deep": [1, { "er": null }] }));
    assert_eq!(serde_json::to_value(read(document.clone())).unwrap(), document);
}

#[rstest]
#[case(json!("a = 1"), Config::Toml("a = 1".into()))]
#[case(json!({ "a": { "b": [1] } }), Config::Map(json!({ "a": { "b": [1] } }).as_object().unwrap().clone()))]
#[case(json!(7), Config::Other(json!(7)))]
fn a_configuration_is_whatever_was_written(#[case] written: Value, #[case] expected: Config) {
    let cluster = read(with(BASIC, "/spec/pd/config", written));
    assert_eq!(cluster.spec.pd.unwrap().config, Some(expected));
}

#[test]
fn parts_are_read_as_types_of_kubernetes() {
    let cluster = read(document(ADVANCED));
    let tikv = cluster.spec.tikv.unwrap();
    let containers = tikv.component.additional_containers.unwrap();
    assert_eq!(containers[1].read().unwrap().image.as_deref(), Some("busybox:1.37"));
    assert_eq!(tikv.component.requests.unwrap()["cpu"].0, "4");
    assert_eq!(tikv.scale_policy.unwrap().scale_in_parallelism, Some(2));
}

/// A status that another operator wrote, or that somebody broke, is read as far as it goes.
#[rstest]
#[case("/status/pd", json!("rubbish"))]
#[case("/status/pd/members", json!({ "a": 7 }))]
#[case("/status/pd/phase", json!("Unheard"))]
#[case("/status/tikv/stores", json!([1]))]
#[case("/status/conditions", json!([{ "type": "Ready", "lastUpdateTime": null }]))]
#[case("/status/tikv/statefulSet/replicas", json!(-1))]
fn a_broken_status_reads_as_absent(#[case] place: &str, #[case] rubbish: Value) {
    let cluster = read(with(EVERYTHING, place, rubbish.clone()));
    let status = cluster.status.unwrap();
    assert_eq!(status.cluster_id, "7351234567890123456");
    assert_eq!(status.tikv.as_ref().unwrap().phase, Some(MemberPhase::Scale));
    let written = serde_json::to_value(&status).unwrap();
    assert_ne!(written.pointer(place.strip_prefix("/status").unwrap()), Some(&rubbish));
}

#[test]
fn stores_as_others_count_them_are_read_without_the_count() {
    let store =
        json!({ "1": { "id": "1", "podName": "p", "ip": "h", "leaderCount": 9, "state": "Up", "lastTransitionTime": null } });
    let cluster = read(with(EVERYTHING, "/status/tikv/stores", store));
    let store = cluster.status.unwrap().tikv.unwrap().stores["1"].clone();
    assert_eq!((store.state.as_str(), store.last_transition_time), ("Up", None));
}
