//! Optimistic locking, preconditions of updates, and writes that change nothing.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{
        BUDGETS, CONFIG_MAPS, CaseResult, Desk, LEASES, MERGE, SPECIMENS, STATEFUL_SETS, check, config_map, refused, same,
        text, version,
    },
    specimen::specimen,
    status::stateful_set,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        an_update_with_a_stale_version_conflicts,
        an_update_with_the_current_version_is_taken,
        an_update_of_a_custom_object_with_a_stale_version_conflicts,
        a_config_map_may_be_replaced_without_a_version,
        a_stateful_set_may_be_replaced_without_a_version,
        a_custom_object_may_not_be_replaced_without_a_version,
        a_budget_may_not_be_replaced_without_a_version,
        a_lease_may_not_be_replaced_without_a_version,
        an_update_with_another_uid_conflicts,
        an_update_cannot_change_identity,
        an_update_cannot_begin_a_deletion,
        the_name_must_be_that_of_the_url,
        a_patch_with_a_stale_version_conflicts,
        a_patch_with_the_current_version_is_taken,
        a_patch_without_a_version_is_taken,
        a_patch_cannot_change_the_uid,
        an_update_that_changes_nothing_is_no_revision,
        a_patch_that_changes_nothing_is_no_revision,
        a_dry_run_update_changes_nothing,
        removed_fields_are_gone_after_an_update,
    ]
}

async fn made(desk: &Desk) -> Result<Value, kube::Error> {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({"x": "y"}), &json!({"k": "v"}))).await
}

async fn an_update_with_a_stale_version_conflicts(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let mut second = first.clone();
    second["data"]["k"] = json!("w");
    desk.put(&CONFIG_MAPS, "a", &second).await?;
    second["data"]["k"] = json!("x");
    let status = refused(desk.put(&CONFIG_MAPS, "a", &second).await, 409, "Conflict")?;
    same(
        &status.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
        "message",
    )?;
    let details = status.details;
    same(&(details.name.as_str(), details.kind.as_str()), &("a", "configmaps"), "details")?;
    same(text(&desk.get(&CONFIG_MAPS, "a").await?, "/data/k"), "w", "data after the conflict")
}

async fn an_update_with_the_current_version_is_taken(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let mut second = first.clone();
    second["data"]["k"] = json!("w");
    let written = desk.put(&CONFIG_MAPS, "a", &second).await?;
    check(version(&written)? > version(&first)?, "the version did not move")?;
    same(text(&written, "/metadata/uid"), text(&first, "/metadata/uid"), "uid")
}

async fn an_update_of_a_custom_object_with_a_stale_version_conflicts(desk: Desk) -> CaseResult {
    let mut object = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    object["spec"]["size"] = json!(2);
    desk.put(&SPECIMENS, "a", &object).await?;
    object["spec"]["size"] = json!(3);
    let status = refused(desk.put(&SPECIMENS, "a", &object).await, 409, "Conflict")?;
    same(&status.details.group, "conformance.windlass.dev", "details.group")
}

async fn a_config_map_may_be_replaced_without_a_version(desk: Desk) -> CaseResult {
    made(&desk).await?;
    let written = desk.put(&CONFIG_MAPS, "a", &config_map("a", &json!({}), &json!({"k": "w"}))).await?;
    same(text(&written, "/data/k"), "w", "data")?;
    check(written.pointer("/metadata/labels").is_none(), "labels that were not sent are kept")
}

async fn a_stateful_set_may_be_replaced_without_a_version(desk: Desk) -> CaseResult {
    let mut object = stateful_set("a", 0);
    desk.post(&STATEFUL_SETS, &object).await?;
    object["metadata"]["labels"] = json!({"x": "y"});
    let written = desk.put(&STATEFUL_SETS, "a", &object).await?;
    same(text(&written, "/metadata/labels/x"), "y", "label")
}

fn complains_about_version(status: super::desk::Refusal) -> CaseResult {
    let causes = status.details.causes;
    check(causes.iter().any(|cause| cause.field == "metadata.resourceVersion"), format!("{causes:?}"))
}

async fn a_custom_object_may_not_be_replaced_without_a_version(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    let answer = desk.put(&SPECIMENS, "a", &specimen("a", &json!({"size": 2}))).await;
    complains_about_version(refused(answer, 422, "Invalid")?)
}

async fn a_budget_may_not_be_replaced_without_a_version(desk: Desk) -> CaseResult {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "none" } } },
    });
    desk.post(&BUDGETS, &budget).await?;
    complains_about_version(refused(desk.put(&BUDGETS, "a", &budget).await, 422, "Invalid")?)
}

