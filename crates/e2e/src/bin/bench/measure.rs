//! One row: everything that is measured with N clusters.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::DeleteParams;
use kube::core::DynamicObject;

use crate::audit::{Mark, Requests};
use crate::converge::Watches;
use crate::kind::Kind;
use crate::latency;
use crate::machine::{Idle, Machine};
use crate::model::Model;
use crate::mysql::Fleet;
use crate::mysql::failover::{self, Failover, How};
use crate::operator::Operator;
use crate::report::{Changed, Converged, Floor, Quiet, Restarted, Row, Sql};
use crate::stage::{OPERATOR, Stage};
use crate::{Bench, cluster, floor, say, within};

/// One cluster is too short a time to measure once.
const ROUNDS_OF_ONE: usize = 5;
const SAMPLES_OF_ONE: usize = 20;
/// How many primaries are lost one after the other.
const LOST_ALONE: usize = 10;
/// How many hang at once.
const HANG: usize = 20;
/// Without a write for this long, a fleet is settled.
const SETTLED: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_mins(10);
/// For as long after a restart, the operator's writes are counted.
const RESTARTED: Duration = Duration::from_secs(15);
const GOING: Duration = Duration::from_mins(1);

/// Measures a row, and leaves nothing of it unless it `is_left`.
pub(crate) async fn measure(bench: Bench<'_>, model: &Model, clusters: usize, is_left: bool) -> Result<Row> {
    let (stage, kind) = (bench.stage, bench.arguments.kind);
    let is_compared = !bench.arguments.without_writer;
    let mut floors = Vec::new();
    if is_compared {
        floors.push(floor(bench, model, clusters, "before").await?);
    }
    let namespace = stage.namespace(&format!("clusters-{clusters}")).await?;
    let mut operator = Operator::start(stage, bench.program)?;
    operator.ready().await?;
    let mark = Mark::now(&stage.audit_log)?;
    let mut fleet = match converge(bench, &namespace, clusters).await {
        Ok(fleet) => fleet,
        Err(error) => {
            let requests = mark.requests_of(OPERATOR)?.per_cluster(clusters);
            return Err(error.context(format!("the operator's requests until then, per cluster: {requests}")));
        }
    };
    if let Some(servers) = bench.fleet {
        servers.let_clients_write(true);
    }
    let settled = settle(stage, &mut operator).await?;
    fleet.converged.until_settled = fleet.mark.requests_of(OPERATOR)?;
    let quiet = quiet(bench, &mut operator).await?;
    let (mut changed, mut failovers) = (None, Vec::new());
    match kind {
        Kind::Rss => changed = Some(change(bench, &namespace, fleet.numbers.clone()).await?),
        Kind::Mysql => failovers = fail_over(bench, &namespace, &mut fleet).await?,
    }
    settle(stage, &mut operator).await?;
    let restarted = restart(bench, operator).await?;
    if let Some(servers) = bench.fleet {
        servers.let_clients_write(false);
    }
    if !is_left {
        stage.remove_namespace(&namespace).await?;
    }
    // With servers it takes as long again, and what is compared is not a matter of a few percent.
    if kind == Kind::Rss && is_compared {
        floors.push(floor(bench, model, clusters, "after").await?);
    }
    Ok(Row {
        clusters,
        rounds: rounds(clusters),
        objects_per_cluster: kind.objects(),
        floors,
        converged: fleet.converged,
        settled,
        quiet,
        changed,
        failovers,
        restarted,
        machine: Machine::now(),
    })
}

fn rounds(clusters: usize) -> usize {
    if clusters == 1 { ROUNDS_OF_ONE } else { 1 }
}

/// How long so many clusters may take.
fn limit(clusters: usize) -> Duration {
    Duration::from_mins(5) + Duration::from_millis(600) * u32::try_from(clusters).unwrap_or(u32::MAX)
}

