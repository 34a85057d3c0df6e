//! A paused TiDB cluster, on the real PD: every component stays as it is, discovery and status go on, and afterwards all changes come as
//! one.

#![cfg(feature = "lab")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_dice::number;
use windlass_e2e::tidb::{NAME, Tidb};
use windlass_e2e::{LONG, Place, Stage, wait_for};

/// For how many minutes the operator is watched. The length is the point: nothing may come later, either.
const MINUTES: &str = "WINDLASS_PAUSED_MINUTES";

/// Every component that there is.
fn everything(cluster: &mut Value) {
    let security = cluster["spec"]["pd"]["securityContext"].clone();
    let small = json!({ "cpu": "10m", "memory": "16Mi", "storage": "1Gi" });
    let claims = json!([{ "resources": { "requests": { "storage": "1Gi" } } }]);
    let spec = &mut cluster["spec"];
    spec["tikv"]["requests"]["cpu"] = "10m".into();
    spec["tidb"]["replicas"] = 1.into();
    // It has a shell, and is there.
    spec["helper"] = json!({ "image": "windlass.dev/lab/tikv:v8.1.0" });
    let image = |name: &str| format!("windlass.dev/lab/{name}");
    spec["ticdc"] = json!({ "baseImage": image("ticdc"), "replicas": 1, "securityContext": security });
    spec["tiproxy"] = json!({ "baseImage": image("tiproxy"), "replicas": 1, "securityContext": security });
    spec["pump"] = json!({ "baseImage": image("tidb-binlog"), "replicas": 1, "requests": small, "securityContext": security });
    spec["tiflash"] =
        json!({ "baseImage": image("tiflash"), "replicas": 1, "storageClaims": claims, "securityContext": security });
}

/// The generations of all sets, and the revisions that each has.
async fn sets(place: &Place) -> Result<BTreeMap<String, (Option<i64>, usize)>> {
    let revisions = place.api::<ControllerRevision>().list(&ListParams::default()).await?;
    let sets = place.api::<StatefulSet>().list(&ListParams::default()).await?;
    let of = |set: &StatefulSet| {
        let own = |it: &&ControllerRevision| it.owner_references().iter().any(|owner| Some(&owner.uid) == set.uid().as_ref());
        revisions.iter().filter(own).count()
    };
    Ok(sets.iter().map(|set| (set.name_any(), (set.metadata.generation, of(set)))).collect())
}

