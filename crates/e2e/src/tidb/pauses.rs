//! Pausing a TiDB cluster, and what may be written while it is paused.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{NAME, Tidb};
use crate::audit::{Entry, Mark};
use crate::wait::{LONG, wait_for};

/// What is told, whatever is paused.
const TOLD: [&str; 3] = ["tidbclusters/status", "logbooks", "events"];
/// What discovery consists of. It is looked after all the time: a member of PD that lost its data could not start without it.
const DISCOVERY: [&str; 6] = ["serviceaccounts", "roles", "rolebindings", "services", "controllerrevisions", "deployments"];

fn is_allowed(entry: &Entry) -> bool {
    let resource = entry.resource();
    let discovery = format!("{NAME}-discovery");
    TOLD.contains(&resource.as_str()) || (DISCOVERY.contains(&resource.as_str()) && entry.name().starts_with(&discovery))
}

impl Tidb {
    /// Pauses and waits for the acknowledgement.
    pub async fn pause(&self) -> Result<()> {
        self.patch(&json!({ "spec": { "paused": true } })).await?;
        wait_for("the pause is acknowledged", LONG, async || {
            for type_ in ["ReconciliationActive", "ClusteringActive"] {
                let found = self.condition(type_).await?;
                ensure!(found.status == "False" && found.reason == "Paused", "{type_} {} ({})", found.status, found.reason);
            }
            Ok(())
        })
        .await
    }

    /// Resumes, and waits until that is told.
    pub async fn resume(&self) -> Result<()> {
        self.patch(&json!({ "spec": { "paused": false } })).await?;
        for type_ in ["ReconciliationActive", "ClusteringActive"] {
            self.wait_for_condition(type_, "True").await?;
        }
        Ok(())
    }

    /// Waits until each of these is part of a held step.
    pub async fn wait_until_held(&self, wanted: &[&str]) -> Result<()> {
        wait_for("the steps are held", LONG, async || {
            let held = self.logbook().await?.plan.held;
            let steps: Vec<&String> = held.iter().map(|step| &step.step).collect();
            for part in wanted {
                ensure!(steps.iter().any(|step| step.contains(part)), "{part:?} is not held: {steps:?}");
            }
            Ok(())
        })
        .await
    }

    /// What the operator wrote here since a moment, apart from what it told and what it did for discovery.
    pub fn written_since(&self, since: Mark) -> Result<Vec<Entry>> {
        let stage = self.place.stage();
        let requests = stage.audit().requests_of(&stage.operator_user(), since)?;
        let is_other = |entry: &Entry| entry.is_write() && entry.namespace() == self.place.namespace() && !is_allowed(entry);
        Ok(requests.into_iter().filter(is_other).collect())
    }

    /// Fails when the operator did anything here since a moment but tell, and look after discovery. Returns what it wrote, counted.
    pub fn only_told_since(&self, since: Mark) -> Result<BTreeMap<String, usize>> {
        let stage = self.place.stage();
        let requests = stage.audit().requests_of(&stage.operator_user(), since)?;
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for entry in requests.iter().filter(|entry| entry.is_write() && entry.namespace() == self.place.namespace()) {
            ensure!(is_allowed(entry), "written while paused: {}", entry.describe());
            *told.entry(entry.resource()).or_default() += 1;
        }
        Ok(told)
    }
}
