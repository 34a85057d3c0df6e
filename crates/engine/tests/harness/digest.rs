//! The digest of a state: what must be the same at the end, however it was reached.
//!
//! Without times, versions, epochs and holders; UIDs are replaced by the names of the objects that have them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_core::labels::DESIRED_HASH;
use windlass_core::secrets::FINGERPRINT;
use windlass_testkit::FakeApiServer;

use super::kit::{NAMESPACE, World, logbook_name, plural};

/// The length of a UID.
const UID: usize = 36;
/// Notes on objects that count how often something was written.
const COUNTING_NOTES: [&str; 1] = ["windlass.dev/logbook-edition"];

/// The digest of everything.
pub fn digest<W: World>(server: &FakeApiServer, world: &W) -> Value {
    let everything = server.store().everything();
    let objects_of: BTreeMap<String, String> = everything
        .iter()
        .filter_map(|(key, object)| {
            Some((object["metadata"]["uid"].as_str()?.to_owned(), format!("{}/{}", key.plural, key.name)))
        })
        .collect();
    let names: BTreeMap<String, String> = objects_of.into_iter().chain(world.names()).collect();
    let mut values = BTreeMap::new();
    let (resource, logbook) = (plural::<W::Kind>(), logbook_name::<W>());
    let mut objects = Map::new();
    let (mut status, mut remembered) = (Value::Null, Value::Null);
    for (key, object) in &everything {
        match key.plural.as_str() {
            "persistentvolumes" => {
                // Those of claims that are gone tell how often somebody began anew.
                let claim = &object["spec"]["claimRef"];
                if claim["uid"].as_str().is_some_and(|uid| names.contains_key(uid)) {
                    let name = format!("persistentvolumes of {}", claim["name"].as_str().unwrap_or_default());
                    objects.insert(name, object["spec"]["persistentVolumeReclaimPolicy"].clone());
                }
            }
            _ if key.namespace != NAMESPACE => {}
            "events" | "leases" | "namespaces" => {}
            plural if plural == resource && key.name == W::CLUSTER => {
                status = object["status"].clone();
                world.settle_status(&mut status);
            }
            "logbooks" if key.name == logbook => {
                remembered = logbook_of(object);
                world.settle_logbook(&mut remembered["spec"]);
            }
            plural => {
                let mut desired = desired(plural, object);
                if plural == "secrets" {
                    number(&mut desired, &mut values);
                }
                objects.insert(format!("{plural}/{}", key.name), desired);
            }
        }
    }
    let mut digest = json!({ "status": status, "logbook": remembered, "objects": objects, "world": world.digest() });
    settle(&mut digest, &names);
    // By what they are about, and not by UIDs, which are others each time.
    if let Some(acts) = digest["logbook"]["spec"]["acts"].as_array_mut() {
        acts.sort_by_key(Value::to_string);
    }
    digest
}

/// What a logbook says, without who wrote it last and how often.
fn logbook_of(object: &Value) -> Value {
    let mut spec = object["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("edition");
        let acts = acts_of(spec.get("acts").unwrap_or(&Value::Null));
        spec.insert("acts".into(), acts);
        if let Some(claim) = spec.get_mut("claim").and_then(Value::as_object_mut) {
            claim.remove("holder");
            claim.remove("epoch");
        }
    }
    let metadata = &object["metadata"];
    json!({ "spec": spec, "labels": metadata["labels"], "owners": metadata["ownerReferences"] })
}

/// What was done that cannot be undone, each once. A controller that was shown the past may have withdrawn what another one
/// announced, or done it, undone it and done it again: that is on record, and is no other end. Nor is another order of acts that
/// do not wait for each other; of those that do, the judge watches the order.
fn acts_of(acts: &Value) -> Value {
    let mut done: Vec<Value> = Vec::new();
    for act in acts.as_array().into_iter().flatten().filter(|act| act["outcome"] == "Done") {
        let act = json!({ "act": act["act"], "target": act["target"], "uid": act["uid"], "by": act["by"] });
        if !done.contains(&act) {
            done.push(act);
        }
    }
    done.into()
}

/// What somebody decided about an object; not what the server added.
fn desired(plural: &str, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|key, _| !COUNTING_NOTES.contains(&key.as_str()));
    }
    let mut spec = object["spec"].clone();
    if let (Some(spec), "services") = (spec.as_object_mut(), plural) {
        spec.retain(|key, _| !matches!(key.as_str(), "clusterIP" | "clusterIPs"));
    }
    json!({
        "labels": metadata["labels"],
        "annotations": annotations,
        "owners": metadata["ownerReferences"],
        "deleting": metadata.get("deletionTimestamp").is_some(),
        "spec": spec,
        "data": object["data"],
    })
}

/// Nobody knows the values of Secrets beforehand, nor what is hashed of them. That two are the same is known.
fn number(secret: &mut Value, values: &mut BTreeMap<String, usize>) {
    let mut replace = |value: &mut Value| {
        let next = values.len();
        let number = *values.entry(value.to_string()).or_insert(next);
        *value = format!("(value {number})").into();
    };
    for note in [FINGERPRINT, DESIRED_HASH] {
        if let Some(hash) = secret["annotations"].get_mut(note) {
            replace(hash);
        }
    }
    secret["data"].as_object_mut().into_iter().flat_map(Map::values_mut).for_each(replace);
}

/// Replaces times and UIDs by what they mean.
fn settle(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| settle(value, names)),
        Value::Array(items) => items.iter_mut().for_each(|value| settle(value, names)),
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "(time)".clone_into(text),
        Value::String(text) => *text = with_names(text, names),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn with_names(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let uid = rest.get(..UID).filter(|part| is_uid(part));
        let length = if let Some(uid) = uid {
            out.push_str(names.get(uid).map_or("(uid of something gone)", String::as_str));
            UID
        } else {
            out.push(letter);
            letter.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// What differs, as `path: one | other`.
pub fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", one, other, &mut found);
    found
}

fn compare(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        _ if one == other => {}
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&format!("{path}.{key}"), &of(left), &of(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, found);
            }
        }
        _ => found.push(format!("{}: {one} | {other}", path.trim_start_matches('.'))),
    }
}

#[test]
fn times_and_uids_do_not_count_and_everything_else_does() {
    let names = BTreeMap::from([("9e3779b9-7f4a-4c15-8151-000000000001".to_owned(), "pods/a-0".to_owned())]);
    let mut one = json!({ "at": "2026-01-01T00:00:01Z", "volume": "pvc-9e3779b9-7f4a-4c15-8151-000000000001", "n": [1, 2] });
    settle(&mut one, &names);
    assert_eq!(one, json!({ "at": "(time)", "volume": "pvc-pods/a-0", "n": [1, 2] }));
    let other = json!({ "at": "(time)", "volume": "pvc-pods/a-0", "n": [1, 3], "m": 1 });
    assert_eq!(differences(&one, &other), ["m: null | 1", "n[1]: 2 | 3"]);
}