/// What PD decides by, and nothing that changes by itself.
async fn state_of_pd(tidb: &Tidb) -> Result<Value> {
    let members = tidb.pd("members").await?["members"].clone();
    let stores: BTreeMap<u64, String> = tidb.stores().await?.into_iter().map(|it| (it.id, it.pod)).collect();
    let offline: BTreeSet<u64> = tidb.stores_that_are("Offline").await?.into_keys().collect();
    let replication = tidb.pd("config/replicate").await?;
    Ok(json!([members, stores, offline, tidb.evictions().await?, replication]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_cluster_stays_as_it_is_and_all_changes_come_as_one() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("tidb-pause", false, async |place| {
            let tidb = place.tidb(everything).await?;
            tidb.pause().await?;
            let before = sets(place).await?;
            ensure!(before.len() == Component::ALL.len(), "{before:?}");
            let pd = state_of_pd(&tidb).await?;
            let since = stage.audit().mark()?;
            provoke(&tidb).await?;
            check_discovery_and_status_go_on(&tidb).await?;
            // The note of the policy before goes first, so the volumes have not been told yet.
            let held = ["StatefulSet tidb-pd", "StatefulSet tidb-tikv", "Service tidb-pd-peer", "windlass.dev/reclaim-policy-"];
            tidb.wait_until_held(&held).await?;
            let minutes = number(MINUTES).unwrap_or(1);
            tokio::time::sleep(Duration::from_mins(minutes)).await;
            let told = tidb.only_told_since(since)?;
            stage.say(&format!("{minutes} min paused and provoked; all that the operator wrote: {told:?}"));
            ensure!(sets(place).await? == before, "sets were changed: {:?}, before {before:?}", sets(place).await?);
            ensure!(state_of_pd(&tidb).await? == pd, "PD is {}, and was {pd}", state_of_pd(&tidb).await?);
            stage.restart_operator().await?;
            tidb.wait_until_held(&["StatefulSet tidb-pd", "StatefulSet tidb-tikv"]).await?;
            tidb.only_told_since(since)?;
            tidb.check_policy("Delete").await?;
            tidb.check_volumes_untouched(since).await?;

            tidb.silence(2, false).await?;
            tidb.resume().await?;
            tidb.wait_until_ready().await?;
            check_one_revision_more(place, &before).await?;
            check_changes(&tidb).await?;
            tidb.set_policy("Delete").await
        })
        .await
}

/// All that somebody could do meanwhile: children deleted and edited, a store killed, and the spec changed in every way.
async fn provoke(tidb: &Tidb) -> Result<()> {
    let place = &tidb.place;
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    place.api::<Service>().delete("tidb-pd-peer", &DeleteParams::default()).await?;
    let edited = json!({ "metadata": { "labels": { "edited": "by-hand" } }, "spec": { "publishNotReadyAddresses": false } });
    place.api::<Service>().patch("tidb-tikv-peer", &PatchParams::default(), &Patch::Merge(&edited)).await?;
    for map in place.api::<ConfigMap>().list(&ListParams::default()).await? {
        if map.name_any().starts_with("tidb-tikv") {
            let edited = json!({ "data": { "startup-script": "#!/bin/sh\nexit 1\n" } });
            place.api::<ConfigMap>().patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(&edited)).await?;
        }
    }
    // Its set makes it again, and nobody else does anything about it.
    place.api::<Pod>().delete(&tidb.pod(Component::Tidb, 0), &at_once).await?;
    tidb.silence(2, true).await?;
    // Three changes of what pods run with, and more.
    tidb.patch(&json!({ "spec": { "version": "v8.1.1" } })).await?;
    tidb.patch(&json!({ "spec": { "labels": { "berth": "north" } } })).await?;
    tidb.patch(&json!({ "spec": { "annotations": { "berth": "north" }, "pvReclaimPolicy": "Retain" } })).await?;
    tidb.patch(&json!({ "spec": { "tikv": { "replicas": 4, "requests": { "storage": "2Gi" } }, "tidb": { "replicas": 2 } } }))
        .await?;
    tidb.patch(&json!({ "spec": { "suspendAction": { "suspendStatefulSet": true } } })).await?;
    tidb.patch(&json!({ "metadata": { "annotations": { "tikv.tidb.pingcap.com/delete-slots": "[1]" } } })).await?;
    // What is asked for now cannot be: what can be is held again.
    tokio::time::sleep(Duration::from_secs(10)).await;
    tidb.patch(&json!({ "metadata": { "annotations": { "tikv.tidb.pingcap.com/delete-slots": null } },
        "spec": { "suspendAction": null } }))
        .await
}

/// The seed's two exceptions.
async fn check_discovery_and_status_go_on(tidb: &Tidb) -> Result<()> {
    let name = format!("{NAME}-discovery");
    let uid = tidb.place.api::<Deployment>().get(&name).await?.uid();
    tidb.place.api::<Deployment>().delete(&name, &DeleteParams::default()).await?;
    wait_for("discovery is there again", LONG, async || {
        let made = tidb.place.api::<Deployment>().get(&name).await?;
        ensure!(made.uid() != uid, "it is still the one before");
        Ok(())
    })
    .await?;
    wait_for("the status tells of the store that is lost", LONG, async || {
        let stores = tidb.status().await?.tikv.context("nothing is told of TiKV")?.stores;
        let lost = stores.values().find(|it| it.pod_name == "tidb-tikv-2").context("it is not told")?;
        ensure!(lost.state != "Up", "it is {}", lost.state);
        Ok(())
    })
    .await
}

/// However many changes there were, each set has one revision more.
async fn check_one_revision_more(place: &Place, before: &BTreeMap<String, (Option<i64>, usize)>) -> Result<()> {
    let after = sets(place).await?;
    for (set, (_, revisions)) in before {
        let now = after.get(set).with_context(|| format!("{set} is gone"))?.1;
        ensure!(now == revisions + 1, "{set} has {now} revisions, and had {revisions}");
    }
    Ok(())
}

async fn check_changes(tidb: &Tidb) -> Result<()> {
    for pod in tidb.pods().await? {
        ensure!(pod.labels().get("berth").is_some_and(|it| it == "north"), "{} has the old template", pod.name_any());
    }
    tidb.check_policy("Retain").await?;
    ensure!(tidb.place.has::<Service>("tidb-pd-peer").await?, "the Service of PD's members is not back");
    // Four of TiKV and one of TiFlash.
    tidb.wait_until_up(5).await.map(drop)
}
