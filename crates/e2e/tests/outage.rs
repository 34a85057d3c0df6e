//! The API server goes away for a while and comes back: the operator stands by when its Lease has run out, leads again, catches up, and
//! has grown in nothing. One custom resource that makes no sense harms nobody.

#![cfg(feature = "lab")]

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use windlass_e2e::process::{OWN, Operator, Order, Usage};
use windlass_e2e::{Cluster, LONG, Place, Stage, dummy, wait_for};

/// How long the API server is away, in seconds. The length is the point: what leaks, leaks with every try.
const AWAY_VARIABLE: &str = "WINDLASS_AWAY";
const AWAY: u64 = 20;
const USER: &str = "outage-operator";
const CLUSTERS: usize = 4;
/// Connections come and go; a leak shows in more than this.
const MORE_FILES: usize = 16;
/// In KiB, besides a tenth.
const MORE_MEMORY: u64 = 8 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_the_absence_of_the_api_server_and_has_grown_in_nothing() -> Result<()> {
    let stage = Stage::get().await?;
    let away = Duration::from_secs(std::env::var(AWAY_VARIABLE).map_or(Ok(AWAY), |text| text.parse())?);
    stage
        .beside_the_release(async || {
            stage.grant_release(USER).await?;
            let played = stage.with_namespace("outage", true, async |place| play(place, away).await).await;
            played.and(stage.revoke_release(USER).await)
        })
        .await
}

async fn play(place: &Place, away: Duration) -> Result<()> {
    let stage = place.stage();
    let order = Order { user: USER, release: "windlass-outage", namespace: place.namespace(), own: "outage", server: None };
    let mut operator = stage.start_operator(&order).await?;
    let mut senseless = manifest("senseless", 1);
    senseless["spec"]["secrets"] = json!(["twice", "twice"]);
    let mut manifests = vec![senseless];
    manifests.extend((0..CLUSTERS).map(|number| manifest(&name(number), 1)));
    place.apply(&manifests).await?;
    let clusters = (0..CLUSTERS).map(|number| place.cluster(&name(number))).collect::<Result<Vec<Cluster>>>()?;
    let senseless = place.cluster("senseless")?;
    all_ready(&clusters, 1).await?;
    senseless.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
    // Once through the work of later, so that what is only needed for it is there before it is measured.
    scale(&clusters, 2).await?;
    scale(&clusters, 1).await?;
    let before = operator.usage()?;

    let mut most = before;
    stage
        .lab()
        .without_api_server(async || {
            stage.say("the API server is away");
            let began = Instant::now();
            let mut stood_by = false;
            while began.elapsed() < away {
                tokio::time::sleep(Duration::from_millis(500)).await;
                operator.check()?;
                most = larger(most, operator.usage()?);
                stood_by |= !operator.leads().await?;
            }
            ensure!(stood_by, "it went on leading for {away:?} without renewing its Lease");
            Ok(())
        })
        .await?;
    let back = Instant::now();
    stage.say("the API server is back");
    for cluster in &clusters {
        changed(cluster, 2).await?;
    }
    let led = leads_again(&mut operator).await.map(|()| back.elapsed())?;
    for cluster in &clusters {
        acted_upon(cluster, 2).await?;
    }
    let caught_up = back.elapsed();
    all_ready(&clusters, 2).await?;
    let ready = back.elapsed();
    senseless.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
    scale(&clusters, 1).await?;
    let after = operator.usage()?;
    println!(
        "API server away for {} s: open files {} before, {} at most, {} after; memory {} KiB before, {} at most, {} after; led again \
         after {:.1} s, had acted on changes of {CLUSTERS} clusters after {:.1} s, which were Ready after {:.1} s",
        away.as_secs(),
        before.files,
        most.files,
        after.files,
        before.resident,
        most.resident,
        after.resident,
        led.as_secs_f64(),
        caught_up.as_secs_f64(),
        ready.as_secs_f64()
    );
    for usage in [most, after] {
        ensure!(usage.files <= before.files + MORE_FILES, "{} open files, {} before", usage.files, before.files);
        let limit = before.resident + before.resident / 10 + MORE_MEMORY;
        ensure!(usage.resident <= limit, "{} KiB of memory, {} before", usage.resident, before.resident);
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("one-{number}")
}

fn manifest(name: &str, replicas: u16) -> Value {
    let mut manifest = dummy::manifest(name, replicas);
    manifest["metadata"]["labels"] = json!({ OWN: "outage" });
    manifest
}

async fn scale(clusters: &[Cluster], replicas: u16) -> Result<()> {
    for cluster in clusters {
        cluster.scale(replicas).await?;
    }
    all_ready(clusters, replicas).await
}

/// Right after its start the server does not answer everything yet.
async fn changed(cluster: &Cluster, replicas: u16) -> Result<()> {
    wait_for("the change is taken", LONG, async || cluster.scale(replicas).await).await
}

/// Waits until the operator has done its part of a change; the rest is the kubelet's and the StatefulSet controller's.
async fn acted_upon(cluster: &Cluster, replicas: u16) -> Result<()> {
    wait_for("the StatefulSet has the new size", LONG, async || {
        let size = cluster.stateful_set().await?.spec.and_then(|spec| spec.replicas);
        ensure!(size == Some(i32::from(replicas)), "it is {size:?}");
        Ok(())
    })
    .await
}

async fn all_ready(clusters: &[Cluster], replicas: u16) -> Result<()> {
    for cluster in clusters {
        cluster.wait_until_ready(replicas).await?;
    }
    Ok(())
}

async fn leads_again(operator: &mut Operator) -> Result<()> {
    wait_for("the operator leads again", LONG, async || {
        operator.check()?;
        ensure!(operator.leads().await?, "it stands by");
        Ok(())
    })
    .await
}

fn larger(one: Usage, other: Usage) -> Usage {
    Usage { files: one.files.max(other.files), resident: one.resident.max(other.resident) }
}
