//! One row: everything that is measured with N clusters.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::DeleteParams;
use windlass_api::ReplicatedStatefulSet;

use crate::audit::{Mark, Requests};
use crate::converge::Watches;
use crate::latency;
use crate::machine::{Idle, Machine};
use crate::model::{Counts, Model};
use crate::operator::{Operator, Program};
use crate::report::{Converged, Floor, Quiet, Restarted, Row};
use crate::stage::{OPERATOR, Stage};
use crate::{Arguments, cluster, floor, say, within};

/// One cluster is too short a time to measure once.
const ROUNDS_OF_ONE: usize = 5;
const SAMPLES_OF_ONE: usize = 20;
/// Without a write for this long, a fleet is settled.
const SETTLED: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_mins(10);
/// For as long after a restart, the operator's writes are counted.
const RESTARTED: Duration = Duration::from_secs(15);
const GOING: Duration = Duration::from_mins(1);

/// Measures a row, and leaves nothing of it.
pub(crate) async fn measure(
    stage: &Stage,
    arguments: &Arguments,
    program: &Program,
    model: &Model,
    clusters: usize,
) -> Result<Row> {
    let before = floor(stage, model, clusters, "before").await?;
    let namespace = stage.namespace(&format!("clusters-{clusters}")).await?;
    let mut operator = Operator::start(stage, program)?;
    operator.ready().await?;
    let mark = Mark::now(&stage.audit_log)?;
    let last = rounds(clusters) - 1;
    let (mut converged, numbers, last_round) = match converge(stage, arguments, &namespace, clusters, last).await {
        Ok(converged) => converged,
        Err(error) => {
            let requests = mark.requests_of(OPERATOR)?.per_cluster(clusters);
            return Err(error.context(format!("the operator's requests until then, per cluster: {requests}")));
        }
    };
    let settled = settle(stage, &mut operator).await?;
    converged.until_settled = last_round.requests_of(OPERATOR)?;
    let quiet = quiet(stage, arguments, &mut operator).await?;

    say(format!("{clusters} clusters: changing specs"));
    let samples = if clusters == 1 { arguments.samples.min(SAMPLES_OF_ONE) } else { arguments.samples };
    let idle = Idle::start();
    let mark = Mark::now(&stage.audit_log)?;
    let latency = latency::measure(stage, &namespace, numbers, samples).await?;
    let (changing, changing_idle) = (mark.requests_of(OPERATOR)?, idle.percent());
    settle(stage, &mut operator).await?;

    let restarted = restart(stage, program, operator).await?;
    stage.remove_namespace(&namespace).await?;
    let after = floor(stage, model, clusters, "after").await?;
    Ok(Row {
        clusters,
        rounds: rounds(clusters),
        objects_per_cluster: Counts::EXPECTED.all(),
        floors: vec![before, after],
        converged,
        settled,
        quiet,
        latency,
        changing,
        changing_idle,
        restarted,
        machine: Machine::now(),
    })
}

fn rounds(clusters: usize) -> usize {
    if clusters == 1 { ROUNDS_OF_ONE } else { 1 }
}

/// The bare writer, in a namespace of its own.
async fn floor(stage: &Stage, model: &Model, clusters: usize, when: &str) -> Result<Floor> {
    let namespace = stage.namespace(&format!("floor-{clusters}-{when}")).await?;
    let idle = Idle::start();
    let mut seconds = Vec::new();
    for round in 0..rounds(clusters) {
        let posts = model.posts(stage, &namespace, round * clusters..(round + 1) * clusters).await?;
        seconds.push(floor::post_all(&stage.writer, posts).await?.as_secs_f64());
    }
    let floor = Floor { seconds: middle(&mut seconds), idle: idle.percent() };
    say(format!("{clusters} clusters: bare writer {:.3} s", floor.seconds));
    stage.remove_namespace(&namespace).await?;
    Ok(floor)
}

/// Creates clusters, in rounds, each of which but the last is removed again. Tells the numbers of the clusters that stay.
async fn converge(
    stage: &Stage,
    arguments: &Arguments,
    namespace: &str,
    clusters: usize,
    last: usize,
) -> Result<(Converged, std::ops::Range<usize>, Mark)> {
    let mut watches = Watches::start(stage, namespace).await?;
    let idle = Idle::start();
    let mut seconds = Vec::new();
    let mut requests = Requests::default();
    let mut mark = Mark::now(&stage.audit_log)?;
    for round in 0..=last {
        let numbers = round * clusters..(round + 1) * clusters;
        let post = |number| {
            let resource = cluster::resource(&stage.run, namespace, &cluster::name(number), arguments.members);
            floor::Post::of("/apis/clusterlabs.org/v1alpha1", "replicatedstatefulsets", namespace, &resource)
        };
        let posts = numbers.clone().map(post).collect();
        mark = Mark::now(&stage.audit_log)?;
        let began = Instant::now();
        let limit = Duration::from_mins(5) + Duration::from_millis(600) * u32::try_from(clusters)?;
        let (_, done) = tokio::try_join!(floor::post_all(&stage.writer, posts), watches.all_converged(clusters, limit))?;
        seconds.push((done - began).as_secs_f64());
        requests = mark.requests_of(OPERATOR)?;
        if round < last {
            remove(stage, namespace, &cluster::name(numbers.start)).await?;
            watches.all_gone(GOING).await?;
        }
    }
    let converged =
        Converged { seconds: middle(&mut seconds), idle: idle.percent(), requests, until_settled: Requests::default() };
    say(format!("{clusters} clusters: converged in {:.3} s", converged.seconds));
    Ok((converged, last * clusters..(last + 1) * clusters, mark))
}

async fn remove(stage: &Stage, namespace: &str, name: &str) -> Result<()> {
    let api: Api<ReplicatedStatefulSet> = Api::namespaced(stage.writer.clone(), namespace);
    api.delete(name, &DeleteParams::default()).await.map(drop).with_context(|| format!("{name} cannot be deleted"))
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

async fn quiet(stage: &Stage, arguments: &Arguments, operator: &mut Operator) -> Result<Quiet> {
    say(format!("watching {} quiet seconds", arguments.quiet_seconds));
    let (before, idle) = (operator.usage()?, Idle::start());
    let mark = Mark::now(&stage.audit_log)?;
    tokio::time::sleep(Duration::from_secs(arguments.quiet_seconds)).await;
    let usage = operator.usage()?;
    Ok(Quiet {
        seconds: arguments.quiet_seconds,
        requests: mark.requests_of(OPERATOR)?,
        processor_seconds: usage.processor_seconds - before.processor_seconds,
        usage,
        idle: idle.percent(),
    })
}

/// Kills the operator as a crash would, starts another, and counts what that one writes although nothing is to be done.
async fn restart(stage: &Stage, program: &Program, operator: Operator) -> Result<Restarted> {
    say("restarting the operator");
    operator.kill().await?;
    let mark = Mark::now(&stage.audit_log)?;
    let mut operator = Operator::start(stage, program)?;
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
