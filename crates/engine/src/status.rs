//! Commits status: one compare-and-swap a pass, only when something changed.
//!
//! The request carries nothing but the status and the version of the object that the pass was computed from, so no byte of the
//! user's can be lost by it.

use kube::core::Request;
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_core::conditions::same_but_for_times;
use windlass_core::kind::Kind;
use windlass_core::labels;

use crate::calls::{CallError, Calls, written_by};

/// What came of a commit.
#[derive(Debug)]
pub(crate) enum Committed<R> {
    /// It is so now; this is the object after it.
    Written(Box<R>),
    /// The object moved on in a way that matters: the pass has to be made again from this one.
    Outdated(Box<R>),
    /// The object is gone.
    Gone,
}

/// How soon a status has to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is stored already.
    None,
    /// Only details moved: lists, messages.
    Details,
    /// A condition flipped, a generation was acted upon, a summary changed: people and programs wait for it.
    Now,
}

/// How soon this status has to be told.
pub(crate) fn urgency<K: Kind>(resource: &K::Resource, status: &K::Status) -> Urgency {
    let stored = K::stored_status(resource);
    if stored == Some(status) {
        return Urgency::None;
    }
    let (stored, computed) = (stored.map(value_of).unwrap_or_default(), value_of(status));
    if same_but_for_times(&stored, &computed) {
        Urgency::None
    } else if essence(&stored) == essence(&computed) {
        Urgency::Details
    } else {
        Urgency::Now
    }
}

/// What of a status programs decide upon.
fn essence(status: &Value) -> (Vec<(&Value, &Value, &Value)>, &Value, &Value) {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions = conditions.map(|it| (&it["type"], &it["status"], &it["observedGeneration"])).collect();
    (conditions, &status["observedGeneration"], &status["phase"])
}

/// Commits a status that was computed from `resource` and is not stored in it yet; see [`urgency`].
pub(crate) async fn commit<K: Kind>(
    calls: &Calls,
    resource: &K::Resource,
    status: &K::Status,
) -> Result<Committed<K::Resource>, CallError> {
    match put::<K>(calls, resource, status).await {
        Ok(written) => return Ok(Committed::Written(Box::new(written))),
        Err(error) if error.is_not_found() => return Ok(Committed::Gone),
        Err(error) if !error.is_conflict() => return Err(error),
        Err(_) => {}
    }
    let fresh = match get::<K>(calls, resource).await {
        Ok(fresh) => fresh,
        Err(error) if error.is_not_found() => return Ok(Committed::Gone),
        Err(error) => return Err(error),
    };
    if !only_noise_moved::<K>(resource, &fresh) {
        return Ok(Committed::Outdated(Box::new(fresh)));
    }
    if urgency::<K>(&fresh, status) == Urgency::None {
        return Ok(Committed::Written(Box::new(fresh)));
    }
    match put::<K>(calls, &fresh, status).await {
        Ok(written) => Ok(Committed::Written(Box::new(written))),
        Err(error) if error.is_conflict() => Ok(Committed::Outdated(Box::new(fresh))),
        Err(error) => Err(error),
    }
}

/// Whether a re-sent status would still be true: the user did not ask for anything else meanwhile.
fn only_noise_moved<K: Kind>(computed_from: &K::Resource, fresh: &K::Resource) -> bool {
    let (then, now) = (computed_from.meta(), fresh.meta());
    then.uid == now.uid
        && then.generation == now.generation
        && then.labels == now.labels
        && then.deletion_timestamp.is_some() == now.deletion_timestamp.is_some()
        && K::pause(computed_from) == K::pause(fresh)
}

fn value_of(status: &impl Serialize) -> Value {
    serde_json::to_value(status).unwrap_or_default()
}

fn path<K: Kind>(resource: &K::Resource) -> String {
    K::Resource::url_path(&(), resource.namespace().as_deref())
}

fn what<K: Kind>(verb: &str, resource: &K::Resource) -> String {
    format!(
        "{verb} {} {:?} in namespace {:?}",
        K::Resource::kind(&()),
        resource.name_any(),
        resource.namespace().unwrap_or_default()
    )
}

async fn put<K: Kind>(calls: &Calls, resource: &K::Resource, status: &K::Status) -> Result<K::Resource, CallError> {
    let name = resource.name_any();
    let body = json!({
        "apiVersion": K::Resource::api_version(&()),
        "kind": K::Resource::kind(&()),
        "metadata": {
            "name": name,
            "namespace": resource.namespace(),
            "resourceVersion": resource.resource_version(),
            "uid": resource.uid(),
        },
        "status": value_of(status),
    });
    let body = body.to_string().into_bytes();
    let request = Request::new(path::<K>(resource));
    let parameters = written_by(labels::FIELD_MANAGER_STATUS);
    calls
        .send(
            || what::<K>("write the status of", resource),
            |client: Client| {
                let request = request.replace_subresource("status", &name, &parameters, body.clone());
                async move { client.request(request.map_err(kube::Error::BuildRequest)?).await }
            },
        )
        .await
}

/// Whether the very object is still there and nobody deletes it, by a fresh look.
pub(crate) async fn is_there<K: Kind>(calls: &Calls, resource: &K::Resource) -> Result<bool, CallError> {
    match get::<K>(calls, resource).await {
        Ok(fresh) => Ok(fresh.uid() == resource.uid() && fresh.meta().deletion_timestamp.is_none()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn get<K: Kind>(calls: &Calls, resource: &K::Resource) -> Result<K::Resource, CallError> {
    let name = resource.name_any();
    let request = Request::new(path::<K>(resource));
    calls
        .send(
            || what::<K>("read", resource),
            |client: Client| {
                let request = request.get(&name, &kube::api::GetParams::default());
                async move { client.request(request.map_err(kube::Error::BuildRequest)?).await }
            },
        )
        .await
}
