//! Galera that lost all its servers, most of them, or a volume: it comes back by itself with every row that a client was told is safe, or
//! says what it waits for.

#![cfg(feature = "lab")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use windlass_core::labels::OVERRIDE_PREFIX;
use windlass_e2e::galera::Galera;
use windlass_e2e::{LONG, Stage, wait_for};

/// How often all servers are killed.
const ROUNDS_VARIABLE: &str = "WINDLASS_ROUNDS";
const ROUNDS: u32 = 2;
const MEMBERS: u16 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_lost_when_all_servers_are_killed_under_writes() -> Result<()> {
    let stage = Stage::get().await?;
    let rounds = std::env::var(ROUNDS_VARIABLE).map_or(Ok(ROUNDS), |text| text.parse())?;
    stage
        .with_namespace("recovery", true, async |place| {
            let galera = place.galera().await?;
            galera.sql(0, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            let (mut rows, mut slowest) = (Vec::new(), 0.0_f64);
            for round in 0..rounds {
                let began = Instant::now();
                let writer = Writer::start(&galera, round);
                // Some rows first: a kill before the first one shows nothing.
                writer.has_written(3).await?;
                try_join_all((0..MEMBERS).map(|member| galera.kill_server(member))).await?;
                galera.cluster.wait_for_condition("Available", "False", "NoMemberServes").await?;
                galera.cluster.wait_until_ready(MEMBERS).await?;
                rows.extend(writer.stop().await?);
                check_rows(&galera, &rows).await?;
                slowest = slowest.max(began.elapsed().as_secs_f64());
                stage.say(&format!("round {round}: {} rows are on every member", rows.len()));
            }
            println!(
                "{rounds} times all members killed under writes: {} acknowledged rows, 0 lost, slowest round {slowest:.1} s",
                rows.len()
            );
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_survivor_is_promoted_in_place_and_a_lost_volume_is_given_up_once() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("survivor", true, async |place| {
            let galera = place.galera().await?;
            galera.sql(0, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            galera.sql(0, &galera.service(), "INSERT INTO rope VALUES (1)").await?;
            let survivor = galera.server_process(0).await?;
            try_join_all([1, 2].map(|member| galera.kill_server(member))).await?;
            acted(&galera, "Promote").await?;
            galera.cluster.wait_until_ready(MEMBERS).await?;
            ensure!(galera.server_process(0).await? == survivor, "the survivor was restarted");
            check_rows(&galera, &[1]).await?;
            stage.say("two of three killed: the survivor was promoted without a restart");

            let lost = format!("data-{}", galera.cluster.pod(2));
            let uid = place.api::<PersistentVolumeClaim>().get(&lost).await?.metadata.uid.context("no UID")?;
            try_join_all((0..MEMBERS).map(|member| galera.kill_server(member))).await?;
            place.api::<PersistentVolumeClaim>().delete(&lost, &DeleteParams::default()).await?;
            place.api::<Pod>().delete(&galera.cluster.pod(2), &DeleteParams::default().grace_period(0)).await?;
            let way_out = format!("{OVERRIDE_PREFIX}member-2");
            let stalled = galera.cluster.wait_for_condition("Stalled", "True", "SeedUndecided").await?;
            ensure!(stalled.message.contains(&format!("{way_out}=lost@{uid}")), "{}", stalled.message);
            stage.say("a member on another volume: nothing is seeded, and the way out is told");
            galera.cluster.annotate(&way_out, Some(&format!("lost@{uid}"))).await?;
            galera.cluster.wait_until_ready(MEMBERS).await?;
            check_rows(&galera, &[1]).await?;
            wait_for("the override is spent", LONG, async || {
                let used = galera.cluster.logbook().await?.spec.overrides;
                ensure!(used.iter().any(|it| it.entry == "member-2" && it.uid == uid && it.spent), "{used:?}");
                Ok(())
            })
            .await?;
            stage.say("given up once, recovered, and spent");
            Ok(())
        })
        .await
}

async fn acted(galera: &Galera, act: &str) -> Result<()> {
    wait_for(&format!("the logbook tells of {act}"), LONG, async || {
        let acts = galera.cluster.logbook().await?.spec.acts;
        ensure!(acts.iter().any(|it| it.act == act && it.outcome == "Done"), "{acts:?}");
        Ok(())
    })
    .await
}

/// Every member has every one of these rows.
async fn check_rows(galera: &Galera, rows: &[u32]) -> Result<()> {
    for member in 0..MEMBERS {
        let read = galera.read_from(member, "SELECT length FROM rope").await?;
        let has: Vec<u32> = read.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let lost: Vec<&u32> = rows.iter().filter(|row| !has.contains(row)).collect();
        ensure!(lost.is_empty(), "member {member} lost {lost:?}, which a client was told are safe");
    }
    Ok(())
}

/// A client that writes rows and remembers those that it was told are safe.
struct Writer {
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<u32>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Writer {
    fn start(galera: &Galera, round: u32) -> Self {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, safe, galera) = (Arc::clone(&stop), Arc::clone(&told), galera.clone());
        let task = tokio::spawn(async move {
            let mut row = 1 + round * 100_000;
            while !stopped.load(Ordering::SeqCst) {
                let member = u16::try_from(row % u32::from(MEMBERS)).unwrap_or(0);
                // A row whose answer was lost may be there or not; it is not counted.
                if galera.sql(member, &galera.host(member), &format!("INSERT INTO rope VALUES ({row})")).await.is_ok() {
                    lock(&safe).push(row);
                }
                row += 1;
            }
        });
        Self { stop, told, task }
    }

    fn told(&self) -> Vec<u32> {
        lock(&self.told).clone()
    }

    async fn has_written(&self, rows: usize) -> Result<()> {
        wait_for("rows are written", LONG, async || {
            let told = self.told().len();
            ensure!(told >= rows, "{told} of {rows}");
            Ok(())
        })
        .await
    }

    async fn stop(self) -> Result<Vec<u32>> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.context("the writer broke")?;
        Ok(lock(&self.told).clone())
    }
}

fn lock(rows: &Mutex<Vec<u32>>) -> MutexGuard<'_, Vec<u32>> {
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}
