//! Discovery as members of PD meet it: over HTTP, beside an API server, and beside a PD that answers or does not.

use std::sync::Mutex;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windlass_clients::papers::Papers;
use windlass_testkit::{CallMatch, Effect, FakeApiServer};

use super::*;

const MEMBER: &str = "a-pd-0.a-pd-peer.shop.svc";

fn object(kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        match object[key].as_object_mut() {
            Some(there) => there.extend(value.as_object().cloned().unwrap_or_default()),
            None => object[key] = value.clone(),
        }
    }
    object
}

fn claim(ordinal: u16) -> Value {
    let labels = json!({"app.kubernetes.io/instance": "a", "app.kubernetes.io/component": "pd"});
    let rest = json!({"metadata": {"labels": labels, "uid": format!("u{ordinal}")}, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}});
    object("PersistentVolumeClaim", &format!("pd-a-pd-{ordinal}"), &rest)
}

/// An API server with a TidbCluster and the claims of these members.
fn api_server(spec: &Value, claims: &[u16]) -> FakeApiServer {
    let api = FakeApiServer::new();
    for definition in windlass_api::custom_resource_definitions() {
        api.register_crd(&definition);
    }
    api.namespace("shop");
    let mut cluster = object("TidbCluster", "a", &json!({ "spec": spec }));
    cluster["apiVersion"] = json!("pingcap.com/v1alpha1");
    api.store().put_raw(cluster);
    for ordinal in claims {
        api.store().put_raw(claim(*ordinal));
    }
    api
}

fn spec(replicas: u16) -> Value {
    json!({"pd": {"replicas": replicas, "requests": {"storage": "1Gi"}}})
}

/// What every PD says. It can be changed.
#[derive(Clone, Default)]
struct Pd(Arc<Mutex<Option<Value>>>);

impl Pd {
    fn says(&self, members: &[&str]) {
        let url = |name: &str| format!("http://{name}.a-pd-peer.shop.svc:2379");
        let member = |(name, id): (&&str, u64)| json!({"name": name, "member_id": id, "client_urls": [url(name)]});
        let members: Vec<Value> = members.iter().zip(1..).map(member).collect();
        *self.0.lock().unwrap() = Some(json!({"header": {"cluster_id": 7}, "members": members, "leader": {"member_id": 1}}));
    }

    async fn listen(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::clone(&self.0);
        let members = move || {
            let said = said.lock().unwrap().clone();
            async move {
                match said {
                    Some(said) => (StatusCode::OK, said.to_string()),
                    None => (StatusCode::SERVICE_UNAVAILABLE, "no leader\n".to_owned()),
                }
            }
        };
        let router = Router::new().route("/pd/api/v1/members", get(members));
        tokio::spawn(async move { axum::serve(listener, router).await });
        port
    }
}

