//! The API server goes away for a while and comes back: the operator stands by when its Lease has run out, leads again, catches up, and
//! has grown in nothing. One custom resource that makes no sense harms nobody, however many there are.

#![cfg(feature = "lab")]

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_e2e::cluster::{all_ready, scale_all};
use windlass_e2e::dummy::{manifest_for, unplaced};
use windlass_e2e::process::{Operator, Order};
use windlass_e2e::{Cluster, LONG, Place, Stage, wait_for};

/// How long the API server is away, in seconds. The length is the point: what leaks, leaks with every try.
const AWAY_VARIABLE: &str = "WINDLASS_AWAY";
const AWAY: u64 = 20;
const USER: &str = "outage-operator";
const OWNED: &str = "outage";
const CLUSTERS: usize = 4;
/// How many clusters there are in all, besides the one that makes no sense. The pods of all but the first few find no node.
const ALL_VARIABLE: &str = "WINDLASS_OUTAGE_CLUSTERS";
const ALL: usize = 10;
/// A label that clusters hand on to their StatefulSets.
const LABEL: &str = "e2e.windlass.dev/after";

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_the_absence_of_the_api_server_and_has_grown_in_nothing() -> Result<()> {
    let stage = Stage::get().await?;
    let away = Duration::from_secs(std::env::var(AWAY_VARIABLE).map_or(Ok(AWAY), |text| text.parse())?);
    let all = std::env::var(ALL_VARIABLE).map_or(Ok(ALL), |text| text.parse())?;
    stage
        .beside_the_release(async || {
            stage.grant_release(USER).await?;
            let played = stage.with_namespace("outage", true, async |place| play(place, away, all).await).await;
            played.and(stage.revoke_release(USER).await)
        })
        .await
}

async fn play(place: &Place, away: Duration, all: usize) -> Result<()> {
    let stage = place.stage();
    let namespace = place.namespace();
    let order = Order { user: USER, release: "windlass-outage", namespace, own: OWNED, ..Order::default() };
    let mut operator = stage.start_operator(&order).await?;
    let mut senseless = manifest_for(OWNED, "senseless", 1);
    senseless["spec"]["secrets"] = json!(["twice", "twice"]);
    let mut manifests = vec![senseless];
    manifests.extend((0..CLUSTERS).map(|number| manifest_for(OWNED, &name(number), 1)));
    manifests.extend((CLUSTERS..all).map(|number| unplaced(manifest_for(OWNED, &name(number), 1))));
    place.apply(&manifests).await?;
    let mut clusters = (0..all.max(CLUSTERS)).map(|number| place.cluster(&name(number))).collect::<Result<Vec<Cluster>>>()?;
    let crowd = clusters.split_off(CLUSTERS);
    let senseless = place.cluster("senseless")?;
    all_ready(&clusters, 1).await?;
    senseless.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
    handed_on(&crowd, "begin").await?;
    // Once through the work of later, so that what is only needed for it is there before it is measured.
    scale_all(&clusters, 2).await?;
    scale_all(&clusters, 1).await?;
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
                most = most.larger(operator.usage()?);
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
        cluster.acted_upon(2).await?;
    }
    let caught_up = back.elapsed();
    handed_on(&crowd, "end").await?;
    let all_caught_up = back.elapsed();
    all_ready(&clusters, 2).await?;
    let ready = back.elapsed();
    senseless.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
    scale_all(&clusters, 1).await?;
    let after = operator.usage()?;
    println!(
        "API server away for {} s: open files {} before, {} at most, {} after; memory {} KiB before, {} at most, {} after; led again \
         after {:.1} s, had acted on changes of {CLUSTERS} clusters after {:.1} s, of all {all} after {:.1} s, and {CLUSTERS} were Ready after \
         {:.1} s; 1 senseless custom resource among them harmed nobody",
        away.as_secs(),
        before.files,
        most.files,
        after.files,
        before.resident,
        most.resident,
        after.resident,
        led.as_secs_f64(),
        caught_up.as_secs_f64(),
        all_caught_up.as_secs_f64(),
        ready.as_secs_f64()
    );
    most.has_not_grown(before)?;
    after.has_not_grown(before)
}

fn name(number: usize) -> String {
    format!("one-{number}")
}

/// Changes a label of all these clusters, and waits until their StatefulSets have it. Clusters without members do that as well.
async fn handed_on(clusters: &[Cluster], value: &str) -> Result<()> {
    for cluster in clusters {
        cluster.patch(&json!({ "metadata": { "labels": { LABEL: value } } })).await?;
    }
    for cluster in clusters {
        wait_for(&format!("the label of {} is on its StatefulSet", cluster.names.cluster()), LONG, async || {
            let set = cluster.stateful_set().await?;
            ensure!(set.labels().get(LABEL).map(String::as_str) == Some(value), "its labels are {:?}", set.labels());
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Right after its start the server does not answer everything yet.
async fn changed(cluster: &Cluster, replicas: u16) -> Result<()> {
    wait_for("the change is taken", LONG, async || cluster.scale(replicas).await).await
}

async fn leads_again(operator: &mut Operator) -> Result<()> {
    wait_for("the operator leads again", LONG, async || {
        operator.check()?;
        ensure!(operator.leads().await?, "it stands by");
        Ok(())
    })
    .await
}
