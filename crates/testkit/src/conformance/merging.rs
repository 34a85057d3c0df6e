//! Server-side apply: how lists and maps of the several kinds merge.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{CONFIG_MAPS, CaseResult, Desk, SERVICES, SPECIMENS, STATEFUL_SETS, check, refused, same, text},
    specimen::specimen,
    status::stateful_set,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        keyed_lists_merge_by_their_key,
        an_item_no_longer_applied_is_removed,
        containers_merge_by_name,
        variables_merge_by_name,
        service_ports_merge_by_port_and_protocol,
        sets_merge_by_value,
        plain_lists_are_replaced,
        atomic_maps_are_replaced,
        a_service_selector_is_replaced,
        conditions_merge_by_type,
        finalizers_merge_as_a_set,
    ]
}

async fn keyed_lists_merge_by_their_key(desk: Desk) -> CaseResult {
    let parts = |parts: Value| specimen("a", &json!({ "parts": parts }));
    desk.apply(&SPECIMENS, "a", "one", "", &parts(json!([{"name": "p", "value": "1"}, {"name": "q", "value": "1"}]))).await?;
    let written = desk.apply(&SPECIMENS, "a", "two", "", &parts(json!([{"name": "r"}, {"name": "q", "note": "n"}]))).await?;
    let found = written["spec"]["parts"].as_array().cloned().unwrap_or_default();
    same(&found.len(), &3, "number of parts")?;
    check(found.contains(&json!({"name": "q", "value": "1", "note": "n"})), format!("{found:?}"))
}

async fn an_item_no_longer_applied_is_removed(desk: Desk) -> CaseResult {
    let parts = |parts: Value| specimen("a", &json!({ "parts": parts }));
    desk.apply(&SPECIMENS, "a", "one", "", &parts(json!([{"name": "p"}, {"name": "q"}]))).await?;
    desk.apply(&SPECIMENS, "a", "two", "", &parts(json!([{"name": "r"}]))).await?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &parts(json!([{"name": "q"}]))).await?;
    same(&written["spec"]["parts"], &json!([{"name": "q"}, {"name": "r"}]), "parts")
}

async fn containers_merge_by_name(desk: Desk) -> CaseResult {
    desk.apply(&STATEFUL_SETS, "a", "one", "", &stateful_set("a", 0)).await?;
    let side = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "a" },
        "spec": { "template": { "spec": { "containers": [{ "name": "side", "image": "side:1" }] } } },
    });
    let written = desk.apply(&STATEFUL_SETS, "a", "two", "", &side).await?;
    let names = |object: &Value| -> Vec<String> {
        let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        containers.into_iter().flatten().map(|container| text(container, "/name").to_owned()).collect()
    };
    same(&names(&written), &vec!["main".to_owned(), "side".to_owned()], "containers")?;
    let again = desk.apply(&STATEFUL_SETS, "a", "one", "", &stateful_set("a", 0)).await?;
    same(&names(&again), &vec!["main".to_owned(), "side".to_owned()], "containers after the first applied again")
}

async fn variables_merge_by_name(desk: Desk) -> CaseResult {
    let with_env = |env: Value| {
        let mut object = stateful_set("a", 0);
        object["spec"]["template"]["spec"]["containers"][0]["env"] = env;
        object
    };
    desk.apply(&STATEFUL_SETS, "a", "one", "", &with_env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])))
        .await?;
    let written = desk.apply(&STATEFUL_SETS, "a", "one", "", &with_env(json!([{"name": "B", "value": "2"}]))).await?;
    let env = written.pointer("/spec/template/spec/containers/0/env").cloned();
    same(&env, &Some(json!([{"name": "B", "value": "2"}])), "variables")
}

async fn service_ports_merge_by_port_and_protocol(desk: Desk) -> CaseResult {
    let service = |ports: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
            "spec": { "clusterIP": "None", "ports": ports },
        })
    };
    desk.apply(&SERVICES, "a", "one", "", &service(json!([{"name": "sql", "port": 3306, "protocol": "TCP"}]))).await?;
    let written = desk
        .apply(&SERVICES, "a", "two", "&force=true", &service(json!([{"name": "web", "port": 80, "protocol": "TCP"}])))
        .await?;
    let ports: Vec<u64> =
        written["spec"]["ports"].as_array().into_iter().flatten().filter_map(|port| port["port"].as_u64()).collect();
    same(&ports, &vec![3306, 80], "ports")
}

