//! Reading what somebody may have broken.
//!
//! Status is computed and never obeyed, so an unreadable piece of it is no reason to stop: it reads as absent, the computed
//! status then differs from it, and the next commit heals it.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Reads a field, and takes one that does not fit its type for absent.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Shelf {
        #[serde(default, deserialize_with = "or_default")]
        books: Option<u16>,
        #[serde(default, deserialize_with = "or_default")]
        names: Vec<String>,
    }

    #[test]
    fn junk_reads_as_absent_and_the_rest_is_kept() {
        let shelf: Shelf = serde_json::from_str(r#"{"books": {"a": 1}, "names": ["x"]}"#).unwrap();
        assert_eq!(shelf, Shelf { books: None, names: vec!["x".into()] });
        let shelf: Shelf = serde_json::from_str(r#"{"books": 3, "names": "x"}"#).unwrap();
        assert_eq!(shelf, Shelf { books: Some(3), names: vec![] });
    }
}
