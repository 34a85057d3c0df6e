//! The configuration of a component, in either of the forms that users write it in.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The configuration of a component: a map, or the text of a TOML file.
///
/// The schema lets everything through, since it cannot say "one or the other"; so everything can be read, and what is neither is told
/// to the user by whoever validates.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Config {
    /// The text of a TOML file.
    Toml(String),
    /// A map with the same keys.
    Map(Map<String, Value>),
    /// Neither of the two.
    Other(Value),
}

impl JsonSchema for Config {
    fn schema_name() -> Cow<'static, str> {
        "Config".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}
