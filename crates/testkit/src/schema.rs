//! The structural schema of a custom resource: prunes unknown fields, fills defaults, refuses wrong types.
//!
//! CEL rules and string patterns are not evaluated: what they refuse must be shown on a real server. A value that did
//! not change is not refused, so that junk planted in a status does not block other writes, as on the real server.

use serde_json::{Map, Value};

use crate::{
    failure::{Failure, FieldError},
    object::meta,
    registry::Resource,
};

/// Prunes and defaults `object` in place.
pub(crate) fn shape(resource: &Resource, object: &mut Value) {
    let Some(schema) = resource.schema.as_deref() else { return };
    for (name, value) in object.as_object_mut().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            let place = &schema["properties"][name.as_str()];
            prune(place, value);
            fill_defaults(place, value);
        }
    }
    if !preserves(schema)
        && let Some(root) = object.as_object_mut()
    {
        root.retain(|name, _| {
            matches!(name.as_str(), "apiVersion" | "kind" | "metadata") || schema["properties"].get(name).is_some()
        });
    }
}

/// Refuses what the schema does not allow, unless it was so before.
pub(crate) fn admit(resource: &Resource, old: &Value, object: &Value) -> Result<(), Failure> {
    let Some(schema) = resource.schema.as_deref() else {
        return Ok(());
    };
    let mut errors = Vec::new();
    for (name, place) in schema["properties"].as_object().into_iter().flatten() {
        if matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        if let Some(value) = object.get(name) {
            check(place, old.get(name), value, name, &mut errors);
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if object.get(name).is_none() {
            errors.push(FieldError::required(name, ""));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::invalid(resource, meta(object, "name"), &errors)) }
}

fn preserves(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

fn prune(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let additional = &schema["additionalProperties"];
            let free = preserves(schema) || additional == true || schema["x-kubernetes-embedded-resource"] == true;
            if !free && !additional.is_object() {
                map.retain(|name, _| schema["properties"].get(name).is_some());
            }
            for (name, child) in map {
                match schema["properties"].get(name) {
                    Some(declared) => prune(declared, child),
                    None if additional.is_object() => prune(additional, child),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for item in items {
                    prune(item_schema, item);
                }
            }
        }
        _ => {}
    }
}

fn fill_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, declared) in schema["properties"].as_object().into_iter().flatten() {
                let missing = map.get(name).is_none_or(|child| child.is_null() && declared["nullable"] != true);
                if let Some(default) = declared.get("default")
                    && missing
                {
                    map.insert(name.clone(), default.clone());
                }
            }
            // A null where the schema allows none is dropped before validation.
            map.retain(|name, child| {
                !child.is_null() || schema["properties"].get(name).is_none_or(|declared| declared["nullable"] == true)
            });
            for (name, child) in map {
                match schema["properties"].get(name) {
                    Some(declared) => fill_defaults(declared, child),
                    None if schema["additionalProperties"].is_object() => {
                        fill_defaults(&schema["additionalProperties"], child);
                    }
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for item in items {
                    fill_defaults(item_schema, item);
                }
            }
        }
        _ => {}
    }
}

fn check(schema: &Value, old: Option<&Value>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if old == Some(value) || (value.is_null() && schema["nullable"] == true) {
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !value.is_i64() && !value.is_u64() && !value.is_string() {
            errors.push(wrong_type(path, "integer,string", value));
        }
        return;
    }
    if let Some(expected) = schema["type"].as_str()
        && !has_type(value, expected)
    {
        errors.push(wrong_type(path, expected, value));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let listed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let text = format!("Unsupported value: {value}: supported values: {}", listed.join(", "));
        errors.push(FieldError::of(path, "FieldValueNotSupported", text));
    }
    check_bounds(schema, value, path, errors);
    match value {
        Value::Object(map) => check_map(schema, old, map, path, errors),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    let before = old.and_then(|old| old.get(index));
                    check(item_schema, before, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(schema: &Value, old: Option<&Value>, map: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !map.contains_key(name) {
            errors.push(FieldError::required(&format!("{path}.{name}"), ""));
        }
    }
    for (name, child) in map {
        let declared = schema["properties"]
            .get(name)
            .or_else(|| schema.get("additionalProperties").filter(|additional| additional.is_object()));
        if let Some(declared) = declared {
            let before = old.and_then(|old| old.get(name));
            check(declared, before, child, &format!("{path}.{name}"), errors);
        }
    }
}

fn check_bounds(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut refuse = |text: String| {
        errors.push(FieldError::invalid(path, format!("Invalid value: {value}: {path} in body {text}")));
    };
    if let Some(number) = value.as_f64() {
        if let Some(minimum) = schema["minimum"].as_f64()
            && number < minimum
        {
            refuse(format!("should be greater than or equal to {minimum}"));
        }
        if let Some(maximum) = schema["maximum"].as_f64()
            && number > maximum
        {
            refuse(format!("should be less than or equal to {maximum}"));
        }
    }
    let size = match value {
        Value::String(text) => Some((text.chars().count() as u64, "minLength", "maxLength")),
        Value::Array(items) => Some((items.len() as u64, "minItems", "maxItems")),
        Value::Object(map) => Some((map.len() as u64, "minProperties", "maxProperties")),
        _ => None,
    };
    if let Some((size, least, most)) = size {
        if schema[least].as_u64().is_some_and(|least| size < least) {
            refuse(format!("is too small: {least} {}", schema[least]));
        }
        if schema[most].as_u64().is_some_and(|most| size > most) {
            refuse(format!("is too large: {most} {}", schema[most]));
        }
    }
}

fn has_type(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn wrong_type(path: &str, expected: &str, value: &Value) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let text = format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}");
    FieldError::of(path, "FieldValueTypeInvalid", text)
}
