//! What the operator reports of single members. As lenient as the rest of the status.

#![expect(clippy::zero_sized_map_values, reason = "sets are written as maps of nothing in this API")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient::or_default;

/// Nothing: what counts is that its key is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Nothing {}

/// A member of PD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdMember {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its id.
    #[serde(default, deserialize_with = "or_default")]
    pub id: String,
    /// Where clients reach it.
    #[serde(default, deserialize_with = "or_default", rename = "clientURL")]
    pub client_url: String,
    /// Whether it is healthy.
    #[serde(default, deserialize_with = "or_default")]
    pub health: bool,
    /// Since when.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// A member of PD that failed and is replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureMember {
    /// Its pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Its id.
    #[serde(default, deserialize_with = "or_default", rename = "memberID", skip_serializing_if = "String::is_empty")]
    pub member_id: String,
    /// The UIDs of its claims.
    #[serde(default, deserialize_with = "or_default", rename = "pvcUIDSet", skip_serializing_if = "BTreeMap::is_empty")]
    pub pvc_uid_set: BTreeMap<String, Nothing>,
    /// Whether PD has forgotten it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub member_deleted: bool,
    /// Whether its node is down.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub host_down: bool,
    /// When that was noted.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// A pod of PD that is no member yet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnjoinedMember {
    /// Its pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// The UIDs of its claims.
    #[serde(default, deserialize_with = "or_default", rename = "pvcUIDSet", skip_serializing_if = "BTreeMap::is_empty")]
    pub pvc_uid_set: BTreeMap<String, Nothing>,
    /// When that was noted.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// A store.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// Its id.
    #[serde(default, deserialize_with = "or_default")]
    pub id: String,
    /// Its pod.
    #[serde(default, deserialize_with = "or_default")]
    pub pod_name: String,
    /// Its host name.
    #[serde(default, deserialize_with = "or_default")]
    pub ip: String,
    /// Its state, as PD calls it: Up, Disconnected, Down, Offline or Tombstone.
    #[serde(default, deserialize_with = "or_default")]
    pub state: String,
    /// Since when.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// A store that failed and is replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureStore {
    /// Its pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Its id.
    #[serde(default, deserialize_with = "or_default", rename = "storeID", skip_serializing_if = "String::is_empty")]
    pub store_id: String,
    /// The UIDs of its claims.
    #[serde(default, deserialize_with = "or_default", rename = "pvcUIDSet", skip_serializing_if = "BTreeMap::is_empty")]
    pub pvc_uid_set: BTreeMap<String, Nothing>,
    /// Whether PD has forgotten it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub store_deleted: bool,
    /// Whether its node is down.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub host_down: bool,
    /// When that was noted.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// A store that leaders are moved away from, because its pod says so.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictLeader {
    /// When the pod was made.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub pod_create_time: Option<Time>,
    /// When it began.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub begin_time: Option<Time>,
    /// What the pod says: none or delete-pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// A server of TiDB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbMember {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Whether it is healthy.
    #[serde(default, deserialize_with = "or_default")]
    pub health: bool,
    /// Since when.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Its node.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub node: String,
}

/// A server of TiDB that failed and is replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbFailureMember {
    /// Its pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// When that was noted.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// A capture of TiCDC.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capture {
    /// Its pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Its id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Its version.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Whether it leads the others.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub is_owner: bool,
    /// Whether it is ready.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
}

/// A proxy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiproxyMember {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Whether it is healthy.
    #[serde(default, deserialize_with = "or_default")]
    pub health: bool,
    /// What it says of itself.
    #[serde(default, deserialize_with = "or_default")]
    pub info: String,
    /// Since when.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// A pump.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PumpMember {
    /// Its id.
    #[serde(default, deserialize_with = "or_default")]
    pub node_id: String,
    /// Its host name.
    #[serde(default, deserialize_with = "or_default")]
    pub host: String,
    /// Its state: online, pausing, paused, closing or offline.
    #[serde(default, deserialize_with = "or_default")]
    pub state: String,
}
