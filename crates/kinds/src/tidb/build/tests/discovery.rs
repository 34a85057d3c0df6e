//! Discovery: what it may do, and what it is told.

use serde_json::{Value, json};

use super::*;

fn objects(changes: &[(&str, Value)]) -> Vec<Manifest> {
    over(changes, "windlass:1", &Children::default())
}

fn over(changes: &[(&str, Value)], image: &str, children: &Children) -> Vec<Manifest> {
    super::super::discovery::<NoAction>(&valid(changes), image, children).applied
}

#[test]
fn every_object_of_it() {
    insta::assert_yaml_snapshot!(written(&objects(&[])));
}

#[test]
fn it_may_read_its_cluster_and_claims_and_nothing_else() {
    let objects = objects(&[]);
    let rules = find(&objects, ObjectKind::Role).spec["rules"].clone();
    let lines: Vec<String> = rules.as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(
        lines,
        [
            r#"{"apiGroups":["pingcap.com"],"resourceNames":["harbour"],"resources":["tidbclusters"],"verbs":["get"]}"#,
            r#"{"apiGroups":[""],"resources":["persistentvolumeclaims"],"verbs":["get","list"]}"#,
        ]
    );
    let binding = &find(&objects, ObjectKind::RoleBinding).spec;
    assert_eq!(binding["subjects"], json!([{ "kind": "ServiceAccount", "name": "harbour-discovery", "namespace": "shop" }]));
    assert_eq!(binding["roleRef"]["name"], "harbour-discovery");
}

#[test]
fn there_is_one_at_a_time() {
    let deployment = find(&objects(&[]), ObjectKind::Deployment).spec.clone();
    assert_eq!((&deployment["replicas"], &deployment["strategy"]["type"]), (&json!(1), &json!("Recreate")));
    // Its pods are not looked for among members.
    let labels = &deployment["template"]["metadata"]["labels"];
    assert_eq!(labels.get("windlass.dev/kind"), None);
    assert_eq!(deployment["selector"]["matchLabels"], *labels);
}

#[test]
fn certificates_are_mounted_and_named() {
    let spec = |changes: &[(&str, Value)]| find(&objects(changes), ObjectKind::Deployment).spec["template"]["spec"].clone();
    let args = |changes: &[(&str, Value)]| spec(changes)["containers"][0]["args"].clone();
    let plain = json!(["discovery", "--namespace=shop", "--cluster=harbour"]);
    assert_eq!(args(&[]), plain);
    assert_eq!(spec(&[]).get("volumes"), None);
    let tls = [("/spec/tlsCluster", json!({ "enabled": true }))];
    assert_eq!(args(&tls)[3], "--pd-certificates=/var/lib/cluster-client-tls");
    assert_eq!(spec(&tls)["volumes"][0]["secret"]["secretName"], "harbour-cluster-client-secret");
    let both = [("/spec/tlsCluster", json!({ "enabled": true, "enableDiscoveryMTLS": true }))];
    assert_eq!(args(&both)[4], "--certificates=/var/lib/discovery-tls");
    assert_eq!(spec(&both)["volumes"][1]["secret"]["secretName"], "harbour-discovery-cluster-secret");
    assert_eq!(spec(&both)["containers"][0]["volumeMounts"].as_array().unwrap().len(), 2);
}

#[test]
fn what_the_user_says_of_it() {
    let given = json!({
        "requests": { "cpu": "100m" }, "limits": { "memory": "256Mi" }, "imagePullPolicy": "Always", "nodeSelector": { "a": "b" },
        "podSecurityContext": { "runAsUser": 7 }, "livenessProbe": { "initialDelaySeconds": 3 }, "readinessProbe": {},
        "additionalContainers": [{ "name": "discovery", "env": [{ "name": "A", "value": "b" }] }],
    });
    let spec = find(&objects(&[("/spec/discovery", given)]), ObjectKind::Deployment).spec["template"]["spec"].clone();
    let container = &spec["containers"][0];
    assert_eq!(container["resources"], json!({ "requests": { "cpu": "100m" }, "limits": { "memory": "256Mi" } }));
    assert_eq!((&container["imagePullPolicy"], &container["image"]), (&json!("Always"), &json!("windlass:1")));
    assert_eq!(container["livenessProbe"], json!({ "tcpSocket": { "port": 10261 }, "initialDelaySeconds": 3 }));
    assert_eq!(container["readinessProbe"], json!({ "tcpSocket": { "port": 10261 }, "initialDelaySeconds": 0 }));
    assert_eq!(container["env"][1], json!({ "name": "A", "value": "b" }));
    assert_eq!(spec["nodeSelector"], json!({ "a": "b" }));
    assert_eq!((&spec["securityContext"]["runAsUser"], &spec["securityContext"]["runAsNonRoot"]), (&json!(7), &json!(true)));
    assert_eq!(spec["serviceAccountName"], "harbour-discovery");
}

#[test]
fn no_pause_holds_it_back() {
    assert!(objects(&[]).iter().all(|it| it.never_held));
}

#[test]
fn a_newer_operator_restarts_it_only_with_the_users_next_change() {
    let children = there(&objects(&[]));
    let image = |changes: &[(&str, Value)]| {
        let made = over(changes, "windlass:2", &children);
        find(&made, ObjectKind::Deployment).spec["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image(&[]), "windlass:1");
    assert_eq!(image(&[("/spec/tikv/replicas", json!(5))]), "windlass:1");
    assert_eq!(image(&[("/spec/timezone", json!("Europe/Berlin"))]), "windlass:2");
}
