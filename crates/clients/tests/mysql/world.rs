//! What stands for the API server: it knows the passwords of a cluster, and which process each pod has.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use windlass_clients::mysql::Servers;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::mysql::deeds::{Deed, Place, Source, Task};
use windlass_kinds::mysql::facts::{End, Fact, News};
use windlass_kinds::mysql::instance::Known;

use crate::server::{PATIENCE, Server};

pub(crate) const ADMIN_PASSWORD: &str = "admin's \\ word";
pub(crate) const REPLICATION_PASSWORD: &str = "repl's \\ word";
pub(crate) const CLONE_DONOR_PASSWORD: &str = "donor's \\ word";

/// What the API server knows.
#[derive(Default)]
pub(crate) struct Api {
    admin: Mutex<Option<String>>,
    /// Where the server elsewhere is, and the password there.
    elsewhere: Mutex<Option<(Source, String)>>,
    /// How often the Secret was read.
    reads: AtomicUsize,
}

/// The client under test, and its API server.
pub(crate) struct World {
    pub(crate) api: Arc<Api>,
    pub(crate) servers: Servers,
}

impl World {
    pub(crate) fn new() -> Self {
        let api = Arc::new(Api::default());
        let known = Arc::clone(&api);
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = known.answer(request.uri().path());
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let servers = Servers::with_ports(Client::new(service, "default"), Server::admin_port);
        Self { api, servers }
    }

    pub(crate) async fn look(&self, server: &Server) -> Result<Known, String> {
        match self.servers.look(&place(server)).await.news {
            News::Seen(known) => Ok(*known),
            News::Silent { why, .. } => Err(why),
            News::Gone { .. } | News::Ended { .. } | News::Source(_) => panic!("a look is neither a watch nor a task"),
        }
    }

    pub(crate) async fn see(&self, server: &Server) -> Known {
        self.look(server).await.unwrap()
    }

    /// Carries out a task, and what comes later if it still runs.
    pub(crate) async fn carry_out(&self, server: &Server, task: Task) -> (End, Option<BoxFuture<'static, Fact>>) {
        let (fact, rest) = self.servers.carry_out(Deed { place: place(server), task: task.clone() }).await;
        let text = fact.to_string();
        let secrets = [ADMIN_PASSWORD, REPLICATION_PASSWORD, CLONE_DONOR_PASSWORD];
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
        (end_of(fact, &task), rest)
    }

    pub(crate) async fn done(&self, server: &Server, task: Task) {
        let (end, rest) = self.carry_out(server, task.clone()).await;
        assert_eq!(end, End::Done, "{task:?}");
        assert!(rest.is_none());
    }

    pub(crate) async fn failed(&self, server: &Server, task: Task) -> String {
        let (end, rest) = self.carry_out(server, task.clone()).await;
        assert!(rest.is_none());
        let End::Failed { why } = end else { panic!("{task:?}: {end:?}") };
        why
    }

    /// Waits until what a look sees is so.
    pub(crate) async fn until(&self, server: &Server, what: &str, is_so: impl Fn(&Known) -> bool) -> Known {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let known = self.look(server).await;
            match known {
                Ok(known) if is_so(&known) => return known,
                other => assert!(std::time::Instant::now() < deadline, "{what}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Api {
    pub(crate) fn set_admin_password(&self, password: &str) {
        *self.admin.lock().unwrap() = Some(password.to_owned());
    }

    pub(crate) fn set_elsewhere(&self, source: Source, password: &str) {
        *self.elsewhere.lock().unwrap() = Some((source, password.to_owned()));
    }

    pub(crate) fn secret_reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn answer(&self, path: &str) -> Response<Body> {
        let object = if let Some(pod) = path.strip_prefix("/api/v1/namespaces/n/pods/") {
            json!({
                "metadata": { "name": pod, "namespace": "n", "uid": format!("uid of {pod}") },
                "status": { "containerStatuses": [
                    { "name": "agent", "containerID": "containerd://agent" },
                    { "name": "mysqld", "containerID": format!("containerd://{pod}") },
                ] },
            })
        } else if path == "/api/v1/namespaces/n/secrets/credentials" {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let admin = self.admin.lock().unwrap().clone().unwrap_or_else(|| ADMIN_PASSWORD.to_owned());
            let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
            json!({
                "metadata": { "name": "credentials", "namespace": "n" },
                "data": {
                    "ADMIN_PASSWORD": bytes(&admin),
                    "REPLICATION_PASSWORD": bytes(REPLICATION_PASSWORD),
                    "CLONE_DONOR_PASSWORD": bytes(CLONE_DONOR_PASSWORD),
                },
            })
        } else if path == "/api/v1/namespaces/n/secrets/elsewhere" {
            let (source, password) = self.elsewhere.lock().unwrap().clone().unwrap();
            let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
            json!({
                "metadata": { "name": "elsewhere", "namespace": "n", "resourceVersion": "7" },
                "data": {
                    "HOST": bytes(&source.host), "PORT": bytes(&source.port.to_string()), "USER": bytes("moco-repl"),
                    "PASSWORD": bytes(&password), "INIT_USER": bytes("root"), "INIT_PASSWORD": bytes("hidden"),
                },
            })
        } else {
            panic!("nobody should ask for {path}")
        };
        Response::new(Body::from(serde_json::to_vec(&object).unwrap()))
    }
}

/// How a task ended, by its fact.
pub(crate) fn end_of(fact: Fact, expected: &Task) -> End {
    let News::Ended { task, end } = fact.news else { panic!("a task ends as a task") };
    assert_eq!(&task, expected);
    end
}

pub(crate) fn place(server: &Server) -> Place {
    let ordinal = Ordinal::new(server.number());
    let pod = ordinal.pod_name("moco-a");
    Place {
        namespace: "n".into(),
        credentials: "credentials".into(),
        pod_uid: format!("uid of {pod}"),
        process: format!("containerd://{pod}"),
        pod,
        address: server.address(),
        ordinal,
    }
}

/// Where others reach a server.
pub(crate) fn source(server: &Server) -> Source {
    Source { host: "127.0.0.1".into(), port: server.port() }
}
