//! Rules every object's metadata obeys: names, namespaces, owner references, finalizers, what an update may not change.

use serde_json::Value;

use crate::{
    failure::{Failure, FieldError},
    object::{copy_meta, finalizers, is_deleting, meta, meta_mut},
    registry::Resource,
};

/// apiVersion and kind must be those of the URL.
pub(crate) fn check_type(resource: &Resource, object: &Value) -> Result<(), Failure> {
    let kind = object["kind"].as_str().unwrap_or_default();
    if kind.is_empty() {
        return Err(Failure::bad_request(format!("Object 'Kind' is missing in '{object}'")));
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let expected = resource.api_version();
    if api_version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if kind != resource.kind {
        return Err(Failure::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: the kind does not match",
            resource.version, resource.kind
        )));
    }
    let metadata = &object["metadata"];
    let legible = (metadata.is_null() || metadata.is_object())
        && ["labels", "annotations"].iter().all(|name| is_text_map(&metadata[*name]))
        && ["finalizers", "ownerReferences"].iter().all(|name| metadata[*name].is_null() || metadata[*name].is_array());
    if !legible {
        return Err(Failure::bad_request(format!("{kind} cannot be decoded: metadata has fields of the wrong type")));
    }
    Ok(())
}

fn is_text_map(value: &Value) -> bool {
    let texts = |map: &serde_json::Map<String, Value>| map.values().all(|value| value.is_string() || value.is_null());
    value.is_null() || value.as_object().is_some_and(texts)
}

/// The namespace in the object must be that of the URL, or empty; it is filled in.
pub(crate) fn settle_namespace(resource: &Resource, object: &mut Value, namespace: &str) -> Result<(), Failure> {
    let given = meta(object, "namespace").to_owned();
    if !resource.namespaced {
        meta_mut(object).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != namespace {
        return Err(Failure::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request ({namespace:?} does not match {given:?})"
        )));
    }
    meta_mut(object).insert("namespace".to_owned(), Value::String(namespace.to_owned()));
    Ok(())
}

/// The name in the object must be that of the URL.
pub(crate) fn check_name_in_url(object: &Value, name: &str) -> Result<(), Failure> {
    let given = meta(object, "name");
    if given == name {
        return Ok(());
    }
    if given.is_empty() {
        return Err(Failure::bad_request("name must be provided"));
    }
    Err(Failure::bad_request(format!("the name of the object ({given}) does not match the name on the URL ({name})")))
}

/// Field errors in metadata of an object about to be written.
pub(crate) fn metadata_errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta(object, "name");
    let path_names = resource.group == "rbac.authorization.k8s.io";
    let legal = if resource.plural == "services" || resource.plural == "namespaces" {
        is_label(name)
    } else {
        name.len() <= 253 && name.split('.').all(is_label_of_any_length)
    };
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if !legal && !path_names {
        errors.push(FieldError::invalid(
            "metadata.name",
            format!("Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"),
        ));
    }
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if !value.is_string() || !is_label_value(text) {
            errors.push(FieldError::invalid(
                "metadata.labels",
                format!("Invalid value: {value}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.' (key {key:?})"),
            ));
        }
    }
    let owners = object["metadata"]["ownerReferences"].as_array();
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                errors.push(FieldError::invalid(&path, "Invalid value: \"\": must not be empty"));
            }
        }
    }
    let controllers = owners.into_iter().flatten().filter(|owner| owner["controller"] == true);
    if controllers.count() > 1 {
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            "Invalid value: Only one reference can have Controller set to true",
        ));
    }
    errors
}

/// What an update may not do to metadata.
pub(crate) fn update_errors(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(old) {
        let known = finalizers(old);
        let added: Vec<&str> = finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
        if !added.is_empty() {
            let text = format!("no new finalizers can be added if the object is being deleted, found new finalizers {added:?}");
            errors.push(FieldError::forbidden("metadata.finalizers", &text));
        }
    }
    let marked = meta(new, "deletionTimestamp");
    if marked != meta(old, "deletionTimestamp") {
        errors
            .push(FieldError::invalid("metadata.deletionTimestamp", format!("Invalid value: {marked:?}: field is immutable")));
    }
    let uid = meta(new, "uid");
    if !uid.is_empty() && uid != meta(old, "uid") {
        errors.push(FieldError::invalid("metadata.uid", format!("Invalid value: {uid:?}: field is immutable")));
    }
    errors
}

/// Puts back what an update cannot change.
pub(crate) fn keep_system_fields(old: &Value, new: &mut Value) {
    for name in ["creationTimestamp", "generation"] {
        copy_meta(old, new, name);
    }
    // A deletion cannot be taken back; to begin one by an update is refused later.
    if is_deleting(old) {
        copy_meta(old, new, "deletionTimestamp");
        copy_meta(old, new, "deletionGracePeriodSeconds");
    }
    for name in ["uid", "generateName"] {
        if meta(new, name).is_empty() {
            copy_meta(old, new, name);
        }
    }
    meta_mut(new).remove("selfLink");
}

fn is_label_of_any_length(text: &str) -> bool {
    let edge = |character: Option<char>| character.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    edge(text.chars().next()) && edge(text.chars().last()) && text.chars().all(inner)
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

fn is_label_value(text: &str) -> bool {
    let edge = |character: Option<char>| character.is_none_or(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= 63 && edge(text.chars().next()) && edge(text.chars().last()) && text.chars().all(inner)
}
