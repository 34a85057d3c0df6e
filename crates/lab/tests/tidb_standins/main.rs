//! The real PD with stand-ins for the rest of TiDB beside it: regions really move, and PD itself says when a store is empty.
//!
//! It needs no lab, but PD, which takes minutes to build.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;
mod http;
mod images;
mod others;
#[path = "../support/wait.rs"]
mod wait;

use std::path::Path;
use std::process::Command;

use cluster::{Cluster, REGIONS, Store};
use serde_json::{Value, json};
use wait::eventually;
use windlass_lab::{Progress, tidb};

#[tokio::test(flavor = "multi_thread")]
async fn stores_are_drained_kept_lost_and_replaced_as_pd_decides() {
    let programs = tidb::programs(&Progress::new()).await.unwrap();
    let cluster = Cluster::start(&programs);
    let mut stores = [0, 1, 2, 3].map(|number| Store::start(&format!("tikv-{number}"), &cluster));
    others::wait_for_a_cluster_and_then_serve(&cluster).await;
    eventually("four stores are up", || stores.iter().all(|store| store.id(&cluster).is_some())).await;
    let ids = [0, 1, 2, 3].map(|number: usize| stores[number].id(&cluster).unwrap());
    let total = || cluster.call("GET", "regions", None)["count"].as_u64().unwrap_or_default();
    eventually("the regions are there, three times each", || total() >= REGIONS && cluster.unfinished() == 0).await;
    let [.., last] = &mut stores;
    eventually("the last store has regions, too", || last.metric("region").is_some_and(|count| count > 1)).await;
    let status = last.ask("/status");
    assert!(status["standin"].as_str().unwrap().contains("stand-in"), "{status}");

    a_drain_that_stands_still_can_be_taken_back(&cluster, last, ids[3]).await;
    leaders_are_evicted(&cluster, last, ids[3]).await;
    a_store_is_drained_as_fast_as_it_lets_regions_go(&cluster, last, ids[3]).await;
    a_tombstone_comes_back_only_as_another_store(&cluster, last, ids[3]).await;
    a_store_that_is_lost_comes_back_as_itself(&cluster, &mut stores[0], ids[0]).await;
    others::tiflash_has_what_a_rule_asks_for(&cluster).await;
}

async fn a_drain_that_stands_still_can_be_taken_back(cluster: &Cluster, store: &Store, id: u64) {
    store.tell("faults", &json!({"refuseOperators": true}));
    cluster.call("DELETE", &format!("store/{id}"), None);
    eventually("the store is offline", || cluster.state(id) == "Offline").await;
    assert!(cluster.count(id, "region_count") > 0);
    cluster.call("POST", &format!("store/{id}/state?state=Up"), None);
    store.tell("faults", &json!({"refuseOperators": false}));
    eventually("the store is up, with regions, and nothing is under way", || {
        cluster.state(id) == "Up" && cluster.unfinished() == 0 && cluster.count(id, "region_count") > 1
    })
    .await;
}

async fn leaders_are_evicted(cluster: &Cluster, store: &Store, id: u64) {
    cluster.call("POST", "schedulers", Some(&json!({"name": "evict-leader-scheduler", "store_id": id})));
    eventually("the store leads nothing, and has regions", || {
        store.metric("leader") == Some(0) && store.metric("region").is_some_and(|count| count > 0)
    })
    .await;
    // PD hears of it from those that lead in its place.
    eventually("PD has no leader on it", || cluster.count(id, "leader_count") == 0).await;
}

async fn a_store_is_drained_as_fast_as_it_lets_regions_go(cluster: &Cluster, store: &Store, id: u64) {
    store.tell("speed", &json!({"regionsPerSecond": 0}));
    cluster.call("DELETE", &format!("store/{id}"), None);
    // The first steps are taken, the last is not: nothing has left.
    let is_learner = |replica: &Value| {
        let peers = replica["region"]["peers"].as_array().unwrap();
        peers.iter().any(|peer| peer["store_id"] == id && peer["role"] == 1)
    };
    eventually("every region has another place, and waits to leave", || {
        store.ask("/standin/regions").as_object().is_some_and(|replicas| replicas.values().all(is_learner))
    })
    .await;
    let before = store.metric("region").unwrap();
    assert!(before > 1, "with one region there is nothing between the first that leaves and the last");
    assert_eq!(cluster.state(id), "Offline");

    // So slow that the last cannot have left before somebody looks.
    store.tell("speed", &json!({"regionsPerSecond": 0.1}));
    eventually("some have left", || store.metric("region").is_some_and(|count| count < before)).await;
    assert_eq!(cluster.state(id), "Offline");
    store.tell("speed", &json!({"regionsPerSecond": 50}));
    eventually("PD has made it a tombstone", || cluster.state(id) == "Tombstone").await;
    assert_eq!(cluster.call("GET", "stores?state=2", None)["count"], 1);
    // PD hears that the last one is gone from its leader, at the same time as the store does.
    eventually("the store has no region", || store.metric("region") == Some(0)).await;
    eventually("every region has three peers", || cluster.unfinished() == 0).await;
}

async fn a_tombstone_comes_back_only_as_another_store(cluster: &Cluster, store: &mut Store, id: u64) {
    store.restart(cluster);
    let running = store.release();
    let ended = tokio::task::spawn_blocking(move || running.ends_well());
    assert!(!ended.await.unwrap(), "the tombstone came back");
    store.wipe(cluster);
    store.restart(cluster);
    eventually("it is another store", || store.id(cluster).is_some_and(|other| other != id)).await;
}

async fn a_store_that_is_lost_comes_back_as_itself(cluster: &Cluster, store: &mut Store, id: u64) {
    eventually("the store leads something", || cluster.count(id, "leader_count") > 0).await;
    store.kill();
    eventually("others were elected in its place", || cluster.count(id, "leader_count") == 0).await;
    store.restart(cluster);
    eventually("it answers", || store.metric("region").is_some_and(|count| count > 0)).await;
    assert_eq!(store.id(cluster), Some(id));

    // One that hangs is silent for PD and for other stores; when it goes on, it finds its place.
    store.tell("faults", &json!({"hang": true}));
    eventually("PD misses it", || cluster.silence(id) >= 3).await;
    store.tell("faults", &json!({"hang": false}));
    eventually("PD hears it, and nothing is missing", || cluster.silence(id) <= 2 && cluster.unfinished() == 0).await;
}

#[test]
fn the_stand_ins_pass_their_own_tests() {
    // Where Go is when nobody has put it on the PATH.
    let path = format!("{}:/usr/local/go/bin", std::env::var("PATH").unwrap_or_default());
    for arguments in [&["vet", "./..."][..], &["test", "-trimpath", "./..."]] {
        let status = Command::new("go")
            .args(arguments)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/tidb-standin"))
            .envs([("GOFLAGS", "-buildvcs=false -mod=readonly"), ("GOWORK", "off"), ("CGO_ENABLED", "0"), ("PATH", &path)])
            .status()
            .unwrap();
        assert!(status.success(), "go {arguments:?}");
    }
}
