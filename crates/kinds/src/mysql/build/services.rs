//! The headless Service, by which instances find each other, and the Services of the primary and of the replicas.
//!
//! What the user's templates say stands, except for what the operator needs: whom a Service leads to, and through which ports.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::mysql::{ServiceTemplate, keys};
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{ADMIN, Fields, MYSQL, MYSQLX, Port, TCP, base_labels, manifest, put_default, take_list, without_nothing};

pub(super) fn headless(cluster: &Validated) -> Manifest {
    let ports = [MYSQL, MYSQLX, ADMIN].map(|port| Value::Object(own_port(port, Fields::new())));
    let spec = json!({
        "type": "ClusterIP",
        "clusterIP": "None",
        // An instance must be found by the others before it is ready, or it never becomes so.
        "publishNotReadyAddresses": true,
        "selector": base_labels(cluster),
        "ports": ports,
    });
    manifest(cluster, ObjectKind::Service, &cluster.names().headless_service(), spec)
}

pub(super) fn primary(cluster: &Validated) -> Manifest {
    let template = cluster.spec.primary_service_template.as_ref();
    of_role(cluster, &cluster.names().primary_service(), keys::ROLE_PRIMARY, template)
}

pub(super) fn replica(cluster: &Validated) -> Manifest {
    let template = cluster.spec.replica_service_template.as_ref();
    of_role(cluster, &cluster.names().replica_service(), keys::ROLE_REPLICA, template)
}

fn of_role(cluster: &Validated, name: &str, role: &str, template: Option<&ServiceTemplate>) -> Manifest {
    let given = template.and_then(|template| template.spec.as_ref());
    let mut spec = given.map(|part| part.fields.clone()).unwrap_or_default();
    put_default(&mut spec, "type", "ClusterIP");
    let mut selector = base_labels(cluster);
    selector.insert(keys::ROLE.to_owned(), role.to_owned());
    spec.insert("selector".to_owned(), json!(selector));
    let ports = ports(take_list(&mut spec, "ports"));
    spec.insert("ports".to_owned(), ports.into());
    let mut manifest = manifest(cluster, ObjectKind::Service, name, without_nothing(spec).into());
    if let Some(metadata) = template.and_then(|template| template.metadata.as_ref()) {
        manifest.labels = overlaid(metadata.labels.clone(), manifest.labels);
        manifest.annotations = overlaid(metadata.annotations.clone(), manifest.annotations);
    }
    manifest
}

/// The user's ports, and those of the operator where the user names none of them.
fn ports(given: Vec<Value>) -> Vec<Value> {
    let mut missing = vec![MYSQL, MYSQLX];
    let mut ports = Vec::new();
    for port in given {
        let Value::Object(mut port) = port else { continue };
        let ours = missing.iter().position(|ours| port.get("name").and_then(Value::as_str) == Some(ours.name));
        if let Some(ours) = ours {
            port = own_port(missing.remove(ours), port);
        }
        // Ports are told apart by number and protocol, so an applied one says both.
        put_default(&mut port, "protocol", TCP);
        ports.push(Value::Object(port));
    }
    ports.extend(missing.into_iter().map(|port| Value::Object(own_port(port, Fields::new()))));
    ports
}

/// A port of the operator's, with whatever else the user says of it: the number that nodes give it, for one.
fn own_port(port: Port, mut given: Fields) -> Fields {
    given.insert("name".to_owned(), port.name.into());
    given.insert("protocol".to_owned(), TCP.into());
    given.insert("port".to_owned(), port.number.into());
    given.insert("targetPort".to_owned(), port.name.into());
    given
}

/// What the user gave, under what must be.
fn overlaid(given: Option<BTreeMap<String, String>>, must: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut all = given.unwrap_or_default();
    all.extend(must);
    all
}
