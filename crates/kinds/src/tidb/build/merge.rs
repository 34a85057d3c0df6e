//! Containers of the user's that are merged into ours, as Kubernetes merges a strategic patch.
//!
//! Maps are merged field by field, and a null takes a field away. Lists that have a key in Kubernetes are merged item by item; all other
//! lists, and everything else, are replaced.

use serde_json::{Map, Value};

use crate::fields::put_default;

/// The lists of a container whose items have a key.
const KEYS: [(&str, &str); 4] =
    [("env", "name"), ("ports", "containerPort"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")];
/// What a probe or a hook does; it does one thing only.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Our containers with the user's merged in by name, and the user's others after them.
pub(super) fn containers(ours: Vec<Value>, additional: &[Value]) -> Vec<Value> {
    let name = |container: &Value| container["name"].clone();
    let others = additional.iter().filter(|it| !ours.iter().any(|own| name(own) == name(it))).cloned().map(with_protocols);
    let others: Vec<Value> = others.collect();
    let merged = ours.into_iter().map(|own| match additional.iter().find(|it| name(it) == name(&own)) {
        Some(patch) => with_protocols(merge(own, patch)),
        None => own,
    });
    merged.chain(others).collect()
}

fn merge(into: Value, patch: &Value) -> Value {
    let (Value::Object(mut fields), Value::Object(patch)) = (into, patch) else { return patch.clone() };
    if patch.keys().any(|key| HANDLERS.contains(&key.as_str())) {
        fields.retain(|key, _| !HANDLERS.contains(&key.as_str()));
    }
    for (key, value) in patch {
        let own = fields.remove(key);
        let merged = match (own, KEYS.iter().find(|it| it.0 == key)) {
            (_, _) if value.is_null() => continue,
            (Some(Value::Array(own)), Some((_, key))) => merge_list(own, value, key),
            (Some(own @ Value::Object(_)), _) => merge(own, value),
            _ => value.clone(),
        };
        fields.insert(key.clone(), merged);
    }
    Value::Object(fields)
}

fn merge_list(mut own: Vec<Value>, patch: &Value, key: &str) -> Value {
    for item in patch.as_array().into_iter().flatten() {
        match own.iter_mut().find(|it| it[key] == item[key]) {
            Some(own) if key == "name" => *own = replace_variable(own.take(), item),
            Some(own) => *own = merge(own.take(), item),
            None => own.push(item.clone()),
        }
    }
    own.into()
}

/// A variable has one value: what it says, or where that comes from.
fn replace_variable(own: Value, patch: &Value) -> Value {
    let Value::Object(mut fields) = own else { return patch.clone() };
    if patch.get("value").is_some() || patch.get("valueFrom").is_some() {
        fields.retain(|key, _| key != "value" && key != "valueFrom");
    }
    fields.extend(patch.as_object().cloned().unwrap_or_default());
    Value::Object(fields)
}

/// Ports are told apart by number and protocol, so an applied one says both.
fn with_protocols(mut container: Value) -> Value {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            put_default(port, "protocol", super::TCP);
        }
    }
    container
}

/// Variables of ours, and the user's others: scripts rest on ours.
pub(super) fn env(ours: Vec<Value>, given: &[Value]) -> Vec<Value> {
    let is_ours = |given: &&Value| ours.iter().any(|own| own["name"] == given["name"]);
    let others: Vec<Value> = given.iter().filter(|it| !is_ours(it)).cloned().collect();
    ours.into_iter().chain(others).collect()
}

/// Fields with a patch over them.
pub(super) fn fields(into: Map<String, Value>, patch: Option<&Value>) -> Map<String, Value> {
    match merge(Value::Object(into), patch.unwrap_or(&Value::Object(Map::new()))) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn ours() -> Value {
        json!({
            "name": "tikv",
            "image": "pingcap/tikv:v8",
            "command": ["/bin/sh", "start"],
            "env": [{ "name": "TZ", "value": "UTC" }, { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "x" } } }],
            "ports": [{ "name": "server", "containerPort": 20160, "protocol": "TCP" }],
            "volumeMounts": [{ "name": "tikv", "mountPath": "/var/lib/tikv" }],
            "resources": { "requests": { "cpu": "1" } },
            "securityContext": { "privileged": false },
            "readinessProbe": { "tcpSocket": { "port": 20160 }, "periodSeconds": 5 },
        })
    }

    #[rstest]
    #[case::a_text("/image", json!({ "image": "other" }), json!("other"))]
    #[case::a_map("/resources", json!({ "resources": { "limits": { "cpu": "2" } } }), json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "2" } }))]
    #[case::a_list_without_a_key("/command", json!({ "command": ["sleep"] }), json!(["sleep"]))]
    #[case::a_null("/securityContext", json!({ "securityContext": null }), Value::Null)]
    #[case::a_new_field("/workingDir", json!({ "workingDir": "/" }), json!("/"))]
    #[case::a_variable("/env/0", json!({ "env": [{ "name": "TZ", "value": "CET" }] }), json!({ "name": "TZ", "value": "CET" }))]
    #[case::a_variable_that_came_from_elsewhere("/env/1", json!({ "env": [{ "name": "POD", "value": "a" }] }), json!({ "name": "POD", "value": "a" }))]
    #[case::another_variable("/env/2", json!({ "env": [{ "name": "NEW", "value": "b" }] }), json!({ "name": "NEW", "value": "b" }))]
    #[case::a_port("/ports/0", json!({ "ports": [{ "containerPort": 20160, "hostPort": 1 }] }), json!({ "name": "server", "containerPort": 20160, "protocol": "TCP", "hostPort": 1 }))]
    #[case::another_port("/ports/1", json!({ "ports": [{ "containerPort": 1 }] }), json!({ "containerPort": 1, "protocol": "TCP" }))]
    #[case::a_mount("/volumeMounts/0", json!({ "volumeMounts": [{ "name": "other", "mountPath": "/var/lib/tikv" }] }), json!({ "name": "other", "mountPath": "/var/lib/tikv" }))]
    #[case::a_probe("/readinessProbe", json!({ "readinessProbe": { "exec": { "command": ["true"] } } }), json!({ "exec": { "command": ["true"] }, "periodSeconds": 5 }))]
    fn it_is_merged(#[case] place: &str, #[case] mut patch: Value, #[case] expected: Value) {
        patch["name"] = "tikv".into();
        let merged = containers(vec![ours()], &[patch]);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].pointer(place).cloned().unwrap_or_default(), expected);
    }

    #[test]
    fn what_is_not_spoken_of_stays_and_others_come_after() {
        let beside = json!({ "name": "beside", "image": "b", "ports": [{ "containerPort": 1 }] });
        let merged = containers(vec![ours()], std::slice::from_ref(&beside));
        assert_eq!(merged[0], ours());
        assert_eq!(merged[1], json!({ "name": "beside", "image": "b", "ports": [{ "containerPort": 1, "protocol": "TCP" }] }));
    }
}
