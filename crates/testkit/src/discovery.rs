//! What the server says about itself: version, health, groups and resources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    failure::Failure,
    registry::{Registry, Resource},
    state::Answer,
};

pub(crate) fn answer(registry: &Registry, words: &[String]) -> Result<Answer, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let body = match words.as_slice() {
        ["version"] => json!({
            "major": "1", "minor": "34", "gitVersion": "v1.34.0-fake", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        }),
        ["api"] => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        ["apis"] => groups(registry),
        ["apis", group] => group_object(registry, group).ok_or_else(Failure::no_such_path)?,
        ["api", version] => resources(registry, "", version)?,
        ["apis", group, version] => resources(registry, group, version)?,
        _ => json!("ok"),
    };
    Ok((200, body))
}

fn versions(registry: &Registry) -> BTreeMap<String, BTreeSet<String>> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for resource in registry.all().filter(|resource| !resource.group.is_empty()) {
        versions.entry(resource.group.clone()).or_default().insert(resource.version.clone());
    }
    versions
}

fn group_object(registry: &Registry, group: &str) -> Option<Value> {
    let listed: Vec<Value> = versions(registry)
        .get(group)?
        .iter()
        .map(|version| json!({ "groupVersion": format!("{group}/{version}"), "version": version }))
        .collect();
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group, "preferredVersion": listed.first(), "versions": listed,
    }))
}

fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = versions(registry).keys().filter_map(|group| group_object(registry, group)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn resources(registry: &Registry, group: &str, version: &str) -> Result<Value, Failure> {
    let verbs = json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    let entry = |resource: &Resource, subresource: &str, verbs: &Value| {
        json!({
            "name": format!("{}{subresource}", resource.plural),
            "singularName": resource.kind.to_lowercase(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs,
        })
    };
    let mut listed = Vec::new();
    let wanted = registry.all().filter(|resource| resource.group == group && resource.version == version);
    for resource in wanted {
        listed.push(entry(resource, "", &verbs));
        if resource.status {
            listed.push(entry(resource, "/status", &json!(["get", "patch", "update"])));
        }
    }
    if listed.is_empty() {
        return Err(Failure::no_such_path());
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed }))
}
