//! The custom resource the cases use: a typed spec, a status that keeps unknown fields, status and scale.

use serde_json::{Value, json};

/// The CustomResourceDefinition.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "specimens.conformance.windlass.dev" },
        "spec": {
            "group": "conformance.windlass.dev",
            "scope": "Namespaced",
            "names": { "plural": "specimens", "singular": "specimen", "kind": "Specimen", "listKind": "SpecimenList" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" },
                },
                "schema": { "openAPIV3Schema": schema() },
            }],
        },
    })
}

fn schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": { "type": "integer", "minimum": 0, "maximum": 100 },
                    "title": text,
                    "level": { "type": "string", "default": "low" },
                    "mode": { "type": "string", "enum": ["fast", "slow"] },
                    "nested": { "type": "object", "properties": { "left": text, "right": text } },
                    "whole": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": { "left": text, "right": text },
                    },
                    "free": { "type": "object", "additionalProperties": text },
                    "tags": { "type": "array", "items": text, "x-kubernetes-list-type": "set" },
                    "numbers": { "type": "array", "items": { "type": "integer" } },
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": { "name": text, "value": text, "note": text },
                        },
                    },
                },
            },
            "status": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {
                    "size": { "type": "integer" },
                    "conditions": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "items": {
                            "type": "object",
                            "required": ["type"],
                            "properties": { "type": text, "status": text, "reason": text },
                        },
                    },
                },
            },
        },
    })
}

/// A specimen with the given spec.
pub(crate) fn specimen(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "conformance.windlass.dev/v1",
        "kind": "Specimen",
        "metadata": { "name": name },
        "spec": spec,
    })
}
