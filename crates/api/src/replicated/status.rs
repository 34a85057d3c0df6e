//! What the operator reports. Computed from observation; nothing in it is obeyed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient::or_default;

/// What the operator reports.
///
/// Reading is lenient: whatever somebody wrote here, the object can still be read, and the next commit heals it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicatedStatefulSetStatus {
    /// The generation of the spec that was last acted upon.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A summary of the conditions: Creating, Running, Recovering, Paused or Failed.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Why, in a sentence.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// True when a pause was acknowledged in both lanes.
    #[serde(default, deserialize_with = "or_default")]
    pub control_paused: bool,
    /// The state of the cluster, one entry per type, all types always present.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How many members have a pod.
    #[serde(default, deserialize_with = "or_default")]
    pub replicas: u16,
    /// How many members hold data and must be heard before anything is seeded again.
    #[serde(default, deserialize_with = "or_default")]
    pub restore_replicas: u16,
    /// The Service that clients use.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// The port that clients use.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub client_port: Option<i32>,
    /// The members, by what they were seen to be.
    #[serde(default, deserialize_with = "or_default")]
    pub members: MembersStatus,
    /// The label selector of the members' pods, for the scale subresource.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub selector: String,
}

/// The members, by what they were seen to be. A member may be in several lists.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MembersStatus {
    /// Pods that are ready.
    #[serde(default, deserialize_with = "or_default")]
    pub ready: Vec<String>,
    /// Members that should be there and are not ready.
    #[serde(default, deserialize_with = "or_default")]
    pub unready: Vec<String>,
    /// Members whose status hook reported a failure.
    #[serde(default, deserialize_with = "or_default")]
    pub failed: Vec<String>,
    /// Members that run as primaries.
    #[serde(default, deserialize_with = "or_default")]
    pub primary: Vec<String>,
    /// Members that run as secondaries.
    #[serde(default, deserialize_with = "or_default")]
    pub secondary: Vec<String>,
}

/// A summary of the conditions, for people and old scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// The cluster was not complete yet.
    Creating,
    /// The cluster serves.
    Running,
    /// A pause was acknowledged.
    Paused,
    /// No member serves; the operator works on it.
    Recovering,
    /// The cluster cannot go on without help; it goes on by itself when the cause is gone.
    Failed,
}
