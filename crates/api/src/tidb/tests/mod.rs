//! Manifests as users have them, and what the definition makes of them.

mod admission;
mod definition;
mod round_trips;

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

const BASIC: &str = include_str!("manifests/basic.yaml");
const ADVANCED: &str = include_str!("manifests/advanced.yaml");
const EVERYTHING: &str = include_str!("manifests/everything.yaml");

fn definition() -> &'static CustomResourceDefinition {
    // Made once: a debug build takes its time.
    static DEFINITION: LazyLock<CustomResourceDefinition> = LazyLock::new(crate::tidb::custom_resource_definition);
    &DEFINITION
}

/// The schema, as the API server gets it.
fn schema() -> Value {
    serde_json::to_value(&definition().spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone()
}
