//! A TiDB cluster on the real PD: it begins, becomes smaller and larger, several stores at a time, and refuses what would lose copies.

#![cfg(feature = "lab")]

use std::num::NonZeroU16;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_e2e::tidb::Tidb;
use windlass_e2e::tidb::scaling::{Round, move_freely};
use windlass_e2e::{LONG, Place, Stage, wait_for};

/// What leaves, and comes again.
const ROUND: Round<'_> = Round { from: 6, parallelism: NonZeroU16::MIN.saturating_add(1), speeds: &[2.0, 1.0] };
/// How long nothing may happen. The length is the point.
const WATCHED: Duration = Duration::from_secs(20);

/// Nothing is said of what becomes of volumes.
fn six_stores(cluster: &mut Value) {
    if let Some(spec) = cluster["spec"].as_object_mut() {
        spec.remove("pvReclaimPolicy");
    }
    cluster["spec"]["tikv"]["replicas"] = 6.into();
    move_freely(cluster);
    cluster["spec"]["tikv"]["scalePolicy"] = json!({ "scaleInParallelism": 2, "scaleOutParallelism": 3 });
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_come_and_leave_several_at_a_time() -> Result<()> {
    let stage = Stage::get().await?;
    let since = stage.audit().mark()?;
    stage
        .with_namespace("stores", true, async |place| {
            let tidb = place.tidb(six_stores).await?;
            check_members(&tidb, 6).await?;
            // The lab's StorageClass says Delete.
            tidb.wait_for_policy("Retain").await?;
            stage.audit().check_restricted(place.namespace(), since)?;
            leave_and_come_back(&tidb).await?;
            call_off(&tidb).await?;
            refuse_too_few(&tidb).await?;
            refuse_no_pd(&tidb).await?;
            tidb.set_policy("Delete").await
        })
        .await
}

/// What PD says of its members and stores, and what the status says of TiDB.
async fn check_members(tidb: &Tidb, stores: usize) -> Result<()> {
    wait_for("three members of PD are healthy", LONG, async || {
        let members = tidb.pd("health").await?;
        let healthy = members.as_array().context("PD tells no health")?.iter().filter(|it| it["health"] == true).count();
        ensure!(healthy == 3, "{healthy} are: {members}");
        Ok(())
    })
    .await?;
    tidb.wait_until_up(stores).await?;
    let status = tidb.status().await?;
    let servers = status.tidb.context("nothing is told of TiDB")?.members;
    ensure!(servers.len() == 2 && servers.values().all(|it| it.health), "{servers:?}");
    let id = tidb.pd("cluster").await?["id"].as_u64().context("PD has no id")?.to_string();
    ensure!(status.cluster_id == id, "the status says {:?}, and PD {id}", status.cluster_id);
    Ok(())
}

/// Six become three, two at a time and of different speed, and six again.
async fn leave_and_come_back(tidb: &Tidb) -> Result<()> {
    let stage = tidb.place.stage();
    let (before, claims) = (tidb.stores_that_stay().await?, tidb.claims(Component::Tikv).await?);
    let watched = ROUND.leave(tidb).await?;
    let efficiency = watched.efficiency(ROUND.parallelism);
    stage.say(&format!("6 -> 3, two at a time: {watched:?}, efficiency {efficiency:.2}"));
    ensure!(watched.sizes.len() > 2, "no progress was shown: {:?}", watched.sizes);
    ROUND.come(tidb, &claims).await?;
    // The volumes of those that came in their place are others.
    let gone = ["3", "4", "5"].map(|ordinal| format!("tikv-tidb-tikv-{ordinal}"));
    let gone = gone.into_iter().filter_map(|name| claims.get(&name)?.spec.as_ref()?.volume_name.clone());
    tidb.check_kept_and_let_go(gone).await?;
    for store in tidb.stores_that_stay().await?.values() {
        let stayed = ["tidb-tikv-0", "tidb-tikv-1", "tidb-tikv-2"].contains(&store.pod.as_str());
        ensure!(before.contains_key(&store.id) == stayed, "{store:?}, before: {before:?}");
    }
    stage.say("3 -> 6: new volumes, new stores");
    Ok(())
}

/// A removal is called off in the middle: one store has left already, the other is on its way.
async fn call_off(tidb: &Tidb) -> Result<()> {
    let stage = tidb.place.stage();
    let (slow, fast, region) = wait_for("new stores have regions to give away", LONG, async || {
        let (slow, fast) = (tidb.store_of(5).await?, tidb.store_of(4).await?);
        ensure!(fast.regions > 0, "{fast:?}");
        let moving = tidb.pd("operators").await?;
        ensure!(moving.as_array().is_none_or(Vec::is_empty), "regions still move: {moving}");
        let region = tidb.region_on(slow.id, fast.id).await?;
        Ok((slow, fast, region))
    })
    .await?;
    // A region that is on both leaves them one after the other: if all of one were slow, the other one would wait for it.
    tidb.hold(5, region).await?;
    tidb.scale(4).await?;
    wait_for("one has left, and the other one leaves", LONG, async || {
        let told = async |id| {
            let stores = tidb.stores().await?;
            stores.into_iter().find(|it| it.id == id).map(|it| it.state).context("PD does not list it")
        };
        let (slow, fast) = (told(slow.id).await?, told(fast.id).await?);
        ensure!(slow == "Offline" && fast == "Tombstone", "they are {slow} and {fast}");
        Ok(())
    })
    .await?;
    ensure!(tidb.size(Component::Tikv).await? == 6, "the size passed by a store that has not left");
    tidb.scale(6).await?;
    wait_for("the one on its way stays", LONG, async || {
        let kept = tidb.store_of(5).await?;
        ensure!(kept.id == slow.id && kept.state == "Up", "{kept:?}");
        Ok(())
    })
    .await?;
    tidb.hold(5, 0).await?;
    tidb.wait_until_ready().await?;
    let replaced = tidb.store_of(4).await?;
    ensure!(replaced.id != fast.id && replaced.state == "Up", "{replaced:?}, and it was {fast:?}");
    ensure!(tidb.evictions().await?.is_empty(), "leaders are still evicted: {:?}", tidb.evictions().await?);
    ensure!(tidb.marked_claims().await?.is_empty(), "volumes in use are marked");
    stage.say("called off: one stayed, one was replaced");
    Ok(())
}

/// Fewer stores than copies are refused before anything is touched.
async fn refuse_too_few(tidb: &Tidb) -> Result<()> {
    refused(tidb, &json!({ "spec": { "tikv": { "replicas": 2 } } }), ("FailedScaleIn", "max-replicas")).await?;
    tidb.scale(6).await?;
    tidb.wait_until_ready().await
}

/// Nothing works without PD.
async fn refuse_no_pd(tidb: &Tidb) -> Result<()> {
    refused(tidb, &json!({ "spec": { "pd": { "replicas": 0 } } }), ("InvalidSpec", "spec.pd.replicas")).await?;
    tidb.patch(&json!({ "spec": { "pd": { "replicas": 3 } } })).await?;
    tidb.wait_until_ready().await
}

/// A change that is refused: a condition and an Event say so, and nothing is written.
async fn refused(tidb: &Tidb, change: &Value, (reason, words): (&str, &str)) -> Result<()> {
    let (stage, place) = (tidb.place.stage(), &tidb.place);
    let (stores, members) = (tidb.stores_that_stay().await?, tidb.pd("members").await?["members"].clone());
    let sets = async || {
        let (stores, members) = (tidb.set(Component::Tikv).await?, tidb.set(Component::Pd).await?);
        Ok::<_, anyhow::Error>((stores.metadata.generation, members.metadata.generation))
    };
    let before = sets().await?;
    let since = stage.audit().mark()?;
    tidb.patch(change).await?;
    let stalled = tidb.wait_for_condition("Stalled", "True").await?;
    ensure!(stalled.reason == reason && stalled.message.contains(words), "{}: {}", stalled.reason, stalled.message);
    wait_for("an Event tells it", LONG, async || told(place, reason, words).await).await?;
    tokio::time::sleep(WATCHED).await;
    // On the sets, the edition of the logbook is noted.
    let written = tidb.written_since(since)?;
    let other = written.iter().find(|entry| entry.resource() != "statefulsets");
    ensure!(other.is_none() && sets().await? == before, "written: {:?}", other.map(windlass_e2e::Entry::describe));
    let now = tidb.stores_that_stay().await?;
    ensure!(now.keys().eq(stores.keys()), "the stores are {now:?}, and were {stores:?}");
    ensure!(tidb.pd("members").await?["members"] == members, "members of PD have changed");
    ensure!(tidb.evictions().await?.is_empty(), "leaders are evicted");
    stage.say(&format!("refused: {}", stalled.message));
    Ok(())
}

async fn told(place: &Place, reason: &str, words: &str) -> Result<()> {
    let events = place.api::<Event>().list(&ListParams::default()).await?;
    let is_it = |event: &Event| {
        event.reason.as_deref() == Some(reason) && event.message.as_ref().is_some_and(|message| message.contains(words))
    };
    ensure!(events.iter().any(is_it), "no Event {reason} with {words:?}");
    Ok(())
}
