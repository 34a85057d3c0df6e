//! Stopping the clustering or the reconciliation of a MySQL cluster, on real servers: what stays, what goes on, and when it is told.

#![cfg(feature = "lab")]

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use rustix::process::Signal;
use serde_json::json;
use windlass_api::mysql::keys;
use windlass_e2e::mysql::load::{Writer, check_kept};
use windlass_e2e::mysql::{Mysql, Stoppable};
use windlass_e2e::{LONG, Stage, wait_for};

/// Every statement that reaches a server is kept by it, across restarts.
const TELLING: [(&str, &str); 2] = [("general_log", "ON"), ("log_output", "TABLE")];
/// MiB a second: a copy of data takes long enough to be caught in the middle. At full speed it is over before anybody looked.
const SLOW_COPIES: (&str, &str) = ("loose_clone_max_data_bandwidth", "1");
/// How statements begin that change nothing. The operator's own session is set up by `SET SESSION`.
const READS: [&str; 4] = ["SELECT", "SHOW", "SET SESSION", "DO SLEEP"];

/// Fails when the operator sent anything but reads to any server since a moment, or asked none of those that it can reach.
async fn only_reads_since(mysql: &Mysql, since: Timestamp, reachable: &[u16]) -> Result<()> {
    let since = since.strftime("%Y-%m-%d %H:%M:%S%.6f");
    for ordinal in 0..3 {
        // The test's own questions come through the server's own interface, the operator's over the network.
        let query = format!(
            "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = 'Query' AND event_time > '{since}' \
             AND user_host LIKE 'moco-admin%' AND user_host NOT LIKE '%127.0.0.1%'"
        );
        let said = mysql.administer(ordinal, &query).await?;
        ensure!(!said.is_empty() || !reachable.contains(&ordinal), "instance {ordinal} was not even asked");
        let changes: BTreeSet<&str> =
            said.lines().filter(|line| !READS.iter().any(|read| line.trim_start().to_uppercase().starts_with(read))).collect();
        ensure!(changes.is_empty(), "sent to instance {ordinal} while clustering is stopped: {changes:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_clustering_leaves_servers_alone_until_it_is_started() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("stopped", true, async |place| {
            let mysql = place.mysql_with(&TELLING, |_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            let primary = mysql.primary().await?;

            stage.say("clustering is stopped although the objects cannot be reconciled");
            mysql.patch(&json!({ "spec": { "mysqlConfigMapName": "nowhere" } })).await?;
            mysql.wait_for_condition("Stalled", "True").await?;
            mysql.stop(Stoppable::Clustering).await?;
            for type_ in ["Available", "Healthy"] {
                mysql.wait_for_condition(type_, "Unknown").await?;
            }
            mysql.patch(&json!({ "spec": { "mysqlConfigMapName": "mysql-settings" } })).await?;
            let since = Timestamp::now();
            writer.goes_on().await?;

            stage.say("the primary is cut off, and nobody takes its place");
            let loss = mysql.lose_packets(&mysql.address(primary).await?, None)?;
            mysql.wait_until_held("receive nothing").await?;
            check_objects_go_on(&mysql).await?;
            stage.restart_operator().await?;
            mysql.wait_until_held("receive nothing").await?;
            ensure!(mysql.condition("ClusteringActive").await?.status == "False", "a new operator took the clustering up");
            for type_ in ["Available", "Healthy"] {
                ensure!(mysql.condition(type_).await?.status == "Unknown", "{type_} is known again");
            }
            ensure!(mysql.primary().await? == primary, "another instance became the primary");
            check_figures(
                &mysql,
                &[("clustering_stopped", "1.0"), ("reconciliation_stopped", "0.0"), ("healthy", "NaN"), ("available", "NaN")],
            )
            .await?;
            let others: Vec<u16> = (0..3).filter(|ordinal| *ordinal != primary).collect();
            only_reads_since(&mysql, since, &others).await?;

            stage.say("clustering is started: another instance takes over");
            mysql.start(Stoppable::Clustering).await?;
            mysql.another_primary(primary).await?;
            writer.goes_on().await?;
            drop(loss);
            mysql.wait_until_healthy().await?;
            let rows = writer.stop()?;
            check_kept(&mysql, &rows).await?;

            align_by_hand(&mysql).await
        })
        .await
}

/// The operator that was started just now shows what the one before it did, as soon as it has looked at the cluster.
async fn check_figures(mysql: &Mysql, expected: &[(&str, &str)]) -> Result<()> {
    let namespace = format!("namespace=\"{}\"", mysql.place.namespace());
    wait_for("the figures are shown again", LONG, async || {
        let metrics = mysql.place.stage().operator_metrics().await?;
        for (name, value) in expected {
            let is_meant = |line: &&str| line.starts_with(&format!("moco_cluster_{name}{{")) && line.contains(&namespace);
            let line = metrics.lines().find(is_meant).with_context(|| format!("there is no moco_cluster_{name}"))?;
            ensure!(line.ends_with(&format!(" {value}")), "{line}, and not {value}");
        }
        Ok(())
    })
    .await
}

/// Objects are looked after while only clustering is stopped.
async fn check_objects_go_on(mysql: &Mysql) -> Result<()> {
    let labels = json!({ "metadata": { "labels": { "berth": "north" } } });
    mysql.patch(&json!({ "spec": { "replicaServiceTemplate": labels } })).await?;
    wait_for_label(mysql, "berth").await
}

async fn wait_for_label(mysql: &Mysql, label: &str) -> Result<()> {
    wait_for(&format!("the Service has the label {label}"), LONG, async || {
        let service = mysql.place.api::<Service>().get("moco-mysql-replica").await?;
        ensure!(service.metadata.labels.unwrap_or_default().contains_key(label), "not yet");
        Ok(())
    })
    .await
}

/// What people stop clustering for: replicas are brought to the same point by hand, and stay there.
async fn align_by_hand(mysql: &Mysql) -> Result<()> {
    let stage = mysql.place.stage();
    stage.say("replicas are aligned by hand");
    mysql.stop(Stoppable::Clustering).await?;
    let since = Timestamp::now();
    let primary = mysql.primary().await?;
    let replicas: Vec<u16> = (0..3).filter(|ordinal| *ordinal != primary).collect();
    for ordinal in &replicas {
        mysql.administer(*ordinal, "STOP REPLICA SQL_THREAD").await?;
    }
    mysql.sql(primary, "moco-writable", &mysql.primary_service(), "CREATE TABLE harbour.aligned (a INT PRIMARY KEY)").await?;
    let point = mysql.administer(primary, "SELECT @@GLOBAL.gtid_executed").await?.replace("\\n", "");
    for number in 1..4 {
        mysql.insert(primary, "harbour.aligned", number).await?;
    }
    for ordinal in &replicas {
        mysql.administer(*ordinal, &format!("START REPLICA SQL_THREAD UNTIL SQL_AFTER_GTIDS = '{point}'")).await?;
        wait_for(&format!("instance {ordinal} is at the point"), LONG, async || {
            let executed = mysql.administer(*ordinal, "SELECT @@GLOBAL.gtid_executed").await?.replace("\\n", "");
            ensure!(executed == point, "it is at {executed}, and not at {point}");
            Ok(())
        })
        .await?;
    }
    // An operator that starts anew finds them so, and leaves them so.
    stage.restart_operator().await?;
    wait_for("the new operator has asked every instance", LONG, async || {
        only_reads_since(mysql, since, &[0, 1, 2]).await?;
        let plan = mysql.logbook().await?.plan;
        ensure!(!plan.held.is_empty(), "nothing is held yet");
        Ok(())
    })
    .await?;
    for ordinal in &replicas {
        let executed = mysql.administer(*ordinal, "SELECT @@GLOBAL.gtid_executed").await?.replace("\\n", "");
        ensure!(executed == point, "instance {ordinal} moved from {point} to {executed}");
    }
    mysql.start(Stoppable::Clustering).await?;
    mysql.wait_until_healthy().await?;
    mysql.wait_for_rows(3, "harbour.aligned", "1\n2\n3").await
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_reconciliation_leaves_objects_alone_and_servers_are_looked_after() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("unreconciled", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            mysql.stop(Stoppable::Reconciliation).await?;
            let since = stage.audit().mark()?;
            let generation =
                async || Ok::<_, anyhow::Error>(place.api::<StatefulSet>().get("moco-mysql").await?.metadata.generation);
            let before = generation().await?;
            let labels = json!({ "metadata": { "labels": { "berth": "south" } } });
            mysql.patch(&json!({ "spec": { "replicaServiceTemplate": labels } })).await?;
            mysql.wait_until_held("Service moco-mysql-replica").await?;

            let primary = mysql.primary().await?;
            mysql.signal(primary, Signal::KILL).await?;
            mysql.another_primary(primary).await?;
            writer.goes_on().await?;
            mysql.wait_for_condition("Healthy", "True").await?;
            stage.restart_operator().await?;
            mysql.wait_until_held("Service moco-mysql-replica").await?;
            let requests = stage.audit().requests_of(&stage.operator_user(), since)?;
            let ours = requests.iter().filter(|entry| entry.namespace() == place.namespace() && entry.is_write());
            for entry in ours {
                // Roles of pods are clustering. On the set, the edition of the logbook is noted.
                let told = ["mysqlclusters/status", "logbooks", "events", "pods", "statefulsets"];
                let may = told.contains(&entry.resource().as_str());
                ensure!(may && entry.verb != "delete", "written while reconciliation is stopped: {}", entry.describe());
            }
            ensure!(generation().await? == before, "the StatefulSet was changed while reconciliation is stopped");

            stage.say("both are stopped, and started in either order");
            for order in
                [[Stoppable::Reconciliation, Stoppable::Clustering], [Stoppable::Clustering, Stoppable::Reconciliation]]
            {
                for lane in order {
                    mysql.stop(lane).await?;
                }
                for lane in order {
                    mysql.start(lane).await?;
                }
                mysql.wait_until_healthy().await?;
            }
            wait_for_label(&mysql, "berth").await?;
            check_kept(&mysql, &writer.stop()?).await
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn clustering_that_stops_in_the_middle_stops_at_a_safe_point() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("midway", true, async |place| {
            let mysql = place.mysql_with(&[TELLING[0], TELLING[1], SLOW_COPIES], |_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            let primary = mysql.primary().await?;

            stage.say("in the middle of a switchover, which a long statement holds up");
            let statement = mysql.write_slowly(primary, 6).await?;
            let change = json!({ "metadata": { "annotations": { keys::DEMOTE: "true" } } });
            let pods = place.api::<Pod>();
            pods.patch(&mysql.pod(primary), &PatchParams::default(), &Patch::Merge(&change)).await?;
            wait_for("the switchover has begun", LONG, async || {
                ensure!(mysql.logbook().await?.mysql.context("nothing is remembered")?.changing, "not yet");
                Ok(())
            })
            .await?;
            mysql.stop(Stoppable::Clustering).await?;
            let since = Timestamp::now();
            ensure!(!mysql.logbook().await?.mysql.context("nothing is remembered")?.changing, "it is still halfway");
            let now = mysql.primary().await?;
            let closed = mysql.read_from(now, "SELECT @@super_read_only").await?;
            ensure!(closed == "0", "clustering is stopped, and instance {now}, the primary, takes no writes");
            writer.goes_on().await?;
            statement.await??;
            wait_for("every instance was asked", LONG, async || only_reads_since(&mysql, since, &[0, 1, 2]).await).await?;
            let undone = json!({ "metadata": { "annotations": { keys::DEMOTE: null } } });
            pods.patch(&mysql.pod(primary), &PatchParams::default(), &Patch::Merge(&undone)).await?;
            mysql.start(Stoppable::Clustering).await?;
            mysql.wait_until_healthy().await?;

            stage.say("in the middle of a copy of data");
            let replica = (0..3).find(|ordinal| Some(*ordinal) != Some(now)).context("no replica")?;
            let claims = place.api::<k8s_openapi::api::core::v1::PersistentVolumeClaim>();
            claims.delete(&format!("mysql-data-{}", mysql.pod(replica)), &DeleteParams::default()).await?;
            mysql.remove_pod(replica).await?;
            wait_for("the instance is to copy data", LONG, async || {
                let plan = mysql.logbook().await?.plan;
                let told = plan.next.iter().map(|step| &step.step).chain(plan.running.iter().map(|step| &step.step));
                ensure!(told.into_iter().any(|step| step.contains("copy the data")), "not yet");
                Ok(())
            })
            .await?;
            mysql.stop(Stoppable::Clustering).await?;
            writer.goes_on().await?;
            mysql.start(Stoppable::Clustering).await?;
            mysql.wait_until_healthy().await?;
            check_kept(&mysql, &writer.stop()?).await?;
            // The settings of the cluster are still there: nobody took them for something to clean up.
            place.api::<ConfigMap>().get("mysql-settings").await.map(drop).context("the user's ConfigMap is gone")
        })
        .await
}
