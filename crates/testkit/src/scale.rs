//! The scale subresource: a view on the replica numbers of an object.

use serde_json::{Value, json};

use crate::{
    failure::Failure,
    object::meta,
    registry::{Resource, ScalePaths},
};

fn look<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(object, |value, part| &value[part.as_str()])
}

/// The Scale object of `object`.
pub(crate) fn view(resource: &Resource, paths: &ScalePaths, object: &Value) -> Value {
    let selector = match &paths.selector {
        Some(path) => look(object, path).as_str().unwrap_or_default().to_owned(),
        None => object["spec"]["selector"]["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(","),
    };
    // The built-in kinds begin with one replica when none are asked for.
    let unset = i64::from(!resource.custom);
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta(object, "name"),
            "namespace": meta(object, "namespace"),
            "uid": meta(object, "uid"),
            "resourceVersion": meta(object, "resourceVersion"),
            "creationTimestamp": meta(object, "creationTimestamp"),
        },
        "spec": { "replicas": look(object, &paths.spec_replicas).as_i64().unwrap_or(unset) },
        "status": {
            "replicas": look(object, &paths.status_replicas).as_i64().unwrap_or(0),
            "selector": selector,
        },
    })
}

/// The object with the replicas (and, as a precondition, the resourceVersion) a Scale asks for.
pub(crate) fn adopt(paths: &ScalePaths, object: &Value, scale: &Value) -> Result<Value, Failure> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        return Err(Failure::new(
            422,
            "Invalid",
            format!(
                "Scale.autoscaling {:?} is invalid: spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0",
                meta(object, "name")
            ),
        ));
    }
    let mut object = object.clone();
    let place = paths.spec_replicas.iter().fold(&mut object, |value, part| &mut value[part.as_str()]);
    *place = json!(replicas);
    let version = meta(scale, "resourceVersion");
    if !version.is_empty() {
        object["metadata"]["resourceVersion"] = json!(version);
    }
    Ok(object)
}
