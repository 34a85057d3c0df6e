//! The Services of a component: the headless one, by which members are found before they are ready, and the one that clients use.
//!
//! Names, ports and labels are those that scripts and dashboards know.

use serde_json::{Value, json};
use windlass_api::tidb::{Component, ServiceSpec, TidbServiceSpec, keys};
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{TCP, base_labels, manifest};
use crate::fields::{Fields, fields_of, put_default, without_nothing};

/// A port with a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u16,
}

const fn port(name: &'static str, number: u16) -> Port {
    Port { name, number }
}

/// The port at which clients of a component connect, or others of its kind where it has no clients.
pub(super) const fn main_port(component: Component) -> u16 {
    match component {
        Component::Pd => 2379,
        Component::Tikv => 20160,
        Component::Tidb => 4000,
        Component::Tiflash => 3930,
        Component::Ticdc => 8301,
        Component::Tiproxy => 6000,
        Component::Pump => 8250,
    }
}

/// The port at which a component tells its status.
pub(super) const fn status_port(component: Component) -> u16 {
    match component {
        Component::Pd => 2379,
        Component::Tikv => 20180,
        Component::Tidb => 10080,
        Component::Tiflash => 8234,
        Component::Ticdc => 8301,
        Component::Tiproxy => 3080,
        Component::Pump => 8250,
    }
}

const STATUS: Port = port("status", status_port(Component::Tidb));

fn peer_ports(component: Component) -> Vec<Port> {
    match component {
        Component::Pd => vec![port("tcp-peer-2380", 2380), port("tcp-peer-2379", 2379)],
        Component::Tikv => vec![port("peer", 20160)],
        Component::Tidb => vec![STATUS],
        Component::Tiflash => {
            vec![port("tiflash", 3930), port("proxy", 20170), port("metrics", 8234), port("proxy-metrics", 20292)]
        }
        Component::Ticdc => vec![port("ticdc", 8301)],
        Component::Tiproxy => vec![port("tiproxy-api", 3080), port("tiproxy-peer", 3081)],
        Component::Pump => vec![port("pump", 8250)],
    }
}

/// The Services of a component. TiDB has one for clients only when the user says so.
pub(super) fn services(cluster: &Validated, component: Component) -> Vec<Manifest> {
    let client = match component {
        Component::Pd => Some(of_pd(cluster)),
        Component::Tidb => cluster.spec.tidb.as_ref().and_then(|tidb| tidb.service.as_ref()).map(|it| of_tidb(cluster, it)),
        Component::Tiproxy => Some(of_tiproxy(cluster)),
        Component::Tikv | Component::Tiflash | Component::Ticdc | Component::Pump => None,
    };
    std::iter::once(headless(cluster, component)).chain(client).collect()
}

fn headless(cluster: &Validated, component: Component) -> Manifest {
    let spec = json!({
        "type": "ClusterIP",
        "clusterIP": "None",
        // A member must be found by the others before it is ready, or it never becomes so.
        "publishNotReadyAddresses": true,
        "ports": peer_ports(component).into_iter().map(|port| Value::Object(own_port(port))).collect::<Vec<_>>(),
    });
    let name = cluster.names().headless_service(component);
    finished(cluster, component, &name, keys::USED_BY_PEER, fields_of(&spec))
}

fn of_pd(cluster: &Validated) -> Manifest {
    let given = cluster.spec.pd.as_ref().and_then(|pd| pd.service.clone()).unwrap_or_default();
    let mut client = own_port(port("client", main_port(Component::Pd)));
    rename(&mut client, &given);
    let mut spec = spec_of(&given);
    // An older way to say the same, for PD alone.
    let of_all = cluster.spec.services.iter().flatten().find(|it| it.name.as_deref() == Some(Component::Pd.as_str()));
    if let Some(type_) = of_all.and_then(|it| it.type_.clone()).filter(|type_| !type_.is_empty()) {
        put_default(&mut spec, "type", type_);
    }
    put_default(&mut spec, "type", "ClusterIP");
    spec.insert("ports".to_owned(), json!([client]));
    with_metadata(client_service(cluster, Component::Pd, spec), &given)
}