struct Discovery {
    address: SocketAddr,
    pd: Pd,
    stop: CancellationToken,
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Discovery {
    async fn new(api: &FakeApiServer) -> Self {
        let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let pd = Pd::default();
        let desk = Arc::new(Desk::new(api.client(), "shop", "a").with_pd_at(pd.listen().await));
        let listener = listen(Some(SocketAddr::from(([127, 0, 0, 1], 0)))).await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        tokio::spawn(server::serve(listener, desk, stop.clone()));
        Self { address, pd, stop }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        exchange(TcpStream::connect(self.address).await.unwrap(), path).await
    }

    /// As a start script asks: with a newline, which belongs to `echo`.
    async fn begin(&self, ordinal: u16) -> (u16, String) {
        let text = format!("a-pd-{ordinal}.a-pd-peer.shop.svc:2380\n");
        self.get(&format!("/new/{}", STANDARD.encode(text))).await
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a-discovery.shop:10261\r\nconnection: close\r\n\r\n");
    let _sent = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.to_owned())
}

#[tokio::test]
async fn three_members_that_ask_over_and_over_begin_one_cluster() {
    let api = api_server(&spec(3), &[0, 1, 2]);
    let discovery = Discovery::new(&api).await;
    let (status, why) = discovery.begin(0).await;
    assert_eq!(status, 503);
    assert!(why.contains("a-pd-1, a-pd-2 may have the data"), "{why}");
    assert_eq!(discovery.begin(1).await.0, 503);
    assert_eq!(discovery.begin(2).await.0, 503);
    let begin = (200, format!("--initial-cluster=a-pd-0=http://{MEMBER}:2380"));
    assert_eq!(discovery.begin(0).await, begin);
    assert_eq!(discovery.begin(0).await, begin, "its answer may have been lost");
    assert_eq!(discovery.begin(1).await.0, 503);
    discovery.pd.says(&["a-pd-0"]);
    assert_eq!(discovery.begin(1).await, (200, format!("--join=http://{MEMBER}:2379")));
    discovery.pd.says(&["a-pd-0", "a-pd-1"]);
    // Its volume was lost. A second cluster is not begun, and it does not join itself.
    assert_eq!(discovery.begin(0).await, (200, "--join=http://a-pd-1.a-pd-peer.shop.svc:2379".to_owned()));
    assert!(api.mutations().is_empty());
}

#[tokio::test]
async fn a_discovery_that_starts_anew_does_no_harm() {
    let api = api_server(&spec(3), &[0, 1, 2]);
    let before = Discovery::new(&api).await;
    for ordinal in [1, 2] {
        before.begin(ordinal).await;
    }
    let after = Discovery::new(&api).await;
    assert_eq!(after.begin(0).await.0, 503, "it does not know yet who has nothing");
    for ordinal in [1, 2] {
        assert_eq!(after.begin(ordinal).await.0, 503);
    }
    assert_eq!(after.begin(0).await.0, 200);
}

#[tokio::test]
async fn a_cluster_on_record_is_never_begun_again() {
    let api = api_server(&spec(1), &[0]);
    let discovery = Discovery::new(&api).await;
    api.store().edit("TidbCluster", "shop", "a", |object| object["status"] = json!({"clusterID": "7"}));
    let (status, why) = discovery.begin(0).await;
    assert_eq!(status, 503);
    assert!(why.contains("cluster 7") && why.contains("status 503: no leader"), "{why}");
    api.store().edit("TidbCluster", "shop", "a", |object| object["status"] = json!({}));
    let tikv = json!({"metadata": {"labels": {"app.kubernetes.io/instance": "a", "tidb.pingcap.com/cluster-id": "7"}}});
    api.store().put_raw(object("PersistentVolumeClaim", "tikv-a-tikv-0", &tikv));
    assert_eq!(discovery.begin(0).await.0, 503);
    api.store().remove("PersistentVolumeClaim", "shop", "tikv-a-tikv-0");
    assert_eq!(discovery.begin(0).await.0, 200);
}

#[tokio::test]
async fn what_cannot_be_read_is_no_reason_to_begin() {
    let api = api_server(&spec(1), &[0]);
    let discovery = Discovery::new(&api).await;
    api.faults().on(CallMatch::any().resource("persistentvolumeclaims").always(), Effect::code(500));
    let (status, why) = discovery.begin(0).await;
    assert!(status == 503 && why.contains("the volume claims in namespace \\\"shop\\\" could not be read"), "{why}");
    api.faults().clear();
    api.faults().on(CallMatch::any().resource("tidbclusters").always(), Effect::code(403));
    let (status, why) = discovery.begin(0).await;
    assert!(status == 503 && why.contains("TidbCluster \\\"a\\\" in namespace \\\"shop\\\" could not be read"), "{why}");
    api.faults().clear();
    assert_eq!(discovery.begin(0).await.0, 200);
}

#[tokio::test]
async fn others_are_refused_and_probes_answered() {
    let discovery = Discovery::new(&api_server(&spec(1), &[0])).await;
    let (status, why) = discovery.get(&format!("/new/{}", STANDARD.encode("b-pd-0.b-pd-peer.shop.svc:2380"))).await;
    assert!(status == 400 && why.contains("expected a-pd-NUMBER"), "{why}");
    assert_eq!(discovery.get("/new/%21").await.0, 400);
    assert_eq!(discovery.get("/healthz").await.0, 200);
    assert_eq!(discovery.get("/other").await.0, 404);
}

#[tokio::test]
async fn those_who_look_for_pd_always_get_an_answer() {
    let api = api_server(&spec(1), &[0]);
    let discovery = Discovery::new(&api).await;
    let peers = json!({"pd": {"peerMembers": {"p": {"clientURL": "http://p:2379", "health": true}}}});
    api.store().edit("TidbCluster", "shop", "a", |object| object["status"] = peers);
    let path = format!("/verify/{}", STANDARD.encode("http://a-pd:2379\n"));
    assert_eq!(discovery.get(&path).await, (200, "http://a-pd:2379,http://p:2379".to_owned()));
    api.faults().on(CallMatch::any().resource("tidbclusters").always(), Effect::code(500));
    assert_eq!(discovery.get(&path).await, (200, "http://a-pd:2379".to_owned()));
}

/// A Secret with a certificate for these names, and what it is made of.
fn secret(name: &str, host: &str, authority: &rcgen::CertifiedIssuer<'static, rcgen::KeyPair>) -> (Value, Papers) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap().pem();
    let papers = Papers { certificate, key: key.serialize_pem(), roots: authority.pem(), authority: String::new() };
    let encode = |text: &str| STANDARD.encode(text);
    let data = json!({
        "tls.crt": encode(&papers.certificate), "tls.key": encode(&papers.key), "ca.crt": encode(&papers.roots),
    });
    (object("Secret", name, &json!({ "data": data })), papers)
}

#[tokio::test]
async fn with_mutual_tls_only_those_are_answered_who_show_a_certificate() {
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(parameters, rcgen::KeyPair::generate().unwrap()).unwrap();
    let mut spec = spec(1);
    spec["tlsCluster"] = json!({"enabled": true, "enableDiscoveryMTLS": true});
    let api = api_server(&spec, &[0]);
    let (own, _) = secret("a-discovery-cluster-secret", "a-discovery.shop", &authority);
    let (client, papers) = secret("a-cluster-client-secret", "client", &authority);
    api.store().put_raw(own);
    api.store().put_raw(client);
    let discovery = Discovery::new(&api).await;
    assert_eq!(discovery.begin(0).await, (0, String::new()), "without TLS");
    let ask = async |papers: &Papers| {
        let configuration = Arc::new(papers.client_configuration().unwrap());
        let stream = TcpStream::connect(discovery.address).await.unwrap();
        let name = ServerName::try_from("a-discovery.shop").unwrap();
        let stream = TlsConnector::from(configuration).connect(name, stream).await.unwrap();
        let path = format!("/new/{}", STANDARD.encode(format!("{MEMBER}:2380")));
        exchange(stream, &path).await
    };
    assert_eq!(ask(&papers).await, (200, format!("--initial-cluster=a-pd-0=https://{MEMBER}:2380")));
    let stranger = rcgen::CertifiedIssuer::self_signed(
        rcgen::CertificateParams::new(Vec::new()).unwrap(),
        rcgen::KeyPair::generate().unwrap(),
    );
    let (_, theirs) = secret("x", "client", &stranger.unwrap());
    let theirs = Papers { roots: papers.roots.clone(), ..theirs };
    assert_eq!(ask(&theirs).await, (0, String::new()), "with a certificate of somebody else");
}
