//! `StatefulSets`: whole, in what the caller decides, and in what keeps a template.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

#[rstest]
#[case(Component::Pd)]
#[case(Component::Tikv)]
#[case(Component::Tidb)]
#[case(Component::Tiflash)]
#[case(Component::Ticdc)]
#[case(Component::Tiproxy)]
#[case(Component::Pump)]
fn every_object_of_a_component(#[case] component: Component) {
    insta::assert_yaml_snapshot!(format!("objects_{component}"), written(&built(&valid(&[]), component)));
}

#[rstest]
#[case(Component::Pd, "harbour-pd-peer", "pd")]
#[case(Component::Tikv, "harbour-tikv-peer", "tikv")]
#[case(Component::Tidb, "harbour-tidb-peer", "")]
#[case(Component::Tiflash, "harbour-tiflash-peer", "data0")]
#[case(Component::Ticdc, "harbour-ticdc-peer", "")]
#[case(Component::Tiproxy, "harbour-tiproxy-peer", "")]
#[case(Component::Pump, "harbour-pump", "data")]
fn names_and_selectors_are_those_that_users_know(#[case] component: Component, #[case] service: &str, #[case] claims: &str) {
    let set = set(&valid(&[]), component);
    assert_eq!(set.object.name, format!("harbour-{component}"));
    assert_eq!(set.spec["serviceName"], service);
    assert_eq!(set.spec["podManagementPolicy"], "Parallel");
    let selector = set.spec["selector"]["matchLabels"].as_object().unwrap();
    assert_eq!(selector.len(), 4);
    let labels = set.spec["template"]["metadata"]["labels"].as_object().unwrap();
    assert!(selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
    // The operator finds pods and claims by one more.
    assert_eq!(labels["windlass.dev/kind"], "tc");
    let templates = set.spec["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = templates.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), claims);
    assert!(templates.iter().all(|it| it["metadata"]["labels"]["windlass.dev/kind"] == "tc"));
    assert!(templates.iter().all(|it| it["metadata"].get("ownerReferences").is_none()), "data outlives the cluster");
}

#[test]
fn size_and_partition_are_the_callers() {
    let cluster = valid(&[]);
    let children = Children::default();
    let inputs = Inputs { replicas: 7, partition: 3, children: &children };
    let objects = super::super::component::<NoAction>(&cluster, Component::Tikv, &inputs).unwrap().applied;
    let set = find(&objects, ObjectKind::StatefulSet);
    assert_eq!(set.spec["replicas"], 7);
    assert_eq!(set.spec["updateStrategy"], json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 3 } }));
    // The size changes on another path, and is no reason to write the whole; the partition is.
    let written = |inputs: Inputs<'_>| {
        let objects = super::super::component::<NoAction>(&cluster, Component::Tikv, &inputs).unwrap().applied;
        find(&objects, ObjectKind::StatefulSet).annotations.clone()
    };
    assert_eq!(written(Inputs { replicas: 4, ..inputs }), set.annotations);
    assert_ne!(written(Inputs { partition: 4, ..inputs }), set.annotations);
    assert_eq!(find(&objects, ObjectKind::PodDisruptionBudget).spec["maxUnavailable"], 1);
}

#[test]
fn the_user_may_replace_pods_and_have_them_one_after_the_other() {
    let cluster =
        valid(&[("/spec/statefulSetUpdateStrategy", json!("OnDelete")), ("/spec/podManagementPolicy", json!("OrderedReady"))]);
    let set = set(&cluster, Component::Tikv);
    assert_eq!(set.spec["updateStrategy"], json!({ "type": "OnDelete" }));
    assert_eq!(set.spec["podManagementPolicy"], "OrderedReady");
}

#[test]
fn a_component_that_is_not_asked_for_has_no_objects() {
    let cluster = valid(&[("/spec/pump", Value::Null)]);
    let children = Children::default();
    let inputs = Inputs { replicas: 1, partition: 1, children: &children };
    assert!(super::super::component::<NoAction>(&cluster, Component::Pump, &inputs).is_none());
}

