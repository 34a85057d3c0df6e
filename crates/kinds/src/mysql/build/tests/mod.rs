//! All objects as they are sent, and what holds for each of them.

mod pods;
mod services;

use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::mysql::MySQLCluster;
use windlass_core::labels::DESIRED_HASH;
use windlass_core::views::{Compact, Meta};

use super::super::validate::validate;
use super::*;

impl Objects {
    /// What is applied, without the template that is kept beside the `StatefulSet`: it says the same.
    fn without_kept(self) -> Vec<Manifest> {
        self.applied.into_iter().filter(|it| it.object.kind != ObjectKind::ControllerRevision).collect()
    }
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What a first try looks like.
fn typical() -> MySQLCluster {
    from(json!({
        "apiVersion": "moco.cybozu.com/v1beta2",
        "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "uid": "u-1" },
        "spec": {
            "replicas": 3,
            "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:8.4" }] } },
            "volumeClaimTemplates": [
                { "metadata": { "name": "mysql-data" }, "spec": { "resources": { "requests": { "storage": "1Gi" } } } },
            ],
        },
    }))
}

/// Every field that reaches an object, in pods that may run where only restricted ones may.
fn full() -> MySQLCluster {
    let locked = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
    });
    let mysqld = json!({
        "name": "mysqld",
        "image": "mysql:9.7",
        "imagePullPolicy": "Always",
        "args": ["--performance-schema-digests-size=100"],
        "env": [{ "name": "TZ", "value": "Europe/Rome" }],
        "ports": [{ "name": "extra", "containerPort": 9999 }],
        "lifecycle": { "preStop": { "exec": { "command": ["true"] } }, "postStart": { "sleep": { "seconds": 1 } } },
        "livenessProbe": { "periodSeconds": 5, "exec": { "command": ["true"] } },
        "resources": { "requests": { "cpu": "2", "memory": "1000Mi" }, "limits": { "cpu": "2", "memory": "1000Mi" }, "claims": [{ "name": "device" }] },
        "securityContext": locked,
        "volumeMounts": [{ "name": "scratch", "mountPath": "/scratch" }],
    });
    from(json!({
        "apiVersion": "moco.cybozu.com/v1beta2",
        "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "uid": "u-1", "annotations": { "moco.cybozu.com/force-rolling-update": "true" } },
        "spec": {
            "replicas": 5,
            "podTemplate": {
                "metadata": {
                    "name": "ignored",
                    "labels": { "team": "quay", "app.kubernetes.io/name": "overwritten", "moco.cybozu.com/role": "primary" },
                    "annotations": { "note": "pier" },
                },
                "spec": {
                    "terminationGracePeriodSeconds": 600,
                    "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                        { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
                    ] } } },
                    "nodeSelector": { "disk": "fast" },
                    "securityContext": { "fsGroup": 20000, "runAsUser": 20000 },
                    "serviceAccountName": "not-used",
                    "containers": [
                        { "name": "filebeat", "image": "filebeat:9", "ports": [{ "containerPort": 5066 }], "securityContext": locked },
                        mysqld,
                        { "name": "slow-log", "image": "fluent-bit:4" },
                        { "name": "mysqld-exporter", "image": "mysqld-exporter:0.18", "args": ["--log.level=warn"] },
                    ],
                    "initContainers": [{ "name": "prepare", "image": "prepare:1", "restartPolicy": "Always", "securityContext": locked }],
                    "volumes": [{ "name": "scratch", "emptyDir": { "sizeLimit": "1Gi" } }],
                },
                "overwriteContainers": [
                    { "name": "agent", "resources": { "requests": { "cpu": "50m" } } },
                    { "name": "copy-moco-init", "resources": {} },
                    { "name": "moco-init", "securityContext": locked },
                    { "name": "mysqld-exporter", "resources": { "limits": { "memory": "200Mi" } } },
                ],
            },
            "volumeClaimTemplates": [
                {
                    "metadata": { "name": "mysql-data", "labels": { "team": "quay" }, "annotations": { "note": "pier" } },
                    "spec": { "storageClassName": "fast", "accessModes": ["ReadWriteOncePod"], "resources": { "requests": { "storage": "10Gi" } } },
                },
                { "metadata": { "name": "raw" }, "spec": { "volumeMode": "Block", "resources": { "requests": { "storage": "1Gi" } } } },
            ],
            "primaryServiceTemplate": {
                "metadata": { "labels": { "tier": "front", "app.kubernetes.io/instance": "overwritten" }, "annotations": { "dns": "harbour.example" } },
                "spec": {
                    "type": "LoadBalancer",
                    "selector": { "not": "used" },
                    "ports": [{ "name": "more", "port": 4000 }, { "name": "mysql", "port": 1, "nodePort": 30306 }],
                },
            },
            "replicaServiceTemplate": { "spec": { "type": "NodePort" } },
            "mysqlConfigMapName": "settings",
            "collectors": ["engine_innodb_status", "info_schema.innodb_metrics"],
            "serverIDBase": 100,
            "maxDelaySeconds": 0,
            "startupWaitSeconds": 7200,
            "logRotationSchedule": "@every 10s",
            "logRotationSize": 1_048_576,
            "slowQueryLogConfigTmpl": "[INPUT]\n  Path {{ .Path }}\n",
            "agentUseLocalhost": true,
            "initializeTimezoneData": true,
        },
    }))
}

