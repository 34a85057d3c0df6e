//! What befalls instances of a MySQL cluster besides the loss of its primary, on real servers, and how it ends.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use windlass_e2e::mysql::Mysql;
use windlass_e2e::mysql::load::{Writer, check_kept};
use windlass_e2e::{LONG, Stage, wait_for};

/// The UIDs of all pods of the cluster.
async fn pods(mysql: &Mysql) -> Result<BTreeMap<String, String>> {
    let pods = mysql.place.api::<Pod>().list(&ListParams::default()).await?.items;
    Ok(pods.into_iter().filter_map(|pod| Some((pod.metadata.name?, pod.metadata.uid?))).collect())
}

async fn server(mysql: &Mysql, ordinal: u16) -> Result<String> {
    mysql.administer(ordinal, "SELECT @@server_uuid").await
}

/// The lowest replica.
async fn a_replica(mysql: &Mysql) -> Result<u16> {
    let primary = mysql.primary().await?;
    (0..3).find(|ordinal| *ordinal != primary).context("no replica")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_befalls_an_instance_is_mended_or_told() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("mending", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            stage.say("somebody writes to a replica by hand");
            let errant = write_by_hand(&mysql).await?;
            stage.say("its volume is wiped, and it copies the primary's data");
            wipe(&mysql, errant).await?;
            stage.say("a replica falls behind what the primary has purged");
            purge(&mysql, &writer).await?;
            check_kept(&mysql, &writer.stop()?).await?;
            stage.say("all instances are stopped, and come back with their data");
            go_offline(&mysql).await?;
            stage.say("volumes grow");
            grow_volumes(&mysql).await?;
            stage.say("a template with which no server starts is taken back");
            roll_back(&mysql).await
        })
        .await
}

/// It is told of, and takes no part: nothing of it reaches anybody else.
async fn write_by_hand(mysql: &Mysql) -> Result<u16> {
    let replica = a_replica(mysql).await?;
    let stray = "SET GLOBAL super_read_only = 0; CREATE DATABASE stray; SET GLOBAL super_read_only = 1";
    mysql.administer(replica, stray).await?;
    wait_for("the instance is told as errant", LONG, async || {
        let status = mysql.status().await?;
        ensure!(status.errant_replica_list == [replica], "errant: {:?}", status.errant_replica_list);
        ensure!(status.errant_replicas == Some(1), "{:?} errant instances", status.errant_replicas);
        let pod = mysql.place.api::<Pod>().get(&mysql.pod(replica)).await?;
        let role = pod.metadata.labels.unwrap_or_default().remove(windlass_api::mysql::keys::ROLE);
        ensure!(role.is_none(), "it still has the role {role:?}");
        let receives = mysql.administer(replica, "SHOW REPLICA STATUS").await?;
        ensure!(receives.contains("\tNo\t"), "it still receives: {receives}");
        Ok(())
    })
    .await?;
    mysql.wait_for_condition("Available", "True").await?;
    mysql.wait_for_condition("Healthy", "False").await?;
    let primary = mysql.primary().await?;
    let found = mysql.administer(primary, "SHOW DATABASES LIKE 'stray'").await?;
    ensure!(found.is_empty(), "what was written by hand reached the primary");
    Ok(replica)
}

async fn wipe(mysql: &Mysql, ordinal: u16) -> Result<()> {
    let before = server(mysql, ordinal).await?;
    let claims = mysql.place.api::<PersistentVolumeClaim>();
    claims.delete(&format!("mysql-data-{}", mysql.pod(ordinal)), &DeleteParams::default()).await?;
    mysql.remove_pod(ordinal).await?;
    wait_for("another server runs in its place", LONG, async || {
        let now = server(mysql, ordinal).await?;
        ensure!(now != before, "it is still the same");
        Ok(())
    })
    .await?;
    mysql.wait_until_healthy().await?;
    let found = mysql.administer(ordinal, "SHOW DATABASES LIKE 'stray'").await?;
    ensure!(found.is_empty(), "it has what it had before it was wiped");
    Ok(())
}