fn of_tidb(cluster: &Validated, given: &TidbServiceSpec) -> Manifest {
    let mut mysql = own_port(port("mysql-client", main_port(Component::Tidb)));
    rename(&mut mysql, &given.service);
    mysql.insert("port".to_owned(), given.service.port.unwrap_or(main_port(Component::Tidb)).into());
    on_nodes(&mut mysql, given.mysql_node_port);
    let mut ports = vec![Value::Object(mysql)];
    for given in given.additional_ports.iter().flatten() {
        let mut port = given.fields.clone();
        // Ports are told apart by number and protocol, so an applied one says both.
        put_default(&mut port, "protocol", TCP);
        ports.push(Value::Object(port));
    }
    if given.expose_status.unwrap_or(true) {
        let mut status = own_port(STATUS);
        on_nodes(&mut status, given.status_node_port);
        ports.push(Value::Object(status));
    }
    let mut spec = spec_of(&given.service);
    put_default(&mut spec, "type", "ClusterIP");
    if let Some(policy) = given.external_traffic_policy.clone().filter(|policy| !policy.is_empty()) {
        spec.insert("externalTrafficPolicy".to_owned(), policy.into());
    }
    spec.insert("ports".to_owned(), ports.into());
    with_metadata(client_service(cluster, Component::Tidb, spec), &given.service)
}

fn of_tiproxy(cluster: &Validated) -> Manifest {
    let ports = [port("tiproxy-api", 3080), port("tiproxy-sql", main_port(Component::Tiproxy))];
    let spec = json!({
        "type": "NodePort",
        "publishNotReadyAddresses": true,
        "ports": ports.map(|port| Value::Object(own_port(port))),
    });
    client_service(cluster, Component::Tiproxy, fields_of(&spec))
}

fn client_service(cluster: &Validated, component: Component, spec: Fields) -> Manifest {
    let name = cluster.names().client_service(component);
    finished(cluster, component, &name, keys::USED_BY_END_USER, spec)
}

fn finished(cluster: &Validated, component: Component, name: &str, used_by: &str, mut spec: Fields) -> Manifest {
    spec.insert("selector".to_owned(), json!(base_labels(cluster, component.as_str())));
    if cluster.spec.prefer_ipv6 {
        spec.insert("ipFamilyPolicy".to_owned(), "PreferDualStack".into());
    }
    let mut service = manifest(cluster, ObjectKind::Service, component.as_str(), name, without_nothing(spec).into());
    service.labels.insert(keys::USED_BY.to_owned(), used_by.to_owned());
    service
}

/// What the user says of every Service, except ports.
fn spec_of(given: &ServiceSpec) -> Fields {
    let mut spec = Fields::new();
    let mut put = |field: &str, text: Option<&String>| {
        spec.extend(text.filter(|text| !text.is_empty()).map(|text| (field.to_owned(), text.clone().into())));
    };
    put("type", given.type_.as_ref());
    put("clusterIP", given.cluster_ip.as_ref());
    if given.type_.as_deref() == Some("LoadBalancer") {
        put("loadBalancerIP", given.load_balancer_ip.as_ref());
        put("loadBalancerClass", given.load_balancer_class.as_ref());
        spec.insert("loadBalancerSourceRanges".to_owned(), json!(given.load_balancer_source_ranges));
    }
    without_nothing(spec)
}

/// Ours win over the user's: selectors of others rest on them.
fn with_metadata(mut service: Manifest, given: &ServiceSpec) -> Manifest {
    let mut labels = given.labels.clone().unwrap_or_default();
    labels.extend(service.labels);
    service.labels = labels;
    service.annotations.extend(given.annotations.clone().unwrap_or_default());
    service
}

fn rename(port: &mut Fields, given: &ServiceSpec) {
    if let Some(name) = given.port_name.clone().filter(|name| !name.is_empty()) {
        port.insert("name".to_owned(), name.into());
    }
}

/// Kubernetes chooses where the user says nothing, and what it chose stays.
fn on_nodes(port: &mut Fields, number: Option<u16>) {
    port.extend(number.filter(|number| *number > 0).map(|number| ("nodePort".to_owned(), number.into())));
}

pub(super) fn own_port(port: Port) -> Fields {
    fields_of(&json!({ "name": port.name, "protocol": TCP, "port": port.number, "targetPort": port.number }))
}
