//! What PD, TiKV and TiDB answer over HTTP, in the form in which they do. Only what the operator asks is known here; what nobody knows is
//! refused, and told of at the end.

use serde_json::{Value, json};
use windlass_kinds::tidb::answers::{PdSeen, Store, Stores};
use windlass_kinds::tidb::deeds::Task;

/// The scheduler that moves leaders away.
const EVICT: &str = "evict-leader-scheduler";
/// How every refusal ends before the first store has joined.
const NOT_BOOTSTRAPPED: &str = "[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first";
/// `NotFound`
const NOT_FOUND: u16 = 404;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// With what follows a question mark.
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn yes(body: &Value) -> Self {
        Self { status: 200, body: body.to_string() }
    }

    pub(super) fn text(body: impl Into<String>) -> Self {
        Self { status: 200, body: body.into() }
    }

    pub(super) fn no(status: u16, why: &str) -> Self {
        Self { status, body: json!(why).to_string() }
    }
}

/// How much is added to the counts of stores, which change all the time in a cluster that is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    pub(super) leaders: u64,
    pub(super) regions: u64,
}

/// A question to PD, below `/pd/api/v1/`; nothing when nobody knows it.
pub(super) fn asked(path: &str, seen: &PdSeen, jitter: Jitter) -> Option<Reply> {
    let stores = |all: &dyn Fn() -> Value| match &seen.stores {
        Ok(Stores::Listed(_)) => Reply::yes(&all()),
        _ => Reply::no(500, NOT_BOOTSTRAPPED),
    };
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    Some(match path {
        "cluster" => Reply::yes(&json!({ "id": seen.cluster, "max_peer_count": 3 })),
        "health" => Reply::yes(&health(seen)),
        "members" => Reply::yes(&members(seen)),
        "config" => Reply::yes(&configuration(seen)?),
        "config/rules/group/tiflash" if !seen.config.as_ref().is_ok_and(|it| it.placement_rules) => {
            Reply::no(412, "placement rules feature is disabled")
        }
        "config/rules/group/tiflash" => Reply::text("[]"),
        "stores" => stores(&|| {
            let all: Vec<Value> = listed(seen).map(|it| store(it, jitter)).collect();
            json!({ "count": all.len(), "stores": all })
        }),
        "schedulers" => stores(&|| schedulers(seen)),
        "scheduler-config/evict-leader-scheduler/list" => match seen.evicting.as_ref().ok().filter(|all| !all.is_empty()) {
            Some(all) => {
                Reply::yes(&json!({ "store-id-ranges": all.iter().copied().map(range).collect::<serde_json::Map<_, _>>() }))
            }
            None => Reply::no(NOT_FOUND, "scheduler not found"),
        },
        path => {
            let id: u64 = path.strip_prefix("store/")?.parse().ok()?;
            match listed(seen).find(|it| it.id == id) {
                Some(it) => Reply::yes(&store(it, jitter)),
                None => Reply::no(NOT_FOUND, &format!("store {id} not found")),
            }
        }
    })
}

/// What a request changes in PD, below `/pd/api/v1/`; nothing when nobody knows it.
pub(super) fn task(request: Request<'_>, path: &str, seen: &PdSeen) -> Option<Task> {
    let body: Value = serde_json::from_slice(request.body).unwrap_or(Value::Null);
    let address = |id: u64| listed(seen).find(|it| it.id == id).map(|it| it.address.clone()).unwrap_or_default();
    let number = |text: &str| text.parse::<u64>().ok();
    let parts: Vec<&str> = path.split(['/', '?']).collect();
    Some(match (request.method, parts.as_slice()) {
        ("POST", ["schedulers"]) if body["name"] == EVICT => Task::EvictLeaders { store: body["store_id"].as_u64()? },
        ("DELETE", ["schedulers", name]) => Task::StopEvicting { store: number(name.strip_prefix(EVICT)?.strip_prefix('-')?)? },
        ("DELETE", ["store", id]) => Task::DeleteStore { store: number(id)?, address: address(number(id)?) },
        ("POST", ["store", id, "state", "state=Up"]) => {
            Task::RestoreStore { store: number(id)?, address: address(number(id)?) }
        }
        ("POST", ["leader", "transfer", to]) => Task::TransferPdLeader { to: (*to).to_owned() },
        ("DELETE", ["members", "id", id]) => {
            let members = seen.members.as_deref().unwrap_or_default();
            let name = members.iter().find(|it| Some(it.id) == number(id)).map(|it| it.name.clone());
            Task::DeletePdMember { id: number(id)?, name: name.unwrap_or_default() }
        }
        _ => return None,
    })
}

