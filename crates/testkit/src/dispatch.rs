//! From a request to the function that carries it out.

use std::sync::Arc;

use http::Method;
use serde_json::Value;

use crate::{
    calls::Verb,
    delete::{DeleteOptions, delete_answer},
    failure::Failure,
    patch::PatchKind,
    path::{Query, Target},
    read::View,
    registry::Resource,
    scale,
    state::{Answer, State},
    store::ObjectKey,
    watch::Subscription,
    write::WriteRequest,
};

/// A request, read.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) view: View,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Value,
}

/// What carrying out a request gives.
pub(crate) enum Done {
    Answer(Answer),
    Watch(Box<Subscription>),
}

/// The RBAC verb of a request, if the method means anything here.
pub(crate) fn verb_of(method: &Method, target: &Target, query: &Query) -> Option<Verb> {
    let named = target.name.is_some();
    Some(match *method {
        Method::GET if query.flag("watch") => Verb::Watch,
        Method::GET if named => Verb::Get,
        Method::GET => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    })
}

impl State {
    pub(crate) fn carry_out(&mut self, request: &Request, stale_at: Option<u64>) -> Result<Done, Failure> {
        let target = &request.target;
        let resource = self.registry.find(&target.group, &target.version, &target.plural).ok_or_else(Failure::no_such_path)?;
        if resource.namespaced && target.namespace.is_none() && target.name.is_some()
            || !resource.namespaced && target.namespace.is_some()
        {
            return Err(Failure::no_such_path());
        }
        let served = match target.subresource.as_deref() {
            None => true,
            Some("status") => resource.status,
            Some("scale") => resource.scale.is_some(),
            Some(_) => false,
        };
        if !served {
            return Err(Failure::no_such_path());
        }
        if target.subresource.is_some() && !matches!(request.verb, Verb::Get | Verb::Update | Verb::Patch) {
            return Err(Failure::method_not_allowed());
        }
        if target.subresource.as_deref() == Some("scale") {
            return self.scale(request, &resource, stale_at).map(Done::Answer);
        }
        let namespace = target.namespace.as_deref();
        let key = ObjectKey::new(&resource, namespace.unwrap_or_default(), target.name.as_deref().unwrap_or_default());
        let show = |object: &Value| request.view.show(&resource, object);
        let answer = match request.verb {
            Verb::Get => (200, show(&*self.get(&resource, &key, &request.query, stale_at)?)),
            Verb::List => self.list(&resource, namespace, &request.query, request.view, stale_at)?,
            Verb::Watch => {
                let subscription = self.subscribe(&resource, namespace, &request.query, request.view, stale_at)?;
                return Ok(Done::Watch(Box::new(subscription)));
            }
            Verb::Create => {
                if target.name.is_some() || (resource.namespaced && namespace.is_none()) {
                    return Err(Failure::method_not_allowed());
                }
                let write = write_request(request, &resource)?;
                (201, show(&*self.create(&write, request.body.clone())?))
            }
            Verb::Update => {
                let write = write_request(request, &resource)?;
                let (code, object) = self.replace(&write, request.body.clone())?;
                (code, show(&object))
            }
            Verb::Patch => {
                let kind = patch_kind(request)?;
                let write = write_request(request, &resource)?;
                let (code, object) = self.patch(&write, kind, &request.body, request.query.flag("force"))?;
                (code, show(&object))
            }
            Verb::Delete => {
                let options = DeleteOptions::read(&request.body, &request.query);
                let deleted = self.delete(&resource, &key, &options)?;
                (200, delete_answer(&resource, &deleted))
            }
            Verb::DeleteCollection => {
                let options = DeleteOptions::read(&request.body, &request.query);
                self.delete_collection(&resource, namespace, &request.query, &options)?
            }
        };
        if request.verb.is_write() && self.collect_always {
            self.collect_garbage();
        }
        Ok(Done::Answer(answer))
    }

    fn scale(&mut self, request: &Request, resource: &Arc<Resource>, stale_at: Option<u64>) -> Result<Answer, Failure> {
        let Some(paths) = resource.scale.clone() else {
            return Err(Failure::no_such_path());
        };
        let write = write_request(request, resource)?;
        if request.verb == Verb::Get {
            let object = self.get(resource, &write.key(), &request.query, stale_at)?;
            return Ok((200, scale::view(resource, &paths, &object)));
        }
        let Some(old) = self.history.get(&write.key()) else {
            return Err(Failure::not_found(resource, &write.name));
        };
        let current = scale::view(resource, &paths, &old);
        let wanted = if request.verb == Verb::Update { request.body.clone() } else { patched_scale(request, current)? };
        let mut object = scale::adopt(&paths, &old, &wanted)?;
        if wanted["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty) {
            object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        }
        let written = self.finish_update(&write, &old, object, true)?;
        Ok((200, scale::view(resource, &paths, &written)))
    }
}

fn patched_scale(request: &Request, mut scale: Value) -> Result<Value, Failure> {
    if patch_kind(request)? == PatchKind::Json {
        let operations: json_patch::Patch = serde_json::from_value(request.body.clone())
            .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
        json_patch::patch(&mut scale, &operations).map_err(|error| Failure::new(422, "Invalid", error.to_string()))?;
    } else {
        json_patch::merge(&mut scale, &request.body);
    }
    Ok(scale)
}

fn patch_kind(request: &Request) -> Result<PatchKind, Failure> {
    let kind = PatchKind::from_content_type(&request.content_type)
        .ok_or_else(|| Failure::unsupported_media_type(&request.content_type))?;
    if kind != PatchKind::Apply && request.query.get("force").is_some() {
        return Err(Failure::invalid_options(
            "PatchOptions",
            "force",
            "Forbidden: may not be specified for non-apply patch",
            "FieldValueForbidden",
        ));
    }
    Ok(kind)
}

fn write_request(request: &Request, resource: &Arc<Resource>) -> Result<WriteRequest, Failure> {
    if request.verb != Verb::Get && !request.body.is_object() && !request.body.is_array() {
        return Err(Failure::bad_request("the body of the request is not a JSON object"));
    }
    let apply = request.content_type.contains("apply-patch");
    let manager = match request.query.get("fieldManager") {
        Some(manager) => manager.to_owned(),
        None if apply => String::new(),
        // Without a name the writer is known by the first word of its user agent.
        None => request.user_agent.split('/').next().unwrap_or_default().to_owned(),
    };
    Ok(WriteRequest {
        resource: Arc::clone(resource),
        namespace: request.target.namespace.clone().unwrap_or_default(),
        name: request.target.name.clone().unwrap_or_default(),
        subresource: request.target.subresource.clone().unwrap_or_default(),
        manager,
        dry_run: request.query.get("dryRun") == Some("All"),
    })
}
