//! The logbook: what Windlass must remember about one cluster, and what people read to see what comes next.
//!
//! Written by the operator alone, by compare-and-swap. Unknown fields are kept: an older release must not lose what a newer
//! one wrote.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The content of a logbook. There is one logbook per cluster, owned by the cluster's custom resource.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "Logbook",
    namespaced,
    category = "windlass",
    derive = "PartialEq",
    doc = "What Windlass remembers about one cluster. Written by the operator alone; read it with kubectl windlass plan and log.",
    printcolumn(
        name = "Held",
        type_ = "integer",
        json_path = ".spec.summary.held",
        description = "steps held back by a pause"
    ),
    printcolumn(name = "Next", type_ = "string", json_path = ".spec.summary.next", description = "the first step that waits"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct LogbookSpec {
    /// The UID of the custom resource that this logbook speaks of. A logbook with another UID is not this cluster's.
    #[serde(default)]
    pub cluster_uid: String,
    /// The generation of the custom resource that was last acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_generation: Option<i64>,
    /// Replica counts that were observed.
    #[serde(default)]
    pub counts: Counts,
    /// The histories (for Galera: state UUIDs) that this cluster was ever seen to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histories: Vec<String>,
    /// The acknowledged pauses, by lane.
    #[serde(default)]
    pub pause: Pauses,
    /// What the operator would do next, and what it holds back.
    #[serde(default)]
    pub plan: PlannedSteps,
    /// The plan in two words, for `kubectl get`.
    #[serde(default)]
    pub summary: Summary,
    /// Announced steps that cannot be undone and whose end was not seen yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Intent>,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// Replica counts that were observed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// The largest number of members ever observed.
    #[serde(default)]
    pub largest: u16,
    /// The number of members that hold data and must be heard before anything is seeded again.
    #[serde(default)]
    pub restore: u16,
}

/// The acknowledged pauses, by lane.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pauses {
    /// Kubernetes objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<PauseRecord>,
    /// Database clustering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering: Option<PauseRecord>,
}

/// One acknowledged pause.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseRecord {
    /// When the pause was acknowledged.
    #[schemars(with = "String")]
    pub acknowledged: Timestamp,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What the operator would do next, and what it holds back.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedSteps {
    /// Steps that will be taken when what they wait for has come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<PlannedStep>,
    /// Steps that a pause holds back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<PlannedStep>,
}

/// The plan in two words, for `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// How many steps are held back.
    #[serde(default)]
    pub held: u16,
    /// The first step that waits or is held.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

/// One step, in words.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// `Resources` or `Clustering`.
    pub lane: String,
    /// What would be done.
    pub step: String,
    /// Why.
    pub reason: String,
}

/// An announced step that cannot be undone.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// What kind of step, e.g. `Seed`.
    pub act: String,
    /// On which object or member.
    pub target: String,
    /// The UID of that object when it was announced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// When it was announced.
    #[schemars(with = "String")]
    pub announced: Timestamp,
}