/// The metrics of a store, as far as they are read.
pub(super) fn metrics(leaders: u64, regions: u64) -> String {
    format!(
        "# TYPE tikv_raftstore_region_count gauge\ntikv_raftstore_region_count{{type=\"leader\"}} {leaders}\n\
         tikv_raftstore_region_count{{type=\"region\"}} {regions}\n"
    )
}

fn listed(seen: &PdSeen) -> impl Iterator<Item = &Store> {
    let stores = match &seen.stores {
        Ok(Stores::Listed(stores)) => Some(stores.values()),
        _ => None,
    };
    stores.into_iter().flatten()
}

fn health(seen: &PdSeen) -> Value {
    let healthy = |id: &u64| seen.health.as_ref().is_ok_and(|all| all.get(id) == Some(&true));
    let members = seen.members.as_deref().unwrap_or_default().iter();
    members
        .map(|it| json!({ "name": it.name, "member_id": it.id, "client_urls": urls(&it.name), "health": healthy(&it.id) }))
        .collect()
}

fn members(seen: &PdSeen) -> Value {
    let member = |id: u64, name: &str| json!({ "name": name, "member_id": id, "client_urls": urls(name) });
    let all = seen.members.as_deref().unwrap_or_default();
    let leader = seen.leader.as_ref().ok().copied().flatten();
    let leader = all.iter().find(|it| Some(it.id) == leader).map(|it| member(it.id, &it.name));
    let listed: Vec<Value> = all.iter().map(|it| member(it.id, &it.name)).collect();
    let mut whole = json!({ "header": { "cluster_id": seen.cluster }, "members": listed });
    if let Some(leader) = leader {
        whole["leader"] = leader;
    }
    whole
}

fn urls(name: &str) -> Value {
    json!([format!("http://{name}:2379")])
}

fn configuration(seen: &PdSeen) -> Option<Value> {
    let config = seen.config.as_ref().ok()?;
    Some(json!({ "replication": {
        "max-replicas": config.max_replicas,
        "location-labels": config.location_labels.join(","),
        "enable-placement-rules": config.placement_rules.to_string(),
    } }))
}

fn store(store: &Store, jitter: Jitter) -> Value {
    let labels: Vec<Value> = store.labels.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let state: &'static str = store.state.into();
    json!({
        "store": { "id": store.id, "address": store.address, "state_name": state, "labels": labels, "version": "8.5.0" },
        "status": {
            "leader_count": store.leaders + jitter.leaders,
            "region_count": store.regions + jitter.regions,
            "capacity": "100GiB", "available": "90GiB",
            "start_ts": store.started.map(|it| it.to_string()),
            "last_heartbeat_ts": store.heard.map(|it| it.to_string()),
        },
    })
}

fn schedulers(seen: &PdSeen) -> Value {
    let evicts = seen.evicting.as_ref().is_ok_and(|all| !all.is_empty());
    let all = ["balance-region-scheduler", "balance-leader-scheduler"].into_iter().chain(evicts.then_some(EVICT));
    all.collect()
}

fn range(store: u64) -> (String, Value) {
    (store.to_string(), json!([{ "start-key": "", "end-key": "" }]))
}
