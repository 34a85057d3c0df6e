//! The definition is the one that users know.

use rstest::rstest;
use serde_json::{Value, json};

use super::{EVERYTHING, definition, schema};
use crate::fixture::document;
use crate::tidb::conditions::ReadyReason;
use crate::tidb::{Component, keys};

/// With more than this, one definition would weigh more than all others.
const LARGEST: usize = 150_000;

#[test]
fn names_and_subresources() {
    let definition = definition();
    assert_eq!(definition.metadata.name.as_deref(), Some("tidbclusters.pingcap.com"));
    assert_eq!((definition.spec.group.as_str(), definition.spec.scope.as_str()), ("pingcap.com", "Namespaced"));
    let names = &definition.spec.names;
    assert_eq!((names.kind.as_str(), names.plural.as_str()), ("TidbCluster", "tidbclusters"));
    assert_eq!(names.short_names, Some(vec!["tc".to_owned()]));
    assert_eq!(definition.spec.versions.len(), 1);
    let version = &definition.spec.versions[0];
    assert_eq!((version.name.as_str(), version.served, version.storage), ("v1alpha1", true, true));
    let subresources = version.subresources.clone().unwrap();
    assert!(subresources.status.is_some());
    let scale = subresources.scale.unwrap();
    assert_eq!(scale.spec_replicas_path, ".spec.tikv.replicas");
    assert_eq!(scale.status_replicas_path, ".status.tikv.statefulSet.replicas");
    assert_eq!(scale.label_selector_path.as_deref(), Some(".status.tikv.selector"));
}

#[test]
fn columns_are_printed_as_ever() {
    let columns = definition().spec.versions[0].additional_printer_columns.clone().unwrap();
    let columns: Vec<String> = columns
        .into_iter()
        .map(|it| format!("{} {} {} {}", it.name, it.type_, it.json_path, it.priority.unwrap_or_default()))
        .collect();
    let expected = [
        "Ready string .status.conditions[?(@.type=='Ready')].status 0",
        "PD string .status.pd.image 0",
        "Storage string .spec.pd.requests.storage 0",
        "Ready integer .status.pd.statefulSet.readyReplicas 0",
        "Desire integer .spec.pd.replicas 0",
        "TiKV string .status.tikv.image 0",
        "Storage string .spec.tikv.requests.storage 0",
        "Ready integer .status.tikv.statefulSet.readyReplicas 0",
        "Desire integer .spec.tikv.replicas 0",
        "TiDB string .status.tidb.image 0",
        "Ready integer .status.tidb.statefulSet.readyReplicas 0",
        "Desire integer .spec.tidb.replicas 0",
        "Status string .status.conditions[?(@.type=='Ready')].message 1",
        "Age date .metadata.creationTimestamp 0",
    ];
    assert_eq!(columns, expected);
}

#[test]
fn it_is_small() {
    let size = serde_json::to_string(definition()).unwrap().len();
    assert!(size <= LARGEST, "it has {size} bytes");
}

/// What reaches a pod template must not change with the definition.
#[test]
fn nothing_has_a_default() {
    assert!(!schema()["properties"]["spec"].to_string().contains("\"default\""));
}

#[test]
fn every_field_of_ours_is_explained() {
    let mut silent = Vec::new();
    let mut walk = |place: &str| {
        let schema = schema();
        let fields = schema.pointer(&format!("/properties/{place}/properties")).unwrap().as_object().unwrap().clone();
        silent.extend(fields.iter().filter(|it| !it.1["description"].is_string()).map(|it| format!("{place} {}", it.0)));
    };
    for part in ["spec", "status"] {
        walk(part);
        for component in Component::ALL {
            walk(&format!("{part}/properties/{component}"));
        }
    }
    assert_eq!(silent, Vec::<String>::new());
}

/// The manifest with everything has every field of the schema: so the other tests speak of all of them.
#[rstest]
#[case("spec")]
#[case("spec/pd")]
#[case("spec/tikv")]
#[case("spec/tidb")]
#[case("spec/tidb/service")]
#[case("spec/tiflash")]
#[case("spec/ticdc")]
#[case("spec/tiproxy")]
#[case("spec/pump")]
#[case("status")]
#[case("status/pd")]
#[case("status/tikv")]
fn the_fixture_has_every_field(#[case] place: &str) {
    let node = schema().pointer(&format!("/properties/{}/properties", place.replace('/', "/properties/"))).unwrap().clone();
    let has = document(EVERYTHING).pointer(&format!("/{place}")).unwrap().clone();
    let common = document(EVERYTHING)["spec"]["pd"].clone();
    let service = document(EVERYTHING)["spec"]["pd"]["service"].clone();
    let missing: Vec<&String> = node
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| {
            // What all components have is given once, and so is what every Service has.
            let elsewhere = match place {
                "spec/tidb/service" => &service,
                place if place.starts_with("spec/") => &common,
                _ => &Value::Null,
            };
            has[*name].is_null() && elsewhere[*name].is_null() && *name != "volumes"
        })
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}

#[rstest]
#[case("pd/properties/config")]
#[case("tikv/properties/config")]
#[case("tidb/properties/config")]
#[case("tiflash/properties/config/properties/config")]
#[case("tiflash/properties/config/properties/proxy")]
#[case("ticdc/properties/config")]
#[case("tiproxy/properties/config")]
#[case("pump/properties/config")]
fn a_configuration_may_be_a_map_or_a_text(#[case] place: &str) {
    let schema = schema();
    let node = schema.pointer(&format!("/properties/spec/properties/{place}")).unwrap();
    assert_eq!((&node["type"], &node["x-kubernetes-preserve-unknown-fields"]), (&Value::Null, &json!(true)));
}

#[rstest]
#[case("pd", "requests.storage")]
#[case("tikv", "requests.storage")]
#[case("pump", "requests.storage")]
#[case("tiflash/properties/storageClaims/items", "request storage")]
#[case("pd/properties/mode", "ms or absent")]
#[case("pd/properties/configUpdateStrategy", "InPlace or RollingUpdate")]
#[case("tidb/properties/readinessProbe/properties/type", "tcp or command")]
#[case("startScriptVersion", "v1 or v2")]
fn the_server_is_told_the_rules(#[case] place: &str, #[case] message: &str) {
    let schema = schema();
    let node = schema.pointer(&format!("/properties/spec/properties/{place}")).unwrap();
    let rules = node["x-kubernetes-validations"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["message"].as_str().unwrap().contains(message)), "{rules:?}");
}

#[test]
fn conditions_and_keys_are_spelled_as_ever() {
    assert_eq!(
        ReadyReason::ALL.map(ReadyReason::as_str).join(" "),
        "StatefulSetNotUpToDate PDUnhealthy TiKVStoreNotUp TiDBUnhealthy TiFlashStoreNotUp TiCDCCaptureNotReady TiProxyUnhealthy Ready"
    );
    let slots = Component::ALL.map(keys::delete_slots);
    let expected = Component::ALL.map(|it| (it != Component::Pump).then(|| format!("{it}.tidb.pingcap.com/delete-slots")));
    assert_eq!(slots.map(|it| it.map(str::to_owned)), expected);
}
