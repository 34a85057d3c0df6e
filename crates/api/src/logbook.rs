//! The logbook: what Windlass must remember about one cluster, and what people read to see what comes next.
//!
//! Written by the operator alone, by compare-and-swap. Unknown fields are kept: an older release must not lose what a newer
//! one wrote.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type")]

pub mod mysql;
pub mod tidb;

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
        name = "Owner",
        type_ = "string",
        json_path = ".spec.claim.release",
        description = "the release that looks after the cluster"
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.claim.version", description = "its version"),
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
    /// The UID of this logbook itself. A copy that was put back from a backup has another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_uid: String,
    /// How often something changed that steps rest upon. The newest one is noted on the StatefulSets, so that an older copy of the
    /// logbook is known for what it is.
    #[serde(default)]
    pub edition: u64,
    /// Who looks after the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Entries that were lost or contradicted. Steps that cannot be undone wait until each was seen again or overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<Unproven>,
    /// The generation of the custom resource that was last acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_generation: Option<i64>,
    /// Replica counts that were observed.
    #[serde(default)]
    pub counts: Counts,
    /// The histories (for Galera: state UUIDs) that this cluster was ever seen to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histories: Vec<String>,
    /// On which volumes each member that served keeps its data: the UIDs of its claims, or of its pod where it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, String>,
    /// What is remembered of a MySQLCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mysql: Option<mysql::MySqlEntries>,
    /// What is remembered of a TidbCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tidb: Option<tidb::TidbEntries>,
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
    /// The last steps that could not be undone, the newest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<Act>,
    /// Overrides that were used. Each is used once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// Who looks after a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The release, as `namespace/name` of its Lease.
    pub release: String,
    /// Its version.
    pub version: String,
    /// The process that acted last.
    #[serde(default)]
    pub holder: String,
    /// Grows whenever another process begins to act. Hooks refuse an older one.
    pub epoch: u64,
    /// Whether the release gave the cluster up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// An entry that was lost or contradicted.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unproven {
    /// Which entry: `counts`, `histories` or `intents`.
    pub entry: String,
    /// What was found.
    pub why: String,
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
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
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
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// One acknowledged pause.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseRecord {
    /// When the pause was acknowledged.
    #[schemars(with = "String")]
    pub acknowledged: Timestamp,
    /// Why, in the user's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
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
    /// What runs now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningStep>,
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

/// An operation that runs, in words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningStep {
    /// What is being done.
    pub step: String,
    /// When it began; absent when it is over soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// How much of it is done, in percent and in steps of five; absent when it cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

/// An announced step that cannot be undone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
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
    /// The size that it leads to, of a step that makes a cluster smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u16>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A step that could not be undone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Act {
    /// What kind of step, e.g. `Seed`.
    pub act: String,
    /// On which object or member.
    pub target: String,
    /// The UID of that object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// When it was announced.
    #[schemars(with = "String")]
    pub announced: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The release and version that announced it, as `namespace/name@version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// What came of it: `Done` or `Withdrawn`.
    pub outcome: String,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// An override that was used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Which entry or member it was about.
    pub entry: String,
    /// What the user said.
    pub value: String,
    /// The UID that it was bound to.
    pub uid: String,
    /// When it was used.
    #[schemars(with = "String")]
    pub used: Timestamp,
    /// Whether it has had its effect: what it was about is so no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}
