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
fn it_may_read_the_certificates_that_it_needs_and_no_others() {
    let secrets = |changes: &[(&str, Value)]| {
        let rules = find(&objects(changes), ObjectKind::Role).spec["rules"].clone();
        let rules = rules.as_array().unwrap().clone();
        rules
            .into_iter()
            .find(|rule| rule["resources"][0] == "secrets")
            .map(|rule| (rule["resourceNames"].clone(), rule["verbs"].clone()))
    };
    assert_eq!(secrets(&[]), None);
    let tls = [("/spec/tlsCluster", json!({ "enabled": true }))];
    assert_eq!(secrets(&tls), Some((json!(["harbour-cluster-client-secret"]), json!(["get"]))));
    let both = [("/spec/tlsCluster", json!({ "enabled": true, "enableDiscoveryMTLS": true }))];
    let names = json!(["harbour-cluster-client-secret", "harbour-discovery-cluster-secret"]);
    assert_eq!(secrets(&both), Some((names, json!(["get"]))));
}

#[test]
fn it_is_told_which_cluster_is_its_own() {
    let container = find(&objects(&[]), ObjectKind::Deployment).spec["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["args"], json!(["discovery", "--namespace=shop", "--cluster=harbour"]));
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

#[test]
fn what_was_made_is_made_again_as_it_was_while_the_spec_is_refused() {
    let refused = crate::tidb::fixture::changed(&[
        ("/spec/pd/replicas", json!(0)),
        ("/spec/timezone", json!("Europe/Berlin")),
        ("/spec/discovery", json!({ "limits": { "cpu": "1" } })),
    ]);
    let bare = crate::tidb::validate::bare(&refused).unwrap();
    let as_kept = |children: &Children| super::super::discovery_as_kept(&bare, children);
    assert_eq!(as_kept(&Children::default()), None, "what never was is not made");
    let before = objects(&[]);
    let mut children = there(&before);
    assert_eq!(written(&as_kept(&children).unwrap()).len(), 5);
    for object in &before {
        children.deployments.remove(&object.object.name);
        let again = as_kept(&children).unwrap();
        if object.object.kind != ObjectKind::ControllerRevision {
            assert!(again.contains(object), "{object:?} is not among {again:?}");
        }
    }
}
