use serde_json::json;
use windlass_kinds::tidb::answers::StoreState;

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn ids_keep_all_their_digits() {
    let text = r#"[{"name":"a-pd-0","member_id":18446744073709551615,"client_urls":["http://a:2379"],"health":true}]"#;
    let health: Vec<Health> = serde_json::from_str(text).unwrap();
    assert_eq!((health[0].member_id, health[0].health), (u64::MAX, true));
    assert_eq!(read::<Cluster>(json!({"id": 7_341_111_222_333_444_555_u64, "max_peer_count": 3})).map(|it| it.id).unwrap(), {
        7_341_111_222_333_444_555
    });
    assert!(read::<Cluster>(json!({"id": "7"})).is_err());
    assert!(read::<Cluster>(json!({})).is_err());
}

#[test]
fn members_that_have_not_started_are_listed_without_a_name() {
    let whole = json!({
        "header": {"cluster_id": 9},
        "members": [
            {"name": "a-pd-0", "member_id": 1, "peer_urls": ["http://a-pd-0:2380"], "client_urls": ["http://a-pd-0:2379"]},
            {"member_id": 2, "peer_urls": ["http://a-pd-1:2380"]},
        ],
        "leader": {"name": "a-pd-0", "member_id": 1},
        "etcd_leader": {"name": "a-pd-0", "member_id": 1},
    });
    let told = read::<Roster>(whole).unwrap().told().unwrap();
    assert_eq!((told.cluster, told.leader), (Some(9), Some(1)));
    let first = PdMember { id: 1, name: "a-pd-0".into(), client_url: "http://a-pd-0:2379".into() };
    let second = PdMember { id: 2, name: String::new(), client_url: String::new() };
    assert_eq!(told.members, [first, second]);
}

#[test]
fn a_list_of_members_that_cannot_be_is_no_answer() {
    let told = |value| read::<Roster>(value).and_then(Roster::told);
    assert!(told(json!({"members": []})).is_err());
    assert!(told(json!({"members": null})).is_err());
    assert!(told(json!({})).is_err());
    assert!(told(json!({"members": [{"name": "a"}]})).is_err());
    assert_eq!(told(json!({"members": [{"name": "a", "member_id": 1}]})).unwrap().leader, None);
    assert_eq!(told(json!({"members": [{"name": "a", "member_id": 1}], "leader": {}})).unwrap().leader, None);
}

fn config(replication: &Value) -> Result<PdConfig, String> {
    read::<Configuration>(json!({ "replication": replication })).and_then(Configuration::told)
}

#[test]
fn configuration_is_read_in_all_its_forms() {
    let expected = PdConfig { max_replicas: 3, location_labels: vec!["zone".into(), "host".into()], placement_rules: true };
    let forms = [
        json!({"max-replicas": 3, "location-labels": "zone,host", "enable-placement-rules": "true"}),
        json!({"max-replicas": "3", "location-labels": ["zone", "host"], "enable-placement-rules": true}),
        json!({"max-replicas": 3, "location-labels": " zone, host,", "enable-placement-rules": " true"}),
    ];
    for form in forms {
        assert_eq!(config(&form), Ok(expected.clone()), "{form}");
    }
    let bare = config(&json!({"max-replicas": 1})).unwrap();
    assert_eq!(bare, PdConfig { max_replicas: 1, location_labels: vec![], placement_rules: false });
    assert_eq!(config(&json!({"max-replicas": 1, "location-labels": ""})).unwrap().location_labels, Vec::<String>::new());
}

#[test]
fn configuration_that_cannot_be_read_is_named() {
    let bad = [
        (json!({}), "max-replicas"),
        (json!({"max-replicas": -1}), "max-replicas"),
        (json!({"max-replicas": "many"}), "max-replicas"),
        (json!({"max-replicas": 3, "location-labels": 7}), "location-labels"),
        (json!({"max-replicas": 3, "location-labels": [7]}), "location-labels"),
        (json!({"max-replicas": 3, "enable-placement-rules": "perhaps"}), "enable-placement-rules"),
    ];
    for (form, name) in bad {
        let why = config(&form).unwrap_err();
        assert!(why.contains(&name.replace('-', "_")) || why.contains(name), "{form}: {why}");
    }
}

fn store(state: &str) -> Value {
    json!({
        "store": {
            "id": 4, "address": "a-tikv-0.a-tikv-peer.shop.svc:20160", "version": "7.5.0", "state_name": state,
            "labels": [{"key": "engine", "value": "tiflash"}, {"key": "host"}],
        },
        "status": {
            "capacity": "1GiB", "available": "1GiB", "leader_count": 5, "region_count": 6,
            "start_ts": "2024-04-07T10:22:49+08:00", "last_heartbeat_ts": "2024-04-07T02:22:59.123456789Z", "uptime": "1h2m3s",
        },
    })
}

#[test]
fn stores_are_read_with_their_state() {
    let list = json!({"count": 1, "stores": [store("Up")]});
    let stores = read::<StoreList>(list).unwrap().told().unwrap();
    let store = &stores[&4];
    assert_eq!((store.state, store.leaders, store.regions), (StoreState::Up, 5, 6));
    assert_eq!(store.labels, [("engine".into(), "tiflash".into()), ("host".into(), String::new())].into());
    assert_eq!(store.started, Some("2024-04-07T02:22:49Z".parse().unwrap()));
    assert_eq!(store.heard, Some("2024-04-07T02:22:59.123456789Z".parse().unwrap()));
    assert_eq!(read::<StoreList>(json!({"count": 0, "stores": []})).unwrap().told(), Ok(BTreeMap::new()));
}

#[test]
fn one_store_that_cannot_be_read_makes_all_of_them_unknown() {
    let told = |stores: Value| read::<StoreList>(json!({ "stores": stores })).and_then(StoreList::told);
    let without = |part: &str, name: &str| {
        let mut store = store("Up");
        store[part].as_object_mut().unwrap().remove(name);
        json!([store])
    };
    assert!(told(json!([store("Asleep")])).unwrap_err().contains("Asleep"));
    assert!(told(json!([store("Up"), store("Offline")])).unwrap_err().contains("twice"));
    for (part, name) in
        [("store", "id"), ("store", "address"), ("store", "state_name"), ("status", "leader_count"), ("status", "region_count")]
    {
        assert!(told(without(part, name)).is_err(), "{name}");
    }
    assert!(told(Value::Null).is_err());
    assert!(told(without("status", "start_ts")).is_ok());
    assert!(told(without("store", "labels")).is_ok());
}

#[test]
fn evicted_stores_are_found_with_either_scheduler() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let old = names(&["balance-leader-scheduler", "evict-leader-scheduler-1", "evict-leader-scheduler-42"]);
    assert_eq!(numbered(&old), Ok([1, 42].into()));
    assert_eq!(numbered(&names(&["evict-slow-store-scheduler"])), Ok(BTreeSet::new()));
    assert!(numbered(&names(&["evict-leader-scheduler-x"])).is_err());
    let ranges = |value| read::<Ranges>(value).and_then(Ranges::told);
    assert_eq!(ranges(json!({"store-id-ranges": {"1": [{"start-key": "", "end-key": ""}], "4": null}})), Ok([1, 4].into()));
    assert_eq!(ranges(json!({"store-id-ranges": {}, "batch": 3})), Ok(BTreeSet::new()));
    assert!(ranges(json!({"store-id-ranges": {"x": []}})).is_err());
    assert!(ranges(json!([])).is_err());
}
