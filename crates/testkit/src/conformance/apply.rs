//! Server-side apply: creating, changing, removing, preconditions, status.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{
        APPLY, CONFIG_MAPS, CaseResult, Desk, MERGE, SPECIMENS, STATEFUL_SETS, check, config_map, refused, same, text, version,
    },
    specimen::specimen,
    status::stateful_set,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        apply_creates_a_missing_object,
        applying_the_same_again_is_no_revision,
        a_field_no_longer_applied_is_removed,
        a_label_no_longer_applied_is_removed,
        applying_nothing_removes_all_that_was_applied,
        apply_leaves_what_it_does_not_state,
        apply_needs_a_field_manager,
        apply_checks_the_name,
        apply_refuses_managed_fields,
        apply_with_a_stale_version_conflicts,
        apply_with_the_current_version_is_taken,
        apply_with_another_uid_is_refused,
        apply_with_a_uid_does_not_create,
        apply_with_a_version_creates_a_missing_object,
        apply_with_version_one_only_creates,
        a_dry_run_apply_changes_nothing,
        apply_ignores_status,
        apply_to_status_takes_status_alone,
        apply_to_the_status_of_a_missing_object_is_not_found,
        empty_data_is_owned_though_it_is_not_kept,
    ]
}

fn data(values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": values })
}

async fn apply_creates_a_missing_object(desk: Desk) -> CaseResult {
    let made = desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({"k": "v"}))).await?;
    check(!text(&made, "/metadata/uid").is_empty(), "no uid")?;
    let made = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1}))).await?;
    same(&made["metadata"]["generation"], &json!(1), "generation")?;
    same(&desk.get(&SPECIMENS, "a").await?, &made, "what is read")
}

async fn applying_the_same_again_is_no_revision(desk: Desk) -> CaseResult {
    let config = data(&json!({"k": "v"}));
    let first = desk.apply(&CONFIG_MAPS, "a", "one", "", &config).await?;
    let again = desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await?;
    same(&again, &first, "the ConfigMap")?;
    let config = stateful_set("a", 0);
    let first = desk.apply(&STATEFUL_SETS, "a", "one", "", &config).await?;
    let again = desk.apply(&STATEFUL_SETS, "a", "one", "", &config).await?;
    same(&again["metadata"]["managedFields"][0], &first["metadata"]["managedFields"][0], "owner of the StatefulSet")?;
    same(&again["metadata"]["generation"], &json!(1), "generation of the StatefulSet")
}

async fn a_field_no_longer_applied_is_removed(desk: Desk) -> CaseResult {
    desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1, "title": "t", "nested": {"left": "l"}}))).await?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1}))).await?;
    same(&written["spec"], &json!({"size": 1, "level": "low"}), "spec")
}

async fn a_label_no_longer_applied_is_removed(desk: Desk) -> CaseResult {
    desk.apply(&CONFIG_MAPS, "a", "one", "", &config_map("a", &json!({"x": "1", "y": "1"}), &json!({"k": "v"}))).await?;
    desk.patch(&CONFIG_MAPS, "a", MERGE, &json!({"metadata": {"labels": {"foreign": "1"}}})).await?;
    let written = desk.apply(&CONFIG_MAPS, "a", "one", "", &config_map("a", &json!({"x": "1"}), &json!({"k": "v"}))).await?;
    same(&written["metadata"]["labels"], &json!({"x": "1", "foreign": "1"}), "labels")
}

async fn applying_nothing_removes_all_that_was_applied(desk: Desk) -> CaseResult {
    desk.apply(&CONFIG_MAPS, "a", "one", "", &config_map("a", &json!({"x": "1"}), &json!({"k": "v"}))).await?;
    let bare = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let written = desk.apply(&CONFIG_MAPS, "a", "one", "", &bare).await?;
    check(written.get("data").is_none(), "data is left")?;
    check(written.pointer("/metadata/labels").is_none(), "labels are left")
}

async fn apply_leaves_what_it_does_not_state(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1, "title": "t"}))).await?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"nested": {"left": "l"}}))).await?;
    same(&written["spec"], &json!({"size": 1, "title": "t", "level": "low", "nested": {"left": "l"}}), "spec")
}

async fn apply_needs_a_field_manager(desk: Desk) -> CaseResult {
    let answer = desk.patch(&CONFIG_MAPS, "a", APPLY, &data(&json!({"k": "v"}))).await;
    refused(answer, 422, "Invalid").map(drop)
}

async fn apply_checks_the_name(desk: Desk) -> CaseResult {
    let answer = desk.apply(&CONFIG_MAPS, "b", "one", "", &data(&json!({"k": "v"}))).await;
    refused(answer, 400, "BadRequest").map(drop)
}

async fn apply_refuses_managed_fields(desk: Desk) -> CaseResult {
    let first = desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({"k": "v"}))).await?;
    refused(desk.apply(&CONFIG_MAPS, "a", "one", "", &first).await, 400, "BadRequest").map(drop)
}

async fn apply_with_a_stale_version_conflicts(desk: Desk) -> CaseResult {
    let first = desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({"k": "v"}))).await?;
    desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({"k": "w"}))).await?;
    let mut config = data(&json!({"k": "x"}));
    config["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    refused(desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await, 409, "Conflict").map(drop)
}

