//! The operator's own client, with something in the place of the API server that knows every Secret and every pod that it asks for.

use std::convert::Infallible;
use std::net::Ipv4Addr;

use http::{Request, Response};
use k8s_openapi::ByteString;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use windlass_clients::mysql::Servers;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::mysql::deeds::Place;

const NAMESPACE: &str = "bench";

/// The client.
pub(super) fn servers(port: u16) -> Servers {
    let service = tower::service_fn(|request: Request<Body>| {
        let answer = Response::new(Body::from(object(request.uri().path()).to_string().into_bytes()));
        async move { Ok::<_, Infallible>(answer) }
    });
    Servers::with_ports(Client::new(service, NAMESPACE), move |_| port)
}

/// Where a pod's server is.
pub(super) fn place(set: &str, number: u16, address: Ipv4Addr) -> Place {
    let ordinal = Ordinal::new(number);
    let pod = ordinal.pod_name(set);
    Place {
        namespace: NAMESPACE.to_owned(),
        credentials: set.to_owned(),
        pod_uid: uid(&pod),
        process: process(&pod),
        pod,
        address: address.to_string(),
        ordinal,
    }
}

fn uid(pod: &str) -> String {
    format!("uid of {pod}")
}

fn process(pod: &str) -> String {
    format!("bench://{pod}")
}

fn object(path: &str) -> Value {
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains("/pods/") {
        return json!({
            "metadata": { "name": name, "namespace": NAMESPACE, "uid": uid(name) },
            "status": { "containerStatuses": [{
                "name": "mysqld", "containerID": process(name), "image": "", "imageID": "", "ready": true, "restartCount": 0,
            }] },
        });
    }
    let password = ByteString(b"not looked at".to_vec());
    let keys = ["ADMIN_PASSWORD", "REPLICATION_PASSWORD", "CLONE_DONOR_PASSWORD"];
    let data: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!(password))).collect();
    json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "data": data })
}
