//! Who owns which field, in `managedFields` and in conflicts.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{CONFIG_MAPS, CaseResult, Desk, MERGE, SPECIMENS, Wrong, check, config_map, refused, same, text},
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        applied_fields_are_recorded,
        created_fields_are_recorded,
        updated_fields_are_recorded,
        the_writer_is_known_by_its_user_agent,
        list_items_are_recorded_by_key,
        status_writes_are_recorded_apart,
        an_apply_conflicts_with_another_applier,
        an_apply_conflicts_with_an_updater,
        a_conflict_names_every_field,
        force_takes_fields_over,
        the_same_value_is_shared,
        a_shared_field_stays_until_its_last_owner_leaves,
        an_update_takes_fields_over,
        an_update_that_removes_a_field_ends_its_ownership,
        foreign_fields_survive_an_apply,
        ownership_can_be_reset,
        an_update_without_managed_fields_keeps_them,
    ]
}

fn owner<'a>(object: &'a Value, manager: &str, operation: &str) -> Result<&'a Value, Wrong> {
    let owners = object["metadata"]["managedFields"].as_array();
    let found = owners.into_iter().flatten().find(|owner| owner["manager"] == manager && owner["operation"] == operation);
    found.ok_or_else(|| Wrong::new(format!("no {operation} by {manager} in {}", object["metadata"]["managedFields"])))
}

fn has_owner(object: &Value, manager: &str) -> bool {
    let owners = object["metadata"]["managedFields"].as_array();
    owners.into_iter().flatten().any(|owner| owner["manager"] == manager)
}

async fn apply(desk: &Desk, manager: &str, extra: &str, data: Value) -> Result<Value, kube::Error> {
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
    desk.apply(&CONFIG_MAPS, "a", manager, extra, &config).await
}

async fn applied_fields_are_recorded(desk: Desk) -> CaseResult {
    let config = config_map("a", &json!({"x": "1"}), &json!({"k": "v"}));
    let made = desk.apply(&CONFIG_MAPS, "a", "one", "", &config).await?;
    let owner = owner(&made, "one", "Apply")?;
    same(text(owner, "/apiVersion"), "v1", "apiVersion")?;
    same(text(owner, "/fieldsType"), "FieldsV1", "fieldsType")?;
    let wanted = json!({"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:x": {}}}});
    same(&owner["fieldsV1"], &wanted, "fields")
}

async fn created_fields_are_recorded(desk: Desk) -> CaseResult {
    let path = format!("{}?fieldManager=one", desk.path(&CONFIG_MAPS, ""));
    let object = config_map("a", &json!({"x": "1"}), &json!({"k": "v"}));
    let made = desk.send("POST", &path, "application/json", Some(&object)).await?;
    let wanted = json!({"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}});
    same(&owner(&made, "one", "Update")?["fieldsV1"], &wanted, "fields")
}

async fn updated_fields_are_recorded(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1, "title": "t"}))).await?;
    let written =
        desk.patch(&SPECIMENS, "a?fieldManager=two", MERGE, &json!({"spec": {"size": 2, "nested": {"left": "l"}}})).await?;
    let wanted = json!({"f:spec": {"f:nested": {".": {}, "f:left": {}}, "f:size": {}}});
    same(&owner(&written, "two", "Update")?["fieldsV1"], &wanted, "fields of the updater")?;
    let wanted = json!({"f:spec": {".": {}, "f:level": {}, "f:title": {}}});
    same(&owner(&written, "conformance", "Update")?["fieldsV1"], &wanted, "fields of the creator")
}

async fn the_writer_is_known_by_its_user_agent(desk: Desk) -> CaseResult {
    let made = desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({"k": "v"}))).await?;
    owner(&made, "conformance", "Update").map(drop)
}

async fn list_items_are_recorded_by_key(desk: Desk) -> CaseResult {
    let config = specimen("a", &json!({"parts": [{"name": "p", "value": "v"}], "tags": ["x"], "numbers": [1]}));
    let made = desk.apply(&SPECIMENS, "a", "one", "", &config).await?;
    let wanted = json!({"f:spec": {
        "f:numbers": {},
        "f:parts": {"k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:value": {}}},
        "f:tags": {"v:\"x\"": {}},
    }});
    same(&owner(&made, "one", "Apply")?["fieldsV1"], &wanted, "fields")
}