fn options(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The Secret with the passwords, as the caches show it.
fn credentials() -> ObjectView {
    let meta = Meta { name: "moco-harbour".into(), uid: "s-1".into(), resource_version: "7".into(), ..Meta::default() };
    ObjectView { meta, spec: Compact::of(&json!({ "fingerprint": "f", "keys": [] })) }
}

fn inputs<'a>(options: &'a BTreeMap<String, String>, credentials: Option<&'a ObjectView>) -> Inputs<'a> {
    Inputs {
        agent_image: "windlass:1",
        server_id_base: 100,
        size: 3,
        options,
        credentials,
        remembered_credentials: false,
        certificate: None,
    }
}

fn with_options(resource: &MySQLCluster, given: &[(&str, &str)]) -> Vec<Manifest> {
    objects(&validate(resource).unwrap(), &inputs(&options(given), Some(&credentials())), &Children::default()).without_kept()
}

/// All objects of a cluster that has passwords.
fn made(resource: &MySQLCluster) -> Vec<Manifest> {
    with_options(resource, &[])
}

/// All objects of a cluster that is new.
fn made_first(resource: &MySQLCluster) -> Vec<Manifest> {
    objects(&validate(resource).unwrap(), &inputs(&BTreeMap::new(), None), &Children::default()).without_kept()
}

fn find(made: &[Manifest], kind: ObjectKind, name: &str) -> Option<Manifest> {
    made.iter().find(|it| it.object.kind == kind && it.object.name == name).cloned()
}

fn set(made: &[Manifest]) -> Value {
    find(made, ObjectKind::StatefulSet, "moco-harbour").unwrap().body()
}

/// As it is sent, and how a Secret is made.
fn shown(manifest: &Manifest) -> Value {
    let mut shown = manifest.body();
    if manifest.object.kind == ObjectKind::Secret {
        shown["recipe"] = manifest.spec.clone();
    }
    shown
}

#[test]
fn a_typical_cluster_that_is_new() {
    let made: Vec<Value> = made_first(&typical()).iter().map(shown).collect();
    insta::assert_yaml_snapshot!("typical", made);
}

#[test]
fn a_cluster_with_everything() {
    let made = with_options(&full(), &[("lower-case-table-names", "1"), ("max_connections", "500")]);
    insta::assert_yaml_snapshot!("full", made.iter().map(shown).collect::<Vec<_>>());
}

#[rstest]
#[case::new(made_first(&typical()))]
#[case::typical(made(&typical()))]
#[case::full(made(&full()))]
fn every_object_is_sealed_owned_and_found(#[case] made: Vec<Manifest>) {
    for manifest in made {
        let object = &manifest.object;
        assert_eq!(object.namespace, "shop", "{object}");
        assert_eq!(manifest.owner.uid, "u-1", "{object}");
        assert_eq!(manifest.over, None, "{object}");
        let expected = [
            ("app.kubernetes.io/name", "mysql"),
            ("app.kubernetes.io/instance", "harbour"),
            ("app.kubernetes.io/created-by", "moco"),
            ("app.kubernetes.io/managed-by", "windlass"),
            ("windlass.dev/kind", "mysql"),
        ];
        for (key, value) in expected {
            assert_eq!(manifest.labels.get(key).map(String::as_str), Some(value), "{object}: {key}");
        }
        let mut bare = manifest.clone();
        let hash = bare.annotations.remove(DESIRED_HASH);
        let left_out = if object.kind == ObjectKind::StatefulSet { LEFT_OUT } else { &[] };
        assert_eq!(hash, seal(bare, left_out).annotations.remove(DESIRED_HASH), "{object}");
    }
}

#[test]
fn names_are_those_that_scripts_know() {
    let cluster = validate(&typical()).unwrap();
    let names = cluster.names();
    assert_eq!(names.set(), "moco-harbour");
    assert_eq!(
        (names.primary_service(), names.replica_service()),
        ("moco-harbour-primary".into(), "moco-harbour-replica".into())
    );
    assert_eq!((names.credentials(), names.my_cnf_credentials()), ("moco-harbour".into(), "moco-my-cnf-harbour".into()));
    assert_eq!(names.certificate(), "moco-harbour-grpc");
    assert_eq!(names.host(2.into()), "moco-harbour-2.moco-harbour.shop.svc");
    assert_eq!(names.data_claim(10.into()), "mysql-data-moco-harbour-10");
    let made: Vec<String> = made(&typical()).iter().map(|it| it.object.to_string()).collect();
    let expected = [
        "Secret moco-my-cnf-harbour",
        "ConfigMap moco-harbour.08e9753d",
        "ServiceAccount moco-harbour",
        "Service moco-harbour",
        "Service moco-harbour-primary",
        "Service moco-harbour-replica",
        "PodDisruptionBudget moco-harbour",
        "StatefulSet moco-harbour",
    ];
    // The name of the ConfigMap too: another one would restart every server.
    assert_eq!(made, expected);
}

#[rstest]
#[case::new(None, false, &["moco-harbour"])]
#[case::lost(None, true, &[])]
#[case::there(Some(credentials()), true, &["moco-my-cnf-harbour"])]
#[case::there_and_not_remembered_yet(Some(credentials()), false, &["moco-my-cnf-harbour"])]
fn passwords_are_made_once(#[case] there: Option<ObjectView>, #[case] remembered_credentials: bool, #[case] expected: &[&str]) {
    let none = BTreeMap::new();
    let inputs = Inputs { remembered_credentials, ..inputs(&none, there.as_ref()) };
    let made = objects(&validate(&typical()).unwrap(), &inputs, &Children::default()).without_kept();
    let secrets = made.iter().filter(|it| it.object.kind == ObjectKind::Secret);
    assert_eq!(secrets.map(|it| it.object.name.as_str()).collect::<Vec<_>>(), expected);
}

/// What stands for a password stands where one is expected, and nothing that could be one is anywhere.
#[rstest]
#[case(made_first(&typical()))]
#[case(made(&typical()))]
#[case(made(&full()))]
fn no_object_holds_a_password(#[case] made: Vec<Manifest>) {
    for manifest in made {
        let text = shown(&manifest).to_string();
        for (_, after) in text.match_indices("password=").map(|(at, it)| text.split_at(at + it.len())) {
            assert!(after.starts_with(r#"\"${"#), "{}: {after}", manifest.object);
        }
        let words = text.split(|character: char| !character.is_ascii_hexdigit());
        assert_eq!(words.filter(|word| word.len() >= 32).collect::<Vec<_>>(), Vec::<&str>::new(), "{}", manifest.object);
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
    let mut nulls = typical();
    nulls.spec.pod_template.spec.containers[0].rest.extend([("args".into(), json!([])), ("livenessProbe".into(), Value::Null)]);
    nulls.spec.pod_template.spec.rest.extend([("affinity".into(), Value::Null), ("securityContext".into(), Value::Null)]);
    nulls.spec.primary_service_template = from(json!({ "spec": { "type": null, "ports": null, "externalIPs": [] } }));
    for manifest in [made_first(&typical()), made(&full()), made(&nulls)].into_iter().flatten() {
        check(&manifest.object.to_string(), &manifest.body());
    }
}

#[test]
fn a_setting_that_cannot_be_written_leaves_the_servers_as_they_are() {
    let made = with_options(&typical(), &[("max_connections", "1\n[mysqld]\n2")]);
    let kinds: Vec<ObjectKind> = made.iter().map(|it| it.object.kind).collect();
    assert!(!kinds.contains(&ObjectKind::StatefulSet) && !kinds.contains(&ObjectKind::ConfigMap), "{kinds:?}");
    assert!(kinds.contains(&ObjectKind::Service));
    let cluster = validate(&typical()).unwrap();
    assert_eq!(my_cnf(&cluster, &options(&[("a b", "1")])).unwrap_err().name, "a b");
}

#[test]
fn the_configuration_counts_with_the_memory_of_the_server() {
    let text = my_cnf(&validate(&full()).unwrap(), &BTreeMap::new()).unwrap().text;
    assert!(text.contains("innodb_buffer_pool_size = 734003200\n"), "{text}");
}

#[rstest]
#[case::one_cannot_be_missed(1, false, None)]
#[case(3, false, Some(1))]
#[case(5, false, Some(2))]
#[case(7, false, Some(3))]
#[case::nothing_is_to_run(7, true, None)]
#[case::nothing_runs_yet(0, false, None)]
fn evictions_leave_who_acknowledges(#[case] size: u16, #[case] offline: bool, #[case] may_leave: Option<u64>) {
    let mut resource = typical();
    // What is asked for is another number than what is there.
    (resource.spec.replicas, resource.spec.offline) = (Some(9), offline);
    let none = BTreeMap::new();
    let inputs = Inputs { size, ..inputs(&none, None) };
    let made = objects(&validate(&resource).unwrap(), &inputs, &Children::default()).applied;
    let budget = find(&made, ObjectKind::PodDisruptionBudget, "moco-harbour");
    assert_eq!(budget.and_then(|budget| budget.spec["maxUnavailable"].as_u64()), may_leave);
}
