//! Secrets without their values. A plan says how a Secret is made; the values are drawn, or read from another Secret, where it is sent.
//!
//! So nothing that can be printed, compared or stored ever holds a password.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::likeness::short_hash;
use crate::step::Over;

/// The annotation with the fingerprint of what was put in. A Secret with another one was edited by somebody.
pub const FINGERPRINT: &str = "windlass.dev/fingerprint";

/// How a Secret is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recipe {
    /// Keys with values that nobody knows: 16 bytes in hexadecimal digits.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub drawn: BTreeSet<String>,
    /// The Secret whose values the texts name, as it was when this was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<(String, Over)>,
    /// Texts by key. `${KEY}` stands for a value of the other Secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// A certificate with its key, and those who vouch for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// Whether nobody may change it afterwards, ourselves included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub immutable: bool,
}

/// A certificate by the release's own authority: `tls.crt`, `tls.key` and `ca.crt`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// The host names that it is for.
    pub names: Vec<String>,
    /// When it was asked for. Another time is another certificate.
    pub since: Timestamp,
    /// A Secret in the release's namespace with a certificate that somebody else made: it is taken instead, if it is there.
    pub instead: String,
}

/// Why a Secret cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its key {0:?} is needed and is not there")]
pub struct MissingKey(pub String);

impl Recipe {
    /// As the `spec` of a manifest.
    pub fn value(&self) -> Value {
        // Maps with keys that are text can always be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What the Secret holds, with the values of the other one, and a way to draw values.
    pub fn make(
        &self,
        values: &BTreeMap<String, String>,
        mut draw: impl FnMut() -> String,
    ) -> Result<BTreeMap<String, String>, MissingKey> {
        let mut made: BTreeMap<String, String> = self.drawn.iter().map(|key| (key.clone(), draw())).collect();
        for (key, text) in &self.texts {
            made.insert(key.clone(), fill(text, values)?);
        }
        Ok(made)
    }
}

fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, MissingKey> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (key, after) = after.split_once('}').ok_or_else(|| MissingKey(after.to_owned()))?;
        filled.push_str(before);
        filled.push_str(values.get(key).ok_or_else(|| MissingKey(key.to_owned()))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// What is kept of a Secret instead of what it holds: enough to see that it was changed, and which keys it has.
pub fn fingerprint(data: &Value) -> Value {
    let keys: Vec<&String> = data.as_object().into_iter().flatten().map(|(key, _)| key).collect();
    json!({ "fingerprint": short_hash(&data.to_string()), "keys": keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_drawn_and_put_into_texts() {
        let recipe = Recipe {
            drawn: BTreeSet::from(["a".into(), "b".into()]),
            texts: map(&[("file", "user=x\npassword=\"${PASSWORD}\"\n")]),
            ..Recipe::default()
        };
        let mut drawn = 0;
        let made = recipe.make(&map(&[("PASSWORD", "p")]), || {
            drawn += 1;
            format!("drawn {drawn}")
        });
        let expected = map(&[("a", "drawn 1"), ("b", "drawn 2"), ("file", "user=x\npassword=\"p\"\n")]);
        assert_eq!(made, Ok(expected));
    }

    #[test]
    fn a_value_that_is_not_there_is_named() {
        let recipe = Recipe { texts: map(&[("file", "${ONE}")]), ..Recipe::default() };
        assert_eq!(recipe.make(&map(&[("TWO", "2")]), String::new), Err(MissingKey("ONE".into())));
    }

    #[test]
    fn a_recipe_survives_the_plan() {
        let over = Over { uid: "u".into(), resource_version: "7".into() };
        let recipe = Recipe { from: Some(("moco-a".into(), over)), immutable: true, ..Recipe::default() };
        assert_eq!(serde_json::from_value::<Recipe>(recipe.value()).unwrap(), recipe);
    }

    #[test]
    fn a_fingerprint_shows_a_change_and_no_value() {
        let (one, other) = (fingerprint(&json!({"key": "c2VjcmV0"})), fingerprint(&json!({"key": "b3RoZXI="})));
        assert_ne!(one, other);
        assert!(!one.to_string().contains("c2VjcmV0"));
        assert_eq!(one["keys"], json!(["key"]));
    }
}