async fn a_lease_may_not_be_replaced_without_a_version(desk: Desk) -> CaseResult {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
        "spec": { "holderIdentity": "me" },
    });
    desk.post(&LEASES, &lease).await?;
    complains_about_version(refused(desk.put(&LEASES, "a", &lease).await, 422, "Invalid")?)
}

async fn an_update_with_another_uid_conflicts(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    let status = refused(desk.put(&CONFIG_MAPS, "a", &object).await, 409, "Conflict")?;
    check(status.message.contains("UID in precondition"), status.message)
}

async fn an_update_cannot_change_identity(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let mut object = first.clone();
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["generation"] = json!(77);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    object["data"]["k"] = json!("w");
    let written = desk.put(&CONFIG_MAPS, "a", &object).await?;
    for field in ["/metadata/uid", "/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/generation"] {
        same(&written.pointer(field), &first.pointer(field), field)?;
    }
    Ok(())
}

async fn an_update_cannot_begin_a_deletion(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let status = refused(desk.put(&CONFIG_MAPS, "a", &object).await, 422, "Invalid")?;
    let causes = status.details.causes;
    check(causes.iter().any(|cause| cause.field == "metadata.deletionTimestamp"), format!("{causes:?}"))
}

async fn the_name_must_be_that_of_the_url(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["metadata"]["name"] = json!("b");
    refused(desk.put(&CONFIG_MAPS, "a", &object).await, 400, "BadRequest").map(drop)
}

async fn a_patch_with_a_stale_version_conflicts(desk: Desk) -> CaseResult {
    for (kind, field) in [(CONFIG_MAPS, "data"), (SPECIMENS, "spec")] {
        let first =
            if field == "data" { made(&desk).await? } else { desk.post(&kind, &specimen("a", &json!({"title": "v"}))).await? };
        let stale = first["metadata"]["resourceVersion"].clone();
        desk.patch(&kind, "a", MERGE, &json!({ field: { "title": "w" } })).await?;
        let patch = json!({ "metadata": { "resourceVersion": stale }, field: { "title": "x" } });
        refused(desk.patch(&kind, "a", MERGE, &patch).await, 409, "Conflict")?;
        let pointer = format!("/{field}/title");
        same(text(&desk.get(&kind, "a").await?, &pointer), "w", "after the conflict")?;
    }
    Ok(())
}

async fn a_patch_with_the_current_version_is_taken(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let patch = json!({
        "metadata": { "resourceVersion": first["metadata"]["resourceVersion"], "uid": first["metadata"]["uid"] },
        "data": { "k": "w" },
    });
    same(text(&desk.patch(&CONFIG_MAPS, "a", MERGE, &patch).await?, "/data/k"), "w", "data")
}

async fn a_patch_without_a_version_is_taken(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    for size in 2..5 {
        let written = desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": size}})).await?;
        same(&written["spec"]["size"], &size, "size")?;
    }
    Ok(())
}

async fn a_patch_cannot_change_the_uid(desk: Desk) -> CaseResult {
    made(&desk).await?;
    let patch = json!({ "metadata": { "uid": "11111111-2222-3333-4444-555555555555" }, "data": { "k": "w" } });
    refused(desk.patch(&CONFIG_MAPS, "a", MERGE, &patch).await, 422, "Invalid")?;
    same(text(&desk.get(&CONFIG_MAPS, "a").await?, "/data/k"), "v", "data")
}

async fn an_update_that_changes_nothing_is_no_revision(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let again = desk.put(&CONFIG_MAPS, "a?fieldManager=somebody-else", &first).await?;
    same(&again, &first, "the object")?;
    let first = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    let again = desk.put(&SPECIMENS, "a", &first).await?;
    same(&version(&again)?, &version(&first)?, "version of the specimen")
}

async fn a_patch_that_changes_nothing_is_no_revision(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let again = desk.patch(&CONFIG_MAPS, "a", MERGE, &json!({"data": {"k": "v"}})).await?;
    same(&version(&again)?, &version(&first)?, "version")?;
    let again = desk.patch(&CONFIG_MAPS, "a", MERGE, &json!({})).await?;
    same(&version(&again)?, &version(&first)?, "version after an empty patch")
}

async fn a_dry_run_update_changes_nothing(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let mut object = first.clone();
    object["data"]["k"] = json!("w");
    let shown = desk.put(&CONFIG_MAPS, "a?dryRun=All", &object).await?;
    same(text(&shown, "/data/k"), "w", "what was shown")?;
    same(&desk.get(&CONFIG_MAPS, "a").await?, &first, "what is stored")
}

async fn removed_fields_are_gone_after_an_update(desk: Desk) -> CaseResult {
    let mut object = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1, "title": "t"}))).await?;
    object["spec"] = json!({"size": 1});
    let written = desk.put(&SPECIMENS, "a", &object).await?;
    check(written.pointer("/spec/title").is_none(), "title is still there")
}
