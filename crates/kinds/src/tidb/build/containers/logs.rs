//! Containers that print a log which a component writes to a file.

use serde_json::{Value, json};
use windlass_api::tidb::Resources;

use super::super::super::validate::{Group, Validated};
use crate::fields::{fields_of, without_nothing};

/// Prints a log. The file may not be there yet.
pub(super) fn tailer(
    cluster: &Validated,
    name: &str,
    path: &str,
    mount: Option<Value>,
    resources: Option<&Resources>,
) -> Value {
    let container = json!({
        "name": name,
        "image": cluster.helper_image,
        "imagePullPolicy": cluster.helper_pull_policy,
        "command": ["sh", "-c", format!("touch {path}; tail -n0 -F {path};")],
        "resources": resources,
        "volumeMounts": mount.into_iter().collect::<Vec<_>>(),
    });
    without_nothing(fields_of(&container)).into()
}

/// Where the component's container has the volume of this name: one of the claims, or one of the user's own.
pub(super) fn mount_of(group: &Group, volume: &str) -> Option<(Value, String)> {
    let claim = format!("{}-{volume}", group.component);
    let claims = group.claims.iter().filter(|it| it.name == claim).filter_map(|it| Some((claim.clone(), it.mount.clone()?)));
    let users = group.pods.mounts.iter().filter(|it| it["name"] == volume);
    let users = users.filter_map(|it| Some((volume.to_owned(), it["mountPath"].as_str()?.to_owned())));
    let (name, path) = claims.chain(users).next()?;
    Some((super::mount(&name, &path), path))
}