/// What reaches a template, and what does not, by whether the hash of the inputs changes.
#[rstest]
#[case(Component::Tikv, "/spec/paused", json!(true), false)]
#[case(Component::Tikv, "/spec/tikv/replicas", json!(9), false)]
#[case(Component::Tikv, "/spec/tikv/scalePolicy", json!({ "scaleInParallelism": 5 }), false)]
#[case(Component::Tikv, "/spec/tikv/evictLeaderTimeout", json!("5m"), false)]
#[case(Component::Tikv, "/spec/tikv/requests/storage", json!("20Gi"), false)]
#[case(Component::Tikv, "/spec/tikv/storageClassName", json!("fast"), false)]
#[case(Component::Tikv, "/spec/tikv/config", json!({ "a": 1 }), false)]
#[case(Component::Tikv, "/spec/pd/config", json!({ "a": 1 }), false)]
#[case(Component::Tikv, "/spec/tidb/version", json!("v9"), false)]
#[case(Component::Tikv, "/spec/pvReclaimPolicy", json!("Delete"), false)]
#[case(Component::Tikv, "/spec/suspendAction", json!({ "suspendStatefulSet": true }), false)]
#[case(Component::Tikv, "/spec/version", json!("v9"), true)]
#[case(Component::Tikv, "/spec/tikv/requests/cpu", json!("2"), true)]
#[case(Component::Tikv, "/spec/tikv/limits", json!({ "storage": "2Gi" }), true)]
#[case(Component::Tikv, "/spec/tikv/storageVolumes", json!([{ "name": "a", "storageSize": "1Gi" }]), true)]
#[case(Component::Tikv, "/spec/tikv/env", json!([{ "name": "A", "value": "b" }]), true)]
#[case(Component::Tikv, "/spec/tlsCluster", json!({ "enabled": true }), true)]
#[case(Component::Tikv, "/spec/timezone", json!("CET"), true)]
#[case(Component::Tikv, "/spec/annotations", json!({ "a": "b" }), true)]
#[case(Component::Ticdc, "/spec/ticdc/config", json!({ "gcTTL": 1 }), true)]
#[case(Component::Tiflash, "/spec/tiflash/config", json!({ "config": "[logger]\nlog = \"/data0/x\"" }), true)]
#[case(Component::Tiflash, "/spec/tiflash/config", json!({ "config": "a = 1" }), false)]
#[case(Component::Pump, "/spec/pump/config", json!({ "gc": 1 }), false)]
#[case(Component::Pump, "/spec/pump/config", json!({ "log-level": "warn" }), true)]
#[case(Component::Pd, "/spec/tidb/tlsClient", json!({ "enabled": true }), true)]
fn what_reaches_a_template(#[case] component: Component, #[case] place: &str, #[case] value: Value, #[case] reaches: bool) {
    let inputs =
        |changes: &[(&str, Value)]| set(&valid(changes), component).annotations["windlass.dev/template-inputs"].clone();
    let template = |changes: &[(&str, Value)]| set(&valid(changes), component).spec["template"].clone();
    let change = [(place, value)];
    assert_eq!(inputs(&[]) != inputs(&change), reaches);
    if !reaches {
        assert_eq!(template(&[]), template(&change), "then it must not be rendered in another way either");
    }
}

#[test]
fn a_configuration_reaches_the_template_by_name_where_it_replaces_pods() {
    let of = |config: Value| {
        let cluster = valid(&[("/spec/configUpdateStrategy", json!("RollingUpdate")), ("/spec/tikv/config", config)]);
        set(&cluster, Component::Tikv).annotations["windlass.dev/template-inputs"].clone()
    };
    assert_ne!(of(json!({ "a": 1 })), of(json!({ "a": 2 })));
    assert_eq!(of(json!({ "a": 1 })), of(json!("a = 1")));
}

#[test]
fn a_kept_template_stays_until_the_user_changes_it() {
    let cluster = valid(&[]);
    let before = built(&cluster, Component::Tikv);
    let mut children = there(&before);
    // Another release rendered it in its own way.
    let mut other = find(&before, ObjectKind::StatefulSet).spec["template"].clone();
    other["spec"]["containers"][0]["command"] = json!(["/other"]);
    for kept in children.templates.values_mut() {
        kept.spec = Compact::of(&other);
    }
    let objects = built_over(&cluster, Component::Tikv, &children);
    assert_eq!(find(&objects.applied, ObjectKind::StatefulSet).spec["template"], other);
    assert!(objects.removals.is_empty());
    let changed = valid(&[("/spec/tikv/env", json!([{ "name": "A", "value": "b" }]))]);
    let objects = built_over(&changed, Component::Tikv, &children);
    let command = &find(&objects.applied, ObjectKind::StatefulSet).spec["template"]["spec"]["containers"][0]["command"];
    assert_eq!(*command, json!(["/bin/sh", "/usr/local/bin/tikv_start_script.sh"]));
}

#[test]
fn claim_templates_that_are_there_stay_and_the_difference_is_told() {
    let before = there(&built(&valid(&[]), Component::Tikv));
    let claims = |changes: &[(&str, Value)]| {
        let objects = built_over(&valid(changes), Component::Tikv, &before);
        let set = find(&objects.applied, ObjectKind::StatefulSet).clone();
        assert_eq!(set.spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "10Gi");
        objects.claims
    };
    assert_eq!(claims(&[]), Claims::AsAsked);
    assert_eq!(claims(&[("/spec/tikv/requests/storage", json!("20Gi"))]), Claims::Differ);
    let Claims::Smaller(told) = claims(&[("/spec/tikv/requests/storage", json!("5Gi"))]) else { panic!() };
    assert!(told.contains("10Gi"), "{told}");
    let volumes = json!([{ "name": "wal", "storageSize": "1Gi" }]);
    let Claims::Others(told) = claims(&[("/spec/tikv/storageVolumes", volumes.clone())]) else { panic!() };
    assert!(told.starts_with("spec.tikv names tikv, tikv-wal, and the pods have tikv;"), "{told}");
    // One that has none cannot get any either.
    let before = there(&built(&valid(&[]), Component::Tidb));
    let objects = built_over(&valid(&[("/spec/tidb/storageVolumes", volumes)]), Component::Tidb, &before);
    assert!(matches!(objects.claims, Claims::Others(_)), "{:?}", objects.claims);
    assert_eq!(find(&objects.applied, ObjectKind::StatefulSet).spec.get("volumeClaimTemplates"), None);
}

#[test]
fn what_cannot_be_changed_of_a_set_stays() {
    let before = there(&built(&valid(&[]), Component::Tikv));
    let changes = [("/spec/podManagementPolicy", json!("OrderedReady"))];
    let objects = built_over(&valid(&changes), Component::Tikv, &before);
    assert_eq!(find(&objects.applied, ObjectKind::StatefulSet).spec["podManagementPolicy"], "Parallel");
    // Made again, it is as asked for.
    assert_eq!(set(&valid(&changes), Component::Tikv).spec["podManagementPolicy"], "OrderedReady");
}
