//! Paused means: nothing is done. What would be done is told, and is done after the pause.

#![cfg(feature = "lab")]

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::DeleteParams;
use serde_json::json;
use windlass_api::Logbook;
use windlass_core::labels;
use windlass_e2e::audit::Mark;
use windlass_e2e::{Cluster, LONG, Stage, condition, wait_for};

/// How long the operator is watched. The length is the point: nothing may come later, either.
const WATCHED: Duration = Duration::from_mins(1);
const WHY: &str = "the rope is being inspected";

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_is_not_touched_and_everything_happens_after_it() -> Result<()> {
    let stage = Stage::get().await?;
    // It is the same minute for both.
    let (light, galera) = tokio::join!(members_and_objects_stay_as_they_are(&stage), a_killed_server_stays_down(&stage));
    light.and(galera)
}

async fn members_and_objects_stay_as_they_are(stage: &Stage) -> Result<()> {
    stage
        .with_namespace("pause", true, async |place| {
            let cluster = place.dummy("held", 3).await?;
            cluster.pause(WHY).await?;
            let since = stage.audit().mark()?;
            let hooks = cluster.hooks(3).await?;
            cluster.crash(2).await?;
            change_everything(&cluster).await?;
            let wanted = [
                "start as primary rss-held-2",
                "apply Service held-client",
                "apply StatefulSet rss-held",
                "scale StatefulSet rss-held",
            ];
            cluster.wait_until_held(&wanted).await?;
            watch_nothing_happen(&cluster, since).await?;
            ensure!(cluster.hooks(3).await? == hooks, "a hook ran: {:?}", cluster.hooks(3).await?);
            ensure!(!cluster.runs(2).await?, "member 2 was started");

            survive_a_restart(&cluster, &wanted, since).await?;
            resume(&cluster, 4).await?;
            ensure!(cluster.runs(2).await?, "member 2 does not run");
            Ok(())
        })
        .await
}

async fn a_killed_server_stays_down(stage: &Stage) -> Result<()> {
    stage
        .with_namespace("pause-galera", true, async |place| {
            let galera = place.galera().await?;
            let cluster = &galera.cluster;
            cluster.pause(WHY).await?;
            let since = stage.audit().mark()?;
            galera.kill_server(2).await?;
            change_everything(cluster).await?;
            let wanted = [
                "start as primary rss-galera-2",
                "apply Service galera-client",
                "apply StatefulSet rss-galera",
                "scale StatefulSet rss-galera",
            ];
            cluster.wait_until_held(&wanted).await?;
            watch_nothing_happen(cluster, since).await?;
            let left = galera.server_process(2).await;
            ensure!(left.is_err(), "a server runs in member 2: {left:?}");
            resume(cluster, 4).await
        })
        .await
}

/// Asks for another size and another template, and takes the client Service away.
async fn change_everything(cluster: &Cluster) -> Result<()> {
    let mut containers = serde_json::to_value(cluster.get().await?.spec.pod.containers)?;
    let env = json!({ "name": "EDITED", "value": "while paused" });
    match containers[0]["env"].as_array_mut() {
        Some(list) => list.push(env),
        None => containers[0]["env"] = json!([env]),
    }
    cluster.patch(&json!({ "spec": { "replicas": 4, "pod": { "containers": containers } } })).await?;
    let service = cluster.names.client_service();
    cluster.place.api::<Service>().delete(&service, &DeleteParams::default()).await?;
    Ok(())
}

async fn watch_nothing_happen(cluster: &Cluster, since: Mark) -> Result<()> {
    let set = cluster.stateful_set().await?;
    tokio::time::sleep(WATCHED).await;
    let told = cluster.only_told_since(since).await?;
    cluster.place.stage().say(&format!("paused for {} s; all that the operator wrote: {told:?}", WATCHED.as_secs()));

    ensure!(!cluster.place.has::<Service>(&cluster.names.client_service()).await?, "the client Service is back");
    let now = cluster.stateful_set().await?;
    ensure!(now.metadata.generation == set.metadata.generation, "the StatefulSet was changed");
    let resource = cluster.get().await?;
    let status = resource.status.context("no status")?;
    ensure!(status.observed_generation < resource.metadata.generation, "the status takes a paused change for done");
    for type_ in ["ReconciliationActive", "ClusteringActive"] {
        ensure!(condition(&status, type_)?.status == "False", "{type_} is not False");
    }
    ensure!(condition(&status, "Ready")?.status == "False", "Ready although steps are held");
    Ok(())
}

