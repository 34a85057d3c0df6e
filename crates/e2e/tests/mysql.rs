//! The MySQL example on the lab: made, written, switched over, failed over, paused, grown.

#![cfg(feature = "lab")]

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use windlass_api::mysql::keys;
use windlass_e2e::mysql::Mysql;
use windlass_e2e::mysql::load::{Writer, changes, check_kept, longest_gap};
use windlass_e2e::{LONG, Place, Stage, wait_for};

fn tell(place: &Place, what: &str, began: Instant) {
    place.stage().say(&format!("{what}: {:.1} s", began.elapsed().as_secs_f64()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_made_changes_its_primary_survives_its_loss_and_grows() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("mysql", true, async |place| {
            let since = stage.audit().mark()?;
            let began = Instant::now();
            let mysql = place.mysql(|cluster| cluster["spec"]["replicas"] = 1.into()).await?;
            tell(place, "one instance from nothing", began);
            grow(&mysql, 3).await?;
            check_roles(&mysql, 0, 3).await?;
            let (service, create) = (
                mysql.primary_service(),
                "CREATE DATABASE IF NOT EXISTS harbour; CREATE TABLE harbour.rope (length INT PRIMARY KEY)",
            );
            mysql.sql(1, "moco-writable", &service, create).await?;
            mysql.insert(1, "harbour.rope", 1).await?;
            mysql.wait_for_rows(3, "harbour.rope", "1").await?;
            check_replicas_refuse_writes(&mysql).await?;

            switch_over(&mysql).await?;
            let primary = mysql.primary().await?;
            mysql.insert(primary, "harbour.rope", 2).await?;
            mysql.wait_for_rows(3, "harbour.rope", "1\n2").await?;

            fail_over(&mysql).await?;
            let primary = mysql.primary().await?;
            mysql.insert(primary, "harbour.rope", 3).await?;
            mysql.wait_for_rows(3, "harbour.rope", "1\n2\n3").await?;

            stop_clustering(&mysql).await?;
            let primary = mysql.primary().await?;
            mysql.insert(primary, "harbour.rope", 4).await?;

            grow(&mysql, 5).await?;
            mysql.wait_for_rows(5, "harbour.rope", "1\n2\n3\n4").await?;
            stage.audit().check_restricted(place.namespace(), since)?;
            Ok(())
        })
        .await
}

/// A stall this long is no noise of a busy machine.
const STALL: f64 = 15.0;

/// Instances are added while a client writes.
async fn grow(mysql: &Mysql, replicas: u16) -> Result<()> {
    let writer = Writer::start(mysql).await?;
    let began = Instant::now();
    mysql.patch(&json!({ "spec": { "replicas": replicas } })).await?;
    mysql.wait_until_healthy().await?;
    writer.goes_on().await?;
    let rows = writer.stop()?;
    let (gap, took) = (longest_gap(&rows, began), began.elapsed().as_secs_f64());
    mysql.place.stage().say(&format!("to {replicas} instances in {took:.1} s under writes: longest gap {gap:.2} s"));
    ensure!(gap < STALL, "writes waited {gap:.1} s while instances were added");
    check_kept(mysql, &rows).await
}

/// The primary is labelled, all others follow, and nobody else takes writes.
async fn check_roles(mysql: &Mysql, primary: u16, instances: usize) -> Result<()> {
    let pods = mysql.place.api::<Pod>();
    for (role, count) in [(keys::ROLE_PRIMARY, 1), (keys::ROLE_REPLICA, instances - 1)] {
        let found = pods.list(&ListParams::default().labels(&format!("{}={role}", keys::ROLE))).await?.items;
        ensure!(found.len() == count, "{} pods have the role {role}", found.len());
        if role == keys::ROLE_PRIMARY {
            ensure!(found[0].metadata.name.as_deref() == Some(&mysql.pod(primary)), "another pod is the primary");
        }
    }
    Ok(())
}

async fn check_replicas_refuse_writes(mysql: &Mysql) -> Result<()> {
    let primary = mysql.primary().await?;
    for ordinal in (0..3).filter(|ordinal| *ordinal != primary) {
        let ran = mysql.try_sql(ordinal, "moco-writable", &mysql.host(ordinal), "INSERT INTO harbour.rope VALUES (99)").await?;
        ensure!(ran.code != 0 && ran.errors.contains("read-only option"), "instance {ordinal} took a write: {ran:?}");
    }
    Ok(())
}

/// The primary hands over under writes, and then once more while a statement runs that takes longer than anybody waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_switchover_under_writes_loses_nothing() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("handover", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            let began = Instant::now();
            switch_over(&mysql).await?;
            writer.goes_on().await?;
            let gap = longest_gap(&writer.rows(), began);
            stage.say(&format!("switchover under writes: longest gap {gap:.2} s"));

            let statement = mysql.write_slowly(mysql.primary().await?, 15).await?;
            let began = Instant::now();
            switch_over(&mysql).await?;
            writer.goes_on().await?;
            let gap = longest_gap(&writer.rows(), began);
            stage.say(&format!("switchover with a statement of 15 s: longest gap {gap:.2} s"));
            let ended = statement.await??;
            ensure!(ended.code != 0, "who held the primary open for too long was not disconnected: {ended:?}");
            let rows = writer.stop()?;
            ensure!(changes(&rows) == 2, "{} changes of the server in two switchovers", changes(&rows));
            check_kept(&mysql, &rows).await
        })
        .await
}

