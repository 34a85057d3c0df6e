//! A live TiDB cluster that was not made by Windlass: it is refused until its user says so, taken over without a restart of any member,
//! scaled as it is, and gets pods of Windlass when its version changes.

#![cfg(feature = "lab")]

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;
use windlass_api::tidb::{Component, keys};
use windlass_core::labels::ADOPT;
use windlass_e2e::helm::lives;
use windlass_e2e::tidb::Tidb;
use windlass_e2e::{LONG, Stage, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_live_cluster_is_taken_over_and_no_member_restarts() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("tidb-adoption", true, async |place| {
            let tidb = place.tidb_by_hand().await?;
            wait_for("all members are ready", LONG, async || {
                let ready = members(&tidb).await?.len();
                ensure!(ready == 8, "{ready} are there");
                Ok(())
            })
            .await?;
            let (before, stores) = (members(&tidb).await?, tidb.stores_that_stay().await?);
            let id = tidb.pd("cluster").await?["id"].to_string();

            stage.say("a cluster that was made by hand is refused");
            tidb.patch(&json!({ "spec": { "paused": false } })).await?;
            let stalled = tidb.wait_for_condition("Stalled", "True").await?;
            ensure!(stalled.message.contains(ADOPT), "it is not said how to go on: {}", stalled.message);
            ensure!(stalled.message.contains("tidb-controller-manager"), "it is not said whose it is: {}", stalled.message);

            stage.say("its user says so, and it is taken over");
            tidb.patch(&json!({ "metadata": { "annotations": { ADOPT: "true" } } })).await?;
            tidb.wait_until_ready().await?;
            ensure!(members(&tidb).await? == before, "members were restarted: {:?}, before {before:?}", members(&tidb).await?);
            let after = tidb.stores_that_stay().await?;
            ensure!(after.keys().eq(stores.keys()), "other stores: {after:?}, before {stores:?}");
            println!("a live cluster of TiDB was taken over: 0 of {} members restarted", before.len());
            let status = tidb.status().await?;
            ensure!(status.cluster_id == id, "another cluster: {:?}, PD says {id}", status.cluster_id);
            ensure!(json!(status)["tikv"]["stores"].as_object().is_some_and(|all| all.len() == 3), "{:?}", status.tikv);
            serves_discovery(&tidb).await?;
            stage.say("stores are told where they are");
            wait_for("every store has the name of its node", LONG, async || {
                let stores = tidb.pd("stores").await?["stores"].as_array().cloned().unwrap_or_default();
                let placed = stores.iter().filter(|it| it["store"]["labels"].to_string().contains("\"host\"")).count();
                ensure!(placed == 3, "{stores:?}");
                Ok(())
            })
            .await?;

            stage.say("it becomes larger and smaller, and nobody else restarts");
            tidb.scale(4).await?;
            tidb.wait_until_ready().await?;
            tidb.wait_until_up(4).await?;
            tidb.scale(3).await?;
            tidb.wait_until_ready().await?;
            ensure!(tidb.size(Component::Tikv).await? == 3, "the fourth is still there");
            ensure!(members(&tidb).await? == before, "members were restarted: {:?}, before {before:?}", members(&tidb).await?);

            stage.say("another version gives it pods of Windlass");
            tidb.patch(&json!({ "spec": { "version": "v8.1.1" } })).await?;
            tidb.wait_until_ready().await?;
            let now = members(&tidb).await?;
            let same: Vec<_> = now.iter().filter(|(_, uid, _)| before.iter().any(|(_, old, _)| old == uid)).collect();
            ensure!(now.len() == before.len() && same.is_empty(), "pods of the other operator are still there: {same:?}");
            ensure!(tidb.stores_that_stay().await?.keys().eq(stores.keys()), "a store was lost");
            Ok(())
        })
        .await
}

/// Which members there are that are ready, and how often each was started.
async fn members(tidb: &Tidb) -> Result<Vec<(String, String, i32)>> {
    let labels = ListParams::default().labels(&format!("{}=tidb,{}!=discovery", keys::INSTANCE, keys::COMPONENT));
    let mut pods = tidb.place.api::<Pod>().list(&labels).await?.items;
    pods.retain(|pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
    });
    Ok(lives(&pods))
}

/// Discovery is the one of Windlass, and nothing of the other program is left in it.
async fn serves_discovery(tidb: &Tidb) -> Result<()> {
    wait_for("discovery is that of Windlass", LONG, async || {
        let labels = ListParams::default().labels(&format!("{}=discovery", keys::COMPONENT));
        let pods = tidb.place.api::<Pod>().list(&labels).await?.items;
        ensure!(pods.len() == 1, "{} pods", pods.len());
        let pod = pods.into_iter().next().context("no pod")?;
        let container = pod.spec.and_then(|spec| spec.containers.into_iter().next()).context("no container")?;
        ensure!(container.command.is_none(), "it still runs {:?}", container.command);
        ensure!(container.args.iter().flatten().any(|it| it == "discovery"), "its arguments are {:?}", container.args);
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        ensure!(statuses.iter().all(|it| it.ready), "it is not ready: {statuses:?}");
        Ok(())
    })
    .await
}
