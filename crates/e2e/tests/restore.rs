//! Scaled to nothing and back: all the members that may hold data come back together, and nobody can order otherwise by mistake.

#![cfg(feature = "lab")]

use anyhow::{Result, ensure};
use serde_json::json;
use windlass_e2e::galera::Galera;
use windlass_e2e::{LONG, Stage, wait_for};

const MOST: u16 = 5;
const FEWER: u16 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_back_from_nothing_with_all_who_may_hold_data() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("restore", true, async |place| {
            let galera = place.galera().await?;
            let cluster = &galera.cluster;
            galera.sql(0, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            cluster.scale(MOST).await?;
            cluster.wait_until_ready(MOST).await?;
            galera.sql(0, &galera.service(), "INSERT INTO rope VALUES (1)").await?;

            scale_to_nothing(&galera).await?;
            cluster.scale(MOST).await?;
            cluster.wait_until_ready(MOST).await?;
            galera.check_rows(MOST, &[1]).await?;
            stage.say(&format!("0 -> {MOST}: every member has the row"));

            scale_to_nothing(&galera).await?;
            cluster.scale(FEWER).await?;
            let stalled = cluster.wait_for_condition("Stalled", "True", "ReplicasBelowRestore").await?;
            stage.say(&format!("0 -> {FEWER} is refused: {}", stalled.message));
            ensure!(cluster.stateful_set().await?.spec.and_then(|spec| spec.replicas) == Some(0), "members were made");

            write_restore_replicas(&galera, MOST + 4).await?;
            wait_for("what cannot be is healed", LONG, async || {
                let told = cluster.status().await?.restore_replicas;
                ensure!(told == MOST, "restoreReplicas is {told}");
                Ok(())
            })
            .await?;
            ensure!(cluster.logbook().await?.spec.counts.restore == MOST, "the logbook took it");

            write_restore_replicas(&galera, FEWER).await?;
            cluster.wait_until_ready(FEWER).await?;
            galera.check_rows(FEWER, &[1]).await?;
            stage.say(&format!("restoreReplicas: {} healed, {FEWER} accepted; {FEWER} members have the row", MOST + 4));
            Ok(())
        })
        .await
}

/// Scales to 0. Who may hold data is still told.
async fn scale_to_nothing(galera: &Galera) -> Result<()> {
    let cluster = &galera.cluster;
    cluster.scale(0).await?;
    wait_for("no pod is left", LONG, async || {
        let left = cluster.stateful_set().await?.status.map_or(0, |status| status.replicas);
        ensure!(left == 0, "{left} pods are left");
        Ok(())
    })
    .await?;
    let status = cluster.status().await?;
    ensure!(status.restore_replicas == MOST, "restoreReplicas is {}", status.restore_replicas);
    Ok(())
}

/// Edits the status as a person does who has the right to.
async fn write_restore_replicas(galera: &Galera, count: u16) -> Result<()> {
    let cluster = &galera.cluster;
    let path = format!("{}/status", cluster.path());
    let body = json!({ "status": { "restoreReplicas": count } });
    let answer = cluster.place.stage().send(http::Method::PATCH, &path, "application/merge-patch+json", &body).await?;
    ensure!(answer.is_ok(), "{answer:?}");
    Ok(())
}