async fn sets_merge_by_value(desk: Desk) -> CaseResult {
    let tags = |tags: Value| specimen("a", &json!({ "tags": tags }));
    desk.apply(&SPECIMENS, "a", "one", "", &tags(json!(["x", "y"]))).await?;
    let written = desk.apply(&SPECIMENS, "a", "two", "", &tags(json!(["y", "z"]))).await?;
    same(&written["spec"]["tags"], &json!(["x", "y", "z"]), "tags of both")?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &tags(json!([]))).await?;
    same(&written["spec"]["tags"], &json!(["y", "z"]), "tags when the first has none")
}

async fn plain_lists_are_replaced(desk: Desk) -> CaseResult {
    desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"numbers": [1, 2]}))).await?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"numbers": [3]}))).await?;
    same(&written["spec"]["numbers"], &json!([3]), "numbers")?;
    let answer = desk.apply(&SPECIMENS, "a", "two", "", &specimen("a", &json!({"numbers": [3, 4]}))).await;
    refused(answer, 409, "Conflict").map(drop)
}

async fn atomic_maps_are_replaced(desk: Desk) -> CaseResult {
    desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"whole": {"left": "1"}}))).await?;
    let config = specimen("a", &json!({"whole": {"right": "1"}}));
    refused(desk.apply(&SPECIMENS, "a", "two", "", &config).await, 409, "Conflict")?;
    let written = desk.apply(&SPECIMENS, "a", "two", "&force=true", &config).await?;
    same(&written["spec"]["whole"], &json!({"right": "1"}), "whole")
}

async fn a_service_selector_is_replaced(desk: Desk) -> CaseResult {
    let service = |selector: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
            "spec": { "clusterIP": "None", "selector": selector, "ports": [{"port": 80, "protocol": "TCP"}] },
        })
    };
    desk.apply(&SERVICES, "a", "one", "", &service(json!({"app": "x", "role": "y"}))).await?;
    let written = desk.apply(&SERVICES, "a", "one", "", &service(json!({"app": "z"}))).await?;
    same(&written["spec"]["selector"], &json!({"app": "z"}), "selector")
}

async fn conditions_merge_by_type(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let config = |kind: &str, status: &str| {
        let mut config = specimen("a", &json!({}));
        config["status"] = json!({ "conditions": [{ "type": kind, "status": status }] });
        config
    };
    desk.apply(&SPECIMENS, "a/status", "one", "", &config("Ready", "True")).await?;
    desk.apply(&SPECIMENS, "a/status", "two", "", &config("Paused", "True")).await?;
    let written = desk.apply(&SPECIMENS, "a/status", "one", "", &config("Ready", "False")).await?;
    let wanted = json!([{ "type": "Ready", "status": "False" }, { "type": "Paused", "status": "True" }]);
    same(&written["status"]["conditions"], &wanted, "conditions")
}

async fn finalizers_merge_as_a_set(desk: Desk) -> CaseResult {
    let config = |finalizers: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "finalizers": finalizers } });
    let bare = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    desk.apply(&CONFIG_MAPS, "a", "one", "", &config(json!(["windlass.dev/x"]))).await?;
    let written = desk.apply(&CONFIG_MAPS, "a", "two", "", &config(json!(["windlass.dev/y"]))).await?;
    same(&written["metadata"]["finalizers"], &json!(["windlass.dev/x", "windlass.dev/y"]), "finalizers of both")?;
    desk.apply(&CONFIG_MAPS, "a", "one", "", &bare).await?;
    let written = desk.apply(&CONFIG_MAPS, "a", "two", "", &bare).await?;
    check(written.pointer("/metadata/finalizers").is_none(), format!("left: {}", written["metadata"]["finalizers"]))
}
