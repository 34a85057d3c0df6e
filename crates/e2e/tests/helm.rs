//! Releases by helm on the lab: a selector that cannot be read, two releases side by side, clusters that move between them by their
//! label, and what stays when a release goes.

#![cfg(feature = "lab")]

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use windlass_api::Logbook;
use windlass_e2e::audit::Mark;
use windlass_e2e::helm::{DEFINITIONS, Release, chart, deeds_of_releases, lives};
use windlass_e2e::{Cluster, LONG, Place, Stage, dummy, wait_for};

/// The label by which clusters are given to a release.
const LABEL: &str = "release";
/// What the main release leaves to the other two.
const ALL_OTHERS: &str = "release notin (stable,canary)";

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_cannot_be_read_is_refused_or_stops_the_start_with_a_mark_under_the_mistake() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("helm-mistake", true, async |place| {
            let release = place.release("windlass-mistake");
            let told = release.install(&json!({ "spec": { "labelSelector": "release=canary;tier=a" } })).await?;
            ensure!(!told.success && told.errors.contains("/spec/labelSelector"), "not refused: {told:?}");
            ensure!(release.helm(&["list", "--short"], &json!({})).await?.ok()?.is_empty(), "the release was made");

            let told = release.install(&json!({ "spec": { "labelSelector": "tier in (a" } })).await?;
            let seen = match told.ok() {
                Ok(_) => sees_the_mistake(&stage, &release).await,
                Err(error) => Err(error),
            };
            seen.and(release.uninstall().await)
        })
        .await
}

