use rstest::rstest;
use serde_json::{Value, json};

use super::super::fixture::{changed, valid};
use super::*;

#[rstest]
#[case::long_name("/metadata/name", json!("a".repeat(45)), "metadata.name")]
#[case::dotted_name("/metadata/name", json!("har.bour"), "metadata.name")]
#[case::digit_in_front("/metadata/name", json!("1harbour"), "metadata.name")]
#[case::dash_at_the_end("/metadata/name", json!("harbour-"), "metadata.name")]
#[case::no_name("/metadata/name", Value::Null, "metadata.name")]
#[case::another_instance("/metadata/labels", json!({ "app.kubernetes.io/instance": "pier" }), "metadata.labels[app.kubernetes.io/instance]")]
#[case::heterogeneous("/spec/cluster", json!({ "name": "pier" }), "spec.cluster")]
#[case::across("/spec/acrossK8s", json!(true), "spec.acrossK8s")]
#[case::micro_services("/spec/pdms", json!([{ "name": "tso" }]), "spec.pdms")]
#[case::mode("/spec/pd/mode", json!("ms"), "spec.pd.mode")]
#[case::addresses("/spec/pdAddresses", json!(["http://pd:2379"]), "spec.pdAddresses[0]")]
#[case::no_address("/spec/pdAddresses", json!(["pd:2379"]), "spec.pdAddresses[0]")]
#[case::no_pd("/spec/pd", Value::Null, "spec.pd")]
#[case::none_of_pd("/spec/pd/replicas", json!(0), "spec.pd.replicas")]
#[case::no_version("/spec/version", Value::Null, "spec.version")]
#[case::reclaim("/spec/pvReclaimPolicy", json!("Keep"), "spec.pvReclaimPolicy")]
#[case::script_version("/spec/startScriptVersion", json!("v3"), "spec.startScriptVersion")]
#[case::flag("/spec/startScriptV2FeatureFlags", json!(["Fast"]), "spec.startScriptV2FeatureFlags[0]")]
#[case::domain("/spec/clusterDomain", json!("cluster local"), "spec.clusterDomain")]
#[case::pull_policy("/spec/imagePullPolicy", json!("Sometimes"), "spec.imagePullPolicy")]
#[case::own_pull_policy("/spec/tikv/imagePullPolicy", json!("Sometimes"), "spec.tikv.imagePullPolicy")]
#[case::helper_pull_policy("/spec/helper", json!({ "imagePullPolicy": "Sometimes" }), "spec.helper.imagePullPolicy")]
#[case::layout("/spec/tiproxy/certLayout", json!("v2"), "spec.tiproxy.certLayout")]
#[case::strategy("/spec/statefulSetUpdateStrategy", json!("Fast"), "spec.statefulSetUpdateStrategy")]
#[case::config_strategy("/spec/tikv/configUpdateStrategy", json!("Fast"), "spec.tikv.configUpdateStrategy")]
#[case::no_storage("/spec/pd/requests", Value::Null, "spec.pd.requests.storage")]
#[case::no_storage_of_tikv("/spec/tikv/requests", json!({ "cpu": "1" }), "spec.tikv.requests.storage")]
#[case::no_storage_of_pump("/spec/pump/requests", json!({}), "spec.pump.requests.storage")]
#[case::no_size("/spec/pd/requests/storage", json!("large"), "spec.pd.requests.storage")]
#[case::zero_size("/spec/pd/requests/storage", json!("0"), "spec.pd.requests.storage")]
#[case::no_disk("/spec/tiflash/storageClaims", json!([]), "spec.tiflash.storageClaims")]
#[case::a_disk_of_no_size("/spec/tiflash/storageClaims/0", json!({}), "spec.tiflash.storageClaims[0].resources.requests.storage")]
#[case::no_quantity("/spec/tidb/limits", json!({ "cpu": "many" }), "spec.tidb.limits.cpu")]
#[case::scale_in("/spec/tikv/scalePolicy", json!({ "scaleInParallelism": 0 }), "spec.tikv.scalePolicy.scaleInParallelism")]
#[case::scale_out("/spec/tiflash/scalePolicy", json!({ "scaleOutParallelism": 0 }), "spec.tiflash.scalePolicy.scaleOutParallelism")]
#[case::evict("/spec/tikv/evictLeaderTimeout", json!("soon"), "spec.tikv.evictLeaderTimeout")]
#[case::no_time("/spec/tikv/evictLeaderTimeout", json!("0s"), "spec.tikv.evictLeaderTimeout")]
#[case::back("/spec/tikv/waitLeaderTransferBackTimeout", json!("5"), "spec.tikv.waitLeaderTransferBackTimeout")]
#[case::graceful("/spec/ticdc/gracefulShutdownTimeout", json!("-1m"), "spec.ticdc.gracefulShutdownTimeout")]
#[case::absolute("/spec/tikv/dataSubDir", json!("/data"), "spec.tikv.dataSubDir")]
#[case::upwards("/spec/pd/dataSubDir", json!("a/../b"), "spec.pd.dataSubDir")]
#[case::command("/spec/pd/dataSubDir", json!("$(rm)"), "spec.pd.dataSubDir")]
#[case::volume_twice("/spec/tikv/storageVolumes", json!([{ "name": "a", "storageSize": "1Gi" }, { "name": "a", "storageSize": "1Gi" }]), "spec.tikv.storageVolumes[1].name")]
#[case::volume_name("/spec/tikv/storageVolumes", json!([{ "name": "A_b", "storageSize": "1Gi" }]), "spec.tikv.storageVolumes[0].name")]
#[case::volume_size("/spec/tidb/storageVolumes", json!([{ "name": "a", "storageSize": "x" }]), "spec.tidb.storageVolumes[0].storageSize")]
#[case::volume_path("/spec/tidb/storageVolumes", json!([{ "name": "a", "storageSize": "1Gi", "mountPath": "a" }]), "spec.tidb.storageVolumes[0].mountPath")]
#[case::rocks("/spec/tikv/rocksDBLogVolumeName", json!("log"), "spec.tikv.rocksDBLogVolumeName")]
#[case::raft("/spec/tikv/raftLogVolumeName", json!("log"), "spec.tikv.raftLogVolumeName")]
#[case::slow("/spec/tidb/slowLogVolumeName", json!("log"), "spec.tidb.slowLogVolumeName")]
#[case::env_source("/spec/tikv/env", json!([{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }]), "spec.tikv.env[0].valueFrom")]
#[case::env_name("/spec/tikv/env", json!([{ "value": "a" }]), "spec.tikv.env[0].name")]
#[case::no_env("/spec/tikv/env", json!([{ "name": "A", "value": 7 }]), "spec.tikv.env[0]")]
#[case::container_image("/spec/tikv/additionalContainers", json!([{ "name": "beside" }]), "spec.tikv.additionalContainers[0].image")]
#[case::container_name("/spec/tikv/additionalContainers", json!([{ "image": "a" }]), "spec.tikv.additionalContainers[0].name")]
#[case::container_twice("/spec/tikv/additionalContainers", json!([{ "name": "tikv" }, { "name": "tikv" }]), "spec.tikv.additionalContainers[1].name")]
#[case::init_image("/spec/tikv/initContainers", json!([{ "name": "tikv" }]), "spec.tikv.initContainers[0].image")]
#[case::affinity("/spec/affinity", json!({ "nodeAffinity": 7 }), "spec.affinity")]
#[case::tolerations("/spec/tidb/tolerations", json!([{ "key": 7 }]), "spec.tidb.tolerations[0]")]
#[case::security("/spec/tidb/securityContext", json!({ "runAsUser": "me" }), "spec.tidb.securityContext")]
#[case::discovery("/spec/discovery", json!({ "affinity": { "nodeAffinity": 7 } }), "spec.discovery.affinity")]
#[case::probe("/spec/pd/readinessProbe", json!({ "type": "http" }), "spec.pd.readinessProbe.type")]
#[case::service("/spec/pd/service", json!({ "type": "Headless" }), "spec.pd.service.type")]
#[case::old_service("/spec/services", json!([{ "name": "pd", "type": "Headless" }]), "spec.services[0].type")]
#[case::traffic("/spec/tidb/service", json!({ "externalTrafficPolicy": "Near" }), "spec.tidb.service.externalTrafficPolicy")]
#[case::ports("/spec/tidb/service", json!({ "additionalPorts": [{ "port": "x" }] }), "spec.tidb.service.additionalPorts[0]")]
#[case::range("/spec/tidb/service", json!({ "loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.1"] }), "spec.tidb.service.loadBalancerSourceRanges[1]")]
#[case::long_range("/spec/tidb/service", json!({ "loadBalancerSourceRanges": ["10.0.0.0/33"] }), "spec.tidb.service.loadBalancerSourceRanges[0]")]
#[case::toml("/spec/tikv/config", json!("a = = 1"), "spec.tikv.config")]
#[case::no_config("/spec/tikv/config", json!(7), "spec.tikv.config")]
#[case::tiflash_toml("/spec/tiflash/config", json!({ "config": "[" }), "spec.tiflash.config.config")]
#[case::proxy_toml("/spec/tiflash/config", json!({ "proxy": "[" }), "spec.tiflash.config.proxy")]
#[case::slots("/metadata/annotations", json!({ "tikv.tidb.pingcap.com/delete-slots": "[1]" }), "metadata.annotations[tikv.tidb.pingcap.com/delete-slots]")]
#[case::no_slots("/metadata/annotations", json!({ "pd.tidb.pingcap.com/delete-slots": "1,2" }), "metadata.annotations[pd.tidb.pingcap.com/delete-slots]")]
#[case::min_ready("/metadata/annotations", json!({ "tidb.pingcap.com/pd-min-ready-seconds": "10s" }), "metadata.annotations[tidb.pingcap.com/pd-min-ready-seconds]")]
#[case::partition("/metadata/annotations", json!({ "tidb.pingcap.com/tikv-partition": "x" }), "metadata.annotations[tidb.pingcap.com/tikv-partition]")]
fn what_is_wrong_is_told_by_its_field(#[case] place: &str, #[case] value: Value, #[case] field: &str) {
    let error = validate(&changed(&[(place, value)])).unwrap_err();
    let of_field = |problem: &&String| problem.starts_with(&format!("{field}: "));
    assert_eq!(error.problems.iter().filter(of_field).count(), 1, "{:#?}", error.problems);
    assert_eq!(error.problems.len(), 1, "nothing else is wrong: {:#?}", error.problems);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let wrong = [("/spec/acrossK8s", json!(true)), ("/spec/pd/dataSubDir", json!("/")), ("/spec/tikv/config", json!("["))];
    let error = validate(&changed(&wrong)).unwrap_err();
    assert_eq!(error.problems.len(), 3, "{error}");
    assert!(error.to_string().contains("; spec.tikv.config: line 1: "), "{error}");
}

