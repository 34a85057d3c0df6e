//! A configuration as a table of TOML, whichever way the user wrote it.
//!
//! Decides nothing about single settings: each component knows its own.

use serde_json::{Map, Value};
use toml::Table;
use windlass_api::tidb::Config;

/// The configuration as a table, or what is wrong with it.
pub(super) fn read(config: Option<&Config>) -> Result<Table, String> {
    match config {
        None => Ok(Table::new()),
        Some(Config::Toml(text)) => text.parse().map_err(|error| explain(text, &error)),
        Some(Config::Map(map)) => Ok(table(map)),
        Some(Config::Other(_)) => Err("it is neither a map nor a text".to_owned()),
    }
}

/// Where the mistake is, and which. The error itself prints several lines.
fn explain(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

/// TOML knows no null: what is null is not said.
fn table(map: &Map<String, Value>) -> Table {
    map.iter().filter_map(|(key, value)| Some((key.clone(), toml_value(value)?))).collect()
}

fn toml_value(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => toml::Value::Boolean(*value),
        // A number that is too large for TOML's is as near as it gets.
        Value::Number(number) => match number.as_i64() {
            Some(integer) => toml::Value::Integer(integer),
            None => toml::Value::Float(number.as_f64()?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => toml::Value::Array(items.iter().filter_map(toml_value).collect()),
        Value::Object(map) => toml::Value::Table(table(map)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn of(written: Value) -> Result<String, String> {
        let config: Config = serde_json::from_value(written).unwrap();
        read(Some(&config)).map(|table| table.to_string())
    }

    #[rstest]
    #[case(json!({}), "")]
    #[case(json!(""), "")]
    #[case(json!({ "b": 1, "a": "x", "c": null }), "a = \"x\"\nb = 1\n")]
    #[case(json!("b = 1\na = \"x\""), "a = \"x\"\nb = 1\n")]
    #[case(json!({ "log": { "file": { "size": 3 } }, "on": true, "f": 0.5 }), "f = 0.5\non = true\n\n[log.file]\nsize = 3\n")]
    #[case(json!({ "list": ["a", "b"] }), "list = [\"a\", \"b\"]\n")]
    #[case(json!("[a]\nb = [{ c = 1 }]"), "[[a.b]]\nc = 1\n")]
    fn both_forms_say_the_same(#[case] written: Value, #[case] expected: &str) {
        assert_eq!(of(written).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case(json!("a = 1\nb = = 2"), "line 2")]
    #[case(json!("a = 1\na = 2"), "line 2")]
    #[case(json!(7), "neither a map nor a text")]
    #[case(json!([1]), "neither a map nor a text")]
    fn mistakes_are_told_where_they_are(#[case] written: Value, #[case] told: &str) {
        let error = of(written).unwrap_err();
        assert!(error.contains(told), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
