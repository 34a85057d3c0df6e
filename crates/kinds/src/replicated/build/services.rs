//! The headless Service, by which members find each other, and the Service that clients use.

use k8s_openapi::api::core::v1::ServicePort;
use serde_json::{Value, json};
use windlass_core::labels;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{TCP, manifest, selector};

/// A Service needs a port; a cluster whose spec names none still needs its members' host names.
const PLACEHOLDER: i32 = 12345;

pub(super) fn headless(cluster: &Validated) -> Manifest {
    let spec = json!({
        "clusterIP": "None",
        // A member must be found by its peers before it is ready, or it never becomes so.
        "publishNotReadyAddresses": true,
        "selector": selector(cluster),
        "ports": ports(cluster),
    });
    manifest(cluster, ObjectKind::Service, &cluster.names.headless_service(), spec)
}

pub(super) fn client(cluster: &Validated) -> Manifest {
    let mut selector = selector(cluster);
    selector.insert(labels::RSS_ACTIVE_MEMBER.to_owned(), "true".to_owned());
    let spec = json!({ "selector": selector, "ports": ports(cluster) });
    manifest(cluster, ObjectKind::Service, &cluster.names.client_service(), spec)
}

fn ports(cluster: &Validated) -> Value {
    let placeholder = ServicePort { name: Some("dummy".into()), port: PLACEHOLDER, ..ServicePort::default() };
    let ports = if cluster.ports.is_empty() { std::slice::from_ref(&placeholder) } else { &cluster.ports };
    let mut ports = ports.to_vec();
    for port in &mut ports {
        port.protocol.get_or_insert_with(|| TCP.to_owned());
    }
    ports.iter().map(|port| serde_json::to_value(port).unwrap_or_default()).collect()
}