#[rstest]
#[case::short_of_tiproxy("/metadata/name", json!("a".repeat(44)))]
#[case::own_instance("/metadata/labels", json!({ "app.kubernetes.io/instance": "harbour" }))]
#[case::no_slots("/metadata/annotations", json!({ "tikv.tidb.pingcap.com/delete-slots": "[]" }))]
#[case::no_addresses("/spec/pdAddresses", json!([]))]
#[case::no_micro_services("/spec/pdms", json!([]))]
#[case::empty_words("/spec/startScriptVersion", json!(""))]
#[case::none_of_tikv("/spec/tikv/replicas", json!(0))]
#[case::no_tidb("/spec/tidb", Value::Null)]
#[case::sources("/spec/tikv/env", json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "a", "key": "b" } } }]))]
#[case::merged("/spec/tidb/additionalContainers", json!([{ "name": "tidb" }, { "name": "slowlog" }]))]
#[case::unknown_policy("/spec/podManagementPolicy", json!("Whatever"))]
#[case::six("/spec/tidb/service", json!({ "loadBalancerSourceRanges": ["fd00::/8"] }))]
#[case::a_directory("/spec/tikv/dataSubDir", json!("data/v1.0_x"))]
fn what_is_allowed_is_good(#[case] place: &str, #[case] value: Value) {
    assert_eq!(validate(&changed(&[(place, value)])).map(|_| ()), Ok(()));
}

