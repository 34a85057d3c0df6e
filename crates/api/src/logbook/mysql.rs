//! What is remembered of a MySQLCluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is remembered of a MySQLCluster.
#[expect(clippy::struct_excessive_bools, reason = "each is something that happened once, whatever else did")]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MySqlEntries {
    /// The number of the primary. It is changed before any server is.
    #[serde(default)]
    pub primary: u16,
    /// The UUID of its server. Another server in its place has lost its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether any server was ever opened to writes: from then on there is a history to keep.
    #[serde(default)]
    pub opened: bool,
    /// Whether a change of the primary has begun and is not over: it is closed, others receive nothing, or the new one is not open yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changing: bool,
    /// The server id of the first instance, where the spec names none.
    #[serde(default)]
    pub server_id_base: u32,
    /// Whether the passwords were made. They are made once.
    #[serde(default)]
    pub has_credentials: bool,
    /// Who may acknowledge commits, and how many must: the settled council, and then those on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub councils: Vec<CouncilEntry>,
    /// The transactions that clients were told of before the settled council was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// Whether a copy of a replication source's data was ever asked for. Until it is there, no server is opened to writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copy_asked: bool,
    /// Whether the data of the replication source was copied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cloned: bool,
    /// Replicas with transactions that the primary never had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errant: Vec<u16>,
    /// The last failovers: who was replaced, and what the one that replaced it had of it. Whatever else it made was told to nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promotions: Vec<PromotionEntry>,
    /// What was saved of members before their data was replaced: on the volume of each, in `surplus`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<SavedEntry>,
    /// What a newer release wrote here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: BTreeMap<String, Value>,
}

/// Who may acknowledge a commit, and how many must.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CouncilEntry {
    /// Who may.
    #[serde(default)]
    pub voters: Vec<VoterEntry>,
    /// How many must.
    pub count: u16,
}

/// A failover.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotionEntry {
    /// The UUID of the server that was replaced.
    pub former: String,
    /// What the one that replaced it had of that server's transactions.
    pub set: String,
}

/// Transactions that were saved.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedEntry {
    /// The number of the member.
    pub ordinal: u16,
    /// The UUID of its server.
    pub server: String,
    /// Which transactions.
    pub set: String,
}

/// A member that acknowledges.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VoterEntry {
    /// Its number.
    pub ordinal: u16,
    /// The UUID of its server.
    pub server: String,
}