/// The pause, its time and the held steps are the same for another operator.
async fn survive_a_restart(cluster: &Cluster, wanted: &[&str], since: Mark) -> Result<()> {
    let stage = cluster.place.stage();
    let before = cluster.logbook().await?.spec;
    let restarted = stage.audit().mark()?;
    stage.restart_operator().await?;
    wait_for("the new operator has asked every member", LONG, async || {
        for member in 0..3 {
            let asked = cluster.operator_requests(restarted)?;
            ensure!(asked.iter().any(|entry| entry.command().is_some() && entry.name() == cluster.pod(member)), "not {member}");
        }
        Ok(())
    })
    .await?;
    cluster.wait_until_held(wanted).await?;
    let after = cluster.logbook().await?.spec;
    ensure!(after.pause == before.pause, "the pause is another one: {:?}, before {:?}", after.pause, before.pause);
    ensure!(after.acted_generation == before.acted_generation, "the acted generation moved");
    cluster.only_told_since(since).await?;
    let status = cluster.status().await?;
    ensure!(status.control_paused, "controlPaused was lost");
    stage.say("the pause survived a restart of the operator");
    Ok(())
}

async fn resume(cluster: &Cluster, replicas: u16) -> Result<()> {
    cluster.resume().await?;
    cluster.wait_until_ready(replicas).await?;
    let status = cluster.status().await?;
    for type_ in ["ReconciliationActive", "ClusteringActive"] {
        let found = condition(&status, type_)?;
        ensure!(found.status == "True" && found.reason == "Active", "{type_} {} ({})", found.status, found.reason);
    }
    ensure!(!status.control_paused, "controlPaused is still true");
    ensure!(cluster.place.has::<Service>(&cluster.names.client_service()).await?, "the client Service is not back");
    for member in 0..replicas {
        let pod = cluster.get_pod(member).await?;
        let env = pod.spec.context("no spec")?.containers.remove(0).env.unwrap_or_default();
        ensure!(env.iter().any(|variable| variable.name == "EDITED"), "{} has the old template", cluster.pod(member));
    }
    let logbook = cluster.logbook().await?.spec;
    ensure!(logbook.pause == windlass_api::logbook::Pauses::default(), "the logbook still has {:?}", logbook.pause);
    ensure!(logbook.plan.held.is_empty(), "still held: {:?}", logbook.plan.held);
    cluster.place.stage().say("resumed: everything that was held has happened");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_acknowledged_when_the_running_hook_has_ended() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("pausing", true, async |place| {
            let cluster = place.dummy("slow", 3).await?;
            place.shell(&cluster.pod(1), "touch /state/hold && rm /state/running").await?;
            wait_for("the start of member 1 is under way", LONG, async || {
                let hooks = place.shell(&cluster.pod(1), "cat /state/hooks").await?;
                ensure!(hooks.lines().filter(|line| *line == "primary").count() == 2, "{hooks:?}");
                Ok(())
            })
            .await?;
            cluster.patch(&json!({ "spec": { "paused": true } })).await?;
            let pausing = cluster.wait_for_condition("ClusteringActive", "True", "Pausing").await?;
            ensure!(pausing.message.contains("rss-slow-1"), "it does not say what is awaited: {}", pausing.message);
            cluster.wait_for_condition("ReconciliationActive", "False", "Paused").await?;
            ensure!(!cluster.status().await?.control_paused, "controlPaused before the hook ended");

            place.shell(&cluster.pod(1), "rm /state/hold").await?;
            cluster.wait_for_condition("ClusteringActive", "False", "Paused").await?;
            ensure!(cluster.status().await?.control_paused, "controlPaused is missing");
            cluster.resume().await?;
            cluster.wait_until_ready(3).await.map(drop)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lane_can_be_paused_while_the_other_works() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("lanes", true, async |place| {
            let cluster = place.dummy("lanes", 3).await?;
            let service = cluster.names.client_service();
            let services = place.api::<Service>();

            cluster.annotate(labels::RESOURCES_PAUSED, Some("true")).await?;
            cluster.wait_for_condition("ReconciliationActive", "False", "Paused").await?;
            let since = stage.audit().mark()?;
            services.delete(&service, &DeleteParams::default()).await?;
            cluster.crash(1).await?;
            cluster.wait_until_held(&["apply Service lanes-client"]).await?;
            cluster.wait_until_runs(1).await?;
            wait_for("member 1 is led to again", LONG, async || {
                let status = cluster.status().await?;
                ensure!(
                    status.members.primary == cluster.pods(3) && status.members.ready == cluster.pods(3),
                    "{:?}",
                    status.members
                );
                ensure!(condition(&status, "ClusteringActive")?.status == "True", "clustering is paused, too");
                Ok(())
            })
            .await?;
            ensure!(!place.has::<Service>(&service).await?, "the Service came back");
            let written = cluster.operator_requests(since)?;
            let wrong = written.iter().find(|entry| entry.is_write() && entry.resource() == "services");
            ensure!(wrong.is_none(), "written: {:?}", wrong.map(windlass_e2e::Entry::describe));
            stage.say("resources paused: the member was started, the Service stayed away");

            cluster.annotate(labels::RESOURCES_PAUSED, None).await?;
            cluster.wait_until_ready(3).await?;
            ensure!(place.has::<Service>(&service).await?, "the Service is not back");

            cluster.annotate(labels::CLUSTERING_PAUSED, Some("true")).await?;
            cluster.wait_for_condition("ClusteringActive", "False", "Paused").await?;
            let since = stage.audit().mark()?;
            cluster.crash(1).await?;
            services.delete(&service, &DeleteParams::default()).await?;
            cluster.wait_until_held(&["start as primary rss-lanes-1"]).await?;
            wait_for("the Service is back", LONG, async || {
                ensure!(place.has::<Service>(&service).await?, "it is not there");
                Ok(())
            })
            .await?;
            ensure!(condition(&cluster.status().await?, "ReconciliationActive")?.status == "True", "resources are paused, too");
            ensure!(!cluster.runs(1).await?, "member 1 was started");
            ensure!(cluster.deeds(since).await?.is_empty(), "a hook ran");
            stage.say("clustering paused: the Service came back, the member stayed down");

            cluster.annotate(labels::CLUSTERING_PAUSED, None).await?;
            cluster.wait_until_ready(3).await.map(drop)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_can_be_deleted() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("pause-delete", true, async |place| {
            let cluster = place.dummy("going", 3).await?;
            cluster.pause(WHY).await?;
            cluster.delete().await?;
            let names = &cluster.names;
            wait_for("the cluster and all its objects are gone", LONG, async || {
                ensure!(cluster.api().get_opt(names.cluster()).await?.is_none(), "the custom resource is there");
                ensure!(!place.has::<StatefulSet>(&names.stateful_set()).await?, "the StatefulSet is there");
                ensure!(!place.has::<Service>(&names.client_service()).await?, "the client Service is there");
                ensure!(!place.has::<Service>(&names.headless_service()).await?, "the headless Service is there");
                ensure!(
                    !place.has::<PodDisruptionBudget>(&names.disruption_budget()).await?,
                    "the PodDisruptionBudget is there"
                );
                ensure!(!place.has::<Logbook>(&names.stateful_set()).await?, "the logbook is there");
                for pod in cluster.pods(3) {
                    ensure!(place.api::<Pod>().get_opt(&pod).await?.is_none(), "{pod} is there");
                }
                Ok(())
            })
            .await
        })
        .await
}
