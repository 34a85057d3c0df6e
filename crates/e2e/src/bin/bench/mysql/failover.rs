//! How long clusters are without a primary when theirs is lost: from the loss to the first statement by which another server takes
//! writes. The pods' status says nothing of it until then: only the server's connections do.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use serde::Serialize;

use super::cluster::Loss;
use super::{Fleet, resource};
use crate::cluster;
use crate::converge::Watches;
use crate::kubelet::Kubelet;
use crate::latency::percentile;
use crate::machine::Idle;

/// Who has no new primary by then has none at all.
const LIMIT: Duration = Duration::from_mins(1);
/// How long clusters may take to be whole again once the lost server is back.
const WHOLE: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(5);
/// A cluster is Healthy again when it has been for so long: what was told before the loss may still be on its way.
const SETTLED: Duration = Duration::from_secs(3);
/// How many servers are started again at once.
const AT_ONCE: usize = 16;

/// How primaries are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum How {
    /// Their connections are closed, and new ones are not taken.
    Killed,
    /// Their connections stay, and nothing is answered.
    Hangs,
}

/// What was measured of one way to lose primaries.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failover {
    pub(crate) how: How,
    /// How many clusters lost theirs at the same moment.
    pub(crate) at_once: usize,
    pub(crate) samples: usize,
    /// Milliseconds until the first replica was told to receive nothing any more: the operator has decided by then.
    pub(crate) decided_p50: f64,
    /// Milliseconds until another server took writes.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
    /// Clusters that had no new primary in time.
    pub(crate) lost: usize,
    /// The longest time in seconds from the return of the lost servers until all clusters of a round were Healthy again.
    pub(crate) healthy_seconds: f64,
    pub(crate) idle: Option<u64>,
}

/// Where clusters are, and who looks after their pods and their states.
pub(crate) struct Scene<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) kubelet: &'a Kubelet,
    pub(crate) watches: &'a mut Watches,
    pub(crate) namespace: &'a str,
    /// How many clusters there are.
    pub(crate) clusters: usize,
}

/// Lets the clusters of these numbers lose their primaries: so many at once, round after round.
pub(crate) async fn measure(scene: &mut Scene<'_>, how: How, numbers: &[usize], at_once: usize) -> Result<Failover> {
    let idle = Idle::start();
    let (mut decided, mut opened, mut lost, mut healthy) = (Vec::new(), Vec::new(), 0, Duration::ZERO);
    for round in numbers.chunks(at_once) {
        let names: Vec<String> = round.iter().map(|number| resource::set(&cluster::name(*number))).collect();
        let losses = scene.lose(how, &names).await?;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        decided.extend(losses.iter().filter_map(Loss::until_stopped).map(milliseconds));
        opened.extend(losses.iter().filter_map(Loss::until_opened).map(milliseconds));
        lost += losses.iter().filter(|loss| loss.until_opened().is_none()).count();
        healthy = healthy.max(scene.mend(&names, &losses).await?);
    }
    Ok(Failover {
        how,
        at_once,
        samples: opened.len(),
        decided_p50: percentile(&mut decided, 50),
        p50: percentile(&mut opened, 50),
        p99: percentile(&mut opened, 99),
        longest: percentile(&mut opened, 100),
        lost,
        healthy_seconds: healthy.as_secs_f64(),
        idle: idle.percent(),
    })
}

impl Scene<'_> {
    /// Takes the primaries from these clusters, and waits until they have others.
    async fn lose(&self, how: How, names: &[String]) -> Result<Vec<Loss>> {
        for name in names {
            let who = match how {
                How::Killed => self.fleet.kill_primary(self.namespace, name),
                How::Hangs => self.fleet.silence_primary(self.namespace, name),
            };
            ensure!(who.is_some(), "{name} has no primary that could be lost");
        }
        let began = Instant::now();
        loop {
            let losses: Vec<Loss> = names.iter().filter_map(|name| self.fleet.loss(self.namespace, name)).collect();
            if losses.iter().all(|loss| loss.until_opened().is_some()) || began.elapsed() > LIMIT {
                return Ok(losses);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Starts the lost servers again, and waits until all is as before. Tells how long that took, until the last was Healthy.
    async fn mend(&mut self, names: &[String], losses: &[Loss]) -> Result<Duration> {
        let began = Instant::now();
        let restarts = names.iter().zip(losses).map(|(name, loss)| Ok(format!("{name}-{}", loss.who)));
        let (kubelet, namespace) = (self.kubelet, self.namespace);
        futures::stream::iter(restarts)
            .try_for_each_concurrent(AT_ONCE, |pod| async move { kubelet.restart(namespace, &pod).await })
            .await?;
        while !names.iter().all(|name| self.fleet.is_whole(self.namespace, name)) {
            ensure!(began.elapsed() < WHOLE, "not all clusters are whole {} s after their servers came back", WHOLE.as_secs());
            tokio::time::sleep(POLL).await;
        }
        let since = self.watches.stay_converged(self.clusters, SETTLED, WHOLE).await?;
        Ok(since.saturating_duration_since(began))
    }
}