async fn apply_with_the_current_version_is_taken(desk: Desk) -> CaseResult {
    let first = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1}))).await?;
    let mut config = specimen("a", &json!({"size": 2}));
    config["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    config["metadata"]["uid"] = first["metadata"]["uid"].clone();
    let written = desk.apply(&SPECIMENS, "a", "one", "", &config).await?;
    same(&written["spec"]["size"], &json!(2), "size")?;
    check(version(&written)? > version(&first)?, "the version did not move")
}

async fn apply_with_another_uid_is_refused(desk: Desk) -> CaseResult {
    desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({"k": "v"}))).await?;
    let mut config = data(&json!({"k": "w"}));
    config["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    refused(desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await, 422, "Invalid")?;
    same(text(&desk.get(&CONFIG_MAPS, "a").await?, "/data/k"), "v", "data")
}

async fn apply_with_a_uid_does_not_create(desk: Desk) -> CaseResult {
    let mut config = data(&json!({"k": "w"}));
    config["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    refused(desk.apply(&CONFIG_MAPS, "a", "one", "", &config).await, 409, "Conflict")?;
    refused(desk.get(&CONFIG_MAPS, "a").await, 404, "NotFound").map(drop)
}

async fn apply_with_a_version_creates_a_missing_object(desk: Desk) -> CaseResult {
    let mut config = data(&json!({"k": "w"}));
    config["metadata"]["resourceVersion"] = json!("5");
    let made = desk.apply(&CONFIG_MAPS, "a", "one", "", &config).await?;
    check(text(&made, "/metadata/resourceVersion") != "5", "the version was taken over")
}

/// No object ever has version 1: an apply that names it creates, and never changes what somebody else made meanwhile.
async fn apply_with_version_one_only_creates(desk: Desk) -> CaseResult {
    let mut config = data(&json!({"k": "v"}));
    config["metadata"]["resourceVersion"] = json!("1");
    let made = desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await?;
    let refusal = refused(desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await, 409, "Conflict")?;
    check(refusal.message.contains("the object has been modified"), "the refusal does not say that the object is another")?;
    same(&desk.get(&CONFIG_MAPS, "a").await?, &made, "what is stored")?;
    desk.delete(&CONFIG_MAPS, "a", &json!({})).await?;
    desk.apply(&CONFIG_MAPS, "a", "one", "&force=true", &config).await.map(drop).map_err(Into::into)
}

async fn a_dry_run_apply_changes_nothing(desk: Desk) -> CaseResult {
    let first = desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1}))).await?;
    let shown = desk.apply(&SPECIMENS, "a", "one", "&dryRun=All", &specimen("a", &json!({"size": 2}))).await?;
    same(&shown["spec"]["size"], &json!(2), "what was shown")?;
    same(&desk.get(&SPECIMENS, "a").await?, &first, "what is stored")?;
    desk.apply(&SPECIMENS, "b", "one", "&dryRun=All", &specimen("b", &json!({"size": 2}))).await?;
    refused(desk.get(&SPECIMENS, "b").await, 404, "NotFound").map(drop)
}

async fn apply_ignores_status(desk: Desk) -> CaseResult {
    let mut config = specimen("a", &json!({"size": 1}));
    config["status"] = json!({"phase": "Lies"});
    let made = desk.apply(&SPECIMENS, "a", "one", "", &config).await?;
    check(made.get("status").is_none(), "the status of a new object was written")?;
    let written = desk.apply(&SPECIMENS, "a", "one", "", &config).await?;
    check(written.get("status").is_none(), "the status was written")?;
    let fields = &written["metadata"]["managedFields"][0]["fieldsV1"];
    check(fields.get("f:status").is_none(), format!("the status is owned: {fields}"))
}

async fn apply_to_status_takes_status_alone(desk: Desk) -> CaseResult {
    desk.apply(&SPECIMENS, "a", "one", "", &specimen("a", &json!({"size": 1}))).await?;
    let mut config = specimen("a", &json!({"size": 7}));
    config["status"] = json!({"phase": "Ready"});
    let written = desk.apply(&SPECIMENS, "a/status", "one", "", &config).await?;
    same(text(&written, "/status/phase"), "Ready", "phase")?;
    same(&written["spec"]["size"], &json!(1), "size")?;
    let owners = written["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner["subresource"] == "status");
    same(&owner.map(|owner| &owner["fieldsV1"]), &Some(&json!({"f:status": {"f:phase": {}}})), "fields owned through status")?;
    config["status"] = json!({"size": 3});
    let written = desk.apply(&SPECIMENS, "a/status", "one", "", &config).await?;
    same(&written["status"], &json!({"size": 3}), "status after another apply")
}

async fn apply_to_the_status_of_a_missing_object_is_not_found(desk: Desk) -> CaseResult {
    let mut config = specimen("a", &json!({}));
    config["status"] = json!({"phase": "Ready"});
    refused(desk.apply(&SPECIMENS, "a/status", "one", "", &config).await, 404, "NotFound").map(drop)
}

async fn empty_data_is_owned_though_it_is_not_kept(desk: Desk) -> CaseResult {
    let made = desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({}))).await?;
    check(made.get("data").is_none(), "empty data is kept")?;
    let again = desk.apply(&CONFIG_MAPS, "a", "one", "", &data(&json!({}))).await?;
    same(&version(&again)?, &version(&made)?, "version")?;
    refused(desk.apply(&CONFIG_MAPS, "a", "two", "", &data(&json!({}))).await, 409, "Conflict").map(drop)
}
