//! The logbook lost, put back from an older copy, and orphaned: nothing that cannot be undone happens before what it held was seen
//! again, or said by the user once; and what is awaited is told.

#![cfg(feature = "lab")]

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use windlass_api::Logbook;
use windlass_api::logbook::Override;
use windlass_core::labels::{CLUSTERING_PAUSED, OVERRIDE_PREFIX};
use windlass_e2e::audit::Mark;
use windlass_e2e::helm::lives;
use windlass_e2e::{Cluster, LONG, Place, Stage, dummy, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_logbook_is_proven_again_or_told_by_the_user_once() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("memory-lost", true, async |place| {
            let cluster = place.dummy("lost", 2).await?;
            let (before, since) = (pods(&cluster).await?, stage.audit().mark()?);
            delete_logbook(&cluster).await?;
            proven(&cluster).await?;
            cluster.wait_until_ready(2).await?;
            ensure!(pods(&cluster).await? == before, "a pod was restarted");
            ensure!(cluster.deeds(since).await?.is_empty(), "a hook ran");
            stage.say("lost while all members served: proven again, nothing else happened");

            // Another process with a higher epoch: what the members have seen of it must not stand in the way later.
            stage.restart_operator().await?;
            cluster.scale(3).await?;
            cluster.wait_until_ready(3).await?;

            let lost = lose_all(&cluster, 3, async || delete_logbook(&cluster).await).await?;
            ensure!(lost.contains("missing"), "it does not say what happened: {lost}");
            let uid = cluster.logbook().await?.uid().context("no UID")?;
            for way in ["counts=NUMBER@", "histories=HISTORY,...|none@", "intents=none@"] {
                let typed = format!("{OVERRIDE_PREFIX}{way}{uid}");
                ensure!(lost.contains(&typed), "the way out {typed} is not told: {lost}");
            }
            say_what_it_held(&cluster, 3, &uid).await?;
            cluster.wait_until_ready(3).await?;
            let used = cluster.logbook().await?.spec.overrides;
            let recorded = |entry: &str| used.iter().any(|it: &Override| it.entry == entry && it.uid == uid);
            ensure!(["counts", "histories", "intents"].into_iter().all(recorded), "not recorded: {used:?}");
            stage.say("lost while nobody ran: not seeded before the user said what it held, entry by entry");

            let again = lose_all(&cluster, 3, async || delete_logbook(&cluster).await).await?;
            let another = cluster.logbook().await?.uid().context("no UID")?;
            ensure!(another != uid && again.contains(&another), "not bound to the new logbook: {again}");
            stage.say("lost once more: what the user had said was not taken a second time");
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_logbook_is_known_for_what_it_is() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("memory-copy", true, async |place| {
            let cluster = place.dummy("copied", 2).await?;
            proven(&cluster).await?;
            let copy = cluster.logbook().await?;
            cluster.scale(3).await?;
            cluster.wait_until_ready(3).await?;
            noted(&cluster, copy.spec.edition).await?;

            let told = lose_all(&cluster, 3, async || replace(&cluster, &copy).await).await?;
            ensure!(told.contains("older than the cluster"), "it does not say what happened: {told}");
            run_by_hand(&cluster, 3).await?;
            stage.say("an older copy written over the logbook: nothing was seeded from it");

            let told = lose_all(&cluster, 3, async || put_back(&cluster, &copy).await).await?;
            ensure!(told.contains("backup"), "it does not say what happened: {told}");
            run_by_hand(&cluster, 3).await?;
            stage.say("an older copy put back in place of the logbook: nothing was seeded from it");
            cluster.scale(2).await?;
            cluster.wait_until_ready(2).await.map(drop)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_orphaned_is_taken_up_by_a_custom_resource_of_the_same_name() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("memory-orphan", true, async |place| {
            let cluster = place.dummy("orphan", 3).await?;
            let (before, first) = (pods(&cluster).await?, cluster.get().await?.uid());
            let since = stage.audit().mark()?;
            orphan(&cluster).await?;
            place.apply(&[dummy::manifest("orphan", 3)]).await?;
            ensure!(cluster.get().await?.uid() != first, "it is the same custom resource");
            cluster.wait_until_ready(3).await?;
            proven(&cluster).await?;
            ensure!(pods(&cluster).await? == before, "a pod was restarted");
            ensure!(cluster.deeds(since).await?.is_empty(), "a hook ran");
            stage.say("orphaned while all served, and taken up: no pod restarted, no hook run");

            let told = lose_all(&cluster, 3, async || {
                orphan(&cluster).await?;
                let mut manifest = dummy::manifest("orphan", 3);
                manifest["metadata"]["annotations"] = serde_json::json!({ CLUSTERING_PAUSED: "true" });
                place.apply(&[manifest]).await
            })
            .await?;
            ensure!(told.contains("speaks of a cluster with UID"), "it does not say what happened: {told}");
            run_by_hand(&cluster, 3).await?;
            ensure!(pods(&cluster).await? == before, "a pod was restarted");
            stage.say("orphaned while nobody ran: nothing was seeded before every member was seen to serve");
            cluster.scale(2).await?;
            cluster.wait_until_ready(2).await.map(drop)
        })
        .await
}

/// Stops all members and loses the logbook while clustering is paused; then nothing may be seeded. Returns what is told.
async fn lose_all(cluster: &Cluster, replicas: u16, lose: impl AsyncFn() -> Result<()>) -> Result<String> {
    let stage = cluster.place.stage();
    cluster.annotate(CLUSTERING_PAUSED, Some("true")).await?;
    cluster.wait_for_condition("ClusteringActive", "False", "Paused").await?;
    for member in 0..replicas {
        cluster.crash(member).await?;
    }
    let hooks = cluster.hooks(replicas).await?;
    lose().await?;
    cluster.wait_for_condition("Stalled", "True", "LogbookLost").await?;
    cluster.annotate(CLUSTERING_PAUSED, None).await?;
    cluster.wait_for_condition("ClusteringActive", "True", "Active").await?;
    all_were_asked(cluster, replicas, stage.audit().mark()?).await?;
    let stalled = cluster.wait_for_condition("Stalled", "True", "LogbookLost").await?;
    ensure!(cluster.hooks(replicas).await? == hooks, "a hook ran: {:?}", cluster.hooks(replicas).await?);
    let unproven = cluster.logbook().await?.spec.unproven.len();
    ensure!(unproven == 3, "{unproven} entries are unproven");
    Ok(stalled.message)
}

/// Waits until the operator has asked every member twice since a moment: a pass over all answers lies between.
async fn all_were_asked(cluster: &Cluster, replicas: u16, since: Mark) -> Result<()> {
    wait_for("every member was asked twice", LONG, async || {
        let asked = cluster.operator_requests(since)?;
        for member in 0..replicas {
            let pod = cluster.pod(member);
            let times = asked.iter().filter(|entry| entry.command().is_some() && entry.name() == pod).count();
            ensure!(times >= 2, "{pod} was asked {times} times");
        }
        Ok(())
    })
    .await
}

/// Types the annotations that the message names, the last one first: each alone is not enough.
async fn say_what_it_held(cluster: &Cluster, count: u16, uid: &str) -> Result<()> {
    let hooks = cluster.hooks(count).await?;
    for (entry, value, left) in [("intents", "none".to_owned(), 2), ("histories", "one".to_owned(), 1)] {
        cluster.annotate(&format!("{OVERRIDE_PREFIX}{entry}"), Some(&format!("{value}@{uid}"))).await?;
        wait_for(&format!("the override of {entry} is taken"), LONG, async || {
            let unproven = cluster.logbook().await?.spec.unproven;
            ensure!(unproven.len() == left, "unproven: {unproven:?}");
            Ok(())
        })
        .await?;
    }
    ensure!(cluster.hooks(count).await? == hooks, "a hook ran before everything was said");
    cluster.annotate(&format!("{OVERRIDE_PREFIX}counts"), Some(&format!("{count}@{uid}"))).await
}

/// Starts all members as no operator would, so that they are seen to serve; and waits until all is proven.
async fn run_by_hand(cluster: &Cluster, replicas: u16) -> Result<()> {
    for pod in cluster.pods(replicas) {
        cluster.place.shell(&pod, "touch /state/running").await?;
    }
    proven(cluster).await?;
    cluster.wait_until_ready(replicas).await.map(drop)
}

/// Waits until there is a logbook and nothing in it is doubted.
async fn proven(cluster: &Cluster) -> Result<()> {
    let uid = cluster.get().await?.uid().unwrap_or_default();
    wait_for("all entries of the logbook are proven", LONG, async || {
        let logbook = cluster.logbook().await?.spec;
        ensure!(logbook.unproven.is_empty() && logbook.cluster_uid == uid, "{logbook:?}");
        ensure!(!logbook.histories.is_empty() && logbook.counts.restore > 0, "{logbook:?}");
        Ok(())
    })
    .await
}

/// Waits until a newer edition than this one is noted outside the logbook.
async fn noted(cluster: &Cluster, edition: u64) -> Result<()> {
    wait_for("a newer edition is noted", LONG, async || {
        let set = cluster.stateful_set().await?;
        let noted: u64 =
            set.annotations().get(windlass_core::labels::LOGBOOK_EDITION).and_then(|it| it.parse().ok()).unwrap_or(0);
        ensure!(noted > edition, "{noted} is noted, the copy has {edition}");
        Ok(())
    })
    .await
}

async fn delete_logbook(cluster: &Cluster) -> Result<()> {
    cluster.place.api::<Logbook>().delete(&cluster.names.stateful_set(), &DeleteParams::default()).await?;
    Ok(())
}

/// As `kubectl replace` does: over whatever is there.
async fn replace(cluster: &Cluster, copy: &Logbook) -> Result<()> {
    wait_for("the copy is written over the logbook", LONG, async || {
        let mut written = copy.clone();
        written.metadata.resource_version = cluster.logbook().await?.resource_version();
        cluster.place.api::<Logbook>().replace(&copy.name_any(), &PostParams::default(), &written).await?;
        Ok(())
    })
    .await
}

/// Deleted and made again from a copy. The operator may be faster and make an empty one; then that one goes as well.
async fn put_back(cluster: &Cluster, copy: &Logbook) -> Result<()> {
    let mut made = copy.clone();
    made.metadata.resource_version = None;
    made.metadata.uid = None;
    wait_for("the copy is put back", LONG, async || {
        delete_logbook(cluster).await?;
        cluster.place.api::<Logbook>().create(&PostParams::default(), &made).await?;
        Ok(())
    })
    .await
}

/// Deletes the custom resource, and leaves all that it owns.
async fn orphan(cluster: &Cluster) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    cluster.api().delete(cluster.names.cluster(), &parameters).await?;
    wait_for("the custom resource is gone", LONG, async || {
        ensure!(cluster.api().get_opt(cluster.names.cluster()).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

async fn pods(cluster: &Cluster) -> Result<Vec<(String, String, i32)>> {
    let place: &Place = &cluster.place;
    Ok(lives(&place.api::<Pod>().list(&ListParams::default()).await?.items))
}
