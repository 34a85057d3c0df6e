//! One cluster as it was read: the custom resource and its logbook.
//!
//! Reads leniently: rubbish in a stored status or logbook is told as unknown and stops nothing. Pure; it never asks the server.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::Value;
use windlass_api::logbook::{LogbookSpec, PauseRecord, RunningStep};
use windlass_core::conditions::Common;
use windlass_core::labels;
use windlass_core::lane::Lane;

use crate::advice;
use crate::kinds::Kind;
use crate::view::{
    ClusterView, ConditionView, LaneState, LaneView, MembersView, OwnerState, OwnerView, StallView, StatusView, UnprovenView,
    WorkView,
};

/// Both lanes, in the order in which they are told.
pub(crate) const LANES: [Lane; 2] = [Lane::Resources, Lane::Clustering];

/// The condition that answers to a pause of a lane.
pub(crate) fn answer(lane: Lane) -> Common {
    match lane {
        Lane::Resources => Common::ReconciliationActive,
        Lane::Clustering => Common::ClusteringActive,
    }
}

/// What was found in the place of a logbook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Logbook {
    /// There is none.
    Absent,
    /// It cannot be read, or is not this cluster's.
    Unknown(String),
    /// This cluster's.
    Read(Box<LogbookSpec>),
}

impl Logbook {
    /// Reads what was found for a cluster of this UID.
    pub(crate) fn read(object: &DynamicObject, cluster_uid: &str) -> Self {
        let spec = object.data.get("spec").cloned().unwrap_or(Value::Null);
        match serde_json::from_value::<LogbookSpec>(spec) {
            Ok(spec) if spec.cluster_uid.is_empty() || spec.cluster_uid == cluster_uid => Self::Read(Box::new(spec)),
            Ok(spec) => Self::Unknown(format!("the logbook speaks of another object, with UID {}", spec.cluster_uid)),
            Err(error) => Self::Unknown(format!("the logbook cannot be read: {error}")),
        }
    }
}

/// A cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) kind: &'static Kind,
    pub(crate) object: Arc<DynamicObject>,
    pub(crate) logbook: Logbook,
}

impl Cluster {
    pub(crate) fn name(&self) -> String {
        self.object.name_any()
    }

    pub(crate) fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// `rss/harbour`.
    pub(crate) fn handle(&self) -> String {
        self.kind.handle(&self.name())
    }

    pub(crate) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// What the logbook says, if there is one to ask.
    pub(crate) fn entries(&self) -> Option<&LogbookSpec> {
        match &self.logbook {
            Logbook::Read(spec) => Some(spec),
            Logbook::Absent | Logbook::Unknown(_) => None,
        }
    }

    pub(crate) fn conditions(&self) -> Vec<ConditionView> {
        let all = self.object.data["status"]["conditions"].as_array().into_iter().flatten();
        all.filter_map(read_condition).collect()
    }

    pub(crate) fn condition(&self, type_: &str) -> Option<ConditionView> {
        self.conditions().into_iter().find(|condition| condition.type_.eq_ignore_ascii_case(type_))
    }

    pub(crate) fn common(&self, type_: Common) -> Option<ConditionView> {
        self.condition(type_.into())
    }

    /// Whether a condition speaks of the spec as it is now.
    pub(crate) fn is_current(&self, condition: &ConditionView) -> bool {
        condition.observed_generation.is_none_or(|observed| observed >= self.generation())
    }

    pub(crate) fn members(&self) -> MembersView {
        (self.kind.members)(&self.name(), &self.object.data)
    }

    /// The pod of the one primary, of a kind that has one.
    pub(crate) fn primary(&self) -> Option<String> {
        self.members().roles.into_iter().find(|role| role.role == "primary").and_then(|role| role.members.into_iter().next())
    }

    /// `Ready`, as far as it speaks of the newest spec.
    pub(crate) fn readiness(&self) -> ConditionView {
        let told = self.common(Common::Ready);
        match told {
            // Of an older spec, or of an object that goes, "ready" says nothing.
            Some(ready) if ready.status == "True" && !self.is_current(&ready) => ConditionView {
                status: "Unknown".to_owned(),
                reason: "NotObserved".to_owned(),
                message: "the newest spec was not acted upon yet".to_owned(),
                ..ready
            },
            Some(ready) => ready,
            None => ConditionView {
                type_: "Ready".to_owned(),
                status: "Unknown".to_owned(),
                reason: "NotObserved".to_owned(),
                message: "no operator has told anything of it".to_owned(),
                observed_generation: None,
                since: None,
            },
        }
    }

    /// Whether somebody asks for a pause of this lane.
    pub(crate) fn is_pause_requested(&self, lane: Lane) -> bool {
        let annotation = self.object.annotations().get(self.kind.pause.annotation(lane));
        self.is_whole_pause_requested() || annotation.is_some_and(|value| value == "true")
    }

    /// Whether the spec asks for a pause of both lanes.
    pub(crate) fn is_whole_pause_requested(&self) -> bool {
        self.kind.pause.has_field && self.object.data["spec"]["paused"] == Value::Bool(true)
    }