/// The bare writer, in a namespace of its own. Where there are servers it waits until all pods are ready, as the operator has to.
async fn floor(bench: Bench<'_>, model: &Model, clusters: usize, when: &str) -> Result<Floor> {
    let stage = bench.stage;
    let namespace = stage.namespace(&format!("floor-{clusters}-{when}")).await?;
    let idle = Idle::start();
    let (mut seconds, mut ready) = (Vec::new(), Vec::new());
    for round in 0..rounds(clusters) {
        let posts = model.posts(stage, &namespace, round * clusters..(round + 1) * clusters).await?;
        let began = Instant::now();
        seconds.push(floor::post_all(&stage.writer, posts).await?.as_secs_f64());
        if bench.fleet.is_some() {
            let pods = (round + 1) * clusters * usize::from(bench.arguments.members);
            let last = bench.kubelet.all_ready(&namespace, pods, limit(clusters)).await?;
            ready.push(last.saturating_duration_since(began).as_secs_f64());
        }
    }
    let pods_ready = (!ready.is_empty()).then(|| middle(&mut ready));
    let floor = Floor { seconds: middle(&mut seconds), pods_ready, idle: idle.percent() };
    say(format!("{clusters} clusters: bare writer {:.3} s", floor.seconds));
    stage.remove_namespace(&namespace).await?;
    Ok(floor)
}

/// Clusters that have converged.
struct Converging {
    converged: Converged,
    /// Their numbers.
    numbers: Range<usize>,
    /// When the last round began.
    mark: Mark,
    watches: Watches,
}

/// Creates clusters, in rounds, each of which but the last is removed again.
async fn converge(bench: Bench<'_>, namespace: &str, clusters: usize) -> Result<Converging> {
    let (stage, kind, members) = (bench.stage, bench.arguments.kind, bench.arguments.members);
    let mut watches = Watches::start(stage, kind, namespace).await?;
    let idle = Idle::start();
    let (mut seconds, mut ready, mut requests) = (Vec::new(), Vec::new(), Requests::default());
    let (last, mut mark) = (rounds(clusters) - 1, Mark::now(&stage.audit_log)?);
    for round in 0..=last {
        let numbers = round * clusters..(round + 1) * clusters;
        let posts = numbers.clone().map(|number| kind.post(stage, namespace, &cluster::name(number), members)).collect();
        mark = Mark::now(&stage.audit_log)?;
        let began = Instant::now();
        let posted = floor::post_all(&stage.writer, posts);
        let (_, done) = tokio::try_join!(posted, watches.all_converged(clusters, limit(clusters)))?;
        seconds.push((done - began).as_secs_f64());
        requests = mark.requests_of(OPERATOR)?;
        if bench.fleet.is_some() {
            let last = bench.kubelet.all_ready(namespace, clusters * usize::from(members), GOING).await?;
            ready.push(last.saturating_duration_since(began).as_secs_f64());
        }
        if round < last {
            remove(stage, kind, namespace, &cluster::name(numbers.start)).await?;
            watches.all_gone(GOING).await?;
        }
    }
    let converged = Converged {
        seconds: middle(&mut seconds),
        pods_ready: (!ready.is_empty()).then(|| middle(&mut ready)),
        idle: idle.percent(),
        requests,
        until_settled: Requests::default(),
    };
    say(format!("{clusters} clusters: converged in {:.3} s", converged.seconds));
    Ok(Converging { converged, numbers: last * clusters..(last + 1) * clusters, mark, watches })
}

async fn remove(stage: &Stage, kind: Kind, namespace: &str, name: &str) -> Result<()> {
    let api: Api<DynamicObject> = Api::namespaced_with(stage.writer.clone(), namespace, &kind.api());
    api.delete(name, &DeleteParams::default()).await.map(drop).with_context(|| format!("{name} cannot be deleted"))
}

/// Changes specs, and times how long each takes to arrive.
async fn change(bench: Bench<'_>, namespace: &str, numbers: Range<usize>) -> Result<Changed> {
    let clusters = numbers.len();
    say(format!("{clusters} clusters: changing specs"));
    let samples = bench.arguments.samples;
    let samples = if clusters == 1 { samples.min(SAMPLES_OF_ONE) } else { samples };
    let idle = Idle::start();
    let mark = Mark::now(&bench.stage.audit_log)?;
    let latency = latency::measure(bench.stage, namespace, numbers, samples).await?;
    Ok(Changed { latency, requests: mark.requests_of(OPERATOR)?, idle: idle.percent() })
}