/// Somebody asks the primary to hand over.
async fn switch_over(mysql: &Mysql) -> Result<()> {
    let (before, began) = (mysql.primary().await?, Instant::now());
    let change = json!({ "metadata": { "annotations": { keys::DEMOTE: "true" } } });
    mysql.place.api::<Pod>().patch(&mysql.pod(before), &PatchParams::default(), &Patch::Merge(&change)).await?;
    let after = mysql.another_primary(before).await?;
    mysql.wait_until_healthy().await?;
    tell(&mysql.place, "switchover, until Healthy", began);
    check_roles(mysql, after, 3).await?;
    let pod = mysql.place.api::<Pod>().get(&mysql.pod(before)).await?;
    let asked = pod.metadata.annotations.unwrap_or_default();
    ensure!(!asked.contains_key(keys::DEMOTE), "the wish is still on the pod, and would be granted again");
    Ok(())
}

/// The primary's pod goes at once, without a word.
async fn fail_over(mysql: &Mysql) -> Result<()> {
    let (before, began) = (mysql.primary().await?, Instant::now());
    mysql.remove_pod(before).await?;
    let after = mysql.another_primary(before).await?;
    tell(&mysql.place, "another primary is recorded after a loss", began);
    mysql.wait_until_healthy().await?;
    tell(&mysql.place, "Healthy again after a loss", began);
    check_roles(mysql, after, 3).await
}

/// While clustering is stopped the primary may come and go, and nobody takes its place; objects are looked after all the same.
async fn stop_clustering(mysql: &Mysql) -> Result<()> {
    let primary = mysql.primary().await?;
    mysql.annotate(keys::CLUSTERING_STOPPED, Some("true")).await?;
    mysql.wait_for_condition("ClusteringActive", "False").await?;
    for type_ in ["Available", "Healthy"] {
        mysql.wait_for_condition(type_, "Unknown").await?;
    }
    mysql.replace_pod(primary).await?;
    let labels = json!({ "metadata": { "labels": { "berth": "north" } } });
    mysql.patch(&json!({ "spec": { "replicaServiceTemplate": labels } })).await?;
    wait_for("the Service has the label", LONG, async || {
        let service = mysql.place.api::<Service>().get("moco-mysql-replica").await?;
        ensure!(service.metadata.labels.unwrap_or_default().contains_key("berth"), "not yet");
        Ok(())
    })
    .await?;
    ensure!(mysql.primary().await? == primary, "another instance became the primary while clustering was stopped");
    let read_only = mysql.read_from(primary, "SELECT @@super_read_only").await?;
    ensure!(read_only == "1", "somebody opened the primary while clustering was stopped");
    mysql.annotate(keys::CLUSTERING_STOPPED, None).await?;
    mysql.wait_for_condition("ClusteringActive", "True").await?;
    mysql.wait_until_healthy().await
}
