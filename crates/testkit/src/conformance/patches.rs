//! The kinds of patches.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{
        CONFIG_MAPS, CaseResult, Desk, JSON, MERGE, SPECIMENS, STATEFUL_SETS, STRATEGIC, check, config_map, refused, same,
        text, version,
    },
    specimen::specimen,
    status::stateful_set,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        a_merge_patch_sets_and_removes,
        a_merge_patch_replaces_lists,
        a_json_patch_is_carried_out_in_order,
        a_json_patch_test_holds_or_refuses,
        a_json_patch_can_lock_by_version,
        a_json_patch_of_a_missing_place_is_refused,
        a_strategic_patch_merges_containers_by_name,
        a_strategic_patch_can_delete_an_item,
        a_strategic_patch_of_a_custom_object_is_unsupported,
        an_unknown_patch_type_is_unsupported,
        a_patch_of_a_missing_object_is_not_found,
        force_is_for_apply_alone,
        a_patch_cannot_rename,
    ]
}

async fn a_merge_patch_sets_and_removes(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({"x": "y"}), &json!({"k": "v", "l": "v"}))).await?;
    let patch = json!({ "metadata": { "labels": { "x": null, "z": "y" } }, "data": { "k": null, "m": "v" } });
    let written = desk.patch(&CONFIG_MAPS, "a", MERGE, &patch).await?;
    same(&written["data"], &json!({"l": "v", "m": "v"}), "data")?;
    same(&written["metadata"]["labels"], &json!({"z": "y"}), "labels")
}

async fn a_merge_patch_replaces_lists(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"parts": [{"name": "p"}, {"name": "q"}]}))).await?;
    let patch = json!({ "spec": { "parts": [{"name": "r"}] } });
    let written = desk.patch(&SPECIMENS, "a", MERGE, &patch).await?;
    same(&written["spec"]["parts"], &json!([{"name": "r"}]), "parts")
}

async fn a_json_patch_is_carried_out_in_order(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({"k": "v"}))).await?;
    let patch = json!([
        { "op": "add", "path": "/data/l", "value": "w" },
        { "op": "move", "from": "/data/k", "path": "/data/m" },
        { "op": "replace", "path": "/data/m", "value": "x" },
    ]);
    let written = desk.patch(&CONFIG_MAPS, "a", JSON, &patch).await?;
    same(&written["data"], &json!({"l": "w", "m": "x"}), "data")
}

async fn a_json_patch_test_holds_or_refuses(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({"k": "v"}))).await?;
    let patch = |expected: &str| {
        json!([
            { "op": "test", "path": "/data/k", "value": expected },
            { "op": "replace", "path": "/data/k", "value": "w" },
        ])
    };
    refused(desk.patch(&CONFIG_MAPS, "a", JSON, &patch("other")).await, 422, "Invalid")?;
    same(text(&desk.get(&CONFIG_MAPS, "a").await?, "/data/k"), "v", "after the refusal")?;
    let written = desk.patch(&CONFIG_MAPS, "a", JSON, &patch("v")).await?;
    same(text(&written, "/data/k"), "w", "data")
}

async fn a_json_patch_can_lock_by_version(desk: Desk) -> CaseResult {
    let first = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    let patch = json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": first["metadata"]["resourceVersion"] },
        { "op": "replace", "path": "/spec/size", "value": 3 },
    ]);
    refused(desk.patch(&SPECIMENS, "a", JSON, &patch).await, 409, "Conflict").map(drop)
}

async fn a_json_patch_of_a_missing_place_is_refused(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({"k": "v"}))).await?;
    let patch = json!([{ "op": "remove", "path": "/data/none" }]);
    refused(desk.patch(&CONFIG_MAPS, "a", JSON, &patch).await, 422, "Invalid").map(drop)
}

fn container<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let containers = object.pointer("/spec/template/spec/containers")?.as_array()?;
    containers.iter().find(|container| container["name"] == name)
}

async fn a_strategic_patch_merges_containers_by_name(desk: Desk) -> CaseResult {
    desk.post(&STATEFUL_SETS, &stateful_set("a", 0)).await?;
    let patch = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "main", "env": [{ "name": "ONE", "value": "1" }] },
        { "name": "side", "image": "side:1" },
    ] } } } });
    let written = desk.patch(&STATEFUL_SETS, "a", STRATEGIC, &patch).await?;
    let main = container(&written, "main").unwrap_or(&Value::Null);
    same(text(main, "/image"), "main:1", "image of the merged container")?;
    same(text(main, "/env/0/value"), "1", "added variable")?;
    check(container(&written, "side").is_some(), "the new container is missing")
}

async fn a_strategic_patch_can_delete_an_item(desk: Desk) -> CaseResult {
    let mut object = stateful_set("a", 0);
    object["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{ "name": "ONE", "value": "1" }, { "name": "TWO", "value": "2" }]);
    desk.post(&STATEFUL_SETS, &object).await?;
    let patch = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "main", "env": [{ "name": "ONE", "$patch": "delete" }] },
    ] } } } });
    let written = desk.patch(&STATEFUL_SETS, "a", STRATEGIC, &patch).await?;
    let main = container(&written, "main").unwrap_or(&Value::Null);
    same(&main["env"], &json!([{ "name": "TWO", "value": "2" }]), "variables")
}

async fn a_strategic_patch_of_a_custom_object_is_unsupported(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let answer = desk.patch(&SPECIMENS, "a", STRATEGIC, &json!({"spec": {"size": 1}})).await;
    refused(answer, 415, "UnsupportedMediaType").map(drop)
}

async fn an_unknown_patch_type_is_unsupported(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?;
    let answer = desk.patch(&CONFIG_MAPS, "a", "application/json", &json!({})).await;
    refused(answer, 415, "UnsupportedMediaType").map(drop)
}

async fn a_patch_of_a_missing_object_is_not_found(desk: Desk) -> CaseResult {
    refused(desk.patch(&CONFIG_MAPS, "a", MERGE, &json!({"data": {}})).await, 404, "NotFound")?;
    refused(desk.patch(&SPECIMENS, "a/status", MERGE, &json!({"status": {}})).await, 404, "NotFound").map(drop)
}

async fn force_is_for_apply_alone(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?;
    let answer = desk.patch(&CONFIG_MAPS, "a?force=true", MERGE, &json!({"data": {"k": "v"}})).await;
    refused(answer, 422, "Invalid").map(drop)
}

async fn a_patch_cannot_rename(desk: Desk) -> CaseResult {
    let first = desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?;
    let answer = desk.patch(&CONFIG_MAPS, "a", MERGE, &json!({"metadata": {"name": "b"}})).await;
    refused(answer, 400, "BadRequest")?;
    same(&version(&desk.get(&CONFIG_MAPS, "a").await?)?, &version(&first)?, "version")
}
