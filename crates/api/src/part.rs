//! Parts of objects of Kubernetes inside of ours, kept as the user wrote them.
//!
//! They stay out of the schema, which would be many times as large with them; what a newer Kubernetes knows is neither pruned nor lost.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A part of an object of Kubernetes, kept as the user wrote it. `T` is what it is meant to be.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent, bound = "")]
pub struct Part<T> {
    /// The fields, known or not.
    pub fields: Map<String, Value>,
    #[serde(skip)]
    meant: PhantomData<T>,
}

impl<T: DeserializeOwned> Part<T> {
    /// The part as the type that it is meant to be, see [`read`].
    pub fn read(&self) -> Result<T, serde_json::Error> {
        read(self)
    }
}

impl<T: JsonSchema> JsonSchema for Part<T> {
    // The page of the reference names types of Kubernetes by this.
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("Part<{}>", T::schema_id()).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// Reads a part of a template as a type of Kubernetes. What the type does not know is left out, what it misses is empty.
pub fn read<T: DeserializeOwned>(part: &impl Serialize) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(part)?)
}
