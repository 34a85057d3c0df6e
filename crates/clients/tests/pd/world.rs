//! The client under test, and what stands for the API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use windlass_clients::tidb::Servers;
use windlass_kinds::tidb::answers::PdSeen;
use windlass_kinds::tidb::component::Component;
use windlass_kinds::tidb::deeds::{At, Deed, Pd, Probe, Server, Task};
use windlass_kinds::tidb::facts::{End, Fact};

use crate::server;

/// The client, with these Secrets to be had.
pub(crate) struct World {
    servers: Servers,
    certificate: Option<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_secret(None)
    }

    /// With a Secret that has these texts.
    pub(crate) fn with_secret(texts: Option<BTreeMap<String, String>>) -> Self {
        let certificate = texts.as_ref().map(|_| "a-cluster-client-secret".to_owned());
        let texts = Arc::new(texts);
        let service = tower::service_fn(move |request: Request<Body>| {
            let known = texts.as_ref().as_ref().filter(|_| request.uri().path().ends_with("/secrets/a-cluster-client-secret"));
            let body = known.map(|texts| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": encoded(texts)}));
            let status = if body.is_some() { 200 } else { 404 };
            let body = body.unwrap_or_else(|| json!({"kind": "Status", "code": 404})).to_string();
            let response = Response::builder().status(status).body(Body::from(body.into_bytes())).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        // Servers on one machine are told apart by their ports.
        let servers = Servers::new(Client::new(service, "default")).with_ports(|server| server.process.parse().unwrap());
        Self { servers, certificate }
    }

    fn server(&self, of: &server::Server) -> Server {
        Server {
            component: Component::Pd,
            namespace: "shop".into(),
            certificate: self.certificate.clone(),
            pod: of.name.clone(),
            pod_uid: of.name.clone(),
            process: of.port.to_string(),
            host: "localhost".into(),
            address: "127.0.0.1".into(),
        }
    }

    pub(crate) async fn look(&self, servers: &[&server::Server]) -> Result<PdSeen, String> {
        let pd = Pd { servers: servers.iter().map(|it| self.server(it)).collect(), cluster: None };
        let asked = "2026-01-01T00:00:00Z".parse().unwrap();
        match self.servers.ask(Probe::Pd { pd, asked }).await {
            Fact::Pd { answer, .. } => answer.map(|told| told.1),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn see(&self, server: &server::Server) -> PdSeen {
        self.look(&[server]).await.unwrap()
    }

    /// Does something as a cluster with this id.
    pub(crate) async fn act(&self, server: &server::Server, cluster: Option<u64>, task: Task) -> End {
        let pd = Pd { servers: vec![self.server(server)], cluster };
        let deed = Deed { at: At::Pd(pd), task, about: "it".into(), identity: "it".into() };
        match self.servers.carry_out(deed).await {
            Fact::Ended { end, .. } => end,
            other => panic!("{other:?}"),
        }
    }

    /// Does something, twice: the second time it is done already.
    pub(crate) async fn done(&self, server: &server::Server, task: Task) {
        let cluster = Some(self.see(server).await.cluster);
        for time in ["first", "second"] {
            let end = self.act(server, cluster, task.clone()).await;
            assert_eq!(end, End::Done, "{task:?} for the {time} time");
        }
    }

    pub(crate) async fn failed(&self, server: &server::Server, task: Task) -> String {
        let cluster = Some(self.see(server).await.cluster);
        match self.act(server, cluster, task.clone()).await {
            End::Failed { why } => why,
            other => panic!("{task:?}: {other:?}"),
        }
    }
}

fn encoded(texts: &BTreeMap<String, String>) -> serde_json::Value {
    let encode = |text: &String| serde_json::to_value(k8s_openapi::ByteString(text.clone().into_bytes())).unwrap();
    texts.iter().map(|(key, text)| (key.clone(), encode(text))).collect::<serde_json::Map<_, _>>().into()
}
