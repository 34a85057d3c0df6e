//! What the verbs tell, as data: the shapes of `-o json` and `-o yaml`. Fields are added to them, never renamed or taken away.

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// What `list` tells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListView {
    /// The clusters, by namespace and name.
    pub clusters: Vec<ClusterView>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// The kind of its custom resource.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How the other verbs call it: `rss/harbour`.
    pub handle: String,
    /// Whether the newest spec is in force and all is well: `True`, `False` or `Unknown`.
    pub ready: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// The phase, for kinds that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Its members.
    pub members: MembersView,
    /// Its two lanes.
    pub lanes: Vec<LaneView>,
    /// How many steps a pause holds back; absent when there is no logbook to tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<usize>,
    /// Who looks after it.
    pub owner: OwnerView,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub created: Option<Timestamp>,
}

/// The members of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MembersView {
    /// How many are ready.
    pub ready: usize,
    /// How many there are; absent when nobody has counted yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<usize>,
    /// How many there should be.
    pub wanted: usize,
    /// The members by what they were seen to be. A member may have several roles.
    pub roles: Vec<RoleView>,
    /// The components, for kinds that have several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentView>,
}

/// One component of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentView {
    /// Its name in the spec.
    pub component: String,
    /// How many of its pods are ready.
    pub ready: usize,
    /// How many there should be.
    pub wanted: usize,
    /// Its members, by the names of their pods.
    pub members: Vec<MemberView>,
}

/// One member of a component.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// The name of its pod.
    pub name: String,
    /// How it is, in the words of the database.
    pub state: String,
    /// Its number there, for stores.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// The members with one role.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleView {
    /// The role: `primary`, `secondary`, `unready` or `failed`.
    pub role: String,
    /// The names of the members' pods.
    pub members: Vec<String>,
}

/// One lane of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaneView {
    /// `Resources` or `Clustering`.
    pub lane: String,
    /// What was answered.
    pub state: LaneState,
    /// Whether a pause of it is asked for.
    pub requested: bool,
    /// Since when the pause is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Why it is paused, in the words of whoever paused it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the operator says about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What was answered to a pause, or to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::Display)]
pub enum LaneState {
    /// Steps are taken.
    Active,
    /// A pause is asked for and not acknowledged yet.
    Pausing,
    /// A pause is acknowledged: nothing is written.
    Paused,
    /// A pause is withdrawn, and that was not acted upon yet.
    Resuming,
    /// Nobody has said anything.
    Unknown,
}

/// Who looks after a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerView {
    /// What is known of it.
    pub state: OwnerState,
    /// The release, as `namespace/name` of its Lease.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The process that acted last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub holder: String,
    /// Grows whenever another process begins to act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Since when the cluster says that it is managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Why it is not known, or what follows from it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What is known of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, strum::Display)]
pub enum OwnerState {
    /// A release looks after the cluster.
    Claimed,
    /// The release named gave the cluster up, and nobody has taken it.
    Released,
    /// No release has taken the cluster: none is there, or no selector matches it.
    Unclaimed,
    /// The logbook cannot be read.
    Unknown,
}

/// What `status` tells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// What `list` tells of it, too.
    #[serde(flatten)]
    pub cluster: ClusterView,
    /// All conditions of its status.
    pub conditions: Vec<ConditionView>,
    /// What is being done.
    pub in_hand: Vec<WorkView>,
    /// What cannot go on without a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<StallView>,
    /// Entries of the logbook that were lost or contradicted.
    pub unproven: Vec<UnprovenView>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// The generation of the spec that it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Since when it has this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
}

/// Something that is being done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkView {
    /// What.
    pub what: String,
    /// How much of it is done, in percent; absent when it cannot be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// When it began, for what takes its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// When it was announced, for steps that cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub announced: Option<Timestamp>,
}

/// Something that cannot go on without a person.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StallView {
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// An entry of the logbook that was lost or contradicted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnprovenView {
    /// Which entry.
    pub entry: String,
    /// What was found.
    pub why: String,
}

/// What `plan` tells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// The cluster.
    pub handle: String,
    /// Its namespace.
    pub namespace: String,
    /// The lanes whose pause is acknowledged.
    pub paused: Vec<String>,
    /// The steps: first what runs, then what waits, then what a pause holds back.
    pub steps: Vec<StepView>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    /// Where it stands.
    pub state: StepState,
    /// `Resources` or `Clustering`; absent for what runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lane: String,
    /// What is, or would be, done.
    pub step: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How much of it is done, in percent; absent when it cannot be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::Display)]
pub enum StepState {
    /// It runs.
    Running,
    /// It is taken when what it waits for has come.
    Next,
    /// A pause holds it back.
    Held,
}

/// What `log` tells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    /// The cluster.
    pub handle: String,
    /// Its namespace.
    pub namespace: String,
    /// Steps that cannot be undone and overrides, the newest at the end.
    pub entries: Vec<LogEntryView>,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntryView {
    /// When it was announced, or used.
    #[schemars(with = "String")]
    pub time: Timestamp,
    /// What kind of step, such as `Seed`, or `Override`.
    pub act: String,
    /// On which object or member, or about which entry.
    pub target: String,
    /// `Open` while its end was not seen, then `Done` or `Withdrawn`; `Used` for an override.
    pub outcome: String,
    /// The release and version that did it, as `namespace/name@version`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why; for an override, what the user said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The UID that it was bound to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What `owner` tells of one cluster.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOwnerView {
    /// The cluster.
    pub handle: String,
    /// Its namespace.
    pub namespace: String,
    /// Who looks after it.
    pub owner: OwnerView,
}

/// What `owner` tells when no cluster is named.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnersView {
    /// The releases, and what each looks after.
    pub releases: Vec<ReleaseView>,
}

/// A release and the clusters that it looks after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseView {
    /// How it stands to these clusters; anything but `Claimed` means that nobody looks after them now.
    pub state: OwnerState,
    /// The release, as `namespace/name` of its Lease.
    pub release: String,
    /// Its version.
    pub version: String,
    /// The processes that acted last.
    pub holders: Vec<String>,
    /// The clusters, as `namespace/rss/harbour`.
    pub clusters: Vec<String>,
}