/// Lets clusters lose their primaries: one after the other, many at once, and by servers that hang.
async fn fail_over(bench: Bench<'_>, namespace: &str, fleet: &mut Converging) -> Result<Vec<Failover>> {
    let Some(servers) = bench.fleet.filter(|_| bench.arguments.failovers > 0) else { return Ok(Vec::new()) };
    let (numbers, clusters) = (fleet.numbers.clone(), fleet.numbers.len());
    let mut scene =
        failover::Scene { fleet: servers, kubelet: bench.kubelet, watches: &mut fleet.watches, namespace, clusters };
    // From different ends of the fleet, as far as it goes: who has just lost one is not the next to lose another.
    let alone = |turn: usize| numbers.start + turn * clusters.div_ceil(LOST_ALONE) % clusters;
    let alone: Vec<usize> = (0..LOST_ALONE).map(alone).collect();
    let many: Vec<usize> = numbers.take(bench.arguments.failovers).collect();
    let hang = &many[..many.len().min(HANG)];
    let mut measured = Vec::new();
    for (how, lose, at_once) in [(How::Killed, &*alone, 1), (How::Killed, &*many, many.len()), (How::Hangs, hang, hang.len())] {
        say(format!("{clusters} clusters: {how:?}, {} of them, {at_once} at once", lose.len()));
        measured.push(failover::measure(&mut scene, how, lose, at_once).await?);
    }
    Ok(measured)
}

/// Waits until the operator writes nothing any more. False when it did not come to rest.
async fn settle(stage: &Stage, operator: &mut Operator) -> Result<bool> {
    let began = Instant::now();
    while began.elapsed() < SETTLING {
        operator.check()?;
        let mark = Mark::now(&stage.audit_log)?;
        tokio::time::sleep(SETTLED).await;
        if mark.requests_of(OPERATOR)?.writes == 0 {
            return Ok(true);
        }
    }
    say(format!("the operator still writes after {} s", SETTLING.as_secs()));
    Ok(false)
}

async fn quiet(bench: Bench<'_>, operator: &mut Operator) -> Result<Quiet> {
    let seconds = bench.arguments.quiet_seconds;
    say(format!("watching {seconds} quiet seconds"));
    let (before, idle) = (operator.usage()?, Idle::start());
    let traffic = bench.fleet.map(Fleet::traffic);
    let mark = Mark::now(&bench.stage.audit_log)?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let usage = operator.usage()?;
    let sql = bench
        .fleet
        .zip(traffic)
        .map(|(fleet, before)| Sql { connections: fleet.connections(), traffic: fleet.traffic().since(before) });
    Ok(Quiet {
        seconds,
        requests: mark.requests_of(OPERATOR)?,
        processor_seconds: usage.processor_seconds - before.processor_seconds,
        sql,
        usage,
        idle: idle.percent(),
    })
}

/// Kills the operator as a crash would, starts another, and counts what that one writes although nothing is to be done.
async fn restart(bench: Bench<'_>, operator: Operator) -> Result<Restarted> {
    say("restarting the operator");
    operator.kill().await?;
    let mark = Mark::now(&bench.stage.audit_log)?;
    let mut operator = Operator::start(bench.stage, bench.program)?;
    let ready = within(Duration::from_mins(2), "the restarted operator", operator.ready()).await?;
    tokio::time::sleep(RESTARTED).await;
    let (usage, requests) = (operator.usage()?, mark.requests_of(OPERATOR)?);
    operator.kill().await?;
    Ok(Restarted { ready_seconds: ready.as_secs_f64(), watched_seconds: RESTARTED.as_secs(), requests, usage })
}

/// The middle value; of an even number, the upper one.
fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
