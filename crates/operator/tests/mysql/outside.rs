//! A server elsewhere is copied and then followed, by the controller's own client, its authority, and the agent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_clients::mysql::Servers;
use windlass_core::ordinals::Ordinal;
use windlass_core::secrets::Certificate;
use windlass_engine::Clock;
use windlass_kinds::mysql::deeds::{Deed, Outside, Place, Task};
use windlass_kinds::mysql::facts::{End, News};
use windlass_testkit::FakeApiServer;

use crate::agent::{Agent, until};
use crate::server::{self, Server};

const NAMESPACE: &str = "default";
const POD: &str = "moco-a-1";

fn secret(name: &str, texts: &[(&str, &str)]) -> Value {
    let bytes = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
    let data: std::collections::BTreeMap<&str, _> = texts.iter().map(|(key, text)| (*key, bytes(text))).collect();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE }, "data": data })
}

fn api_server(donor: &Server) -> FakeApiServer {
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let api = FakeApiServer::new();
    api.namespace("ops");
    let status = json!({ "containerStatuses": [{
        "name": "mysqld", "containerID": "p-0", "image": "mysql", "imageID": "", "ready": true, "restartCount": 0,
    }] });
    let metadata = json!({ "name": POD, "namespace": NAMESPACE, "uid": "u-1" });
    api.store().put_raw(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": { "containers": [] }, "status": status,
    }));
    let passwords = ["ADMIN_PASSWORD", "REPLICATION_PASSWORD", "CLONE_DONOR_PASSWORD"].map(|key| (key, format!("q-{key}")));
    let passwords: Vec<(&str, &str)> = passwords.iter().map(|(key, text)| (*key, text.as_str())).collect();
    api.store().put_raw(secret("moco-a", &passwords));
    let port = donor.port().to_string();
    let source = [
        ("HOST", "127.0.0.1"),
        ("PORT", port.as_str()),
        ("USER", "copier"),
        ("PASSWORD", "the copier's"),
        ("INIT_USER", "moco-admin"),
        ("INIT_PASSWORD", "p-ADMIN_PASSWORD"),
    ];
    api.store().put_raw(secret("elsewhere", &source));
    api
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn the_controller_copies_a_server_elsewhere_through_the_agent_and_lets_the_copy_follow_it() {
    let template = server::template();
    let (donor, mut copy) = (Server::start(&template, 9), Server::start(&template, 10));
    let api = api_server(&donor);
    let authority = Arc::new(windlass_engine::Authority::new(api.client(), "ops", "windlass", Clock::Wall));
    let names = vec!["*.moco-a.default.svc".to_owned()];
    let wanted = Certificate { names, since: Timestamp::now(), instead: "moco-agent-default.a".into() };
    for (name, text) in authority.certify(&wanted).await.unwrap().texts {
        std::fs::write(copy.path().join("certificates").join(name), text).unwrap();
    }
    let mut of_donor = Agent::start(&donor, "p", &[]);
    let mut agent = Agent::start(&copy, "q", &[]);
    of_donor.wait_for_lines("mysqld is initialised", 1);
    agent.wait_for_lines("mysqld is initialised", 1);
    let admin = "p-ADMIN_PASSWORD";
    let statements = [
        "SET GLOBAL read_only = OFF",
        "CREATE USER copier IDENTIFIED BY 'the copier''s'",
        "GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO copier",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1), (2)",
    ];
    for statement in statements {
        donor.ask("moco-admin", admin, statement).await;
    }

    let (agent_port, port) = (agent.address.port(), copy.port());
    let servers =
        Servers::with_ports(api.client(), move |_| port).with_registry(authority).with_agent_ports(move |_| agent_port);
    let version = api.store().get("secrets", NAMESPACE, "elsewhere").unwrap()["metadata"]["resourceVersion"].clone();
    let outside = Outside { secret: "elsewhere".into(), version: version.as_str().unwrap().into() };
    let place = Place {
        namespace: NAMESPACE.into(),
        credentials: "moco-a".into(),
        pod: POD.into(),
        pod_uid: "u-1".into(),
        process: "p-0".into(),
        address: "127.0.0.1".into(),
        ordinal: Ordinal::new(1),
    };
    let carry_out = async |task: Task| {
        let (fact, rest) = servers.carry_out(Deed { place: place.clone(), task }).await;
        let fact = match rest {
            Some(rest) => rest.await,
            None => fact,
        };
        let News::Ended { end, .. } = fact.news else { panic!("a task ends as a task") };
        end
    };
    let boot = Duration::from_mins(2);
    // Whoever supervises the server starts it again.
    let supervised = async {
        copy = tokio::task::spawn_blocking(move || {
            copy.wait_until_gone();
            copy.start_again();
            copy
        })
        .await
        .unwrap();
        copy
    };
    let (end, copy) = tokio::join!(carry_out(Task::CloneFromOutside { outside: outside.clone(), boot }), supervised);
    assert_eq!(end, End::Done);
    let here = "q-ADMIN_PASSWORD";
    assert_eq!(copy.ask("moco-admin", here, "SELECT COUNT(*) FROM shop.t").await, ["2"]);
    let again = carry_out(Task::CloneFromOutside { outside: outside.clone(), boot }).await;
    assert!(matches!(&again, End::Failed { why } if why.contains("status 412")), "a server with data is left alone: {again:?}");

    assert_eq!(carry_out(Task::FollowOutside { outside }).await, End::Done);
    donor.ask("moco-admin", admin, "INSERT INTO shop.t VALUES (3)").await;
    until("it follows", async || copy.ask("moco-admin", here, "SELECT COUNT(*) FROM shop.t").await == ["3"]).await;
    assert_eq!(copy.ask("moco-admin", here, "SELECT @@super_read_only").await, ["1"]);
}
