//! Small readings and edits of JSON objects that several modules share.

use serde_json::{Map, Value, json};

pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    let mut value = object;
    for part in path {
        value = &value[*part];
    }
    value.as_str().unwrap_or_default()
}

/// A string field of metadata, empty when absent.
pub(crate) fn meta<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// The metadata map, made when missing.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Copies `name` from one metadata to another, removing it when the source has none.
pub(crate) fn copy_meta(from: &Value, to: &mut Value, name: &str) {
    let value = from["metadata"].get(name).cloned();
    let metadata = meta_mut(to);
    match value {
        Some(value) => metadata.insert(name.to_owned(), value),
        None => metadata.remove(name),
    };
}

/// Copies a root field, removing it when the source has none.
pub(crate) fn copy_root(from: &Value, to: &mut Value, name: &str) {
    let value = from.get(name).cloned();
    if let Value::Object(map) = to {
        match value {
            Some(value) => map.insert(name.to_owned(), value),
            None => map.remove(name),
        };
    }
}

/// Removes null fields everywhere.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| !child.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes the empty lists and free maps that typed objects do not keep. An empty struct, such as `emptyDir: {}`, has
/// a meaning and stays.
pub(crate) fn drop_empties(value: &mut Value) {
    const FREE: [&str; 9] =
        ["data", "stringData", "binaryData", "labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests"];
    match value {
        Value::Object(map) => {
            map.retain(|name, child| match child {
                Value::Object(inner) => !(inner.is_empty() && FREE.contains(&name.as_str())),
                Value::Array(items) => !items.is_empty() || matches!(name.as_str(), "rules" | "items"),
                _ => true,
            });
            map.values_mut().for_each(drop_empties);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empties),
        _ => {}
    }
}

/// Metadata is a typed struct for every kind: empty collections and nulls in it vanish.
pub(crate) fn tidy_meta(object: &mut Value) {
    let metadata = meta_mut(object);
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(string) => !string.is_empty(),
        _ => true,
    });
}