    pub(crate) fn lane(&self, lane: Lane) -> LaneView {
        let requested = self.is_pause_requested(lane);
        let told = self.common(answer(lane));
        let state = match &told {
            Some(told) if told.status == "False" && requested => LaneState::Paused,
            Some(told) if told.status == "False" => LaneState::Resuming,
            Some(told) if told.status == "True" && requested => LaneState::Pausing,
            Some(told) if told.status == "True" && told.reason == "Resuming" => LaneState::Resuming,
            Some(told) if told.status == "True" => LaneState::Active,
            Some(_) | None => LaneState::Unknown,
        };
        let record = self.entries().and_then(|entries| record(entries, lane));
        let said = self.object.annotations().get(labels::PAUSE_REASON).cloned();
        let closed = matches!(state, LaneState::Paused | LaneState::Pausing);
        LaneView {
            lane: lane.to_string(),
            state,
            requested,
            since: record
                .map(|record| record.acknowledged)
                .or_else(|| told.as_ref().and_then(|told| told.since))
                .filter(|_| state == LaneState::Paused),
            reason: said.filter(|_| closed).unwrap_or_default(),
            message: told.map(|told| told.message).unwrap_or_default(),
        }
    }

    pub(crate) fn owner(&self) -> OwnerView {
        let since = self.common(Common::Managed).filter(|managed| managed.status == "True").and_then(|managed| managed.since);
        let nobody = |state, message: String| OwnerView {
            state,
            release: String::new(),
            version: String::new(),
            holder: String::new(),
            epoch: None,
            since: None,
            message,
        };
        match &self.logbook {
            Logbook::Unknown(why) => nobody(OwnerState::Unknown, why.clone()),
            Logbook::Absent => nobody(OwnerState::Unclaimed, advice::UNCLAIMED.to_owned()),
            Logbook::Read(entries) => match &entries.claim {
                None => nobody(OwnerState::Unclaimed, advice::UNCLAIMED.to_owned()),
                Some(claim) => OwnerView {
                    state: if claim.released { OwnerState::Released } else { OwnerState::Claimed },
                    release: claim.release.clone(),
                    version: claim.version.clone(),
                    holder: claim.holder.clone(),
                    epoch: Some(claim.epoch),
                    since: since.filter(|_| !claim.released),
                    message: if claim.released { advice::RELEASED.to_owned() } else { String::new() },
                },
            },
        }
    }

    /// What `list` tells.
    pub(crate) fn view(&self) -> ClusterView {
        let ready = self.readiness();
        ClusterView {
            kind: (self.kind.resource)().kind,
            namespace: self.namespace(),
            name: self.name(),
            handle: self.handle(),
            ready: ready.status,
            reason: ready.reason,
            message: ready.message,
            phase: self.object.data["status"]["phase"].as_str().map(str::to_owned),
            members: self.members(),
            lanes: LANES.map(|lane| self.lane(lane)).to_vec(),
            held: self.entries().map(|entries| entries.plan.held.len()),
            owner: self.owner(),
            deleting: self.object.metadata.deletion_timestamp.is_some(),
            created: self.object.metadata.creation_timestamp.as_ref().map(|time| time.0),
        }
    }

    /// What `status` tells.
    pub(crate) fn status(&self) -> StatusView {
        let stalled = self.common(Common::Stalled).filter(|stalled| stalled.status == "True");
        let unproven = self.entries().map(|entries| entries.unproven.as_slice()).unwrap_or_default();
        StatusView {
            cluster: self.view(),
            conditions: self.conditions(),
            in_hand: self.work(),
            stalled: stalled.map(|stalled| StallView {
                advice: advice::for_stall(&stalled.reason, &self.handle(), &self.namespace(), self.entries()),
                reason: stalled.reason,
                message: stalled.message,
            }),
            unproven: unproven.iter().map(|it| UnprovenView { entry: it.entry.clone(), why: it.why.clone() }).collect(),
        }
    }

    /// What runs, as the logbook tells it. The operator notes there only now and then what runs, and in the status always whether
    /// anything does.
    pub(crate) fn running(&self) -> &[RunningStep] {
        let idle = self.common(Common::Progressing).is_some_and(|told| told.status == "False");
        self.entries().filter(|_| !idle).map(|entries| entries.plan.running.as_slice()).unwrap_or_default()
    }

    /// What is being done: what the logbook tells, else what the status tells.
    pub(crate) fn work(&self) -> Vec<WorkView> {
        let running = self.running().iter();
        let mut work: Vec<WorkView> = running
            .map(|it| WorkView { what: it.step.clone(), percent: it.percent, since: it.since, announced: None })
            .collect();
        if let Some(entries) = self.entries() {
            work.extend(entries.intents.iter().map(|intent| WorkView {
                what: format!("{} {}", intent.act, intent.target),
                percent: None,
                since: None,
                announced: Some(intent.announced),
            }));
        }
        let told = self.common(Common::Progressing).filter(|told| told.status == "True");
        if let (true, Some(told)) = (work.is_empty(), told) {
            work.push(WorkView { what: told.message, percent: None, since: None, announced: None });
        }
        work
    }
}

fn record(entries: &LogbookSpec, lane: Lane) -> Option<&PauseRecord> {
    match lane {
        Lane::Resources => entries.pause.resources.as_ref(),
        Lane::Clustering => entries.pause.clustering.as_ref(),
    }
}

fn read_condition(stored: &Value) -> Option<ConditionView> {
    let text = |field: &str| stored[field].as_str().unwrap_or_default().to_owned();
    Some(ConditionView {
        type_: stored["type"].as_str()?.to_owned(),
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        observed_generation: stored["observedGeneration"].as_i64(),
        since: stored["lastTransitionTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok()),
    })
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
