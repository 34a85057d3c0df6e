//! Makes derived schemas fit for the API server.
//!
//! Decides nothing about a resource; only its form: what the server warns about, what makes a definition too large, and what a
//! derive cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Depth up to which descriptions are kept: our own fields. Deeper lie the types of Kubernetes, which `kubectl explain pod` explains.
const DESCRIBED_DEPTH: usize = 4;
/// The field of claims, in every kind.
const CLAIM_TEMPLATES: &str = "volumeClaimTemplates";

/// Fits every version of a definition.
pub fn fit(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let keeps_unknown = definition.spec.names.kind == "Logbook";
    for version in &mut definition.spec.versions {
        let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        fit_node(root, 0);
        let properties = root.properties.get_or_insert_default();
        if keeps_unknown && let Some(spec) = properties.get_mut("spec") {
            keep_unknown(spec);
        }
        if let Some(conditions) =
            properties.get_mut("status").and_then(|status| status.properties.as_mut()).and_then(|it| it.get_mut("conditions"))
        {
            conditions.x_kubernetes_list_type = Some("map".into());
            conditions.x_kubernetes_list_map_keys = Some(vec!["type".into()]);
        }
    }
    definition
}

/// What a newer release writes anywhere in it must not be pruned.
fn keep_unknown(node: &mut JSONSchemaProps) {
    if node.type_.as_deref() == Some("object") {
        node.x_kubernetes_preserve_unknown_fields = Some(true);
    }
    for child in node.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        keep_unknown(child);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut node.items {
        keep_unknown(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut node.additional_properties {
        keep_unknown(values);
    }
}

/// A whole object inside of ours says what it is, or nothing. With anything else in its place the resource could not be read, and
/// nobody would tell its owner; so it is refused at the door.
fn name_claims(templates: &mut JSONSchemaProps) {
    let Some(JSONSchemaPropsOrArray::Schema(claim)) = &mut templates.items else { return };
    for (property, value) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
        if let Some(property) = claim.properties.as_mut().and_then(|all| all.get_mut(property)) {
            property.enum_ = Some(vec![JSON(value.into())]);
        }
    }
}

/// Kubernetes explains quantities at length, wherever one is.
fn is_lecture(node: &JSONSchemaProps) -> bool {
    node.description.as_ref().is_some_and(|text| text.starts_with("Quantity is a fixed-point representation"))
}

fn fit_node(node: &mut JSONSchemaProps, depth: usize) {
    // The API server knows no unsigned formats and warns about them; the bounds stay.
    if node.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        node.format = None;
    }
    // A null where a default stands becomes the default, as in APIs that know no null there; an enum would refuse it otherwise.
    // Quantities, which have no type, keep it: there it means none at all.
    if node.default.is_some() && node.type_.is_some() {
        node.nullable = None;
    }
    if depth > DESCRIBED_DEPTH || is_lecture(node) {
        node.description = None;
    }
    for (name, child) in node.properties.iter_mut().flatten() {
        if name == CLAIM_TEMPLATES {
            name_claims(child);
        }
        fit_node(child, depth + 1);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut node.items {
        fit_node(items, depth + 1);
    }
    if let Some(k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrBool::Schema(values)) =
        &mut node.additional_properties
    {
        fit_node(values, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

    use serde_json::Value;

    use crate::custom_resource_definitions;

    /// Objects that are pruned, by where they are.
    fn pruned(node: &Value, at: &str, found: &mut Vec<String>) {
        if node["type"] == "object" && node["x-kubernetes-preserve-unknown-fields"] != true {
            found.push(at.to_owned());
        }
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            pruned(child, &format!("{at}.{name}"), found);
        }
        for inside in ["items", "additionalProperties"].iter().filter_map(|inside| node.get(inside)) {
            pruned(inside, &format!("{at}[]"), found);
        }
    }

    #[test]
    fn nothing_that_a_newer_release_remembers_is_pruned() {
        let definitions = custom_resource_definitions();
        let logbook = definitions.iter().find(|it| it.spec.names.kind == "Logbook").unwrap();
        let logbook = serde_json::to_value(logbook).unwrap();
        let mut found = Vec::new();
        pruned(&logbook["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec", &mut found);
        assert_eq!(found, [""; 0]);
    }
}
