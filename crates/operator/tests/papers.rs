//! The controller's client and the agent's own server, in one process: they believe each other by what the release's authority signed,
//! also while its roots change, and nobody else. There is no mysqld: the agent says so, and by that it is known that it was asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_agent::accounts::Passwords;
use windlass_clients::mysql::Servers;
use windlass_clients::papers::Registry as _;
use windlass_core::ordinals::Ordinal;
use windlass_core::secrets::Certificate;
use windlass_engine::{Authority, Clock};
use windlass_kinds::mysql::deeds::{Deed, Outside, Place, Task};
use windlass_kinds::mysql::facts::{End, News};
use windlass_testkit::FakeApiServer;

const NAMESPACE: &str = "default";
const POD: &str = "moco-harbour-0";

fn days_ago(days: i64) -> Clock {
    let start = Timestamp::now() - SignedDuration::from_hours(24 * days);
    Clock::Counted { start, since: tokio::time::Instant::now() }
}

fn server() -> FakeApiServer {
    // Another test of this process may have been first.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let server = FakeApiServer::new();
    server.namespace("ops").namespace("theirs");
    let metadata = json!({ "name": POD, "namespace": NAMESPACE, "uid": "u-0" });
    let status = json!({ "containerStatuses": [{
        "name": "mysqld", "containerID": "p-0", "image": "mysql", "imageID": "", "ready": true, "restartCount": 0,
    }] });
    server.store().put_raw(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": { "containers": [] }, "status": status,
    }));
    let text = |value: &str| json!(k8s_openapi::ByteString(value.as_bytes().to_vec()));
    let data = json!({
        "HOST": text("db.example"), "PORT": text("3306"), "USER": text("repl"), "PASSWORD": text("hidden one"),
        "INIT_USER": text("root"), "INIT_PASSWORD": text("hidden two"),
    });
    let metadata = json!({ "name": "source", "namespace": NAMESPACE });
    server.store().put_raw(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data }));
    server
}

fn authority(server: &FakeApiServer, namespace: &str, clock: Clock) -> Authority {
    Authority::new(server.client(), namespace, "windlass", clock)
}

async fn texts(authority: &Authority) -> BTreeMap<String, String> {
    let wanted = Certificate {
        names: vec!["*.moco-harbour.default.svc".into()],
        since: Timestamp::now(),
        instead: "moco-agent-default.harbour".into(),
    };
    authority.certify(&wanted).await.unwrap().texts
}

fn write(directory: &Path, texts: &BTreeMap<String, String>) {
    for (name, text) in texts {
        std::fs::write(directory.join(name), text).unwrap();
    }
}

/// An agent in this process, which ends with the guard.
async fn agent(directory: &Path) -> (SocketAddr, DropGuard) {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (address, stop) = (free(), CancellationToken::new());
    let settings = windlass_agent::Settings {
        cluster: "harbour".into(),
        ordinal: 0,
        passwords: Passwords::gather(|variable| Some(format!("of {variable}"))).unwrap(),
        socket: directory.join("no-such.sock"),
        meeting: directory.to_owned(),
        address,
        probe_address: free(),
        metrics_address: free(),
        certificates: directory.to_owned(),
        max_delay: Duration::ZERO,
        queueing_wait: Duration::ZERO,
        slow_log: directory.join("slow"),
        rotation_schedule: "@daily".parse().unwrap(),
        rotation_size: 0,
    };
    let token = stop.clone();
    tokio::spawn(async move { windlass_agent::run(settings, token).await.unwrap() });
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return (address, stop.drop_guard());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the agent does not listen");
}

