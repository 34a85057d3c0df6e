//! Pods: what the user says of them, certificates, probes, and containers beside.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn pod(cluster: &Validated, component: Component) -> Value {
    set(cluster, component).spec["template"]["spec"].clone()
}

fn names(list: &Value) -> String {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(",")
}

/// Everything that can be switched on at once.
fn everything() -> Vec<(&'static str, Value)> {
    vec![
        ("/spec/tlsCluster", json!({ "enabled": true, "enableDiscoveryMTLS": true })),
        ("/spec/tidb/tlsClient", json!({ "enabled": true })),
        ("/spec/hostNetwork", json!(true)),
        (
            "/spec/topologySpreadConstraints",
            json!([{ "topologyKey": "zone", "matchLabels": { "app.kubernetes.io/component": "x" } }]),
        ),
        ("/spec/imagePullSecrets", json!([{ "name": "regcred" }])),
        ("/spec/priorityClassName", json!("high")),
        ("/spec/serviceAccount", json!("database")),
        ("/spec/startScriptVersion", json!("v2")),
        ("/spec/startScriptV2FeatureFlags", json!(["WaitForDnsNameIpMatch"])),
        (
            "/spec/podSecurityContext",
            json!({ "fsGroup": 1000, "sysctls": [{ "name": "net.core.somaxconn", "value": "32768" }] }),
        ),
        ("/spec/tikv/annotations", json!({ "tidb.pingcap.com/sysctl-init": "true" })),
        ("/spec/tikv/separateRocksDBLog", json!(true)),
        ("/spec/tikv/separateRaftLog", json!(true)),
        ("/spec/tikv/privileged", json!(true)),
        ("/spec/tikv/limits", json!({ "memory": "2Gi", "storage": "10Gi" })),
        ("/spec/tikv/enableNamedStatusPort", json!(true)),
        ("/spec/tikv/mountClusterClientSecret", json!(true)),
        ("/spec/pd/mountClusterClientSecret", json!(true)),
        ("/spec/pd/readinessProbe", json!({ "type": "command" })),
        ("/spec/tidb/lifecycle", json!({ "preStop": { "exec": { "command": ["sleep", "10"] } } })),
        ("/spec/tidb/tokenBasedAuthEnabled", json!(true)),
        ("/spec/tidb/bootstrapSQLConfigMapName", json!("statements")),
        ("/spec/tidb/customizedStartupProbe", json!({ "image": "probe:1", "binaryName": "probe", "args": ["a"] })),
        ("/spec/ticdc/tlsClientSecretNames", json!(["kafka"])),
        ("/spec/pump/setTimeZone", json!(true)),
    ]
}

