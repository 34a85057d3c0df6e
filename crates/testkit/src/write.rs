//! Creates and updates objects: every write but a delete ends in `create` or `finish_update`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    apply::managers::{Writer, settle_update},
    defaults,
    failure::{Failure, FieldError},
    meta::{check_name_in_url, check_type, keep_system_fields, metadata_errors, settle_namespace, update_errors},
    object::{copy_root, drop_empties, drop_nulls, finalizers, is_deleting, meta, meta_mut, tidy_meta},
    registry::Resource,
    schema,
    state::State,
    store::ObjectKey,
};

/// Who writes what, and whether it is only a rehearsal.
#[derive(Clone, Debug)]
pub(crate) struct WriteRequest {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
}

impl WriteRequest {
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.resource, &self.namespace, &self.name)
    }

    pub(crate) fn on_status(&self) -> bool {
        self.subresource == "status"
    }
}

/// A written object, or the one that was already so.
pub(crate) type Written = Result<Arc<Value>, Failure>;

impl State {
    pub(crate) fn writer(&self, request: &WriteRequest) -> Writer {
        Writer { manager: request.manager.clone(), subresource: request.subresource.clone(), now: self.now() }
    }

    /// POST on a collection.
    pub(crate) fn create(&mut self, request: &WriteRequest, mut object: Value) -> Written {
        let resource = Arc::clone(&request.resource);
        check_type(&resource, &object)?;
        settle_namespace(&resource, &mut object, &request.namespace)?;
        if meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty() {
            let name = format!("{}{}", meta(&object, "generateName"), self.new_suffix());
            meta_mut(&mut object).insert("name".to_owned(), json!(name));
        }
        if !meta(&object, "resourceVersion").is_empty() {
            return Err(Failure::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.insert(request, object, true)
    }

    /// Puts a new object into the store: the part of a create that apply and PUT share.
    pub(crate) fn insert(&mut self, request: &WriteRequest, mut object: Value, settle: bool) -> Written {
        let resource = Arc::clone(&request.resource);
        if resource.namespaced && !self.namespace_exists(&request.namespace) {
            let namespaces = self.registry.find("", "v1", "namespaces");
            return Err(namespaces.map_or_else(Failure::no_such_path, |kind| Failure::not_found(&kind, &request.namespace)));
        }
        let name = meta(&object, "name").to_owned();
        let metadata = meta_mut(&mut object);
        for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(field);
        }
        metadata.insert("uid".to_owned(), json!(self.new_uid()));
        metadata.insert("creationTimestamp".to_owned(), json!(self.now()));
        metadata.remove("generation");
        if resource.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
        if resource.status
            && let Some(root) = object.as_object_mut()
        {
            root.remove("status");
        }
        normalise(&resource, &mut object);
        defaults::give_address(&resource, &mut object, self.history.revision());
        initial_status(&resource, &mut object);
        let errors = metadata_errors(&resource, &object);
        if !errors.is_empty() {
            return Err(Failure::invalid(&resource, &name, &errors));
        }
        schema::admit(&resource, &Value::Null, &object)?;
        let key = ObjectKey::new(&resource, &request.namespace, &name);
        if self.history.get(&key).is_some() {
            return Err(Failure::already_exists(&resource, &name));
        }
        if settle {
            let writer = self.writer(request);
            let mut owned = without_status(&resource, &object);
            settle_update(&Value::Null, &mut owned, &resource, &writer);
            crate::object::copy_meta(&owned, &mut object, "managedFields");
        }
        if request.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.commit(key, Some(object)))
    }

