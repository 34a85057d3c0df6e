//! An API server that is slow, and one that has forgotten what happened while the operator did not watch: the operator goes on with its
//! work, catches up, and has grown in nothing.
//!
//! The operator reaches the server only through a front, which is slow in its place, or keeps watches away from it.

#![cfg(feature = "lab")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_e2e::cluster::{all_ready, scale_all};
use windlass_e2e::dummy::manifest_for;
use windlass_e2e::front::Front;
use windlass_e2e::process::{Operator, Order, Usage};
use windlass_e2e::{Cluster, LONG, Place, Stage, wait_for};

const USER: &str = "slow-operator";
const OWNED: &str = "slow";
const CLUSTERS: usize = 4;
/// How many times each cluster grows and shrinks while the server is slow.
const ROUNDS_VARIABLE: &str = "WINDLASS_SLOW_ROUNDS";
const ROUNDS: u64 = 3;
/// How long each request takes.
const SLOW: Duration = Duration::from_secs(1);
/// The server keeps what happened in this time, however much it is.
const KEPT: Duration = Duration::from_secs(75);
/// How many writes are made at a time to have it forget what is older, and how many of them at once.
const WRITES: u64 = 200;
const AT_ONCE: usize = 8;
/// What the server says when it is asked for something that it has forgotten.
const FORGOTTEN: &str = "too old resource version";

/// An operator behind a front, and clusters of one member that it looks after.
struct Behind {
    front: Front,
    operator: Operator,
    clusters: Vec<Cluster>,
    /// The most that it has cost at any look.
    most: Usage,
}

async fn played(prefix: &str, clusters: usize, play: impl AsyncFnOnce(&Place, Behind) -> Result<()>) -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .beside_the_release(async || {
            stage.grant_release(USER).await?;
            let played = stage
                .with_namespace(prefix, true, async |place| {
                    let behind = Behind::start(place, clusters).await?;
                    play(place, behind).await
                })
                .await;
            played.and(stage.revoke_release(USER).await)
        })
        .await
}

impl Behind {
    async fn start(place: &Place, count: usize) -> Result<Self> {
        let stage = place.stage();
        let front = Front::open(&stage.lab().user_kubeconfig(USER, &[])?).await?;
        let (namespace, server) = (place.namespace(), Some(front.address));
        let order = Order { user: USER, release: "windlass-slow", namespace, own: OWNED, server, ..Order::default() };
        let operator = stage.start_operator(&order).await?;
        let name = |number| format!("slow-{number}");
        let manifests: Vec<_> = (0..count).map(|number| manifest_for(OWNED, &name(number), 1)).collect();
        place.apply(&manifests).await?;
        let clusters = (0..count).map(|number| place.cluster(&name(number))).collect::<Result<Vec<_>>>()?;
        all_ready(&clusters, 1).await?;
        let most = operator.usage()?;
        Ok(Self { front, operator, clusters, most })
    }

    /// Lets every cluster have another size; how long that took the operator, and how long it took until all were Ready.
    async fn change(&mut self, replicas: u16) -> Result<(Duration, Duration)> {
        let began = Instant::now();
        for cluster in &self.clusters {
            cluster.scale(replicas).await?;
        }
        for cluster in &self.clusters {
            cluster.acted_upon(replicas).await?;
            self.most = self.most.larger(self.operator.usage()?);
        }
        let acted = began.elapsed();
        for cluster in &self.clusters {
            cluster.wait_until_ready(replicas).await?;
            self.most = self.most.larger(self.operator.usage()?);
        }
        self.operator.check()?;
        Ok((acted, began.elapsed()))
    }

