//! From a changed spec to the changed `StatefulSet`: one change at a time, at clusters chosen at random, while the others are quiet.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use serde::Serialize;
use windlass_core::labels;

use crate::cluster;
use crate::kind::Kind;
use crate::stage::Stage;

/// Between two changes, so that what follows a change does not fall on the next one.
const PAUSE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(30);
/// The same clusters in every run.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// How long changes took, in milliseconds from the answer to the PATCH until the watch showed the new template.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Latency {
    pub(crate) samples: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
    /// How long the PATCH itself took, in the middle: what one request costs on this machine now.
    pub(crate) patch_p50: f64,
    /// Changes that did not arrive in time.
    pub(crate) lost: usize,
}

/// Changes specs of the clusters of these numbers, and times the arrival of each change.
pub(crate) async fn measure(stage: &Stage, kind: Kind, namespace: &str, clusters: &[usize], samples: usize) -> Result<Latency> {
    let api = Api::<StatefulSet>::namespaced(stage.writer.clone(), namespace);
    let mut sets = watcher(api, watcher::Config::default()).boxed();
    while !matches!(sets.try_next().await?.context("a watch of the bench ended")?, Event::InitDone) {}
    let resources: Api<DynamicObject> = Api::namespaced_with(stage.writer.clone(), namespace, &kind.api());
    let (mut times, mut patches, mut lost, mut random) = (Vec::new(), Vec::new(), 0, SEED);
    for sample in 0..samples {
        let number = clusters.get(pick(&mut random, clusters.len())).context("there is no cluster to change")?;
        let name = cluster::name(*number);
        let value = format!("change-{sample}");
        let patch = kind.change(&value).context("nothing of this kind is changed here")?;
        let arrived = async {
            while let Some(event) = sets.try_next().await? {
                if let Event::Apply(set) = event
                    && belongs_to(&set, &name)
                    && variable(&set) == Some(&value)
                {
                    return Ok(Instant::now());
                }
            }
            anyhow::bail!("the watch of StatefulSets ended")
        };
        let sent = Instant::now();
        let change = async {
            resources
                .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .with_context(|| format!("PATCH of {name}"))?;
            Ok(Instant::now())
        };
        match tokio::time::timeout(LIMIT, async { tokio::try_join!(change, arrived) }).await {
            Ok(both) => {
                let (answered, arrived) = both?;
                patches.push(milliseconds(answered - sent));
                // The operator may be faster than the answer to the PATCH.
                times.push(milliseconds(arrived.saturating_duration_since(answered)));
            }
            Err(_) => lost += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Latency {
        samples: times.len(),
        p50: percentile(&mut times, 50),
        p99: percentile(&mut times, 99),
        longest: percentile(&mut times, 100),
        patch_p50: percentile(&mut patches, 50),
        lost,
    })
}

fn belongs_to(set: &StatefulSet, cluster: &str) -> bool {
    set.metadata.labels.as_ref().and_then(|all| all.get(labels::INSTANCE)).is_some_and(|name| name == cluster)
}

fn variable(set: &StatefulSet) -> Option<&String> {
    let pod = set.spec.as_ref()?.template.spec.as_ref()?;
    let variables = pod.containers.iter().filter_map(|container| container.env.as_ref()).flatten();
    variables.into_iter().find(|variable| variable.name == cluster::VARIABLE)?.value.as_ref()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The smallest value that so many percent of all do not exceed; nothing is interpolated.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A number below `bound` (xorshift: nothing here needs better).
fn pick(state: &mut u64, bound: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut values: Vec<f64> = (1..=200).map(f64::from).rev().collect();
        let shown = [50, 99, 100].map(|percent| percentile(&mut values, percent).to_string());
        assert_eq!(shown, ["100", "198", "200"]);
        assert_eq!(percentile(&mut [7.0], 99).to_string(), "7");
        assert!(percentile(&mut [], 50).is_nan());
    }

    #[test]
    fn picks_stay_in_bounds_and_differ() {
        let mut state = SEED;
        let picked: std::collections::HashSet<usize> = (0..1000).map(|_| pick(&mut state, 100)).collect();
        assert!(picked.iter().all(|pick| *pick < 100) && picked.len() > 90);
    }
}
