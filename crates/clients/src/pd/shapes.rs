//! The forms of PD's answers. What PD leaves out because it is empty may be missing; everything else must be there and be readable.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_kinds::tidb::answers::{PdConfig, PdMember, Store};

use super::{EVICT, Membership};

#[derive(Deserialize)]
pub(super) struct Cluster {
    pub(super) id: u64,
}

#[derive(Deserialize)]
pub(super) struct Health {
    pub(super) member_id: u64,
    pub(super) health: bool,
}

#[derive(Deserialize)]
pub(super) struct Roster {
    header: Option<Header>,
    members: Vec<Entry>,
    leader: Option<Entry>,
}

#[derive(Deserialize)]
struct Header {
    cluster_id: Option<u64>,
}

#[derive(Deserialize)]
struct Entry {
    member_id: Option<u64>,
    /// It has none before it has started.
    #[serde(default)]
    name: String,
    #[serde(default)]
    client_urls: Option<Vec<String>>,
}

impl Roster {
    pub(super) fn told(self) -> Result<Membership, String> {
        if self.members.is_empty() {
            return Err("it lists no members, not even itself".to_owned());
        }
        let mut members = Vec::with_capacity(self.members.len());
        for member in self.members {
            let Some(id) = member.member_id else { return Err(format!("member {:?} has no id", member.name)) };
            let client_url = member.client_urls.unwrap_or_default().into_iter().next().unwrap_or_default();
            members.push(PdMember { id, name: member.name, client_url });
        }
        let cluster = self.header.and_then(|header| header.cluster_id);
        Ok(Membership { cluster, members, leader: self.leader.and_then(|leader| leader.member_id) })
    }
}

#[derive(Deserialize)]
pub(super) struct Configuration {
    replication: Replication,
}

/// PD writes truth values and numbers as such or as texts, and lists as such or as texts with commas; which of these depends on its age.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Replication {
    max_replicas: Value,
    #[serde(default)]
    location_labels: Value,
    #[serde(default)]
    enable_placement_rules: Value,
}

impl Configuration {
    pub(super) fn told(self) -> Result<PdConfig, String> {
        let Replication { max_replicas, location_labels, enable_placement_rules } = self.replication;
        let copies = match &max_replicas {
            Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let labels = match &location_labels {
            Value::Null => Some(Vec::new()),
            Value::String(text) => Some(text.split(',').map(str::to_owned).collect()),
            Value::Array(all) => all.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let rules = match &enable_placement_rules {
            // Older ones know of none.
            Value::Null => Some(false),
            Value::Bool(on) => Some(*on),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let bad = |name: &str, value: &Value| format!("{name:?} is {value}");
        let labels: Vec<String> = labels.ok_or_else(|| bad("location-labels", &location_labels))?;
        Ok(PdConfig {
            max_replicas: copies.ok_or_else(|| bad("max-replicas", &max_replicas))?,
            location_labels: labels.iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect(),
            placement_rules: rules.ok_or_else(|| bad("enable-placement-rules", &enable_placement_rules))?,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Rule {
    pub(super) count: u16,
}

#[derive(Deserialize)]
pub(super) struct StoreList {
    stores: Vec<OneStore>,
}

impl StoreList {
    pub(super) fn told(self) -> Result<BTreeMap<u64, Store>, String> {
        let mut stores = BTreeMap::new();
        for store in self.stores {
            let store = store.told()?;
            if let Some(twin) = stores.insert(store.id, store) {
                return Err(format!("store {} is listed twice", twin.id));
            }
        }
        Ok(stores)
    }
}

#[derive(Deserialize)]
pub(super) struct OneStore {
    store: Meta,
    status: Status,
}

#[derive(Deserialize)]
struct Meta {
    id: u64,
    address: String,
    state_name: String,
    #[serde(default)]
    labels: Option<Vec<Label>>,
}

#[derive(Deserialize)]
struct Label {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Status {
    leader_count: u64,
    region_count: u64,
    start_ts: Option<String>,
    last_heartbeat_ts: Option<String>,
}

impl OneStore {
    pub(super) fn told(self) -> Result<Store, String> {
        let Meta { id, address, state_name, labels } = self.store;
        let state = state_name.parse().map_err(|_| format!("store {id} is in state {state_name:?}, which nobody knows"))?;
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Ok(Store {
            id,
            address,
            state,
            labels: labels.unwrap_or_default().into_iter().map(|label| (label.key, label.value)).collect(),
            leaders: self.status.leader_count,
            regions: self.status.region_count,
            started: time(self.status.start_ts),
            heard: time(self.status.last_heartbeat_ts),
        })
    }
}

/// Whose leaders the one scheduler for all stores moves away.
#[derive(Deserialize)]
pub(super) struct Ranges {
    #[serde(rename = "store-id-ranges")]
    stores: Option<Map<String, Value>>,
}

impl Ranges {
    pub(super) fn told(self) -> Result<BTreeSet<u64>, String> {
        let stores = self.stores.unwrap_or_default();
        stores.keys().map(|id| id.parse().map_err(|_| format!("it evicts the leaders of store {id:?}"))).collect()
    }
}

/// The stores that have a scheduler each.
pub(super) fn numbered(schedulers: &[String]) -> Result<BTreeSet<u64>, String> {
    let ids = schedulers.iter().filter_map(|name| name.strip_prefix(EVICT)?.strip_prefix('-'));
    ids.map(|id| id.parse().map_err(|_| format!("it evicts the leaders of store {id:?}"))).collect()
}

#[cfg(test)]
#[path = "shapes_tests.rs"]
mod tests;