    /// Every cluster grows and shrinks once.
    async fn round(&mut self) -> Result<(Duration, Duration)> {
        let grown = self.change(2).await?;
        self.change(1).await?;
        Ok(grown)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_keeps_up_with_a_slow_api_server_and_has_grown_in_nothing() -> Result<()> {
    let rounds = std::env::var(ROUNDS_VARIABLE).map_or(Ok(ROUNDS), |text| text.parse())?;
    played("slow", CLUSTERS, async |place, behind| slow(place, behind, rounds).await).await
}

async fn slow(place: &Place, mut behind: Behind, rounds: u64) -> Result<()> {
    let stage = place.stage();
    let quick = behind.round().await?;
    behind.front.delay(SLOW);
    stage.say("every request takes 1 s longer");
    let slow = behind.round().await?;
    // More connections are open at once when each is in use for longer; from here on there is no reason for more of anything.
    let before = behind.most;
    for round in 0..rounds {
        let (acted, ready) = behind.round().await?;
        ensure!(behind.operator.leads().await?, "it does not lead any more");
        let (acted, ready) = (acted.as_secs_f64(), ready.as_secs_f64());
        stage.say(&format!("round {round}: acted on all changes after {acted:.1} s, all Ready after {ready:.1} s"));
    }
    behind.front.delay(Duration::ZERO);
    let again = behind.round().await?;
    let after = behind.operator.usage()?;
    let seconds = |(acted, ready): (Duration, Duration)| format!("{:.1} s ({:.1} s)", acted.as_secs_f64(), ready.as_secs_f64());
    println!(
        "{rounds} rounds with {SLOW:?} on every request: changes of {CLUSTERS} clusters acted upon (and Ready) after {}, before that \
         {}, and right afterwards {}; {}",
        seconds(slow),
        seconds(quick),
        seconds(again),
        told(before, behind.most, after)
    );
    behind.most.has_not_grown(before)?;
    after.has_not_grown(before)
}

fn told(before: Usage, most: Usage, after: Usage) -> String {
    format!(
        "open files {} at first, {} at most, {} after; memory {} KiB at first, {} at most, {} after",
        before.files, most.files, after.files, before.resident, most.resident, after.resident
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_has_forgotten_is_listed_again() -> Result<()> {
    played("forgotten", 2, forgotten).await
}

async fn forgotten(place: &Place, behind: Behind) -> Result<()> {
    let stage = place.stage();
    let Behind { front, mut operator, clusters, .. } = behind;
    scale_all(&clusters, 2).await?;
    scale_all(&clusters, 1).await?;
    let (before, failures) = (operator.usage()?, operator.count("windlass_watch_failures_total").await?);
    let read = std::fs::metadata(&operator.log)?.len();
    let [scaled, bereft] = clusters.as_slice() else { anyhow::bail!("not two clusters") };

    front.hold_watches();
    let held = Instant::now();
    let (of_clusters, of_services) = (version(&scaled.api()).await?, version(&place.api::<Service>()).await?);
    scaled.scale(2).await?;
    place.api::<Service>().delete(&bereft.names.client_service(), &DeleteParams::default()).await?;
    stage.say("the operator's watches are held, a cluster is to grow, and another one has lost its Service");
    // Nothing younger is ever forgotten.
    tokio::time::sleep(KEPT.saturating_sub(held.elapsed())).await;
    forget(&scaled.api(), scaled.names.cluster(), &of_clusters).await?;
    forget(&place.api::<Service>(), &scaled.names.client_service(), &of_services).await?;
    operator.check()?;
    ensure!(operator.leads().await?, "it does not lead any more");
    let during = operator.usage()?;
    stage.say("the server has forgotten what happened meanwhile");

    front.release_watches();
    let back = Instant::now();
    scaled.acted_upon(2).await?;
    let grown = back.elapsed();
    wait_for("the Service is there again", LONG, async || {
        ensure!(place.has::<Service>(&bereft.names.client_service()).await?, "it is not");
        Ok(())
    })
    .await?;
    let made = back.elapsed();
    scaled.wait_until_ready(2).await?;
    bereft.wait_until_ready(1).await?;
    let listed = listed_again(&operator, read)?;
    for resource in ["replicatedstatefulsets", "services"] {
        ensure!(
            listed.iter().any(|it| it == resource),
            "no watch of {resource} was told that it came too late, but of {listed:?}"
        );
    }
    let started = operator.count("windlass_watch_failures_total").await? - failures;
    let after = operator.usage()?;
    println!(
        "history forgotten while watches were held for {} s: {} watches came too late and listed again ({}), {started} starts of \
         watches in all; acted upon a change after {:.1} s, and missed an object after {:.1} s; {}",
        (back - held).as_secs(),
        listed.len(),
        listed.join(", "),
        grown.as_secs_f64(),
        made.as_secs_f64(),
        told(before, during, after)
    );
    during.has_not_grown(before)?;
    after.has_not_grown(before)
}

/// The version of the newest write that a list of these objects can show.
async fn version<K>(api: &Api<K>) -> Result<String>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    api.list(&ListParams::default()).await?.metadata.resource_version.context("a list without a version")
}

/// Writes until the server does not know any more what happened to these objects since a version.
async fn forget<K>(api: &Api<K>, name: &str, since: &str) -> Result<()>
where
    K: kube::Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut written = 0;
    wait_for(&format!("the server has forgotten what happened since {since}"), LONG, async || {
        let first = written;
        written += WRITES;
        let writes = (first..written).map(|number| {
            let note = json!({ "metadata": { "annotations": { "e2e.windlass.dev/note": number.to_string() } } });
            let api = api.clone();
            async move { api.patch(name, &PatchParams::default(), &Patch::Merge(&note)).await }
        });
        stream::iter(writes).buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await?;
        let events = api.watch(&WatchParams::default().timeout(1), since).await?;
        futures::pin_mut!(events);
        match events.next().await {
            Some(Ok(WatchEvent::Error(status))) if status.code == 410 => Ok(()),
            other => anyhow::bail!("after {written} writes it still tells {other:?}"),
        }
    })
    .await
}

/// The resources whose watches were told that they came too late, by the log of an operator from some place in it.
fn listed_again(operator: &Operator, from: u64) -> Result<Vec<String>> {
    let log = std::fs::read(&operator.log)?;
    let log = String::from_utf8_lossy(log.get(usize::try_from(from)?..).unwrap_or_default()).into_owned();
    let late = log.lines().filter(|line| line.contains("watch failed") && line.contains(FORGOTTEN));
    let resource = |line: &str| {
        let (_, rest) = line.split_once("resource=")?;
        Some(rest.split([' ', '"']).find(|word| !word.is_empty())?.to_owned())
    };
    Ok(late.filter_map(resource).collect())
}
