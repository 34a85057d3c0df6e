//! Manifests for tests: read, and changed in one place.

use serde_json::Value;

/// A manifest as it is sent.
pub(crate) fn document(manifest: &str) -> Value {
    serde_saphyr::from_str(manifest).unwrap()
}

/// A manifest with one place changed, given as a JSON pointer. Null removes what is there.
pub(crate) fn with(manifest: &str, place: &str, value: Value) -> Value {
    let mut document = document(manifest);
    let (parent, name) = place.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("{place} has no parent"));
    match (parent, value) {
        (Value::Object(fields), Value::Null) => drop(fields.remove(name)),
        (Value::Object(fields), value) => drop(fields.insert(name.to_owned(), value)),
        (other, _) => panic!("{place} lies in {other}"),
    }
    document
}
