//! What the logbook tells: the plan, the log, and who looks after a cluster. Pure.

use std::collections::BTreeMap;

use windlass_api::logbook::RunningStep;

use crate::cluster::{Cluster, LANES};
use crate::view::{
    ClusterOwnerView, LaneState, LogEntryView, LogView, OwnerState, OwnersView, PlanView, ReleaseView, StepState, StepView,
};

impl Cluster {
    /// What `plan` tells.
    pub(crate) fn plan(&self) -> PlanView {
        let running = |running: &RunningStep| StepView {
            state: StepState::Running,
            lane: String::new(),
            step: running.step.clone(),
            reason: String::new(),
            percent: running.percent,
        };
        let mut steps: Vec<StepView> = self.running().iter().map(running).collect();
        if let Some(entries) = self.entries() {
            for (state, planned) in [(StepState::Next, &entries.plan.next), (StepState::Held, &entries.plan.held)] {
                steps.extend(planned.iter().map(|planned| StepView {
                    state,
                    lane: planned.lane.clone(),
                    step: planned.step.clone(),
                    reason: planned.reason.clone(),
                    percent: None,
                }));
            }
        }
        let lanes = LANES.map(|lane| self.lane(lane));
        let paused = lanes.iter().filter(|lane| lane.state == LaneState::Paused).map(|lane| lane.lane.clone()).collect();
        PlanView { handle: self.handle(), namespace: self.namespace(), paused, steps }
    }

    /// What `log` tells.
    pub(crate) fn log(&self) -> LogView {
        let mut all = Vec::new();
        if let Some(book) = self.entries() {
            all.extend(book.acts.iter().map(|act| LogEntryView {
                time: act.announced,
                act: act.act.clone(),
                target: act.target.clone(),
                outcome: act.outcome.clone(),
                by: act.by.clone(),
                reason: act.reason.clone(),
                uid: act.uid.clone(),
            }));
            all.extend(book.overrides.iter().map(|used| LogEntryView {
                time: used.used,
                act: "Override".to_owned(),
                target: used.entry.clone(),
                outcome: "Used".to_owned(),
                by: String::new(),
                reason: used.value.clone(),
                uid: used.uid.clone(),
            }));
            all.extend(book.intents.iter().map(|intent| LogEntryView {
                time: intent.announced,
                act: intent.act.clone(),
                target: intent.target.clone(),
                outcome: "Open".to_owned(),
                by: String::new(),
                reason: intent.reason.clone(),
                uid: intent.uid.clone(),
            }));
        }
        // Stable: what happened within one second stays in the order in which it was noted.
        all.sort_by_key(|entry| entry.time);
        LogView { handle: self.handle(), namespace: self.namespace(), entries: all }
    }

    /// What `owner` tells.
    pub(crate) fn owner_view(&self) -> ClusterOwnerView {
        ClusterOwnerView { handle: self.handle(), namespace: self.namespace(), owner: self.owner() }
    }
}

/// Who looks after which of these clusters.
pub(crate) fn owners_of(clusters: &[Cluster]) -> OwnersView {
    let mut releases: BTreeMap<(OwnerState, String, String), ReleaseView> = BTreeMap::new();
    for cluster in clusters {
        let owner = cluster.owner();
        let key = (owner.state, owner.release.clone(), owner.version.clone());
        let release = releases.entry(key).or_insert_with(|| ReleaseView {
            state: owner.state,
            release: owner.release,
            version: owner.version,
            holders: Vec::new(),
            clusters: Vec::new(),
        });
        release.clusters.push(format!("{}/{}", cluster.namespace(), cluster.handle()));
        if !owner.holder.is_empty() && !release.holders.contains(&owner.holder) {
            release.holders.push(owner.holder);
        }
    }
    OwnersView { releases: releases.into_values().collect() }
}