    /// PUT on an object or its status.
    pub(crate) fn replace(&mut self, request: &WriteRequest, mut object: Value) -> Result<(u16, Arc<Value>), Failure> {
        let resource = Arc::clone(&request.resource);
        check_type(&resource, &object)?;
        check_name_in_url(&object, &request.name)?;
        settle_namespace(&resource, &mut object, &request.namespace)?;
        let Some(old) = self.history.get(&request.key()) else {
            if resource.create_on_update && request.subresource.is_empty() {
                if !meta(&object, "uid").is_empty() {
                    let why = format!(
                        "StorageError: invalid object, Code: 4, Key: , ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: ",
                        meta(&object, "uid")
                    );
                    return Err(Failure::conflict(&resource, &request.name, &why));
                }
                return Ok((201, self.insert(request, object, true)?));
            }
            return Err(Failure::not_found(&resource, &request.name));
        };
        let uid = meta(&object, "uid");
        if !uid.is_empty() && uid != meta(&old, "uid") {
            return Err(uid_conflict(&resource, &request.name, uid, meta(&old, "uid")));
        }
        if meta(&object, "resourceVersion").is_empty() && !resource.unconditional_update {
            let error = FieldError::invalid("metadata.resourceVersion", "Invalid value: 0: must be specified for an update");
            return Err(Failure::invalid(&resource, &request.name, &[error]));
        }
        Ok((200, self.finish_update(request, &old, object, true)?))
    }

    /// Everything an update goes through once the wanted object is known.
    pub(crate) fn finish_update(&mut self, request: &WriteRequest, old: &Arc<Value>, mut new: Value, settle: bool) -> Written {
        let resource = Arc::clone(&request.resource);
        let version = meta(&new, "resourceVersion");
        if !version.is_empty() && version != meta(old, "resourceVersion") {
            return Err(Failure::modified(&resource, &request.name));
        }
        keep_address(&resource, old, &mut new);
        normalise(&resource, &mut new);
        keep_system_fields(old, &mut new);
        separate(request, old, &mut new);
        if settle {
            let writer = self.writer(request);
            settle_update(old, &mut new, &resource, &writer);
        }
        if resource.generation && content_differs(&resource, old, &new) {
            let generation = old["metadata"]["generation"].as_u64().unwrap_or_default() + 1;
            meta_mut(&mut new).insert("generation".to_owned(), json!(generation));
        }
        let mut errors = update_errors(old, &new);
        errors.extend(metadata_errors(&resource, &new));
        errors.extend(fixed_field_errors(&resource, old, &new));
        if !errors.is_empty() {
            return Err(Failure::invalid(&resource, &request.name, &errors));
        }
        schema::admit(&resource, old, &new)?;
        meta_mut(&mut new).insert("resourceVersion".to_owned(), old["metadata"]["resourceVersion"].clone());
        let gone = is_deleting(&new) && finalizers(&new).is_empty() && grace(&new) == 0 && resource.plural != "namespaces";
        if request.dry_run {
            return Ok(Arc::new(new));
        }
        if gone {
            self.commit(request.key(), None);
            return Ok(Arc::new(new));
        }
        // A write that changes nothing is not a new revision.
        if new == **old || without_times(&new) == without_times(old) {
            return Ok(Arc::clone(old));
        }
        Ok(self.commit(request.key(), Some(new)))
    }
}

/// What of a StatefulSet can be changed in place.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn fixed_field_errors(resource: &Resource, old: &Value, new: &Value) -> Option<FieldError> {
    let fixed = |object: &Value| {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        spec
    };
    let text = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    (resource.plural == "statefulsets" && fixed(old) != fixed(new)).then(|| FieldError::forbidden("spec", text))
}

pub(crate) fn uid_conflict(resource: &Resource, name: &str, wanted: &str, found: &str) -> Failure {
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    Failure::conflict(resource, name, &why)
}

