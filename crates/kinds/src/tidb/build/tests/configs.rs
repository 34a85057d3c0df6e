//! Configurations as they are written, and the names of the ConfigMaps that hold them.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

#[rstest]
#[case::pd("pd", Component::Pd, "config-file", &[])]
#[case::pd_tls("pd_tls", Component::Pd, "config-file", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true })), ("/spec/pd/enableDashboardInternalProxy", json!(true))])]
#[case::tikv_tls("tikv_tls", Component::Tikv, "config-file", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tikv/config", json!({ "storage": { "reserve-space": "0MB" } }))])]
#[case::tidb("tidb", Component::Tidb, "config-file", &[])]
#[case::tidb_tls("tidb_tls", Component::Tidb, "config-file", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true })), ("/spec/tidb/tokenBasedAuthEnabled", json!(true)), ("/spec/tidb/bootstrapSQLConfigMapName", json!("statements"))])]
#[case::tiflash("tiflash", Component::Tiflash, "config_templ.toml", &[])]
#[case::tiflash_proxy("tiflash_proxy", Component::Tiflash, "proxy_templ.toml", &[])]
#[case::tiflash_tls("tiflash_tls", Component::Tiflash, "config_templ.toml", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tiflash/config", json!({ "config": "tcp_port = 9000\nhttp_port = 8123" }))])]
#[case::tiflash_proxy_tls("tiflash_proxy_tls", Component::Tiflash, "proxy_templ.toml", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tiflash/config", json!({ "config": "[security]\ncert_allowed_cn = [\"a\"]" }))])]
#[case::ticdc("ticdc", Component::Ticdc, "config-file", &[("/spec/ticdc/config", json!({ "gcTTL": 7, "timezone": "CET", "sorter": { "dir": "/sort" } }))])]
#[case::tiproxy("tiproxy", Component::Tiproxy, "config-file", &[])]
#[case::tiproxy_tls("tiproxy_tls", Component::Tiproxy, "config-file", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true }))])]
#[case::tiproxy_newer("tiproxy_newer", Component::Tiproxy, "config-file", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/tidb/tlsClient", json!({ "enabled": true })), ("/spec/tiproxy/certLayout", json!("v1"))])]
#[case::pump_tls("pump_tls", Component::Pump, "pump-config", &[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/pump/config", json!({ "gc": 7 }))])]
fn as_they_are_written(#[case] name: &str, #[case] component: Component, #[case] key: &str, #[case] changes: &[(&str, Value)]) {
    insta::assert_snapshot!(format!("config_{name}"), text(&valid(changes), component, key));
}

#[test]
fn what_the_user_says_stands_unless_certificates_do() {
    let cluster = valid(&[
        ("/spec/tlsCluster", json!({ "enabled": true })),
        (
            "/spec/tidb/config",
            json!("[log.file]\nmax-backups = 9\n[security]\ncluster-ssl-ca = \"mine\"\nskip-grant-table = true"),
        ),
    ]);
    let config = text(&cluster, Component::Tidb, "config-file");
    assert!(config.contains("max-backups = 9") && config.contains("skip-grant-table = true"), "{config}");
    assert!(config.contains("cluster-ssl-ca = \"/var/lib/tidb-tls/ca.crt\""), "{config}");
}

#[test]
fn the_forms_of_a_configuration_are_one() {
    let of = |config: Value| {
        let cluster = valid(&[("/spec/tikv/config", config), ("/spec/configUpdateStrategy", json!("RollingUpdate"))]);
        find(&built(&cluster, Component::Tikv), ObjectKind::ConfigMap).object.name.clone()
    };
    let map = of(json!({ "b": { "c": [1, 2] }, "a": "x" }));
    assert_eq!(map, of(json!("a = 'x'\n\n[b]\nc = [ 1,\n 2 ] # two")));
    assert_ne!(map, of(json!({ "a": "y" })));
}

#[rstest]
#[case(Component::Pd)]
#[case(Component::Tikv)]
#[case(Component::Tidb)]
#[case(Component::Tiflash)]
#[case(Component::Ticdc)]
#[case(Component::Tiproxy)]
#[case(Component::Pump)]
fn they_are_called_after_what_they_hold_where_that_replaces_pods(#[case] component: Component) {
    let in_place = valid(&[]);
    let rolling = valid(&[("/spec/configUpdateStrategy", json!("RollingUpdate"))]);
    let name = |cluster: &Validated| find(&built(cluster, component), ObjectKind::ConfigMap).object.name.clone();
    let plain = format!("harbour-{component}");
    assert_eq!(name(&in_place), plain);
    let digest = name(&rolling).strip_prefix(&format!("{plain}-")).unwrap().to_owned();
    assert!(digest.len() == 7 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    assert_eq!(name(&rolling), name(&rolling));
    // The pods have the very one.
    for cluster in [&in_place, &rolling] {
        let set = set(cluster, component);
        let volumes = set.spec["template"]["spec"]["volumes"].as_array().unwrap();
        let mounted: Vec<&Value> = volumes.iter().filter_map(|volume| volume.pointer("/configMap/name")).collect();
        assert!(!mounted.is_empty() && mounted.iter().all(|it| **it == json!(name(cluster))), "{mounted:?}");
    }
}

#[test]
fn digests_of_this_release_are_pinned() {
    // A release that changes one of these lets every user's next change of anything replace pods. It may; knowingly.
    let cluster = valid(&[("/spec/configUpdateStrategy", json!("RollingUpdate"))]);
    let names = Component::ALL.map(|it| find(&built(&cluster, it), ObjectKind::ConfigMap).object.name.clone());
    insta::assert_snapshot!(names.join("\n"));
}

#[test]
fn the_one_in_use_is_changed_in_place() {
    let rolling = valid(&[("/spec/configUpdateStrategy", json!("RollingUpdate"))]);
    let before = built(&rolling, Component::Tikv);
    let used = find(&before, ObjectKind::ConfigMap).object.name.clone();
    // The user does not want pods to be replaced any more, and changes something.
    let cluster = valid(&[("/spec/tikv/config", json!({ "a": 1 }))]);
    let objects = built_over(&cluster, Component::Tikv, &there(&before)).applied;
    assert_eq!(find(&objects, ObjectKind::ConfigMap).object.name, used);
    assert_ne!(used, "harbour-tikv");
    // One of another component is none of its own.
    let mut others = there(&built(&rolling, Component::Tiflash));
    let set = others.stateful_sets.remove("harbour-tiflash").unwrap();
    others.stateful_sets.insert("harbour-tikv".to_owned(), set);
    let objects = built_over(&cluster, Component::Tikv, &others).applied;
    assert_eq!(find(&objects, ObjectKind::ConfigMap).object.name, "harbour-tikv");
}
