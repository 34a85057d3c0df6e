//! Whether an object is already as it should be.
//!
//! The live object has more fields than the desired one: the server's defaults and other people's. So the question is whether
//! the desired one is contained in it. Fields that are no longer desired show in the hash annotation, which is part of what is desired.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::labels::DESIRED_HASH;
use crate::pairs::Pairs;
use crate::secrets::FINGERPRINT;
use crate::step::{Manifest, ObjectKind};
use crate::views::ObjectView;

/// What the server answered to our last apply of an object: which wish, and which version of the object came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The hash of what was wished.
    pub hash: String,
    /// The version that came of it.
    pub version: String,
}

impl Answered {
    /// What came of applying `desired`, seen in the answer `live`.
    pub fn new(desired: &Manifest, live: &ObjectView) -> Self {
        let hash = desired.annotations.get(DESIRED_HASH).cloned().unwrap_or_default();
        Self { hash, version: version(live) }
    }

    /// Whether the object is still as the server made it of our last apply.
    pub fn is_of(&self, live: &ObjectView) -> bool {
        self.version == version(live)
    }
}

/// The generation where there is one: it does not move with status.
fn version(live: &ObjectView) -> String {
    live.meta.generation.map_or_else(|| live.meta.resource_version.clone(), |generation| format!("g{generation}"))
}

/// Whether the live object needs no apply.
///
/// The server may write a wish in another form ("0.5" of a core becomes "500m"). So an object that is still as the server made
/// it of this very wish is so, whatever a comparison says.
pub fn already_so(desired: &Manifest, live: &ObjectView, answered: Option<&Answered>) -> bool {
    has_all(&desired.labels, &live.meta.labels)
        && has_all(&desired.annotations, &live.meta.annotations)
        && live.meta.owner_uid.as_deref() == Some(desired.owner.uid.as_str())
        && (answered == Some(&Answered::new(desired, live)) || has_content(desired, live))
}

/// Nobody knows what a Secret should hold; but what was put in must still be there.
fn has_content(desired: &Manifest, live: &ObjectView) -> bool {
    if desired.object.kind == ObjectKind::Secret {
        return live.spec.value()["fingerprint"].as_str() == live.meta.annotations.get(FINGERPRINT);
    }
    contains(&live.spec.value(), &desired.spec)
}

fn has_all(desired: &BTreeMap<String, String>, live: &Pairs) -> bool {
    desired.iter().all(|(key, value)| live.get(key) == Some(value.as_str()))
}

/// Whether `live` has everything that `desired` says. Lists must have the same length: the server's defaults add fields, not items.
pub fn contains(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired.iter().all(|(key, value)| match live.get(key) {
            Some(live) => contains(live, value),
            None => is_nothing(value),
        }),
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len() && live.iter().zip(desired).all(|(live, desired)| contains(live, desired))
        }
        (live, desired) => live == desired,
    }
}

/// The server drops empty maps, empty lists and nulls.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_nothing),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Marks a manifest with the hash of what it wants, leaving out what the caller says changes on another path.
pub fn seal(mut manifest: Manifest, left_out: &[&str]) -> Manifest {
    let wish = (Part { whole: &manifest.spec, left_out }, &manifest.labels, &manifest.annotations);
    // Maps with keys that are text can always be written.
    let wish = serde_json::to_string(&wish).unwrap_or_default();
    manifest.annotations.insert(DESIRED_HASH.to_owned(), short_hash(&wish));
    manifest
}

/// A value without some of its fields, written without a copy of it: every pass seals every object.
struct Part<'a> {
    whole: &'a Value,
    left_out: &'a [&'a str],
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole {
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().filter(|(key, _)| !self.left_out.contains(&key.as_str())))
            }
            whole => whole.serialize(serializer),
        }
    }
}

/// A few letters that stand for a text.
pub fn short_hash(text: &str) -> String {
    Sha256::digest(text).iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::defaults_are_no_difference(json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"b": {"c": 2}}), true)]
    #[case::another_value_is(json!({"a": 1}), json!({"a": 2}), false)]
    #[case::a_missing_value_is(json!({}), json!({"a": 2}), false)]
    #[case::a_missing_null_is_not(json!({}), json!({"a": null, "b": {}, "c": [], "d": {"e": {}}}), true)]
    #[case::an_item_too_many_is(json!({"a": [{"n": 1}, {"n": 2}]}), json!({"a": [{"n": 1}]}), false)]
    #[case::items_may_have_defaults(json!({"a": [{"n": 1, "x": 1}]}), json!({"a": [{"n": 1}]}), true)]
    fn containment(#[case] live: Value, #[case] desired: Value, #[case] expected: bool) {
        assert_eq!(contains(&live, &desired), expected);
    }
}
