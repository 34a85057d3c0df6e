//! `mysql-init` and `mysql-agent` beside a real mysqld: kills, probes, certificates, a clone.
//!
//! `cargo xtask test` runs them, with the server of the image in `examples/mysql`. Where nobody names a server they are ignored. To name one:
//! an executable of MySQL 8.0.28 or later in a `bin` or `sbin` beside its `share`, which takes `--user` by itself when root runs it; after a
//! run of the whole test there is one in the cache, `images/*.unpacked/usr/sbin/mysqld`.
//!
//! `WINDLASS_MYSQLD=…/usr/sbin/mysqld cargo test --workspace --test mysql -- --ignored --test-threads 1`
//!
//! Time zones are checked as well where WINDLASS_ZONEINFO names a directory with their data.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod agent;
mod authority;
mod outside;
mod server;

use agent::{Agent, get, until};
use authority::Authority;
use serde_json::{Value, json};
use server::Server;

/// What a server looks like after the first initialisation, whatever happened on the way.
async fn assert_prepared(server: &Server, passwords: &str) {
    let admin = format!("{passwords}-ADMIN_PASSWORD");
    let switches = server.ask("moco-admin", &admin, "SELECT CONCAT(@@read_only, @@super_read_only, @@partial_revokes)").await;
    assert_eq!(switches, ["111"]);
    assert_eq!(server.ask("moco-admin", &admin, "SELECT @@GLOBAL.gtid_executed").await, [""]);
    let accounts = server.ask("moco-admin", &admin, "SELECT user FROM mysql.user WHERE host = '%' ORDER BY user").await;
    let expected = ["admin", "agent", "backup", "clone-donor", "exporter", "readonly", "repl", "writable"];
    assert_eq!(accounts, expected.map(|name| format!("moco-{name}")));
    let roots = server.ask("moco-admin", &admin, "SELECT COUNT(*) FROM mysql.user WHERE user = 'root'").await;
    assert_eq!(roots, ["0"]);
    let query = "SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE' \
                 AND (PLUGIN_NAME LIKE 'rpl_semi_sync_%' OR PLUGIN_NAME = 'clone')";
    assert_eq!(server.ask("moco-admin", &admin, query).await, ["3"]);
    let grants = server.ask("moco-admin", &admin, "SHOW GRANTS FOR 'moco-agent'").await.join("\n");
    assert!(grants.contains("GRANT SELECT, RELOAD, REPLICATION CLIENT ON *.* TO `moco-agent`@`%`"), "{grants}");
    assert!(
        grants.contains("GRANT BINLOG_ADMIN,CLONE_ADMIN,SERVICE_CONNECTION_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.*"),
        "{grants}"
    );
    let grants = server.ask("moco-admin", &admin, "SHOW GRANTS FOR 'moco-writable'").await.join("\n");
    assert!(grants.contains("REVOKE INSERT, UPDATE, DELETE, CREATE, DROP,"), "{grants}");
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn an_agent_that_is_killed_after_any_statement_comes_to_the_same_end() {
    let template = server::template();
    let server = Server::start(&template, 0);
    let mut kills = 0;
    loop {
        let mut agent = Agent::start(&server, "p", &[]);
        // One statement further each time, and then dead without a word.
        if !agent.wait_for_lines("initialisation:", kills + 1) {
            break;
        }
        agent.kill();
        kills += 1;
    }
    println!("the agent was killed {kills} times");
    assert!(kills > 30, "{kills}");
    assert_prepared(&server, "p").await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_that_is_killed_during_its_initialisation_is_prepared_from_the_start() {
    let template = server::template();
    let mut server = Server::start(&template, 1);
    // The plugins are there after the first time: the last of these is the reset of the binary logs.
    for lines in [1, 4, 17, 28, 29, 30] {
        let mut agent = Agent::start(&server, "p", &[]);
        assert!(agent.wait_for_lines("initialisation:", lines), "{lines}");
        server.kill();
        agent.kill();
        server.start_again();
    }
    let mut agent = Agent::start(&server, "p", &[]);
    agent.wait_for_lines("mysqld is initialised", 1);
    assert_prepared(&server, "p").await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn an_interrupted_initialisation_of_the_data_directory_is_thrown_away() {
    let mysqld = server::mysqld();
    let scratch = server::scratch();
    for milliseconds in [50, 500, 2000, 4000] {
        let mut child = server::init_command(&mysqld, scratch.path()).process_group(0).spawn().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
        server::kill_group(&child);
        child.wait().unwrap();
        assert!(!scratch.path().join("volume/moco-initialized").exists(), "{milliseconds}");
    }
    assert!(server::init_command(&mysqld, scratch.path()).status().unwrap().success());
    assert!(scratch.path().join("volume/moco-initialized").exists());
    let file = std::fs::read_to_string(scratch.path().join("conf/my.cnf")).unwrap();
    assert_eq!(file, "[mysqld]\nserver_id = 101\nadmin_address = localhost\n");
    let server = Server::adopt(scratch, 2);
    let mut agent = Agent::start(&server, "p", &[]);
    agent.wait_for_lines("mysqld is initialised", 1);
    assert_prepared(&server, "p").await;
    if std::env::var_os("WINDLASS_ZONEINFO").is_some() {
        let query = "SELECT CONVERT_TZ('2026-07-01 12:00:00', 'UTC', 'Europe/Vienna')";
        assert_eq!(server.ask("moco-admin", "p-ADMIN_PASSWORD", query).await, ["2026-07-01 14:00:00"]);
    }
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn probes_tell_the_truth_and_a_restarted_agent_changes_nothing_on_a_primary() {
    let template = server::template();
    let mut server = Server::start(&template, 3);
    let options = ["--log-rotation-schedule", "@every 1s"];
    let mut agent = Agent::start(&server, "p", &options);
    agent.wait_for_lines("mysqld is initialised", 1);
    assert_eq!(get(agent.probes, "/healthz").await.0, 200);
    assert_eq!(get(agent.probes, "/readyz").await.0, 500);
    let log = server.path().join("mysql.slow.0");
    until("the slow log is rotated", async || log.exists()).await;
    until("rotations are counted", async || {
        let (_, text) = get(agent.metrics, "/metrics").await;
        text.contains("moco_instance_log_rotation_count ") && !text.contains("moco_instance_log_rotation_count 0")
    })
    .await;
    server.ask("moco-admin", "p-ADMIN_PASSWORD", "SET GLOBAL read_only = OFF").await;
    assert_eq!(get(agent.probes, "/readyz").await.0, 200);

    agent.kill();
    let mut agent = Agent::start(&server, "p", &options);
    agent.wait_for_lines("found=Prepared", 1);
    assert_eq!(server.ask("moco-admin", "p-ADMIN_PASSWORD", "SELECT @@read_only").await, ["0"]);
    // What a kill before the very last step leaves.
    server.ask("moco-admin", "p-ADMIN_PASSWORD", "SET GLOBAL read_only = ON").await;
    agent.kill();
    let mut agent = Agent::start(&server, "p", &options);
    agent.wait_for_lines("found=Prepared", 1);
    assert_prepared(&server, "p").await;

    server.kill();
    until("a dead server is not healthy", async || get(agent.probes, "/healthz").await.0 == 503).await;
    assert_eq!(get(agent.probes, "/readyz").await.0, 503);
    server.start_again();
    until("it is healthy again", async || get(agent.probes, "/healthz").await.0 == 200).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn only_the_controller_is_heard_and_new_certificates_are_taken_up() {
    let template = server::template();
    let server = Server::start(&template, 4);
    let (authority, other) = (Authority::new("ours"), Authority::new("of somebody else"));
    authority.write(server.path());
    let agent = Agent::start(&server, "p", &[]);
    let controller = authority.issue("moco-controller");
    let (status, body) = authority.call(agent.address, Some(&controller), "GET", None).await.unwrap();
    assert_eq!((status, body), (200, json!({"state": "none"})));

    let somebody = authority.issue("somebody");
    let (status, body) = authority.call(agent.address, Some(&somebody), "GET", None).await.unwrap();
    assert_eq!(status, 403, "{body}");
    assert!(body["error"].as_str().unwrap().contains("\"somebody\""), "{body}");
    assert!(authority.call(agent.address, None, "GET", None).await.is_err());
    let foreign = other.issue("moco-controller");
    assert!(authority.call(agent.address, Some(&foreign), "GET", None).await.is_err());

    other.write(server.path());
    assert_eq!(other.call(agent.address, Some(&foreign), "GET", None).await.unwrap().0, 200);
    assert!(other.call(agent.address, Some(&controller), "GET", None).await.is_err());
}

fn request(donor: &Server, password: &str) -> Value {
    json!({
        "donorHost": "127.0.0.1", "donorPort": donor.port(),
        "donorUser": "moco-clone-donor", "donorPassword": password,
        "initUser": "moco-admin", "initPassword": "p-ADMIN_PASSWORD", "bootTimeoutSeconds": 120,
    })
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_is_cloned_and_follows_its_donor() {
    let template = server::template();
    let (donor, mut server) = (Server::start(&template, 5), Server::start(&template, 6));
    let authority = Authority::new("ours");
    authority.write(server.path());
    let mut of_donor = Agent::start(&donor, "p", &[]);
    let mut agent = Agent::start(&server, "q", &[]);
    of_donor.wait_for_lines("mysqld is initialised", 1);
    agent.wait_for_lines("mysqld is initialised", 1);
    let admin = "p-ADMIN_PASSWORD";
    for statement in ["SET GLOBAL read_only = OFF", "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"] {
        donor.ask("moco-admin", admin, statement).await;
    }
    donor.ask("moco-admin", admin, "INSERT INTO shop.t VALUES (1), (2)").await;
    let controller = authority.issue("moco-controller");
    let call = async |method, body| authority.call(agent.address, Some(&controller), method, body).await.unwrap();
    let state = async |wanted: &str| call("GET", None).await.1["state"] == wanted;

    // A wrong password: the server says so, and nothing was thrown away.
    assert_eq!(call("POST", Some(json!({"donorHost": "::1"}))).await.0, 400);
    assert_eq!(call("POST", Some(request(&donor, "wrong"))).await.0, 202);
    until("the clone fails", async || state("failed").await).await;
    let report = call("GET", None).await.1;
    assert!(report["reason"].as_str().unwrap().contains("Access denied"), "{report}");
    assert!(report["endedAt"].is_string(), "{report}");

    let (status, body) = call("POST", Some(request(&donor, "p-CLONE_DONOR_PASSWORD"))).await;
    assert_eq!(status, 202, "{body}");
    assert!(body["id"].as_str().unwrap().starts_with("clone-"), "{body}");
    assert_eq!(call("POST", Some(request(&donor, "p-CLONE_DONOR_PASSWORD"))).await.0, 409);
    server.wait_until_gone();
    // The agent dies as well, before it could put its own accounts in place: the data are the donor's, and so are the passwords.
    agent.kill();
    server.start_again();
    let mut agent = Agent::start(&server, "q", &[]);
    agent.wait_for_lines("mysqld refuses moco-admin", 1);
    let call = async |method, body| authority.call(agent.address, Some(&controller), method, body).await.unwrap();
    let (status, body) = call("POST", Some(request(&donor, "p-CLONE_DONOR_PASSWORD"))).await;
    assert_eq!(status, 202, "{body}");
    until("the clone is done", async || call("GET", None).await.1["state"] == "done").await;
    let admin_here = "q-ADMIN_PASSWORD";
    assert_eq!(server.ask("moco-admin", admin_here, "SELECT COUNT(*) FROM shop.t").await, ["2"]);
    let executed = "SELECT @@GLOBAL.gtid_executed";
    assert_eq!(server.ask("moco-admin", admin_here, executed).await, donor.ask("moco-admin", admin, executed).await);
    assert_eq!(server.ask("moco-admin", admin_here, "SELECT @@super_read_only").await, ["1"]);
    let (status, body) = call("POST", Some(request(&donor, "p-CLONE_DONOR_PASSWORD"))).await;
    assert_eq!(status, 412, "{body}");

    let follow = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'moco-repl', \
         SOURCE_PASSWORD = 'p-REPLICATION_PASSWORD', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
        donor.port()
    );
    server.ask("moco-admin", admin_here, &follow).await;
    assert_eq!(get(agent.probes, "/readyz").await.0, 503);
    server.ask("moco-admin", admin_here, "START REPLICA").await;
    donor.ask("moco-admin", admin, "INSERT INTO shop.t VALUES (3)").await;
    until("the replica is ready", async || get(agent.probes, "/readyz").await.0 == 200).await;
    assert_eq!(server.ask("moco-admin", admin_here, "SELECT COUNT(*) FROM shop.t").await, ["3"]);
    let (_, text) = get(agent.metrics, "/metrics").await;
    assert!(text.contains("moco_instance_replication_delay_seconds{name=\"a\",index=\"1\"}"), "{text}");
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_clone_within_a_cluster_needs_no_other_account() {
    let template = server::template();
    let (donor, mut server) = (Server::start(&template, 7), Server::start(&template, 8));
    let authority = Authority::new("ours");
    authority.write(server.path());
    let mut of_donor = Agent::start(&donor, "p", &[]);
    let mut agent = Agent::start(&server, "p", &[]);
    of_donor.wait_for_lines("mysqld is initialised", 1);
    agent.wait_for_lines("mysqld is initialised", 1);
    donor.ask("moco-admin", "p-ADMIN_PASSWORD", "SET GLOBAL read_only = OFF").await;
    donor.ask("moco-admin", "p-ADMIN_PASSWORD", "CREATE DATABASE shop").await;
    let controller = authority.issue("moco-controller");
    let mut request = request(&donor, "p-CLONE_DONOR_PASSWORD");
    for field in ["initUser", "initPassword"] {
        request.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(authority.call(agent.address, Some(&controller), "POST", Some(request)).await.unwrap().0, 202);
    server.wait_until_gone();
    server.start_again();
    until("the clone is done", async || {
        authority.call(agent.address, Some(&controller), "GET", None).await.unwrap().1["state"] == "done"
    })
    .await;
    let switches = "SELECT CONCAT(@@read_only, @@super_read_only)";
    assert_eq!(server.ask("moco-admin", "p-ADMIN_PASSWORD", switches).await, ["11"]);
    assert_eq!(get(agent.probes, "/readyz").await.0, 500);
}
