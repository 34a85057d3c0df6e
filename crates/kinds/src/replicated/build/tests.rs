use k8s_openapi::api::core::v1::{Container, ContainerPort, LocalObjectReference};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::ReplicatedStatefulSet;

use super::super::fixtures::{command, resource};
use super::super::validate::validate;
use super::*;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A resource in which every field is used, and whose pods may run where only restricted ones may.
fn full() -> ReplicatedStatefulSet {
    let mut resource = resource(5);
    let spec = &mut resource.spec;
    spec.primaries = Some(3);
    spec.reconcile_interval = Some("30s".into());
    spec.chaos_level = Some(5);
    spec.service_ports = from(
        json!([{ "name": "mysql", "port": 3306, "targetPort": "mysql" }, { "name": "metrics", "port": 9104, "protocol": "TCP" }]),
    );
    spec.service_account_name = Some("orders".into());
    spec.node_selector = Some([("disk".into(), "fast".into())].into());
    spec.tolerations = from(json!([{ "key": "databases", "operator": "Exists", "effect": "NoSchedule" }]));
    spec.affinity = from(json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 1, "preference": { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] } },
    ] } }));
    spec.secrets = vec!["root-password".into(), "tls.example.org".into()];
    spec.image_pull_secrets = Some(vec![LocalObjectReference { name: "registry".into() }]);
    spec.resources = from(json!({ "requests": { "cpu": "500m", "memory": "1Gi" }, "limits": { "memory": "1Gi" } }));
    let pod = &mut spec.pod;
    let locked = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
    });
    pod.containers[0].security_context = from(locked.clone());
    pod.containers[0].ports =
        Some(vec![ContainerPort { name: Some("mysql".into()), container_port: 3306, ..ContainerPort::default() }]);
    pod.containers[0].volume_mounts =
        from(json!([{ "name": "data", "mountPath": "/var/lib/mysql" }, { "name": "run", "mountPath": "/run" }]));
    pod.containers[0].env = from(json!([{ "name": "POD_NAME", "value": "set by the user" }]));
    pod.containers.push(Container {
        name: "exporter".into(),
        image: Some("exporter:1".into()),
        resources: from(json!({ "limits": { "memory": "32Mi" } })),
        security_context: from(locked),
        ..Container::default()
    });
    pod.volumes = from(json!([{ "name": "run", "emptyDir": {} }]));
    pod.volume_claim_templates = from(json!([{
        "metadata": { "name": "data", "labels": { "tier": "database" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } } },
    }]));
    pod.security_context = from(json!({ "fsGroup": 999, "runAsNonRoot": true }));
    pod.automount_service_account_token = Some(true);
    pod.anti_affinity = Some(true);
    pod.node_selector = Some([("arch".into(), "amd64".into())].into());
    pod.termination_grace_period_seconds = Some(120);
    pod.commands.secondary = Some(command("secondary"));
    pod.commands.promote = Some(command("promote"));
    resource
}

fn bodies(resource: &ReplicatedStatefulSet) -> Vec<Value> {
    let cluster = validate(resource).unwrap();
    objects(&cluster, cluster.replicas, &Children::default()).applied.iter().map(Manifest::body).collect()
}

#[test]
fn all_fields_are_built() {
    insta::assert_yaml_snapshot!("full", bodies(&full()));
}

#[test]
fn required_fields_alone_are_built() {
    insta::assert_yaml_snapshot!("minimal", bodies(&resource(3)));
}

#[test]
fn objects_are_what_kubernetes_reads() {
    use k8s_openapi::api::{apps, core, policy};
    for resource in [full(), resource(3)] {
        let [headless, client, budget, kept, set] = bodies(&resource).try_into().unwrap();
        for service in [headless, client] {
            let service: core::v1::Service = from(service);
            let ports = service.spec.unwrap().ports.unwrap();
            // Each port has the two fields by which the server tells ports apart.
            assert!(!ports.is_empty() && ports.iter().all(|port| port.port > 0 && port.protocol.is_some()), "{ports:?}");
        }
        assert!(from::<policy::v1::PodDisruptionBudget>(budget).spec.unwrap().max_unavailable.is_some());
        let template = from::<apps::v1::ControllerRevision>(kept).data.unwrap().0;
        assert_eq!(template, set["spec"]["template"]);
        let set = from::<apps::v1::StatefulSet>(set).spec.unwrap();
        let labels = set.template.metadata.unwrap().labels.unwrap();
        let selector = set.selector.match_labels.unwrap();
        assert!(selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
        let pod = set.template.spec.unwrap();
        let volumes: Vec<String> = pod.volumes.unwrap().into_iter().map(|volume| volume.name).collect();
        let claims: Vec<String> =
            set.volume_claim_templates.into_iter().flatten().filter_map(|claim| claim.metadata.name).collect();
        for mount in pod.containers.iter().flat_map(|container| container.volume_mounts.iter().flatten()) {
            assert!(
                volumes.contains(&mount.name) || claims.contains(&mount.name),
                "nothing is mounted at {}",
                mount.mount_path
            );
        }
    }
}

/// Nulls and empty maps would be owned by us, and are not kept by the server.
#[test]
fn nothing_is_said_where_there_is_nothing_to_say() {
    fn check(path: &str, value: &Value) {
        match value {
            Value::Null => panic!("{path} is null"),
            Value::Object(map) => {
                // An empty directory is said by an empty map.
                assert!(!map.is_empty() || path.ends_with("/emptyDir"), "{path} is empty");
                for (key, value) in map {
                    check(&format!("{path}/{key}"), value);
                }
            }
            Value::Array(list) => {
                assert!(!list.is_empty(), "{path} is empty");
                for value in list {
                    check(path, value);
                }
            }
            _ => {}
        }
    }
    for body in bodies(&full()).iter().chain(&bodies(&resource(3))) {
        check(body["kind"].as_str().unwrap(), body);
    }
}

#[test]
fn what_the_user_left_empty_on_purpose_stays() {
    let mut resource = resource(3);
    let everywhere = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "noisy" } }, "namespaceSelector": {} },
    ] } });
    resource.spec.affinity = from(everywhere.clone());
    assert_eq!(bodies(&resource)[4]["spec"]["template"]["spec"]["affinity"], everywhere);
}

#[rstest]
#[case(1, 1)]
#[case(2, 1)]
#[case(3, 1)]
#[case(4, 1)]
#[case(5, 2)]
#[case(7, 3)]
fn evictions_leave_a_quorum(#[case] replicas: u16, #[case] may_leave: u64) {
    assert_eq!(bodies(&resource(replicas))[2]["spec"]["maxUnavailable"], may_leave);
}

#[test]
fn the_size_is_not_part_of_the_hash() {
    let cluster = validate(&resource(3)).unwrap();
    let set = |size| objects(&cluster, size, &Children::default()).applied.pop().unwrap();
    assert_eq!(set(1).annotations, set(3).annotations);
}

#[test]
fn a_variable_of_the_user_wins() {
    let set = &bodies(&full())[4];
    let env = set["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let named: Vec<&Value> = env.iter().filter(|variable| variable["name"] == "POD_NAME").collect();
    assert_eq!(named, [&json!({ "name": "POD_NAME", "value": "set by the user" })]);
}

#[test]
fn the_client_service_finds_only_members_that_serve() {
    let selector = bodies(&resource(3))[1]["spec"]["selector"].clone();
    assert_eq!(selector["rss-active-member"], "true");
    assert_eq!(selector["app"], "orders");
}
