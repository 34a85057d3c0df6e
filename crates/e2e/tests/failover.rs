//! Failovers of the MySQL example under a client that writes: nothing that it was told of is lost, whatever befalls the primary.
//!
//! WINDLASS_FAILOVERS says how many there are, by each fault in turn, WINDLASS_CLUSTERS how many clusters share them at the same time,
//! and WINDLASS_MINUTES for how long the network is bad.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, kill_process};
use windlass_e2e::mysql::load::{Row, Writer, changes, check_kept};
use windlass_e2e::mysql::{Mysql, Stoppable};
use windlass_e2e::{LONG, Stage, wait_for};

/// What befalls the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Killed,
    Deleted,
    Stopped,
    CutOff,
}

const FAULTS: [Fault; 4] = [Fault::Killed, Fault::Deleted, Fault::Stopped, Fault::CutOff];

fn number(variable: &str, otherwise: u64) -> Result<u64> {
    std::env::var(variable).map_or(Ok(otherwise), |text| text.parse().with_context(|| format!("{variable}={text}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_befalls_the_primary_nothing_that_was_told_is_lost() -> Result<()> {
    let stage = Stage::get().await?;
    let (failovers, clusters) = (number("WINDLASS_FAILOVERS", 8)?, number("WINDLASS_CLUSTERS", 1)?);
    let of_each = (0..clusters).map(|number| {
        // What is left over goes to the first ones.
        let share = failovers / clusters + u64::from(number < failovers % clusters);
        fail_over(&stage, usize::try_from(share).unwrap_or(usize::MAX))
    });
    let (mut took, mut told) = (BTreeMap::<Fault, Vec<f64>>::new(), 0);
    for (rows, times) in futures::future::try_join_all(of_each).await? {
        told += rows;
        for (fault, seconds) in times {
            took.entry(fault).or_default().push(seconds);
        }
    }
    for (fault, seconds) in &mut took {
        seconds.sort_by(f64::total_cmp);
        let at = |part: usize| seconds[(seconds.len() * part / 100).min(seconds.len() - 1)];
        let (half, nearly_all, times) = (at(50), at(99), seconds.len());
        stage.say(&format!("{fault:?}: first write after {half:.2} s (p50), {nearly_all:.2} s (p99), {times} times"));
    }
    stage.say(&format!("{told} rows told of in {failovers} failovers, none lost"));
    Ok(())
}

/// Lets so many failovers happen to one cluster, by each fault in turn. Returns how many rows were told of, and how long each took.
async fn fail_over(stage: &Stage, failovers: usize) -> Result<(usize, Vec<(Fault, f64)>)> {
    let mut end = (0, Vec::new());
    stage
        .with_namespace("failover", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            for fault in FAULTS.into_iter().cycle().take(failovers) {
                end.1.push((fault, befall(&mysql, &writer, fault).await.with_context(|| format!("{fault:?}"))?));
            }
            let rows = writer.stop()?;
            check_kept(&mysql, &rows).await?;
            ensure!(changes(&rows) <= failovers, "{} changes of the server in {failovers} failovers", changes(&rows));
            end.0 = rows.len();
            Ok(())
        })
        .await?;
    Ok(end)
}

/// Lets it happen, waits until another instance takes writes and all is well again, and tells how long the first write took.
async fn befall(mysql: &Mysql, writer: &Writer, fault: Fault) -> Result<f64> {
    writer.goes_on().await?;
    // Before that, the instance that had the office before may be needed to replace the one that has it.
    mysql.wait_until_settled().await?;
    let before = mysql.primary().await?;
    let last = writer.rows().last().cloned().context("no row was written yet")?;
    let pid = mysql.process(before).await?;
    let mut loss = None;
    let began = Instant::now();
    match fault {
        Fault::Killed => kill_process(pid, Signal::KILL)?,
        Fault::Deleted => mysql.remove_pod(before).await?,
        Fault::Stopped => kill_process(pid, Signal::STOP)?,
        Fault::CutOff => loss = Some(mysql.lose_packets(&mysql.address(before).await?, None)?),
    }
    // A server that ended may be back before anybody could take its place.
    let counts = |row: &Row| row.told > began && (row.server != last.server || row.connection != last.connection);
    let first = wait_for("a server takes writes", LONG, async || {
        let rows = writer.rows();
        rows.iter().find(|row| counts(row)).cloned().with_context(|| format!("not yet; the last one: {:?}", rows.last()))
    })
    .await;
    // Whatever came of it, it is put right, if the kubelet has not.
    if fault == Fault::Stopped {
        let _is_gone = kill_process(pid, Signal::CONT);
    }
    drop(loss);
    let first = first?;
    let seconds = first.told.duration_since(began).as_secs_f64();
    if first.server == last.server {
        ensure!(matches!(fault, Fault::Killed | Fault::Deleted), "instance {before} still takes writes");
    } else {
        // The first write may be faster than the word of who takes it.
        mysql.another_primary(before).await?;
    }
    mysql.wait_until_healthy().await?;
    let whole = began.elapsed().as_secs_f64();
    mysql.place.stage().say(&format!("{fault:?}: first write after {seconds:.2} s, Healthy after {whole:.1} s"));
    Ok(seconds)
}

/// A server that stops by itself tells the clients of all commits that wait for acknowledgements that they succeeded.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_stopped_tells_nobody_of_what_nobody_acknowledged() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("stopped", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            let primary = mysql.primary().await?;
            mysql.stop(Stoppable::Clustering).await?;
            for replica in (0..3).filter(|ordinal| *ordinal != primary) {
                mysql.administer(replica, "STOP REPLICA IO_THREAD").await?;
            }
            wait_for("a commit waits for acknowledgements", LONG, async || {
                let waiting = "SELECT VARIABLE_VALUE FROM performance_schema.global_status \
                               WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_wait_sessions'";
                let waiting = mysql.administer(primary, waiting).await?;
                ensure!(waiting.trim() != "0", "{waiting} wait");
                Ok(())
            })
            .await?;
            let told = writer.rows().len();
            mysql.replace_pod(primary).await?;
            let closed = mysql.administer(primary, "SELECT @@super_read_only").await?;
            ensure!(closed.trim() == "1", "it takes writes");
            let more = writer.rows().len() - told;
            ensure!(more == 0, "{more} rows were told of that no other instance has");
            mysql.start(Stoppable::Clustering).await?;
            writer.goes_on().await?;
            mysql.wait_until_healthy().await?;
            let rows = writer.stop()?;
            check_kept(&mysql, &rows).await?;
            stage.say(&format!("stopped with commits that waited: none was told of, and none of {} rows is lost", rows.len()));
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_is_no_reason_to_replace_the_primary() -> Result<()> {
    let stage = Stage::get().await?;
    let minutes = number("WINDLASS_MINUTES", 1)?;
    stage
        .with_namespace("badnet", true, async |place| {
            let mysql = place.mysql(|_| ()).await?;
            let writer = Writer::start(&mysql).await?;
            let (primary, address) = (mysql.primary().await?, mysql.address(mysql.primary().await?).await?);
            let until = Instant::now() + Duration::from_secs(60 * minutes);
            let mut bursts = 0;
            while Instant::now() < until {
                let burst = mysql.lose_packets(&address, Some(0.3))?;
                tokio::time::sleep(Duration::from_secs(4)).await;
                let stall = mysql.lose_packets(&address, None)?;
                tokio::time::sleep(Duration::from_secs(3)).await;
                drop(stall);
                tokio::time::sleep(Duration::from_secs(3)).await;
                drop(burst);
                tokio::time::sleep(Duration::from_secs(5)).await;
                bursts += 1;
                ensure!(mysql.primary().await? == primary, "the primary was replaced in burst {bursts}");
            }
            writer.goes_on().await?;
            mysql.wait_until_healthy().await?;
            ensure!(mysql.primary().await? == primary, "the primary was replaced");
            let rows = writer.stop()?;
            ensure!(changes(&rows) == 0, "another server told of rows");
            stage.say(&format!(
                "{bursts} bursts of lost packets and stalls in {minutes} min: no failover, {} rows told of",
                rows.len()
            ));
            Ok(())
        })
        .await
}