#[rstest]
#[case(Component::Pd)]
#[case(Component::Tikv)]
#[case(Component::Tidb)]
#[case(Component::Tiflash)]
#[case(Component::Ticdc)]
#[case(Component::Tiproxy)]
#[case(Component::Pump)]
fn kubernetes_can_read_every_template_and_every_mount_has_its_volume(#[case] component: Component) {
    for changes in [vec![], everything()] {
        let set = set(&valid(&changes), component);
        let template: PodTemplateSpec = serde_json::from_value(set.spec["template"].clone()).unwrap();
        let spec = template.spec.unwrap();
        let claims = set.spec["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
        let claims = claims.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
        let volumes: Vec<String> = spec.volumes.unwrap_or_default().into_iter().map(|it| it.name).chain(claims).collect();
        let containers = spec.containers.into_iter().chain(spec.init_containers.unwrap_or_default());
        for container in containers {
            let mut paths = std::collections::BTreeSet::new();
            for mount in container.volume_mounts.unwrap_or_default() {
                assert!(volumes.contains(&mount.name), "{}: {} of {volumes:?}", container.name, mount.name);
                assert!(paths.insert(mount.mount_path.clone()), "{}: {} twice", container.name, mount.mount_path);
            }
        }
        let unique: std::collections::BTreeSet<&String> = volumes.iter().collect();
        assert_eq!(unique.len(), volumes.len(), "{volumes:?}");
    }
}

#[rstest]
#[case(Component::Pd)]
#[case(Component::Tikv)]
#[case(Component::Tidb)]
#[case(Component::Tiflash)]
#[case(Component::Ticdc)]
#[case(Component::Tiproxy)]
#[case(Component::Pump)]
fn with_everything_switched_on(#[case] component: Component) {
    insta::assert_yaml_snapshot!(format!("pod_everything_{component}"), pod(&valid(&everything()), component));
}

#[rstest]
#[case(Component::Pd, "harbour-pd-cluster-secret", "")]
#[case(Component::Tikv, "harbour-tikv-cluster-secret", "")]
#[case(Component::Tidb, "harbour-tidb-cluster-secret", "harbour-tidb-server-secret")]
#[case(Component::Tiflash, "harbour-tiflash-cluster-secret", "")]
#[case(Component::Ticdc, "harbour-ticdc-cluster-secret,harbour-cluster-client-secret", "")]
#[case(Component::Tiproxy, "harbour-cluster-client-secret,harbour-tiproxy-cluster-secret", "harbour-tidb-server-secret")]
#[case(Component::Pump, "harbour-pump-cluster-secret", "")]
fn certificates_are_mounted_where_they_are_switched_on(
    #[case] component: Component,
    #[case] cluster: &str,
    #[case] client: &str,
) {
    let secrets = |changes: &[(&str, Value)]| {
        let pod = pod(&valid(changes), component);
        let volumes = pod["volumes"].as_array().unwrap().iter();
        volumes.filter_map(|it| it.pointer("/secret/secretName")?.as_str().map(str::to_owned)).collect::<Vec<_>>().join(",")
    };
    assert_eq!(secrets(&[]), "");
    assert_eq!(secrets(&[("/spec/tlsCluster", json!({ "enabled": true }))]), cluster);
    let skipping = json!({ "enabled": true, "skipInternalClientCA": true });
    assert_eq!(secrets(&[("/spec/tidb/tlsClient", skipping)]), client);
}

#[rstest]
#[case::none(&[], Component::Tikv, Value::Null)]
#[case::of_tidb(&[], Component::Tidb, json!({ "tcpSocket": { "port": 4000 }, "initialDelaySeconds": 10 }))]
#[case::by_connection(&[("/spec/tikv/readinessProbe", json!({ "type": "tcp", "periodSeconds": 3 }))], Component::Tikv, json!({ "tcpSocket": { "port": 20160 }, "initialDelaySeconds": 10, "periodSeconds": 3 }))]
#[case::without_a_question(&[("/spec/pump/readinessProbe", json!({ "type": "command" }))], Component::Pump, json!({ "tcpSocket": { "port": 8250 }, "initialDelaySeconds": 10 }))]
#[case::by_a_question(&[("/spec/tidb/readinessProbe", json!({ "type": "command", "initialDelaySeconds": 0 }))], Component::Tidb, json!({
    "exec": { "command": ["curl", "--silent", "--show-error", "--fail", "--location", "--max-time", "5", "http://127.0.0.1:10080/status"] },
    "initialDelaySeconds": 0,
}))]
#[case::with_a_certificate(&[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/pd/readinessProbe", json!({ "type": "command" }))], Component::Pd, json!({
    "exec": { "command": ["curl", "--silent", "--show-error", "--fail", "--location", "--max-time", "5",
        "--cacert", "/var/lib/pd-tls/ca.crt", "--cert", "/var/lib/pd-tls/tls.crt", "--key", "/var/lib/pd-tls/tls.key",
        "https://127.0.0.1:2379/pd/api/v1/version"] },
    "initialDelaySeconds": 10,
}))]
fn readiness(#[case] changes: &[(&str, Value)], #[case] component: Component, #[case] expected: Value) {
    assert_eq!(container(&valid(changes), component)["readinessProbe"], expected);
}

/// TiProxy's API is encrypted by another rule than the rest, and with another certificate.
#[rstest]
#[case(&[], "http", "")]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true }))], "https", "harbour-tiproxy-cluster-secret")]
#[case(&[("/spec/tidb/tlsClient", json!({ "enabled": true }))], "https", "")]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true }))], "https", "")]
#[case(&[("/spec/tidb/tlsClient", json!({ "enabled": true })), ("/spec/tiproxy/certLayout", json!("v1"))], "http", "")]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true })), ("/spec/tiproxy/certLayout", json!("v1"))], "https", "harbour-tiproxy-cluster-secret")]
fn the_api_of_tiproxy(#[case] changes: &[(&str, Value)], #[case] scheme: &str, #[case] own: &str) {
    let cluster = valid(changes);
    assert_eq!(status_scheme(&cluster, Component::Tiproxy), scheme);
    let config = text(&cluster, Component::Tiproxy, "config-file");
    assert_eq!(config.contains("[security.server-http-tls]"), scheme == "https", "{config}");
    let pod = pod(&cluster, Component::Tiproxy);
    let has_own = pod["volumes"].as_array().unwrap().iter().any(|it| it["name"] == "tiproxy-tls");
    assert_eq!(has_own, !own.is_empty());
    // What the configuration names is mounted.
    for line in
        config.lines().filter_map(|line| line.split_once(" = \"/var/lib/")?.1.split_once('/')).filter(|it| it.0 != "tiproxy")
    {
        let path = format!("/var/lib/{}", line.0);
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|it| it["mountPath"] == path.as_str()), "{path}");
    }
}

