//! Objects of Kubernetes as fields, as builders put them together: what the user wrote stays as it was written.

use serde_json::{Map, Value, json};

/// The fields of an object.
pub(crate) type Fields = Map<String, Value>;

/// A part of a template as fields, as the user wrote them.
pub(crate) fn fields_of(part: &impl serde::Serialize) -> Fields {
    match serde_json::to_value(part) {
        Ok(Value::Object(fields)) => fields,
        _ => Fields::new(),
    }
}

/// Takes a map out of fields, to put it back changed.
pub(crate) fn take_fields(of: &mut Fields, key: &str) -> Fields {
    match of.remove(key) {
        Some(Value::Object(fields)) => fields,
        _ => Fields::new(),
    }
}

/// Takes a list out of fields, to put it back changed.
pub(crate) fn take_list(of: &mut Fields, key: &str) -> Vec<Value> {
    match of.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Puts a value where none is. A null is none.
pub(crate) fn put_default(into: &mut Fields, key: &str, value: impl Into<Value>) {
    if into.get(key).is_none_or(Value::is_null) {
        into.insert(key.to_owned(), value.into());
    }
}

/// Leaves out what is null or empty: server-side apply would own it, and the server would not keep it. What is deeper down the
/// user wrote, and there an empty map can mean something: an empty directory, a selector of everything.
pub(crate) fn without_nothing(mut fields: Fields) -> Fields {
    fields.retain(|_, value| *value != Value::Null && *value != json!({}) && *value != json!([]));
    fields
}
