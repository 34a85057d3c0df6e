//! Pausing a cluster, and what may be written while it is paused.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use windlass_api::logbook::PlannedStep;
use windlass_api::replicated::Phase;
use windlass_core::labels;

use crate::audit::Mark;
use crate::cluster::{Cluster, condition};
use crate::wait::{LONG, wait_for};

/// What may be written while both lanes are closed. Reads, and the hooks that only ask, are no writes.
const ALLOWED: [&str; 3] = ["replicatedstatefulsets/status", "logbooks", "events"];
/// More writes than this in a minute, while a handful of things happens, is a storm.
const STORM: usize = 20;

impl Cluster {
    /// Pauses and waits for the acknowledgement.
    pub async fn pause(&self, why: &str) -> Result<()> {
        self.patch(&json!({ "metadata": { "annotations": { labels::PAUSE_REASON: why } }, "spec": { "paused": true } }))
            .await?;
        wait_for("the pause is acknowledged", LONG, async || {
            let status = self.status().await?;
            for type_ in ["ReconciliationActive", "ClusteringActive"] {
                let found = condition(&status, type_)?;
                ensure!(found.status == "False" && found.reason == "Paused", "{type_} {} ({})", found.status, found.reason);
                ensure!(found.message.contains(why), "{type_} does not say why: {}", found.message);
            }
            ensure!(status.phase == Some(Phase::Paused) && status.control_paused, "phase {:?}", status.phase);
            let pause = self.logbook().await?.spec.pause;
            ensure!(pause.resources.is_some_and(|record| record.reason == why), "the logbook has no pause of the resources");
            ensure!(pause.clustering.is_some_and(|record| record.reason == why), "the logbook has no pause of the clustering");
            Ok(())
        })
        .await
    }

    /// Resumes.
    pub async fn resume(&self) -> Result<()> {
        self.patch(&json!({ "spec": { "paused": false } })).await.map(drop)
    }

    /// The steps that the pause holds back, as the logbook tells them.
    pub async fn held(&self) -> Result<Vec<PlannedStep>> {
        Ok(self.logbook().await?.spec.plan.held)
    }

    /// Waits until each of these is part of a held step, and of what the status says.
    pub async fn wait_until_held(&self, wanted: &[&str]) -> Result<()> {
        wait_for("the steps are held", LONG, async || {
            let held = self.held().await?;
            let status = self.status().await?;
            let told = &condition(&status, "Ready")?.message;
            for part in wanted {
                let steps: Vec<&String> = held.iter().map(|step| &step.step).collect();
                ensure!(steps.iter().any(|step| step.contains(part)), "{part:?} is not held: {steps:?}");
                ensure!(told.contains(part), "the status does not tell {part:?}: {told}");
            }
            Ok(())
        })
        .await
    }

    /// Fails when the operator did anything since a moment but tell and ask. Returns what it told, counted.
    pub async fn only_told_since(&self, since: Mark) -> Result<BTreeMap<String, usize>> {
        let requests = self.operator_requests(since)?;
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for entry in requests.iter().filter(|entry| entry.is_write()) {
            ensure!(ALLOWED.contains(&entry.resource().as_str()), "written while paused: {}", entry.describe());
            *told.entry(entry.resource()).or_default() += 1;
        }
        let deeds = self.deeds(since).await?;
        ensure!(deeds.is_empty(), "run while paused: {}", deeds.first().map(crate::Entry::describe).context("no deed")?);
        let storm = told.iter().find(|(_, count)| **count > STORM);
        ensure!(storm.is_none(), "the operator writes again and again: {told:?}");
        Ok(told)
    }
}
