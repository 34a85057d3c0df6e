//! The stand-ins that are no stores for PD to count, and TiFlash, which is one of another kind.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Cluster, Running, addresses};
use crate::http::ask;
use crate::wait::eventually;

/// TiDB, TiCDC, TiProxy and Pump, from their start to their end.
pub async fn wait_for_a_cluster_and_then_serve(cluster: &Cluster) {
    let (status, _tidb) = start_tidb(cluster);
    eventually("TiDB serves", || ask("GET", &status, "/status", None)["version"] == "8.0.11-TiDB-v8.1.0").await;
    // It waited for this.
    let stores = cluster.call("GET", "stores", None);
    assert!(stores["stores"].as_array().is_some_and(|stores| !stores.is_empty()), "{stores}");
    eventually("it owns the schemas, alone as it is", || ask("POST", &status, "/info", None)["is_owner"] == true).await;
    ask("POST", &status, "/labels", Some(&json!({"zone": "a"})));
    assert_eq!(ask("GET", &status, "/info", None)["labels"]["zone"], "a");
    tiproxy_leads_to_tidb(cluster).await;
    captures_are_drained(cluster).await;
    pump_goes_offline(cluster).await;
}

fn start_tidb(cluster: &Cluster) -> (String, Running) {
    let [mysql, status] = addresses();
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();
    let arguments = [
        "tidb-server".to_owned(),
        "--store=tikv".to_owned(),
        "--host=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--path={}", cluster.pd),
        format!("-P={}", port(&mysql)),
        format!("--status={}", port(&status)),
    ];
    let running = cluster.run("tidb", &arguments.each_ref().map(String::as_str));
    (status, running)
}

async fn tiproxy_leads_to_tidb(cluster: &Cluster) {
    let [mysql, api] = addresses();
    let config = format!("[proxy]\naddr = \"{mysql}\"\npd-addrs = \"{}\"\n[api]\naddr = \"{api}\"\n", cluster.pd);
    std::fs::write(cluster.directory.join("tiproxy.toml"), config).unwrap();
    let _tiproxy = cluster.run("tiproxy", &["tiproxy", "--config=tiproxy.toml"]);
    eventually("TiProxy is healthy", || ask("GET", &api, "/api/debug/health", None)["config_checksum"].is_u64()).await;
    let greeting = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&mysql)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut bytes = vec![0; 23];
        stream.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let version = b"\x0a8.0.11-TiDB-v8.1.0";
    eventually("a client is greeted by TiDB", || greeting().is_ok_and(|bytes| bytes.ends_with(version))).await;
}

async fn captures_are_drained(cluster: &Cluster) {
    let captures: [String; 2] = addresses();
    let _running = captures.each_ref().map(|address| {
        let (listen, pd) = (format!("--addr={address}"), format!("--pd=http://{}", cluster.pd));
        cluster.run("ticdc", &["cdc", "server", &listen, &format!("--advertise-addr={address}"), &pd, "--log-file="])
    });
    let list = || ask("GET", &captures[0], "/api/v1/captures", None).as_array().cloned().unwrap_or_default();
    let tables = || captures.each_ref().map(|address| ask("GET", address, "/status", None)["table_count"].as_u64());
    eventually("two captures share six tables", || list().len() == 2 && tables() == [Some(3), Some(3)]).await;

    let owner = |capture: &Value| capture["is_owner"] == true;
    let all = list();
    assert_eq!(all.iter().filter(|capture| owner(capture)).count(), 1, "{all:?}");
    let of_owner = all.iter().find(|capture| owner(capture)).unwrap()["id"].clone();
    let other = all.iter().find(|capture| !owner(capture)).unwrap()["id"].clone();
    // Whoever is asked, the owner answers; itself it does not drain.
    let drain = |id: &Value| ask("PUT", &captures[0], "/api/v1/captures/drain", Some(&json!({"capture_id": id})));
    assert_eq!(drain(&of_owner)["error_code"], "CDC:ErrSchedulerRequestFailed");
    assert_eq!(drain(&other)["current_table_count"], 3);
    eventually("it has no table any more", || drain(&other)["current_table_count"] == 0).await;
    assert!(tables().contains(&Some(6)), "{:?}", tables());

    ask("POST", &captures[0], "/api/v1/owner/resign", None);
    eventually("the other is the owner", || list().iter().any(|capture| owner(capture) && capture["id"] == other)).await;
}

async fn pump_goes_offline(cluster: &Cluster) {
    let [address] = addresses();
    let (listen, pd) = (format!("-addr={address}"), format!("-pd-urls=http://{}", cluster.pd));
    let running =
        cluster.run("pump", &["pump", &pd, "-L=info", &listen, "-node-id=pump-0:8250", "-data-dir=pump", "-log-file="]);
    eventually("Pump is online", || ask("GET", &address, "/status", None)["status"]["pump-0:8250"]["state"] == "online").await;
    assert_ne!(ask("PUT", &address, "/state/somebody/close", None)["code"], 200);
    assert_eq!(ask("PUT", &address, "/state/pump-0:8250/close", None)["code"], 200);
    let ended = tokio::task::spawn_blocking(move || running.ends_well());
    assert!(ended.await.unwrap(), "Pump did not end well");
}

/// Regions come to TiFlash by a placement rule, and leave it with the rule; then it can be a tombstone.
pub async fn tiflash_has_what_a_rule_asks_for(cluster: &Cluster) {
    let [engine, peer, status] = addresses();
    let config = format!(
        "[flash]\nservice_addr = \"{engine}\"\n[flash.proxy]\naddr = \"{peer}\"\ndata-dir = \"tiflash\"\n\
         config = \"tiflash-proxy.toml\"\n[raft]\npd_addr = \"{}\"\n",
        cluster.pd
    );
    std::fs::write(cluster.directory.join("tiflash.toml"), config).unwrap();
    let proxy = format!("[server]\nengine-addr = \"{engine}\"\nstatus-addr = \"{status}\"\n");
    std::fs::write(cluster.directory.join("tiflash-proxy.toml"), proxy).unwrap();
    let _tiflash = cluster.run("tiflash", &["tiflash", "server", "--config-file", "tiflash.toml"]);
    eventually("TiFlash runs", || ask("GET", &status, "/tiflash/store-status", None) == "Running").await;
    let found = cluster.stores().into_iter().find(|store| store["store"]["address"] == engine.as_str()).unwrap();
    assert_eq!(found["store"]["labels"], json!([{"key": "engine", "value": "tiflash"}]));
    let id = found["store"]["id"].as_u64().unwrap();
    assert_eq!(cluster.count(id, "region_count"), 0);

    let rule = json!({
        "group_id": "tiflash", "id": "table-1-r", "index": 120, "start_key": "", "end_key": "", "role": "learner", "count": 1,
        "label_constraints": [{"key": "engine", "op": "in", "values": ["tiflash"]}],
    });
    cluster.call("POST", "config/rule", Some(&rule));
    eventually("regions arrive", || cluster.count(id, "region_count") > 0).await;
    assert_eq!(cluster.count(id, "leader_count"), 0);
    cluster.call("DELETE", &format!("store/{id}"), None);
    cluster.call("DELETE", "config/rule/tiflash/table-1-r", None);
    eventually("PD has made it a tombstone", || cluster.state(id) == "Tombstone").await;
}