pub(crate) fn grace(object: &Value) -> u64 {
    object["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or_default()
}

/// Brings a body to the form the server stores.
pub(crate) fn normalise(resource: &Resource, object: &mut Value) {
    if !resource.custom {
        drop_nulls(object);
        drop_empties(object);
    }
    tidy_meta(object);
    schema::shape(resource, object);
    defaults::fill(resource, object);
    if resource.plural == "secrets" {
        fold_string_data(object);
    }
}

/// A Service keeps its address when an update does not speak of it.
fn keep_address(resource: &Resource, old: &Value, new: &mut Value) {
    if resource.group.is_empty() && resource.plural == "services" && new["spec"].is_object() {
        for name in ["clusterIP", "clusterIPs"] {
            if new["spec"].get(name).is_none_or(Value::is_null)
                && let Some(known) = old["spec"].get(name)
            {
                new["spec"][name] = known.clone();
            }
        }
    }
}

/// Main writes never touch status; status writes touch nothing else (built-in kinds let metadata through).
fn separate(request: &WriteRequest, old: &Value, new: &mut Value) {
    if request.on_status() {
        if request.resource.custom {
            let status = new.get("status").cloned();
            let version = new["metadata"].get("resourceVersion").cloned();
            let owners = new["metadata"].get("managedFields").cloned();
            *new = old.clone();
            for (name, value) in [("resourceVersion", version), ("managedFields", owners)] {
                if let Some(value) = value {
                    meta_mut(new).insert(name.to_owned(), value);
                }
            }
            if let Some(root) = new.as_object_mut() {
                match status {
                    Some(status) => root.insert("status".to_owned(), status),
                    None => root.remove("status"),
                };
            }
        } else {
            let kept: Vec<String> = old.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            for name in kept.iter().filter(|name| !matches!(name.as_str(), "metadata" | "status")) {
                copy_root(old, new, name);
            }
        }
    } else if request.resource.status {
        copy_root(old, new, "status");
    }
}

/// The object without the times of its managers, which alone do not make a new revision.
fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    let owners = object["metadata"]["managedFields"].as_array_mut();
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.remove("time");
    }
    object
}

/// Whether anything outside metadata and status differs.
fn content_differs(resource: &Resource, old: &Value, new: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        if let Some(root) = object.as_object_mut() {
            root.remove("metadata");
            if resource.status || !resource.custom {
                root.remove("status");
            }
        }
        object
    };
    content(old) != content(new)
}

fn without_status(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if resource.status
        && let Some(root) = object.as_object_mut()
    {
        root.remove("status");
    }
    object
}

/// The status a new object of a built-in kind begins with.
fn initial_status(resource: &Resource, object: &mut Value) {
    if resource.custom {
        return;
    }
    let status = match resource.plural.as_str() {
        "pods" => json!({ "phase": "Pending", "qosClass": "BestEffort" }),
        "persistentvolumeclaims" => json!({ "phase": "Pending" }),
        "namespaces" => json!({ "phase": "Active" }),
        "services" => json!({ "loadBalancer": {} }),
        "statefulsets" => json!({ "replicas": 0, "availableReplicas": 0 }),
        "replicasets" => json!({ "replicas": 0 }),
        "deployments" => json!({}),
        "poddisruptionbudgets" => {
            json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 })
        }
        "customresourcedefinitions" => json!({
            "conditions": [
                { "type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": meta(object, "creationTimestamp") },
                { "type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted", "lastTransitionTime": meta(object, "creationTimestamp") },
            ],
            "acceptedNames": object["spec"]["names"],
            "storedVersions": [object["spec"]["versions"][0]["name"]],
        }),
        _ => return,
    };
    object["status"] = status;
    if resource.plural == "namespaces" {
        object["spec"] = json!({ "finalizers": ["kubernetes"] });
        let name = meta(object, "name").to_owned();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    }
}

/// `stringData` is write-only: its values go into `data`.
fn fold_string_data(object: &mut Value) {
    let Some(Value::Object(plain)) = object.as_object_mut().and_then(|root| root.remove("stringData")) else {
        return;
    };
    for (name, value) in plain {
        let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
        object["data"][name] = json!(k8s_openapi::ByteString(bytes));
    }
}