/// What comes of asking the agent for a copy.
async fn ask(server: &FakeApiServer, registry: Authority, address: SocketAddr, version: Option<&str>) -> String {
    let secret = server.store().get("secrets", NAMESPACE, "source").unwrap();
    let version = version.map_or_else(|| secret["metadata"]["resourceVersion"].as_str().unwrap().to_owned(), str::to_owned);
    let servers = Servers::new(server.client()).with_registry(Arc::new(registry)).with_agent_ports(move |_| address.port());
    let place = Place {
        namespace: NAMESPACE.into(),
        credentials: "moco-harbour".into(),
        pod: POD.into(),
        pod_uid: "u-0".into(),
        process: "p-0".into(),
        address: "127.0.0.1".into(),
        ordinal: Ordinal::new(0),
    };
    let outside = Outside { secret: "source".into(), version };
    let task = Task::CloneFromOutside { outside, boot: Duration::from_mins(1) };
    let (fact, rest) = servers.carry_out(Deed { place, task }).await;
    assert!(rest.is_none());
    let text = fact.to_string();
    assert!(!text.contains("hidden"), "{text}");
    match fact.news {
        News::Ended { end: End::Failed { why }, .. } => why,
        other => panic!("{other:?}"),
    }
}

/// The agent let us in, and read the request: it looked for its server.
const LET_IN: &str = "this server cannot be asked whether it is empty";
const STRANGER: &str = "it is not believed, or does not believe us";

#[tokio::test]
async fn the_controller_is_let_in_by_what_its_authority_signed_and_a_stranger_is_not() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    write(directory.path(), &texts(&authority(&server, "ops", Clock::Wall)).await);
    let (address, _guard) = agent(directory.path()).await;
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, None).await;
    assert!(said.contains(LET_IN) && said.contains("status 503"), "{said}");
    let said = ask(&server, authority(&server, "theirs", Clock::Wall), address, None).await;
    assert!(said.contains(STRANGER), "{said}");
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, Some("1")).await;
    assert!(said.contains("was changed since this was decided"), "{said}");
    // A Secret that lacks something is told of by the name of what it lacks.
    server.store().edit("secrets", NAMESPACE, "source", |it| drop(it["data"].as_object_mut().unwrap().remove("INIT_PASSWORD")));
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, None).await;
    assert!(said.contains("Secret source") && said.contains("it has no INIT_PASSWORD"), "{said}");
}

#[tokio::test]
async fn while_the_roots_change_both_sides_know_each_other() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    // The first root was made long ago, and the second, which signs now, while the first one still signed.
    let first = authority(&server, "ops", days_ago(2540)).papers(NAMESPACE, "harbour").await.unwrap();
    let old = texts(&authority(&server, "ops", days_ago(2535))).await;
    let second = authority(&server, "ops", days_ago(95)).papers(NAMESPACE, "harbour").await.unwrap();
    assert_eq!(first.authority, second.authority, "the new root does not sign at once");
    write(directory.path(), &texts(&authority(&server, "ops", days_ago(80))).await);
    let (address, _guard) = agent(directory.path()).await;
    let now = authority(&server, "ops", Clock::Wall);
    assert_ne!(now.papers(NAMESPACE, "harbour").await.unwrap().authority, first.authority, "the new root signs");
    let said = ask(&server, now, address, None).await;
    assert!(said.contains(LET_IN), "{said}");
    // An agent that was never renewed does not know the new root.
    write(directory.path(), &old);
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, None).await;
    assert!(said.contains(STRANGER), "{said}");
    // The agent reads what it is given anew.
    write(directory.path(), &texts(&authority(&server, "ops", Clock::Wall)).await);
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, None).await;
    assert!(said.contains(LET_IN), "{said}");
}

#[tokio::test]
async fn an_agent_with_a_certificate_of_another_authority_is_believed_when_that_one_is_named_at_home() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    let theirs = texts(&authority(&server, "theirs", Clock::Wall)).await;
    let text = |key: &str| json!(k8s_openapi::ByteString(theirs[key].as_bytes().to_vec()));
    let data = json!({ "tls.crt": text("tls.crt"), "tls.key": text("tls.key"), "ca.crt": text("ca.crt") });
    let metadata = json!({ "name": "moco-agent-default.harbour", "namespace": "ops" });
    server.store().put_raw(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data }));
    let copied = texts(&authority(&server, "ops", Clock::Wall)).await;
    assert_eq!(copied["tls.crt"], theirs["tls.crt"]);
    write(directory.path(), &copied);
    let (address, _guard) = agent(directory.path()).await;
    let said = ask(&server, authority(&server, "ops", Clock::Wall), address, None).await;
    assert!(said.contains(LET_IN), "{said}");
}
