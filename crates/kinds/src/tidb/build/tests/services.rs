//! Names, labels and ports of Services.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn services(cluster: &Validated, component: Component) -> Vec<Manifest> {
    built(cluster, component).into_iter().filter(|it| it.object.kind == ObjectKind::Service).collect()
}

fn line(service: &Manifest) -> String {
    let ports = service.spec["ports"].as_array().unwrap().iter();
    let ports: Vec<String> = ports.map(|port| format!("{}:{}", port["name"].as_str().unwrap(), port["port"])).collect();
    let address = service.spec["clusterIP"].as_str().unwrap_or("-");
    let used_by = &service.labels["app.kubernetes.io/used-by"];
    format!("{} {} {address} {used_by} {}", service.object.name, service.spec["type"].as_str().unwrap(), ports.join(","))
}

#[rstest]
#[case(Component::Pd, &[
    "harbour-pd-peer ClusterIP None peer tcp-peer-2380:2380,tcp-peer-2379:2379",
    "harbour-pd ClusterIP - end-user client:2379",
])]
#[case(Component::Tikv, &["harbour-tikv-peer ClusterIP None peer peer:20160"])]
#[case(Component::Tidb, &[
    "harbour-tidb-peer ClusterIP None peer status:10080",
    "harbour-tidb ClusterIP - end-user mysql-client:4000,status:10080",
])]
#[case(Component::Tiflash, &["harbour-tiflash-peer ClusterIP None peer tiflash:3930,proxy:20170,metrics:8234,proxy-metrics:20292"])]
#[case(Component::Ticdc, &["harbour-ticdc-peer ClusterIP None peer ticdc:8301"])]
#[case(Component::Tiproxy, &[
    "harbour-tiproxy-peer ClusterIP None peer tiproxy-api:3080,tiproxy-peer:3081",
    "harbour-tiproxy NodePort - end-user tiproxy-api:3080,tiproxy-sql:6000",
])]
#[case(Component::Pump, &["harbour-pump ClusterIP None peer pump:8250"])]
fn they_are_those_that_users_know(#[case] component: Component, #[case] expected: &[&str]) {
    let services = services(&valid(&[]), component);
    assert_eq!(services.iter().map(line).collect::<Vec<_>>(), expected);
    for service in services {
        let labels = sorted(&service.labels);
        let selector = service.spec["selector"].as_object().unwrap();
        let selector: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
        let expected = format!(
            "app.kubernetes.io/component={component} app.kubernetes.io/instance=harbour app.kubernetes.io/managed-by=tidb-operator app.kubernetes.io/name=tidb-cluster"
        );
        assert_eq!(selector.join(" "), expected);
        assert!(labels.starts_with(&expected) && labels.ends_with("windlass.dev/kind=tc"), "{labels}");
        let is_headless = service.spec["clusterIP"] == "None";
        assert_eq!(service.spec["publishNotReadyAddresses"] == true, is_headless || component == Component::Tiproxy);
    }
}

#[test]
fn tidb_has_none_for_clients_unless_it_is_asked_for() {
    let names: Vec<String> =
        services(&valid(&[("/spec/tidb/service", Value::Null)]), Component::Tidb).iter().map(line).collect();
    assert_eq!(names, ["harbour-tidb-peer ClusterIP None peer status:10080"]);
}

#[test]
fn what_the_user_says_of_them() {
    let given = json!({
        "type": "LoadBalancer", "port": 3306, "portName": "mysql", "mysqlNodePort": 30400, "statusNodePort": 0,
        "externalTrafficPolicy": "Local", "loadBalancerIP": "10.0.0.1", "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "annotations": { "note": "pier" }, "labels": { "team": "quay", "app.kubernetes.io/instance": "other" },
        "additionalPorts": [{ "name": "extra", "port": 1, "targetPort": 2 }],
    });
    let services = services(&valid(&[("/spec/tidb/service", given), ("/spec/preferIPv6", json!(true))]), Component::Tidb);
    let client = &services[1];
    let expected = json!({
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "loadBalancerIP": "10.0.0.1",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "ipFamilyPolicy": "PreferDualStack",
        "selector": client.spec["selector"],
        "ports": [
            { "name": "mysql", "protocol": "TCP", "port": 3306, "targetPort": 4000, "nodePort": 30400 },
            { "name": "extra", "protocol": "TCP", "port": 1, "targetPort": 2 },
            { "name": "status", "protocol": "TCP", "port": 10080, "targetPort": 10080 },
        ],
    });
    assert_eq!(client.spec, expected);
    assert_eq!(client.annotations["note"], "pier");
    assert_eq!((client.labels["team"].as_str(), client.labels["app.kubernetes.io/instance"].as_str()), ("quay", "harbour"));
    assert_eq!(services[0].spec["ipFamilyPolicy"], "PreferDualStack");
}

#[rstest]
#[case(&[], "ClusterIP", "client")]
#[case(&[("/spec/services", json!([{ "name": "pd", "type": "NodePort" }]))], "NodePort", "client")]
#[case(&[("/spec/services", json!([{ "name": "pd", "type": "NodePort" }])), ("/spec/pd/service", json!({ "type": "LoadBalancer", "portName": "tcp-pd" }))], "LoadBalancer", "tcp-pd")]
fn the_type_of_pd_may_be_said_in_two_ways(#[case] changes: &[(&str, Value)], #[case] type_: &str, #[case] port: &str) {
    let client = &services(&valid(changes), Component::Pd)[1];
    assert_eq!((&client.spec["type"], &client.spec["ports"][0]["name"]), (&json!(type_), &json!(port)));
}

#[test]
fn status_may_be_kept_from_clients() {
    let client = &services(&valid(&[("/spec/tidb/service", json!({ "exposeStatus": false }))]), Component::Tidb)[1];
    assert_eq!(line(client), "harbour-tidb ClusterIP - end-user mysql-client:4000");
}
