//! Another version for a TiDB cluster on the real PD: while stores leave, and one that cannot run.

#![cfg(feature = "lab")]

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_e2e::tidb::Tidb;
use windlass_e2e::tidb::scaling::move_freely;
use windlass_e2e::{LONG, LONGEST, Stage, wait_for};

const BEFORE: &str = "v8.1.0";
const AFTER: &str = "v8.1.1";
/// No image has it.
const MISSING: &str = "v0.0.0";

fn five_stores(cluster: &mut Value) {
    move_freely(cluster);
    cluster["spec"]["tikv"]["replicas"] = 5.into();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_comes_while_stores_leave_and_a_bad_one_goes_back() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("versions", true, async |place| {
            let tidb = place.tidb(five_stores).await?;
            upgrade_and_leave(&tidb).await?;
            roll_back(&tidb).await
        })
        .await
}

/// The pods of a component: their versions and UIDs.
async fn versions(tidb: &Tidb, component: Component) -> Result<BTreeMap<String, (String, String)>> {
    let pods = tidb.pods_of(component).await?;
    let version = |pod: &Pod| {
        let spec = pod.spec.as_ref()?;
        let image = spec.containers.iter().find(|it| it.name == component.to_string())?.image.as_ref()?;
        Some(image.rsplit(':').next()?.to_owned())
    };
    Ok(pods.iter().map(|pod| (pod.name_any(), (version(pod).unwrap_or_default(), pod.uid().unwrap_or_default()))).collect())
}

async fn are_all(tidb: &Tidb, version: &str) -> Result<()> {
    for component in [Component::Pd, Component::Tikv, Component::Tidb] {
        let found = versions(tidb, component).await?;
        ensure!(found.values().all(|(it, _)| it == version), "{component} is not all {version}: {found:?}");
    }
    Ok(())
}

/// Another version and fewer stores are asked for at once. Leaders are moved away before a store restarts, and never are
/// two missing.
async fn upgrade_and_leave(tidb: &Tidb) -> Result<()> {
    let stage = tidb.place.stage();
    tidb.wait_until_spread(1).await?;
    tidb.set_speed(4, 1.0).await?;
    tidb.patch(&json!({ "spec": { "version": AFTER, "tikv": { "replicas": 3 } } })).await?;
    let (mut evicted, mut broken) = (BTreeSet::new(), Vec::new());
    wait_for("all that stay have the new version", LONGEST, async || {
        evicted.extend(tidb.evictions().await?);
        let stores = tidb.stores().await?;
        // Missing is who does not run, either: a new leader of PD has not heard from any.
        let running = tidb.ready_pods_of(Component::Tikv).await?;
        let (up, missing): (Vec<_>, Vec<_>) =
            stores.iter().filter(|it| it.stays()).partition(|it| it.state == "Up" || running.contains(&it.pod));
        if missing.len() > 1 || up.len() + missing.len() < 3 {
            broken.push(format!("{} stores serve, and {} are missing: {stores:?}", up.len(), missing.len()));
        }
        are_all(tidb, AFTER).await?;
        ensure!(versions(tidb, Component::Tikv).await?.len() == 3, "stores still leave");
        Ok(())
    })
    .await?;
    ensure!(broken.is_empty(), "{broken:?}");
    tidb.wait_until_ready().await?;
    ensure!(!evicted.is_empty(), "nobody's leaders were moved away");
    ensure!(tidb.evictions().await?.is_empty(), "leaders are still evicted: {:?}", tidb.evictions().await?);
    tidb.wait_until_up(3).await?;
    stage.say(&format!("{BEFORE} -> {AFTER} while two of five stores left; evictions seen: {evicted:?}"));
    Ok(())
}

/// PD is given a version that there is not: one member is down at most, and the others serve. Then the version before is asked for.
async fn roll_back(tidb: &Tidb) -> Result<()> {
    let stage = tidb.place.stage();
    let before = versions(tidb, Component::Pd).await?;
    tidb.patch(&json!({ "spec": { "pd": { "version": MISSING } } })).await?;
    wait_for("one member waits for its image", LONG, async || {
        let found = versions(tidb, Component::Pd).await?;
        ensure!(found.values().any(|(version, _)| version == MISSING), "{found:?}");
        Ok(())
    })
    .await?;
    let condition = tidb.wait_for_condition("Ready", "False").await?;
    let found = versions(tidb, Component::Pd).await?;
    ensure!(found.values().filter(|(version, _)| version == AFTER).count() == 2, "more than one was replaced: {found:?}");
    tidb.wait_until_up(3).await?;
    tidb.patch(&json!({ "spec": { "pd": { "version": null } } })).await?;
    tidb.wait_until_ready().await?;
    are_all(tidb, AFTER).await?;
    let kept = versions(tidb, Component::Pd).await?;
    let replaced = kept.iter().filter(|(pod, it)| before.get(*pod) != Some(it)).count();
    ensure!(replaced == 1, "{replaced} members were replaced: {kept:?}, before {before:?}");
    stage.say(&format!("a version of PD without an image stopped at one member ({}), and went back", condition.message));
    Ok(())
}
