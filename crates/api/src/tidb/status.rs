//! What the operator reports of the cluster and of each component.
//!
//! Computed from observation; nothing in it is obeyed. Numbers that change by themselves (leaders, regions, heartbeats) are metrics and
//! not here. Ids of PD are text: they are larger than what JSON can carry as a number.
//!
//! Reading is lenient: whatever somebody wrote here, the object can still be read, and the next commit heals it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::members::{
    Capture, EvictLeader, FailureMember, FailureStore, PdMember, PumpMember, Store, TidbFailureMember, TidbMember,
    TiproxyMember, UnjoinedMember,
};
use crate::lenient::or_default;

/// What the operator reports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbClusterStatus {
    /// The generation of the spec that was last acted upon.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the cluster, one entry per type, all types always present.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The id that PD gave the cluster. A cluster that has one is never founded again.
    #[serde(default, deserialize_with = "or_default", rename = "clusterID", skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// PD.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub pd: Option<PdStatus>,
    /// Parts of PD that run on their own, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub pdms: BTreeMap<String, PdMicroServiceStatus>,
    /// TiKV.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub tikv: Option<TikvStatus>,
    /// TiDB.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub tidb: Option<TidbStatus>,
    /// TiFlash.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub tiflash: Option<TiflashStatus>,
    /// TiCDC.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub ticdc: Option<TicdcStatus>,
    /// TiProxy.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub tiproxy: Option<TiproxyStatus>,
    /// Pump.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub pump: Option<PumpStatus>,
}

/// What is being done to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MemberPhase {
    /// Nothing.
    Normal,
    /// Its pods are being replaced.
    Upgrade,
    /// Members are added or removed.
    Scale,
    /// It is stopped, its data kept.
    Suspend,
}

/// A StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetStatus {
    /// The generation that its controller last acted upon.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many pods there are.
    #[serde(default, deserialize_with = "or_default")]
    pub replicas: u16,
    /// How many pods are ready.
    #[serde(default, deserialize_with = "or_default")]
    pub ready_replicas: u16,
    /// How many pods have the current revision.
    #[serde(default, deserialize_with = "or_default")]
    pub current_replicas: u16,
    /// How many pods have the newest revision.
    #[serde(default, deserialize_with = "or_default")]
    pub updated_replicas: u16,
    /// How many pods have been ready for a while.
    #[serde(default, deserialize_with = "or_default")]
    pub available_replicas: u16,
    /// The revision that pods had before.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub current_revision: String,
    /// The revision that pods get.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub update_revision: String,
}

/// The volumes of one name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStatus {
    /// Their name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How many are bound.
    #[serde(default, deserialize_with = "or_default")]
    pub bound_count: u16,
    /// How many have the current size.
    #[serde(default, deserialize_with = "or_default")]
    pub current_count: u16,
    /// How many have the size that is asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub modified_count: u16,
    /// The size that they had.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub current_capacity: String,
    /// The size that is asked for.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub modified_capacity: String,
    /// The storage class that they had.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub current_storage_class: String,
    /// The storage class that is asked for.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub modified_storage_class: String,
}

/// PD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdStatus {
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Members of this cluster, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, PdMember>,
    /// Members elsewhere, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_members: BTreeMap<String, PdMember>,
    /// The leader.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub leader: Option<PdMember>,
    /// Members that failed and are replaced, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_members: BTreeMap<String, FailureMember>,
    /// Pods that are no members yet, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub unjoined_members: BTreeMap<String, UnjoinedMember>,
    /// The image that its StatefulSet has.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether volumes are being replaced.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub vol_replace_in_progress: bool,
}

/// A part of PD that runs on its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdMicroServiceStatus {
    /// Which part.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Its members.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The image that its StatefulSet has.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// TiKV.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TikvStatus {
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Whether the first store has begun the cluster's data.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub boot_strapped: bool,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// The label selector of its pods, for the scale subresource.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Stores of this cluster, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, Store>,
    /// Stores elsewhere, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_stores: BTreeMap<String, Store>,
    /// Stores that were emptied, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub tombstone_stores: BTreeMap<String, Store>,
    /// Stores that failed and are replaced, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_stores: BTreeMap<String, FailureStore>,
    /// Names this replacement. The spec's failover.recoverByUID ends it.
    #[serde(default, deserialize_with = "or_default", rename = "failoverUID", skip_serializing_if = "String::is_empty")]
    pub failover_uid: String,
    /// The image that its StatefulSet has.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Stores that leaders are moved away from, by pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub evict_leader: BTreeMap<String, EvictLeader>,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether volumes are being replaced.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub vol_replace_in_progress: bool,
}

/// TiFlash.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiflashStatus {
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Stores of this cluster, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, Store>,
    /// Stores elsewhere, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub peer_stores: BTreeMap<String, Store>,
    /// Stores that were emptied, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub tombstone_stores: BTreeMap<String, Store>,
    /// Stores that failed and are replaced, by id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_stores: BTreeMap<String, FailureStore>,
    /// Names this replacement. The spec's failover.recoverByUID ends it.
    #[serde(default, deserialize_with = "or_default", rename = "failoverUID", skip_serializing_if = "String::is_empty")]
    pub failover_uid: String,
    /// The image that its StatefulSet has.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether volumes are being replaced.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub vol_replace_in_progress: bool,
}

/// TiDB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbStatus {
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Servers, by pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, TidbMember>,
    /// Servers that failed and are replaced, by pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_members: BTreeMap<String, TidbFailureMember>,
    /// Whether root has got its password.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub password_initialized: Option<bool>,
    /// The image that its StatefulSet has.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether volumes are being replaced.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub vol_replace_in_progress: bool,
}

/// TiCDC.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicdcStatus {
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Captures, by pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub captures: BTreeMap<String, Capture>,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// TiProxy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TiproxyStatus {
    /// Whether its members could be asked.
    #[serde(default, deserialize_with = "or_default")]
    pub synced: bool,
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Proxies, by pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, TiproxyMember>,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Pump.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PumpStatus {
    /// What is being done to it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub phase: Option<MemberPhase>,
    /// Its StatefulSet.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<StatefulSetStatus>,
    /// Pumps.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<PumpMember>,
    /// Its volumes, by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, VolumeStatus>,
    /// Its state in detail.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