#[test]
fn a_log_may_lie_on_any_volume_that_is_mounted() {
    let of_claims = [
        ("/spec/tikv/rocksDBLogVolumeName", json!("log")),
        ("/spec/tikv/storageVolumes", json!([{ "name": "log", "storageSize": "1Gi", "mountPath": "/log" }])),
    ];
    assert!(validate(&changed(&of_claims)).is_ok());
    let of_users = [
        ("/spec/tidb/slowLogVolumeName", json!("log")),
        ("/spec/tidb/additionalVolumes", json!([{ "name": "log", "emptyDir": {} }])),
        ("/spec/tidb/additionalVolumeMounts", json!([{ "name": "log", "mountPath": "/log" }])),
    ];
    assert!(validate(&changed(&of_users)).is_ok());
    let not_mounted = [
        ("/spec/tikv/rocksDBLogVolumeName", json!("log")),
        ("/spec/tikv/storageVolumes", json!([{ "name": "log", "storageSize": "1Gi" }])),
    ];
    assert!(validate(&changed(&not_mounted)).is_err());
}

#[test]
fn what_nobody_says_has_a_default() {
    let cluster = valid(&[]);
    assert_eq!((cluster.name.as_str(), cluster.namespace.as_str(), cluster.owner.uid.as_str()), ("harbour", "shop", "u-1"));
    assert_eq!((cluster.tls, cluster.discovery_tls, cluster.client_tls(), cluster.scheme()), (false, false, false, "http"));
    assert_eq!((cluster.timezone.as_str(), cluster.helper_image.as_str()), ("UTC", "busybox:1.26.2"));
    assert_eq!((cluster.volume_reclaim_policy.as_str(), cluster.deletes_claims), ("Retain", false));
    assert_eq!(cluster.evict_leader_timeout, Duration::from_hours(25));
    assert_eq!(cluster.leaders_back_timeout, Duration::from_secs(400));
    assert_eq!(cluster.graceful_shutdown_timeout, Duration::from_mins(10));
    assert_eq!(cluster.groups.len(), 7);
    for group in cluster.groups.values() {
        assert_eq!(group.parallelism, Parallelism { scale_in: 1, scale_out: 1 });
        assert_eq!((group.suspended, group.replaced_by_user, group.ordered), (false, false, false));
        assert_eq!((group.config_update, group.partition), (ConfigUpdate::InPlace, 0));
        assert_eq!((group.min_ready, group.pods.pull_policy.as_str()), (Duration::ZERO, "IfNotPresent"));
        let is_replaced = [Component::Pd, Component::Tikv, Component::Tidb, Component::Tiflash].contains(&group.component);
        assert_eq!(group.max_failover, if is_replaced { 3 } else { 0 });
    }
}

