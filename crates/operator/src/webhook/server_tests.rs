use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windlass_testkit::FakeApiServer;

use super::super::certificates::{Kept, due};
use super::super::review::tests::review;
use super::*;

const HOST: &str = "windlass-webhook.ops.svc";

fn certificates() -> Kept {
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    due(None, HOST, Timestamp::now()).unwrap().unwrap()
}

struct Webhook {
    desk: Arc<Desk>,
    address: std::net::SocketAddr,
    stop: CancellationToken,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Webhook {
    async fn new(kept: &Kept, api: &FakeApiServer) -> Self {
        let desk = Arc::new(Desk::new("track=ours".parse().unwrap(), api.client()));
        desk.set(kept.configuration().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        tokio::spawn(serve(listener, Arc::clone(&desk), stop.clone()));
        Self { desk, address, stop }
    }

    /// Asks as the API server does: it trusts this bundle, and nothing else.
    async fn ask(&self, bundle: &str, path: &str, body: &str) -> Result<(u16, String), String> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let configuration = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from(HOST).unwrap();
        let mut stream =
            TlsConnector::from(Arc::new(configuration)).connect(name, stream).await.map_err(|error| error.to_string())?;
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        // The other side need not say farewell.
        let _ended = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        Ok((head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned()))
    }

    async fn verdict(&self, bundle: &str, path: &str, review: &Value) -> Value {
        let (code, body) = self.ask(bundle, path, &review.to_string()).await.unwrap();
        assert_eq!(code, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["response"].clone()
    }
}

fn cluster(replicas: u16) -> Value {
    json!({
        "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
        "metadata": { "name": "harbour", "namespace": "default", "labels": { "track": "ours" } },
        "spec": {
            "replicas": replicas, "backupPolicyName": "daily",
            "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }] } },
            "volumeClaimTemplates": [{
                "metadata": { "name": "mysql-data" },
                "spec": { "resources": { "requests": { "storage": "1Gi" } } },
            }],
        },
    })
}

fn api_server() -> FakeApiServer {
    let api = FakeApiServer::new();
    for definition in windlass_api::custom_resource_definitions() {
        api.register_crd(&definition);
    }
    api
}

#[tokio::test]
async fn reviews_are_answered_over_tls() {
    let (kept, api) = (certificates(), api_server());
    let webhook = Webhook::new(&kept, &api).await;
    let bundle = &kept.bundle;
    let good = webhook.verdict(bundle, "/validate", &review("mysqlclusters", "CREATE", &cluster(3), &Value::Null)).await;
    assert_eq!(good["allowed"], true);
    let bad = webhook.verdict(bundle, "/validate", &review("mysqlclusters", "CREATE", &cluster(2), &Value::Null)).await;
    assert_eq!(bad["allowed"], false);
    assert!(bad["status"]["message"].as_str().unwrap().contains("spec.replicas"), "{bad}");
    let completed = webhook.verdict(bundle, "/mutate", &review("mysqlclusters", "CREATE", &cluster(3), &Value::Null)).await;
    assert_eq!((&completed["allowed"], &completed["patchType"]), (&json!(true), &json!("JSONPatch")));
    assert_eq!(webhook.ask(bundle, "/validate", "rubbish").await.unwrap().0, 400);
    let stranger = certificates();
    assert!(webhook.ask(&stranger.bundle, "/validate", "{}").await.is_err(), "anybody is trusted");
}

#[tokio::test]
async fn whether_a_policy_is_used_is_looked_up() {
    let (kept, api) = (certificates(), api_server());
    let webhook = Webhook::new(&kept, &api).await;
    let policy = json!({ "metadata": { "name": "daily", "labels": { "track": "ours" } } });
    let mut removal = review("backuppolicies", "DELETE", &Value::Null, &policy);
    removal["request"]["namespace"] = json!("default");
    let free = webhook.verdict(&kept.bundle, "/validate", &removal).await;
    assert_eq!((&free["allowed"], &free["warnings"]), (&json!(true), &Value::Null));
    api.store().put_raw(cluster(3));
    let used = webhook.verdict(&kept.bundle, "/validate", &removal).await;
    assert_eq!(used["status"]["message"], "MySQLCluster default/harbour has a reference to this policy");
}

/// Certificates change under requests that never end, and each is answered.
#[tokio::test]
async fn a_hundred_renewals_fail_no_review() {
    let (mut kept, api) = (certificates(), api_server());
    let webhook = Webhook::new(&kept, &api).await;
    let question = review("mysqlclusters", "CREATE", &cluster(3), &Value::Null);
    for round in 0..100 {
        let published = kept.bundle.clone();
        // A host that changes there and back makes a renewal due without a wait.
        let away = due(Some(&kept), "elsewhere", Timestamp::now()).unwrap().unwrap();
        kept = due(Some(&away), HOST, Timestamp::now()).unwrap().unwrap();
        webhook.desk.set(kept.configuration().unwrap());
        assert_eq!(webhook.verdict(&published, "/validate", &question).await["allowed"], true, "renewal {round}");
    }
}

#[tokio::test]
async fn nobody_is_let_in_without_a_certificate() {
    let (kept, api) = (certificates(), api_server());
    let webhook = Webhook::new(&kept, &api).await;
    *webhook.desk.configuration.lock().unwrap() = None;
    assert!(webhook.ask(&kept.bundle, "/validate", "{}").await.is_err());
}