async fn status_writes_are_recorded_apart(desk: Desk) -> CaseResult {
    let mut object = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    object["status"] = json!({"phase": "Ready"});
    let written = desk.put(&SPECIMENS, "a/status", &object).await?;
    let owners = written["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let found: Vec<(&str, &Value)> = owners.iter().map(|owner| (text(owner, "/subresource"), &owner["fieldsV1"])).collect();
    same(&found.len(), &2, "number of owners")?;
    let status = found.iter().find(|(subresource, _)| *subresource == "status");
    same(&status.map(|(_, fields)| *fields), &Some(&json!({"f:status": {".": {}, "f:phase": {}}})), "fields through status")
}

async fn an_apply_conflicts_with_another_applier(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v"})).await?;
    let status = refused(apply(&desk, "two", "", json!({"k": "w"})).await, 409, "Conflict")?;
    same(&status.message, "Apply failed with 1 conflict: conflict with \"one\": .data.k", "message")?;
    let causes = status.details.causes;
    let cause = causes.first().map(|cause| (cause.reason.as_str(), cause.message.as_str(), cause.field.as_str()));
    same(&cause, &Some(("FieldManagerConflict", "conflict with \"one\"", ".data.k")), "cause")?;
    same(text(&desk.get(&CONFIG_MAPS, "a").await?, "/data/k"), "v", "data")
}

async fn an_apply_conflicts_with_an_updater(desk: Desk) -> CaseResult {
    let path = format!("{}?fieldManager=one", desk.path(&CONFIG_MAPS, ""));
    let object = config_map("a", &json!({}), &json!({"k": "v"}));
    desk.send("POST", &path, "application/json", Some(&object)).await?;
    let status = refused(apply(&desk, "one", "", json!({"k": "w"})).await, 409, "Conflict")?;
    check(status.message.starts_with("Apply failed with 1 conflict: conflict with \"one\" using v1"), status.message)
}

async fn a_conflict_names_every_field(desk: Desk) -> CaseResult {
    let config = |value: &str| {
        specimen("a", &json!({"title": value, "parts": [{"name": "p", "value": value}], "numbers": [value.len()]}))
    };
    desk.apply(&SPECIMENS, "a", "one", "", &config("v")).await?;
    let status = refused(desk.apply(&SPECIMENS, "a", "two", "", &config("ww")).await, 409, "Conflict")?;
    let mut fields: Vec<String> = status.details.causes.into_iter().map(|cause| cause.field).collect();
    fields.sort();
    let wanted = [".spec.numbers", ".spec.parts[name=\"p\"].value", ".spec.title"].map(str::to_owned).to_vec();
    same(&fields, &wanted, "fields")
}

async fn force_takes_fields_over(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v", "l": "v"})).await?;
    let written = apply(&desk, "two", "&force=true", json!({"k": "w"})).await?;
    same(text(&written, "/data/k"), "w", "data")?;
    same(&owner(&written, "one", "Apply")?["fieldsV1"], &json!({"f:data": {"f:l": {}}}), "what is left to the first")?;
    same(&owner(&written, "two", "Apply")?["fieldsV1"], &json!({"f:data": {"f:k": {}}}), "what the second has")
}

async fn the_same_value_is_shared(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v"})).await?;
    let written = apply(&desk, "two", "", json!({"k": "v"})).await?;
    for manager in ["one", "two"] {
        same(&owner(&written, manager, "Apply")?["fieldsV1"], &json!({"f:data": {"f:k": {}}}), manager)?;
    }
    refused(apply(&desk, "one", "", json!({"k": "w"})).await, 409, "Conflict").map(drop)
}

async fn a_shared_field_stays_until_its_last_owner_leaves(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v", "l": "v"})).await?;
    apply(&desk, "two", "", json!({"k": "v"})).await?;
    let written = apply(&desk, "one", "", json!({"l": "v"})).await?;
    same(text(&written, "/data/k"), "v", "while the second owns it")?;
    let written = apply(&desk, "two", "", json!({})).await?;
    same(&written["data"], &json!({"l": "v"}), "after both left")
}

async fn an_update_takes_fields_over(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v", "l": "v"})).await?;
    let written = desk.patch(&CONFIG_MAPS, "a?fieldManager=two", MERGE, &json!({"data": {"k": "w"}})).await?;
    same(&owner(&written, "one", "Apply")?["fieldsV1"], &json!({"f:data": {"f:l": {}}}), "what is left to the applier")?;
    refused(apply(&desk, "one", "", json!({"k": "v", "l": "v"})).await, 409, "Conflict")?;
    let written = apply(&desk, "one", "", json!({"l": "v"})).await?;
    same(text(&written, "/data/k"), "w", "the updater's value")
}

async fn an_update_that_removes_a_field_ends_its_ownership(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v", "l": "v"})).await?;
    let written = desk.patch(&CONFIG_MAPS, "a?fieldManager=two", MERGE, &json!({"data": {"k": null}})).await?;
    same(&owner(&written, "one", "Apply")?["fieldsV1"], &json!({"f:data": {"f:l": {}}}), "what is left to the applier")?;
    check(!has_owner(&written, "two"), "who only removed owns something")
}

async fn foreign_fields_survive_an_apply(desk: Desk) -> CaseResult {
    apply(&desk, "one", "", json!({"k": "v"})).await?;
    let patch = json!({"metadata": {"labels": {"x": "1"}, "annotations": {"y": "1"}}, "data": {"l": "v"}});
    desk.patch(&CONFIG_MAPS, "a?fieldManager=user", MERGE, &patch).await?;
    let written = apply(&desk, "one", "&force=true", json!({"m": "v"})).await?;
    same(&written["data"], &json!({"l": "v", "m": "v"}), "data")?;
    same(text(&written, "/metadata/labels/x"), "1", "label")?;
    same(text(&written, "/metadata/annotations/y"), "1", "annotation")
}

async fn ownership_can_be_reset(desk: Desk) -> CaseResult {
    let mut object = apply(&desk, "one", "", json!({"k": "v"})).await?;
    object["metadata"]["managedFields"] = json!([{}]);
    let written = desk.put(&CONFIG_MAPS, "a", &object).await?;
    check(!has_owner(&written, "one"), format!("left: {}", written["metadata"]["managedFields"]))
}

async fn an_update_without_managed_fields_keeps_them(desk: Desk) -> CaseResult {
    let mut object = apply(&desk, "one", "", json!({"k": "v"})).await?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object["data"]["l"] = json!("v");
    let written = desk.put(&CONFIG_MAPS, "a?fieldManager=two", &object).await?;
    same(&owner(&written, "one", "Apply")?["fieldsV1"], &json!({"f:data": {"f:k": {}}}), "the applier")?;
    same(&owner(&written, "two", "Update")?["fieldsV1"], &json!({"f:data": {"f:l": {}}}), "the updater")
}