#[rstest]
#[case(&[], "pingcap/pd:v8.5.2")]
#[case(&[("/spec/pd/version", json!("v9"))], "pingcap/pd:v9")]
#[case(&[("/spec/pd/version", json!(""))], "pingcap/pd:v8.5.2")]
#[case(&[("/spec/pd/baseImage", json!("mine/pd"))], "mine/pd:v8.5.2")]
#[case(&[("/spec/pd/baseImage", json!("mine/pd")), ("/spec/pd/image", json!("other"))], "mine/pd:v8.5.2")]
#[case(&[("/spec/pd/image", json!("other:1"))], "other:1")]
fn images(#[case] changes: &[(&str, Value)], #[case] expected: &str) {
    assert_eq!(valid(changes).group(Component::Pd).unwrap().image, expected);
}

#[test]
fn an_image_without_a_version_stays_as_it_is() {
    let mut changes = vec![("/spec/version", Value::Null)];
    for place in ["/spec/pd", "/spec/tikv", "/spec/tidb", "/spec/tiflash", "/spec/ticdc", "/spec/tiproxy", "/spec/pump"] {
        changes.push((place, Value::Null));
    }
    changes.push(("/spec/pd", json!({ "replicas": 1, "baseImage": "mine/pd@sha256:0", "requests": { "storage": "1Gi" } })));
    assert_eq!(valid(&changes).group(Component::Pd).unwrap().image, "mine/pd@sha256:0");
}

#[test]
fn default_images_are_those_of_each_component() {
    let images: Vec<String> = valid(&[]).groups.into_values().map(|group| group.image).collect();
    let expected = [
        "pingcap/pd:v8.5.2",
        "pingcap/tikv:v8.5.2",
        "pingcap/tidb:v8.5.2",
        "pingcap/tiflash:v8.5.2",
        "pingcap/ticdc:v8.5.2",
        "pingcap/tiproxy:v1.3.0",
        "pingcap/tidb-binlog:v8.5.2",
    ];
    assert_eq!(images, expected);
}