#[test]
fn the_component_comes_first_and_its_logs_and_the_users_containers_after_it() {
    let cluster = valid(&[
        ("/spec/tikv/separateRocksDBLog", json!(true)),
        (
            "/spec/tikv/additionalContainers",
            json!([
                { "name": "beside", "image": "beside:1" },
                { "name": "tikv", "securityContext": { "capabilities": { "add": ["SYS_PTRACE"] } }, "env": [{ "name": "A", "value": "b" }] },
                { "name": "rocksdblog", "resources": { "limits": { "cpu": "1" } } },
            ]),
        ),
        ("/spec/tikv/initContainers", json!([{ "name": "first", "image": "first:1" }])),
        ("/spec/tikv/additionalVolumes", json!([{ "name": "extra", "emptyDir": {} }])),
        ("/spec/tikv/additionalVolumeMounts", json!([{ "name": "extra", "mountPath": "/extra" }])),
    ]);
    let pod = pod(&cluster, Component::Tikv);
    assert_eq!(names(&pod["containers"]), "tikv,rocksdblog,beside");
    assert_eq!(names(&pod["initContainers"]), "first");
    let tikv = &pod["containers"][0];
    assert_eq!(tikv["image"], "pingcap/tikv:v8.5.2");
    assert_eq!(tikv["securityContext"], json!({ "capabilities": { "add": ["SYS_PTRACE"] } }));
    assert!(names(&tikv["env"]).ends_with(",TZ,A"), "{}", tikv["env"]);
    assert!(names(&tikv["volumeMounts"]).ends_with(",tikv,extra"), "{}", tikv["volumeMounts"]);
    assert_eq!(pod["containers"][1]["resources"], json!({ "limits": { "cpu": "1" } }));
    assert!(names(&pod["volumes"]).ends_with(",extra"));
}

#[test]
fn variables_that_scripts_rest_on_are_ours() {
    let cluster =
        valid(&[("/spec/tikv/env", json!([{ "name": "CAPACITY", "value": "lots" }, { "name": "MINE", "value": "a" }]))]);
    let env = container(&cluster, Component::Tikv)["env"].clone();
    let capacity: Vec<&Value> = env.as_array().unwrap().iter().filter(|it| it["name"] == "CAPACITY").collect();
    assert_eq!(capacity, [&json!({ "name": "CAPACITY", "value": "0" })]);
    assert!(names(&env).ends_with(",MINE"));
}

#[test]
fn storage_is_no_resource_of_a_container() {
    let cluster = valid(&[("/spec/tikv/requests/cpu", json!("2")), ("/spec/tikv/limits", json!({ "storage": "10Gi" }))]);
    let tikv = container(&cluster, Component::Tikv);
    assert_eq!(tikv["resources"], json!({ "requests": { "cpu": "2" } }));
    let capacity = tikv["env"].as_array().unwrap().iter().find(|it| it["name"] == "CAPACITY").unwrap().clone();
    assert_eq!(capacity["value"], "10GB");
}

#[rstest]
#[case(&[], "/var/log/tidb/slowlog", "tidb,slowlog")]
#[case(&[("/spec/tidb/separateSlowLog", json!(false))], "", "tidb")]
#[case(&[("/spec/tidb/slowLogVolumeName", json!("slow")), ("/spec/tidb/storageVolumes", json!([{ "name": "slow", "storageSize": "1Gi", "mountPath": "/slow" }]))], "/slow/slow", "tidb,slowlog")]
fn slow_queries(#[case] changes: &[(&str, Value)], #[case] file: &str, #[case] containers: &str) {
    let pod = pod(&valid(changes), Component::Tidb);
    assert_eq!(names(&pod["containers"]), containers);
    let env = pod["containers"][0]["env"].as_array().unwrap().clone();
    assert_eq!(env.iter().find(|it| it["name"] == "SLOW_LOG_FILE").unwrap()["value"], file);
    if let Some(tailer) = pod["containers"].get(1) {
        assert_eq!(tailer["command"][2], format!("touch {file}; tail -n0 -F {file};"));
        assert_eq!(tailer["image"], "busybox:1.26.2");
    }
}

#[test]
fn logs_of_tiflash_are_printed_from_the_disk_that_they_lie_on() {
    let claims =
        json!([{ "resources": { "requests": { "storage": "1Gi" } } }, { "resources": { "requests": { "storage": "1Gi" } } }]);
    let config = json!({ "config": "[logger]\nlog = \"/data1/server.log\"\nerrorlog = \"/tmp/error.log\"" });
    let pod = pod(&valid(&[("/spec/tiflash/storageClaims", claims), ("/spec/tiflash/config", config)]), Component::Tiflash);
    assert_eq!(names(&pod["containers"]), "tiflash,serverlog,errorlog,clusterlog");
    assert_eq!(pod["containers"][1]["volumeMounts"], json!([{ "name": "data1", "mountPath": "/data1" }]));
    assert_eq!(pod["containers"][2].get("volumeMounts"), None);
    assert_eq!(pod["containers"][3]["volumeMounts"], json!([{ "name": "data0", "mountPath": "/data0" }]));
}

#[test]
fn pods_are_annotated_for_prometheus_unless_the_user_says_otherwise() {
    let annotations =
        |changes: &[(&str, Value)]| set(&valid(changes), Component::Tikv).spec["template"]["metadata"]["annotations"].clone();
    let ours = json!({ "prometheus.io/scrape": "true", "prometheus.io/path": "/metrics", "prometheus.io/port": "20180" });
    assert_eq!(annotations(&[]), ours);
    let given = [("/spec/annotations", json!({ "prometheus.io/scrape": "false", "note": "pier" }))];
    assert_eq!(annotations(&given)["prometheus.io/scrape"], "false");
    assert_eq!(annotations(&given)["note"], "pier");
}
