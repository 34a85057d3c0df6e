//! DELETE: preconditions, finalizers, grace, and what is answered.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    failure::Failure,
    object::{finalizers, is_deleting, meta, meta_mut, text},
    path::Query,
    registry::Resource,
    selector::Selection,
    state::{Answer, State},
    store::ObjectKey,
    write::grace,
};

/// Finalizer of an orphaning delete.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer of a delete that waits for dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    propagation: Option<String>,
    grace_seconds: Option<u64>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Without grace.
    pub(crate) fn immediate() -> Self {
        Self { grace_seconds: Some(0), ..Self::default() }
    }

    /// From the body; the query is read only when there is no body at all, as the real server does.
    pub(crate) fn read(body: &Value, query: &Query) -> Self {
        if body.is_null() {
            return Self {
                propagation: query.get("propagationPolicy").map(str::to_owned),
                grace_seconds: query.number("gracePeriodSeconds"),
                dry_run: query.get("dryRun") == Some("All"),
                ..Self::default()
            };
        }
        let word = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            uid: word(&body["preconditions"]["uid"]),
            version: word(&body["preconditions"]["resourceVersion"]),
            propagation: word(&body["propagationPolicy"]),
            grace_seconds: body["gracePeriodSeconds"].as_u64(),
            dry_run: body["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        }
    }
}

/// What became of a deleted object.
pub(crate) enum Deleted {
    Gone(Arc<Value>),
    Marked(Arc<Value>),
}

impl State {
    pub(crate) fn delete(&mut self, resource: &Resource, key: &ObjectKey, options: &DeleteOptions) -> Result<Deleted, Failure> {
        let Some(old) = self.history.get(key) else {
            return Err(Failure::not_found(resource, &key.name));
        };
        if let Some(uid) = &options.uid
            && uid != meta(&old, "uid")
        {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                meta(&old, "uid")
            );
            return Err(Failure::precondition(resource, &key.name, &why));
        }
        if let Some(version) = &options.version
            && version != meta(&old, "resourceVersion")
        {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
                meta(&old, "resourceVersion")
            );
            return Err(Failure::precondition(resource, &key.name, &why));
        }
        let mut object = (*old).clone();
        settle_finalizers(&mut object, options.propagation.as_deref());
        let grace_seconds = grace_of(resource, &object, options);
        let namespace = resource.plural == "namespaces";
        if finalizers(&object).is_empty() && grace_seconds == 0 && !namespace {
            let gone = if options.dry_run { old } else { self.commit(key.clone(), None) };
            return Ok(Deleted::Gone(gone));
        }
        self.mark(&mut object, grace_seconds);
        if namespace {
            object["status"]["phase"] = json!("Terminating");
        }
        if options.dry_run || object == *old {
            return Ok(Deleted::Marked(if options.dry_run { Arc::new(object) } else { old }));
        }
        Ok(Deleted::Marked(self.commit(key.clone(), Some(object))))
    }

    /// Sets the deletion timestamp once; a later delete may only shorten the grace.
    fn mark(&self, object: &mut Value, grace_seconds: u64) {
        if is_deleting(object) {
            let shorter = grace(object).min(grace_seconds);
            meta_mut(object).insert("deletionGracePeriodSeconds".to_owned(), json!(shorter));
            return;
        }
        let now = self.now();
        let generation = object["metadata"]["generation"].as_u64();
        let metadata = meta_mut(object);
        metadata.insert("deletionTimestamp".to_owned(), json!(now));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace_seconds));
        if let Some(generation) = generation {
            metadata.insert("generation".to_owned(), json!(generation + 1));
        }
    }

    pub(crate) fn delete_collection(
        &mut self,
        resource: &Resource,
        namespace: Option<&str>,
        query: &Query,
        options: &DeleteOptions,
    ) -> Result<Answer, Failure> {
        let selection = Selection::from_query(query, resource.plural == "pods")?;
        let revision = self.history.revision();
        let chosen = self.history.list_at(resource, namespace, revision);
        let mut items = Vec::new();
        for (key, object) in chosen.into_iter().filter(|(_, object)| selection.matches(object)) {
            self.delete(resource, &key, options)?;
            items.push((*object).clone());
        }
        let list = json!({
            "kind": format!("{}List", resource.kind),
            "apiVersion": resource.api_version(),
            "metadata": { "resourceVersion": self.history.revision().to_string() },
            "items": items,
        });
        Ok((200, list))
    }
}

/// The body of a successful delete: the object while it is still there (or for kinds that give it back), else a Status.
pub(crate) fn delete_answer(resource: &Resource, deleted: &Deleted) -> Value {
    match deleted {
        Deleted::Marked(object) => (**object).clone(),
        Deleted::Gone(object) if resource.returns_deleted => (**object).clone(),
        Deleted::Gone(object) => {
            let mut details = json!({
                "name": meta(object, "name"),
                "kind": resource.plural,
                "uid": meta(object, "uid"),
            });
            if !resource.group.is_empty() {
                details["group"] = json!(resource.group);
            }
            json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            })
        }
    }
}

fn settle_finalizers(object: &mut Value, propagation: Option<&str>) {
    let Some(propagation) = propagation else { return };
    let mut kept: Vec<String> =
        finalizers(object).into_iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).map(str::to_owned).collect();
    match propagation {
        "Orphan" => kept.push(ORPHAN.to_owned()),
        "Foreground" => kept.push(FOREGROUND.to_owned()),
        _ => {}
    }
    let metadata = meta_mut(object);
    if kept.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(kept));
    }
}

/// Only a pod that sits on a node is given time to stop.
fn grace_of(resource: &Resource, object: &Value, options: &DeleteOptions) -> u64 {
    let on_node = resource.plural == "pods" && !text(object, &["spec", "nodeName"]).is_empty();
    let ended = matches!(text(object, &["status", "phase"]), "Succeeded" | "Failed");
    if !on_node || ended {
        return 0;
    }
    options.grace_seconds.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_u64()).unwrap_or(30)
}