#[test]
fn a_component_says_more_than_the_cluster() {
    let cluster = valid(&[
        ("/spec/annotations", json!({ "a": "cluster", "b": "cluster" })),
        ("/spec/labels", json!({ "a": "cluster" })),
        ("/spec/nodeSelector", json!({ "pool": "database" })),
        ("/spec/tolerations", json!([{ "key": "cluster" }])),
        ("/spec/hostNetwork", json!(true)),
        ("/spec/suspendAction", json!({ "suspendStatefulSet": true })),
        ("/spec/configUpdateStrategy", json!("RollingUpdate")),
        ("/spec/statefulSetUpdateStrategy", json!("OnDelete")),
        ("/spec/podManagementPolicy", json!("OrderedReady")),
        ("/spec/tikv/annotations", json!({ "a": "own" })),
        ("/spec/tikv/nodeSelector", json!({ "disk": "fast" })),
        ("/spec/tikv/tolerations", json!([{ "key": "own" }])),
        ("/spec/tikv/hostNetwork", json!(false)),
        ("/spec/tikv/suspendAction", json!({})),
        ("/spec/tikv/configUpdateStrategy", json!("InPlace")),
        ("/spec/tikv/statefulSetUpdateStrategy", json!("RollingUpdate")),
        ("/spec/tikv/podManagementPolicy", json!("Parallel")),
    ]);
    let texts =
        |map: &BTreeMap<String, String>| map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
    let (tikv, pd) = (cluster.group(Component::Tikv).unwrap(), cluster.group(Component::Pd).unwrap());
    assert_eq!(texts(&tikv.pods.annotations), "a=own b=cluster");
    assert_eq!(texts(&tikv.pods.labels), "a=cluster");
    assert_eq!(texts(&tikv.pods.node_selector), "disk=fast pool=database");
    assert_eq!(tikv.pods.tolerations, [json!({ "key": "own" })]);
    assert_eq!((tikv.pods.host_network, tikv.suspended, tikv.replaced_by_user, tikv.ordered), (false, false, false, false));
    assert_eq!(tikv.config_update, ConfigUpdate::InPlace);
    assert_eq!(texts(&pd.pods.annotations), "a=cluster b=cluster");
    assert_eq!(pd.pods.tolerations, [json!({ "key": "cluster" })]);
    assert_eq!((pd.pods.host_network, pd.suspended, pd.replaced_by_user, pd.ordered), (true, true, true, true));
    assert_eq!(pd.config_update, ConfigUpdate::RollingUpdate);
}

#[test]
fn numbers_and_times_of_the_user() {
    let cluster = valid(&[
        (
            "/metadata/annotations",
            json!({
                "tidb.pingcap.com/pd-min-ready-seconds": "10",
                "tiproxy.pingcap.com/tiproxy-min-ready-seconds": "7",
                "tidb.pingcap.com/tikv-partition": "2",
            }),
        ),
        ("/spec/tikv/scalePolicy", json!({ "scaleInParallelism": 2, "scaleOutParallelism": 3 })),
        ("/spec/tikv/maxFailoverCount", json!(0)),
        ("/spec/tikv/evictLeaderTimeout", json!("30m")),
        ("/spec/tikv/waitLeaderTransferBackTimeout", json!("1m30s")),
        ("/spec/ticdc/gracefulShutdownTimeout", json!("1.5h")),
    ]);
    let group = |component| cluster.group(component).unwrap();
    assert_eq!(group(Component::Pd).min_ready, Duration::from_secs(10));
    assert_eq!(group(Component::Tiproxy).min_ready, Duration::from_secs(7));
    let tikv = group(Component::Tikv);
    assert_eq!((tikv.partition, tikv.max_failover), (2, 0));
    assert_eq!(tikv.parallelism, Parallelism { scale_in: 2, scale_out: 3 });
    assert_eq!(cluster.evict_leader_timeout, Duration::from_mins(30));
    assert_eq!(cluster.leaders_back_timeout, Duration::from_secs(90));
    assert_eq!(cluster.graceful_shutdown_timeout, Duration::from_mins(90));
}

#[test]
fn claims_of_every_component() {
    let volumes = json!([{ "name": "log", "storageSize": "1Gi", "mountPath": "/log" }, { "name": "wal", "storageSize": "2Gi", "storageClassName": "fast" }]);
    let cluster = valid(&[
        ("/spec/tikv/storageVolumes", volumes),
        ("/spec/tikv/storageClassName", json!("slow")),
        (
            "/spec/tiflash/storageClaims",
            json!([
                { "resources": { "requests": { "storage": "1Gi" } }, "storageClassName": "fast" },
                { "resources": { "requests": { "storage": "2Gi" } } },
            ]),
        ),
    ]);
    let written = |component| {
        let claims = &cluster.group(component).unwrap().claims;
        let text = |it: &ClaimTemplate| {
            format!("{} {} {} {}", it.name, it.size, it.class.as_deref().unwrap_or("-"), it.mount.as_deref().unwrap_or("-"))
        };
        claims.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(written(Component::Pd), "pd 10Gi - /var/lib/pd");
    assert_eq!(written(Component::Tikv), "tikv 10Gi slow /var/lib/tikv; tikv-log 1Gi slow /log; tikv-wal 2Gi fast -");
    assert_eq!(written(Component::Tidb), "");
    assert_eq!(written(Component::Tiflash), "data0 1Gi fast /data0; data1 2Gi - /data1");
    assert_eq!(written(Component::Pump), "data 10Gi - /data");
}
