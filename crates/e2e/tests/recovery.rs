//! Galera that lost all its servers, most of them, or a volume: it comes back by itself with every row that a client was told is safe, or
//! says what it waits for.

#![cfg(feature = "lab")]

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use serde_json::json;
use windlass_core::labels::OVERRIDE_PREFIX;
use windlass_e2e::dummy;
use windlass_e2e::galera::Galera;
use windlass_e2e::galera::load::{Observer, Writer};
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
            let observer = Observer::start(&galera, MEMBERS);
            for round in 0..rounds {
                let began = Instant::now();
                let writer = Writer::start(&galera, MEMBERS, 1 + round * 100_000);
                // Some rows first: a kill before the first one shows nothing.
                writer.has_written(3).await?;
                try_join_all((0..MEMBERS).map(|member| galera.kill_server(member))).await?;
                galera.cluster.wait_for_condition("Available", "False", "NoMemberServes").await?;
                galera.cluster.wait_until_ready(MEMBERS).await?;
                rows.extend(writer.stop().await?.safe);
                galera.check_rows(MEMBERS, &rows).await?;
                slowest = slowest.max(began.elapsed().as_secs_f64());
                stage.say(&format!("round {round}: {} rows are on every member", rows.len()));
            }
            let seen = observer.stop().await?;
            ensure!(seen.torn.is_empty(), "there were two primary components: {:?}", seen.torn);
            println!(
                "{rounds} times all members killed under writes: {} acknowledged rows, 0 lost, never two components in {} looks, \
                 slowest round {slowest:.1} s",
                rows.len(),
                seen.looks
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
            galera.check_rows(MEMBERS, &[1]).await?;
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
            galera.check_rows(MEMBERS, &[1]).await?;
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

/// A member that was out of reach while the others went on comes to itself alone, runs, and lacks what they have.
#[tokio::test(flavor = "multi_thread")]
async fn a_survivor_that_missed_rows_is_not_promoted_and_who_lost_its_data_is_no_seed() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("partition", true, async |place| {
            let galera = place.galera().await?;
            galera.sql(0, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            galera.cluster.pause("the stage is set").await?;
            galera.signal_server(0, "STOP").await?;
            wait_for("the others go on without it", LONG, async || {
                let size = galera
                    .ask_server(
                        1,
                        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME='WSREP_CLUSTER_SIZE'",
                    )
                    .await?;
                ensure!(size.trim() == "2", "they are {size}");
                Ok(())
            })
            .await?;
            galera.sql(1, &galera.host(1), "INSERT INTO rope VALUES (1)").await?;
            try_join_all([1, 2].map(|member| galera.kill_server(member))).await?;
            galera.signal_server(0, "CONT").await?;
            galera.cluster.wait_for_condition("Available", "False", "NoMemberServes").await?;
            galera.cluster.resume().await?;
            galera.cluster.wait_until_ready(MEMBERS).await?;
            galera.check_rows(MEMBERS, &[1]).await?;
            let acts = galera.cluster.logbook().await?.spec.acts;
            ensure!(acts.iter().all(|it| it.act != "Promote"), "the survivor was promoted: {acts:?}");
            ensure!(acts.iter().any(|it| it.act == "Seed" && it.target != galera.cluster.pod(0)), "{acts:?}");
            stage.say("a survivor that missed rows was not promoted");

            // An interrupted state transfer leaves an empty state file; and a volume may be emptied behind everybody's back.
            galera.cluster.pause("the stage is set").await?;
            try_join_all((0..MEMBERS).map(|member| galera.kill_server(member))).await?;
            place.shell(&galera.cluster.pod(0), ": >/var/lib/mysql/data/grastate.dat").await?;
            place.shell(&galera.cluster.pod(1), "rm -rf /var/lib/mysql/data").await?;
            galera.cluster.wait_for_condition("Available", "False", "NoMemberServes").await?;
            galera.cluster.resume().await?;
            galera.cluster.wait_until_ready(MEMBERS).await?;
            galera.check_rows(MEMBERS, &[1]).await?;
            let acts = galera.cluster.logbook().await?.spec.acts;
            let last = acts.iter().filter(|it| it.act == "Seed").max_by_key(|it| it.announced);
            ensure!(last.is_some_and(|it| it.target == galera.cluster.pod(2)), "{acts:?}");
            stage.say("neither an interrupted transfer nor an emptied volume became the seed");
            other_history(&galera).await
        })
        .await
}

/// A volume of another cluster came in, and it holds more.
async fn other_history(galera: &Galera) -> Result<()> {
    const OTHER: &str = "0badc0de-0000-11f0-8000-0123456789ab";
    let (cluster, place) = (&galera.cluster, &galera.cluster.place);
    cluster.pause("the stage is set").await?;
    try_join_all((0..MEMBERS).map(|member| galera.kill_server(member))).await?;
    let script = format!("sed -i 's/^uuid:.*/uuid: {OTHER}/; s/^seqno:.*/seqno: 999999/' /var/lib/mysql/data/grastate.dat");
    place.shell(&cluster.pod(0), &script).await?;
    cluster.wait_for_condition("Available", "False", "NoMemberServes").await?;
    let seeds = seeds_of(galera).await?;
    cluster.resume().await?;
    let stalled = cluster.wait_for_condition("Stalled", "True", "LogbookContradicted").await?;
    ensure!(stalled.message.contains(&format!("member 0: stopped, at {OTHER}:999999")), "{}", stalled.message);
    ensure!(seeds_of(galera).await? == seeds, "somebody was seeded");
    place.stage().say("a member with another history: nobody is seeded, and it is named");
    // As the guide says: its data is put aside, and it asks the others for theirs.
    place.shell(&cluster.pod(0), "mv /var/lib/mysql/data /var/lib/mysql/aside").await?;
    place.api::<Pod>().delete(&cluster.pod(0), &DeleteParams::default()).await?;
    cluster.wait_until_ready(MEMBERS).await?;
    galera.check_rows(MEMBERS, &[1]).await?;
    place.stage().say("put aside, it joined the others");
    Ok(())
}

async fn seeds_of(galera: &Galera) -> Result<usize> {
    let logbook = galera.cluster.logbook().await?.spec;
    let ended = logbook.acts.iter().filter(|it| it.act == "Seed").count();
    Ok(ended + logbook.intents.iter().filter(|it| it.act == "Seed").count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_that_hangs_is_waited_for() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("hanging", true, async |place| {
            let mut manifest = dummy::manifest("slow", MEMBERS);
            let member = &mut manifest["spec"]["pod"]["containers"][0]["command"][2];
            *member = json!(format!("touch /state/hold; {}", member.as_str().context("no command")?));
            manifest["spec"]["pod"]["commands"]["seed"]["timeout"] = json!("3s");
            place.apply(&[manifest]).await?;
            let cluster = place.cluster("slow")?;
            let stalled = cluster.wait_for_condition("Stalled", "True", "SeedUndecided").await?;
            ensure!(stalled.message.contains("did not end within its 3 s and still runs"), "{}", stalled.message);
            let since = stage.audit().mark()?;
            wait_for("every member says again and again that it is stopped", LONG, async || {
                let asked = cluster.operator_requests(since)?;
                for pod in cluster.pods(MEMBERS) {
                    let times = asked.iter().filter(|it| it.command().is_some() && it.name() == pod).count();
                    ensure!(times >= 5, "{pod} was asked {times} times");
                }
                Ok(())
            })
            .await?;
            let hooks = cluster.hooks(MEMBERS).await?;
            ensure!(hooks == [format!("seed {}", cluster.pod(0))], "these were run: {hooks:?}");
            stage.say("a seed that hangs: it is told, and no other hook is run anywhere");
            for pod in cluster.pods(MEMBERS) {
                place.shell(&pod, "rm /state/hold").await?;
            }
            cluster.wait_until_ready(MEMBERS).await?;
            let seeds = cluster.hooks(MEMBERS).await?.into_iter().filter(|it| it.starts_with("seed")).count();
            ensure!(seeds == 1, "{seeds} seeds were run");
            stage.say("its end was heard of, and the others joined");
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