/// Never pointed at a source that it cannot follow: its data is replaced by a copy.
async fn purge(mysql: &Mysql, writer: &Writer) -> Result<()> {
    let replica = a_replica(mysql).await?;
    let before = server(mysql, replica).await?;
    mysql.leave_behind(replica, writer).await?;
    wait_for("the instance has another server's data", LONG, async || {
        let now = server(mysql, replica).await?;
        ensure!(now != before, "it is still the same server");
        Ok(())
    })
    .await?;
    mysql.wait_until_healthy().await
}

async fn go_offline(mysql: &Mysql) -> Result<()> {
    let primary = mysql.primary().await?;
    let rows = mysql.read_from(primary, "SELECT COUNT(*) FROM harbour.berths").await?;
    mysql.patch(&json!({ "spec": { "offline": true } })).await?;
    wait_for("all instances are stopped", LONG, async || {
        let left = pods(mysql).await?;
        ensure!(left.is_empty(), "{} pods are left", left.len());
        let available = mysql.condition("Available").await?;
        ensure!(available.status == "False" && available.reason == "Offline", "Available: {available:?}");
        Ok(())
    })
    .await?;
    mysql.patch(&json!({ "spec": { "offline": false } })).await?;
    mysql.wait_until_healthy().await?;
    let now = mysql.read_from(mysql.primary().await?, "SELECT COUNT(*) FROM harbour.berths").await?;
    ensure!(now == rows, "there were {rows} rows, and there are {now}");
    Ok(())
}

async fn grow_volumes(mysql: &Mysql) -> Result<()> {
    let before = pods(mysql).await?;
    let mut templates = serde_json::to_value(mysql.get().await?.spec.volume_claim_templates)?;
    templates[0]["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
    mysql.patch(&json!({ "spec": { "volumeClaimTemplates": templates } })).await?;
    wait_for("every claim asks for more", LONG, async || {
        for claim in mysql.place.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items {
            let asks = claim.spec.and_then(|spec| spec.resources?.requests).unwrap_or_default();
            ensure!(asks.get("storage").is_some_and(|it| it.0 == "2Gi"), "{:?} asks for {asks:?}", claim.metadata.name);
        }
        Ok(())
    })
    .await?;
    mysql.wait_until_healthy().await?;
    ensure!(pods(mysql).await? == before, "pods were replaced for the sake of their volumes");
    Ok(())
}

/// One pod is tried, and the roll stops there. The old template comes back without any help.
async fn roll_back(mysql: &Mysql) -> Result<()> {
    let writer = Writer::start(mysql).await?;
    let before = pods(mysql).await?;
    let image = |image: &str| json!([{ "op": "replace", "path": "/spec/podTemplate/spec/containers/0/image", "value": image }]);
    let good = "localhost/windlass-mysql:9.7.4";
    mysql.patch_json(&image("localhost/windlass-mysql:nowhere")).await?;
    wait_for("the first pod cannot start", LONG, async || {
        let now = pods(mysql).await?;
        let replaced: Vec<&String> =
            before.iter().filter(|(name, uid)| now.get(*name) != Some(uid)).map(|(name, _)| name).collect();
        ensure!(replaced.len() == 1, "{replaced:?} were replaced");
        let pod = mysql.place.api::<Pod>().get(replaced[0]).await?;
        let statuses = pod.status.unwrap_or_default().init_container_statuses.unwrap_or_default();
        let why = statuses.into_iter().find_map(|it| it.state?.waiting?.reason);
        ensure!(why.as_deref().is_some_and(|why| why.contains("Image")), "it waits for {why:?}");
        Ok(())
    })
    .await?;
    mysql.wait_for_condition("Available", "True").await?;
    let stopped = pods(mysql).await?;
    writer.goes_on().await?;
    ensure!(pods(mysql).await? == stopped, "the roll went on although the first pod did not start");
    mysql.patch_json(&image(good)).await?;
    mysql.wait_until_healthy().await?;
    let kept = pods(mysql).await?.iter().filter(|(name, uid)| before.get(*name) == Some(*uid)).count();
    ensure!(kept == 2, "{kept} of three pods were never touched");
    check_kept(mysql, &writer.stop()?).await
}