/// The log, and what `kubectl describe` shows, both have the selector with a mark under the mistake.
async fn sees_the_mistake(stage: &Stage, release: &Release) -> Result<()> {
    let drawing = "  tier in (a\n            ^";
    wait_for("the log shows the mistake", LONG, async || {
        let pod = release.pods(stage).await?.pop().context("no pod")?;
        let pods: Api<Pod> = Api::namespaced(stage.client(), &release.namespace);
        let log = pods.logs(&pod.name_any(), &LogParams::default()).await?;
        ensure!(log.contains(drawing), "the log is {log:?}");
        let container = pod.status.and_then(|status| status.container_statuses?.pop()).context("no container yet")?;
        let ended = container.state.and_then(|it| it.terminated).or(container.last_state.and_then(|it| it.terminated));
        let ended = ended.context("the container has not ended")?;
        ensure!(ended.exit_code == 2, "exit code {}", ended.exit_code);
        ensure!(ended.message.is_some_and(|text| text.contains(drawing)), "the last words of the container lack it");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_releases_live_side_by_side_and_clusters_move_between_them_by_their_label() -> Result<()> {
    let stage = Stage::get().await?;
    stage.main_release().select(ALL_OTHERS).await?;
    let played = stage
        .with_namespace("helm-one", true, async |one| {
            stage
                .with_namespace("helm-two", true, async |two| {
                    stage.with_namespace("helm-releases", true, async |home| side_by_side(&stage, home, one, two).await).await
                })
                .await
        })
        .await;
    let restored = stage.main_release().select("").await;
    played.and(restored)
}

/// Both releases in one namespace; the main one is in another.
async fn side_by_side(stage: &Stage, home: &Place, one: &Place, two: &Place) -> Result<()> {
    let (stable, canary) = (home.release("windlass-stable"), home.release("windlass-canary"));
    let played = play(stage, &stable, &canary, one, two).await;
    // Roles that are not in a namespace would outlive it.
    for release in [&stable, &canary] {
        release.helm(&["uninstall", &release.name, "--ignore-not-found", "--wait"], &json!({})).await?.ok()?;
    }
    played
}

async fn play(stage: &Stage, stable: &Release, canary: &Release, one: &Place, two: &Place) -> Result<()> {
    stable.select("release=stable").await?;
    canary.select("release=canary").await?;
    stage.say("both releases are ready");

    let began = stage.audit().mark()?;
    let (one, two) = (labelled(one, "one", "stable").await?, labelled(two, "two", "canary").await?);
    ensure!(actors(&one, began)? == BTreeSet::from([stable.user()]), "one: {:?}", actors(&one, began)?);
    ensure!(actors(&two, began)? == BTreeSet::from([canary.user()]), "two: {:?}", actors(&two, began)?);
    owned(&one, stable, Some("stable")).await?;
    owned(&two, canary, Some("canary")).await?;
    stage.say("each looks after its own cluster, and nobody else does");

    let before = pods(&one).await?;
    hand_over(&one, stable, canary, "canary", 3).await?;
    ensure!(pods(&one).await?.starts_with(&before), "a pod was restarted");
    stage.say("the label moved a cluster across; no pod was restarted");

    let (of_one, of_two, began) = (pods(&one).await?, pods(&two).await?, stage.audit().mark()?);
    canary.uninstall().await?;
    in_place(stage, &[&one, &two]).await?;
    hand_over(&one, canary, stable, "stable", 2).await?;
    ensure!(of_one.starts_with(&pods(&one).await?), "a pod was restarted");
    ensure!(pods(&two).await? == of_two, "a pod of a cluster that nobody looks after was restarted");
    let deeds = acts_of(&two, began, |user| user != canary.user())?;
    ensure!(deeds.is_empty(), "somebody acted on a cluster that is not theirs: {deeds:?}");
    stage.say("without the canary, the other release works on, and takes back what it is given");

    stable.uninstall().await?;
    in_place(stage, &[&one, &two]).await?;
    let main = stage.main_release();
    for (cluster, former, replicas) in [(&one, stable, 3), (&two, canary, 3)] {
        let before = pods(cluster).await?;
        let moved = stage.audit().mark()?;
        cluster.patch(&json!({ "metadata": { "labels": { LABEL: null } } })).await?;
        owned(cluster, &main, None).await?;
        cluster.scale(replicas).await?;
        cluster.wait_until_ready(replicas).await?;
        never_two(cluster, moved, former, &main)?;
        ensure!(pods(cluster).await?.starts_with(&before), "a pod was restarted");
    }
    stage.say("without both, everything is in place, and the main release took it over");
    Ok(())
}

/// Makes a light cluster of two members with a label.
async fn labelled(place: &Place, name: &str, label: &str) -> Result<Cluster> {
    let mut manifest = dummy::manifest(name, 2);
    manifest["metadata"]["labels"] = json!({ LABEL: label });
    place.apply(&[manifest]).await?;
    let cluster = place.cluster(name)?;
    cluster.wait_until_ready(2).await?;
    Ok(cluster)
}

/// Moves a cluster by its label, and lets the new owner change something.
async fn hand_over(cluster: &Cluster, from: &Release, to: &Release, label: &str, replicas: u16) -> Result<()> {
    let moved = cluster.place.stage().audit().mark()?;
    cluster.patch(&json!({ "metadata": { "labels": { LABEL: label } } })).await?;
    owned(cluster, to, Some(label)).await?;
    cluster.scale(replicas).await?;
    cluster.wait_until_ready(replicas).await?;
    never_two(cluster, moved, from, to)
}

/// Waits until the release has claimed the cluster, and the cluster's label is on its `StatefulSet`, but not on its pods.
async fn owned(cluster: &Cluster, release: &Release, label: Option<&str>) -> Result<()> {
    wait_for(&format!("{} belongs to {}", cluster.names.cluster(), release.claim()), LONG, async || {
        let claim = cluster.logbook().await?.spec.claim.context("nobody has claimed it")?;
        ensure!(claim.release == release.claim() && !claim.released, "it is claimed by {claim:?}");
        let set = cluster.stateful_set().await?;
        let found = set.labels().get(LABEL).map(String::as_str);
        ensure!(found == label, "the StatefulSet has the label {found:?}, not {label:?}");
        Ok(())
    })
    .await?;
    let pods = cluster.place.api::<Pod>().list(&ListParams::default()).await?;
    ensure!(pods.iter().all(|pod| !pod.labels().contains_key(LABEL)), "the label is on a pod");
    Ok(())
}

/// Everything of a former owner came before everything of the new one, and nobody else acted.
fn never_two(cluster: &Cluster, since: Mark, from: &Release, to: &Release) -> Result<()> {
    let requests = cluster.place.stage().audit().requests_in(cluster.place.namespace(), since)?;
    let mut taken = false;
    for entry in deeds_of_releases(&requests) {
        match entry.user() {
            user if user == to.user() => taken = true,
            user if user != from.user() => bail!("{user} acted: {}", entry.describe()),
            // An Event tells and changes nothing.
            user if taken && entry.resource() != "events" => {
                bail!("{user} acted after {} had begun: {}", to.user(), entry.describe())
            }
            _ => {}
        }
    }
    ensure!(taken, "{} never acted", to.user());
    Ok(())
}

/// Who wrote to this cluster's namespace, or ran a hook there.
fn actors(cluster: &Cluster, since: Mark) -> Result<BTreeSet<String>> {
    let requests = cluster.place.stage().audit().requests_in(cluster.place.namespace(), since)?;
    Ok(deeds_of_releases(&requests).into_iter().map(|entry| entry.user().to_owned()).collect())
}

/// What these users wrote to this cluster's namespace, or ran there.
fn acts_of(cluster: &Cluster, since: Mark, is_meant: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let requests = cluster.place.stage().audit().requests_in(cluster.place.namespace(), since)?;
    let deeds = deeds_of_releases(&requests).into_iter().filter(|entry| is_meant(entry.user()));
    Ok(deeds.map(|entry| format!("{} {}", entry.user(), entry.describe())).collect())
}

/// The lives of a cluster's pods, by name.
async fn pods(cluster: &Cluster) -> Result<Vec<(String, String, i32)>> {
    Ok(lives(&cluster.place.api::<Pod>().list(&ListParams::default()).await?.items))
}

/// The definitions, the clusters, their logbooks and their members are there, and nothing of them is on its way out.
async fn in_place(stage: &Stage, clusters: &[&Cluster]) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.client());
    for meant in windlass_api::custom_resource_definitions() {
        let found = definitions.get(&meant.name_any()).await?;
        ensure!(found.metadata.deletion_timestamp.is_none(), "{} is on its way out", found.name_any());
    }
    for cluster in clusters {
        let (place, name) = (&cluster.place, cluster.names.cluster());
        ensure!(cluster.get().await?.metadata.deletion_timestamp.is_none(), "{name} is on its way out");
        ensure!(place.has::<Logbook>(&cluster.names.stateful_set()).await?, "the logbook of {name} is gone");
        let set = cluster.stateful_set().await?;
        ensure!(set.metadata.deletion_timestamp.is_none(), "the StatefulSet of {name} is on its way out");
        for pod in place.api::<Pod>().list(&ListParams::default()).await? {
            ensure!(pod.metadata.deletion_timestamp.is_none(), "{} is on its way out", pod.name_any());
            let member = pod.name_any().rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok()).context("no ordinal")?;
            ensure!(cluster.runs(member).await?, "{} does not run", pod.name_any());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_clusters_stay_when_the_release_of_the_definitions_goes() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("helm-kept", true, async |place| {
            let cluster = place.dummy("kept", 2).await?;
            let (uid, before) = (cluster.get().await?.uid(), pods(&cluster).await?);
            let release = stage.release(DEFINITIONS, stage.operator_namespace());
            release.uninstall().await?;
            let kept = in_place(&stage, &[&cluster]).await;
            // Without a flag: what was kept is known as this release's.
            let chart = chart(DEFINITIONS);
            release.helm(&["install", DEFINITIONS, &chart.to_string_lossy(), "--wait"], &json!({})).await?.ok()?;
            kept?;
            in_place(&stage, &[&cluster]).await?;
            ensure!(cluster.get().await?.uid() == uid && pods(&cluster).await? == before, "the cluster is another one");
            cluster.scale(3).await?;
            cluster.wait_until_ready(3).await.map(drop)
        })
        .await
}
