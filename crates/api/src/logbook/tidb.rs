//! What is remembered of a TidbCluster.
//!
//! The id of the cluster is among the histories. What was announced for stores and members of PD (leaders that are evicted, stores and
//! members that are to leave) is among the intents, until PD was seen to be so.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is remembered of a TidbCluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbEntries {
    /// Whether PD ever had a store: from then on there is data to keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bootstrapped: bool,
    /// What each pod of PD, TiKV and TiFlash is in PD, by the name of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, MemberEntry>,
    /// Members that failed and were replaced by further ones, by the name of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, FailureEntry>,
    /// What the last spec that was found good asks of each component, by its name. While a spec is refused, this is what counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, AskedEntry>,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// What a pod is in PD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberEntry {
    /// The id of its store, or of its member: of 64 bits, and so a text.
    pub id: String,
    /// The UIDs of the claims that it was seen with. On other ones it is another store, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Whether it was seen to have left PD for good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Whether it was ever announced that this member of PD is to leave. When PD does not list it any more, that is our doing, also if it
    /// was called off: what was sent may have arrived late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sent_away: bool,
    /// How many regions a store had when it began to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<u64>,
    /// How many regions a store led when its leaders began to go elsewhere, until enough of them are back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaders: Option<u64>,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// What a spec asks of a component, as far as it is needed while a later one is refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedEntry {
    /// How many members there are to be.
    pub replicas: u16,
    /// How many may be added in place of failed ones.
    #[serde(default)]
    pub failovers: u16,
    /// Whether it is to be stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// How many seconds a member is given to hand over what it does.
    #[serde(default)]
    pub patience_seconds: u64,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// A member that failed, and was replaced by a further one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureEntry {
    /// The component.
    pub component: String,
    /// The id of its store, or of its member of PD; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The UIDs of its claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// When it was given up.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Whether it was removed from PD.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}
