//! PATCH: merge, JSON, strategic merge for built-in kinds, and server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    apply::{
        managers::settle_apply,
        topology::{ListShape, Place, item_element},
    },
    failure::Failure,
    meta::{check_name_in_url, check_type, settle_namespace},
    object::{drop_nulls, meta, meta_mut},
    state::State,
    write::WriteRequest,
};

/// The kind of patch a content type names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Merge,
    Json,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(crate) fn from_content_type(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Some(Self::Merge),
            "application/json-patch+json" => Some(Self::Json),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => Some(Self::Apply),
            _ => None,
        }
    }
}

impl State {
    /// Patches an object or its status. Answers 201 when an apply created it.
    pub(crate) fn patch(
        &mut self,
        request: &WriteRequest,
        kind: PatchKind,
        body: &Value,
        force: bool,
    ) -> Result<(u16, Arc<Value>), Failure> {
        if kind == PatchKind::Apply {
            return self.apply(request, body, force);
        }
        let resource = Arc::clone(&request.resource);
        let Some(old) = self.history.get(&request.key()) else {
            return Err(Failure::not_found(&resource, &request.name));
        };
        let mut patched = (*old).clone();
        match kind {
            PatchKind::Merge => {
                if !body.is_object() {
                    return Err(Failure::bad_request("a merge patch must be a JSON object"));
                }
                json_patch::merge(&mut patched, body);
            }
            PatchKind::Json => {
                let operations: json_patch::Patch = serde_json::from_value(body.clone())
                    .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
                json_patch::patch(&mut patched, &operations).map_err(|error| {
                    Failure::new(
                        422,
                        "Invalid",
                        format!("the server rejected our request due to an error in our request: {error}"),
                    )
                })?;
            }
            PatchKind::Strategic if resource.custom => {
                return Err(Failure::unsupported_media_type("application/strategic-merge-patch+json"));
            }
            PatchKind::Strategic => strategic(&mut patched, body, Place::root(&resource)),
            PatchKind::Apply => {}
        }
        check_type(&resource, &patched)?;
        check_name_in_url(&patched, &request.name)?;
        settle_namespace(&resource, &mut patched, &request.namespace)?;
        Ok((200, self.finish_update(request, &old, patched, true)?))
    }

    fn apply(&mut self, request: &WriteRequest, body: &Value, force: bool) -> Result<(u16, Arc<Value>), Failure> {
        let resource = Arc::clone(&request.resource);
        if request.manager.is_empty() {
            return Err(Failure::invalid_options(
                "PatchOptions",
                "fieldManager",
                "Required value: is required for apply patch",
                "FieldValueRequired",
            ));
        }
        let mut config = body.clone();
        check_type(&resource, &config)?;
        if meta(&config, "name").is_empty() {
            meta_mut(&mut config).insert("name".to_owned(), json!(request.name));
        }
        check_name_in_url(&config, &request.name)?;
        if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        settle_namespace(&resource, &mut config, &request.namespace)?;
        if !resource.custom {
            drop_nulls(&mut config);
        }
        meta_mut(&mut config).retain(|_, value| !value.is_null());
        keep_applicable(request, &mut config);

        let writer = self.writer(request);
        let Some(old) = self.history.get(&request.key()) else {
            if request.on_status() {
                return Err(Failure::not_found(&resource, &request.name));
            }
            let uid = meta(&config, "uid");
            if !uid.is_empty() {
                let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Failure::conflict(&resource, &request.name, &why));
            }
            let object = settle_apply(&Value::Null, &config, &resource, &writer, force)?;
            return Ok((201, self.insert(request, object, false)?));
        };
        let merged = settle_apply(&old, &config, &resource, &writer, force)?;
        Ok((200, self.finish_update(request, &old, merged, false)?))
    }
}

/// What an apply cannot change through this subresource is not applied and not owned.
fn keep_applicable(request: &WriteRequest, config: &mut Value) {
    let Some(root) = config.as_object_mut() else { return };
    if request.on_status() {
        root.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        if request.resource.custom
            && let Some(metadata) = root.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
        }
    } else if request.resource.status {
        root.remove("status");
    }
}

/// Strategic merge: maps by key, keyed lists by their merge key, `$patch: delete` and `$patch: replace`.
fn strategic(value: &mut Value, patch: &Value, place: Place<'_>) {
    match (value, patch) {
        (Value::Object(map), Value::Object(changes)) => {
            if changes.get("$patch").is_some_and(|directive| directive == "replace") {
                map.clone_from(changes);
                map.remove("$patch");
                return;
            }
            for (name, change) in changes {
                if name.starts_with('$') {
                    continue;
                }
                if change.is_null() {
                    map.remove(name);
                } else {
                    strategic(map.entry(name.clone()).or_insert(Value::Null), change, place.field(name));
                }
            }
        }
        (Value::Array(items), Value::Array(changes)) => match place.list_shape() {
            ListShape::Atomic => items.clone_from(changes),
            shape => strategic_items(items, changes, &shape, place),
        },
        (value, change) => {
            *value = change.clone();
            if value.is_object() || value.is_array() {
                strip_directives(value);
            }
        }
    }
}

fn strategic_items(items: &mut Vec<Value>, changes: &[Value], shape: &ListShape, place: Place<'_>) {
    for change in changes {
        let element = item_element(shape, change);
        let known = items.iter().position(|item| item_element(shape, item) == element);
        match (known, change.get("$patch").and_then(Value::as_str)) {
            (Some(index), Some("delete")) => {
                items.remove(index);
            }
            (None, Some("delete")) => {}
            (Some(index), _) => strategic(&mut items[index], change, place.item()),
            (None, _) => items.push(change.clone()),
        }
    }
}

fn strip_directives(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, child| !name.starts_with('$') && !child.is_null());
            map.values_mut().for_each(strip_directives);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_directives),
        _ => {}
    }
}
