//! Deletes: answers, preconditions, finalizers.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{CONFIG_MAPS, CaseResult, Desk, MERGE, SERVICES, SPECIMENS, check, config_map, names, refused, same, text, version},
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        a_delete_answers_with_a_status,
        a_deleted_service_is_given_back,
        a_missing_object_cannot_be_deleted,
        a_delete_with_another_uid_conflicts,
        a_delete_with_a_stale_version_conflicts,
        a_delete_with_matching_preconditions_is_done,
        a_finalizer_holds_the_object,
        a_second_delete_changes_nothing,
        the_last_finalizer_lets_the_object_go,
        an_update_can_let_the_object_go,
        no_finalizer_is_added_while_deleting,
        a_held_object_can_still_be_changed,
        a_deletion_cannot_be_undone,
        a_delete_with_a_stale_version_spares_a_held_object,
        a_recreated_object_is_another,
        a_collection_is_deleted_by_selector,
        a_dry_run_delete_removes_nothing,
        a_delete_with_a_body_does_not_read_the_query,
    ]
}

const FINALIZER: &str = "conformance.windlass.dev/x";

async fn held(desk: &Desk) -> Result<Value, kube::Error> {
    let mut object = specimen("a", &json!({"size": 1}));
    object["metadata"]["finalizers"] = json!([FINALIZER]);
    desk.post(&SPECIMENS, &object).await
}

async fn a_delete_answers_with_a_status(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let answer = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    same(text(&answer, "/kind"), "Status", "kind")?;
    same(text(&answer, "/status"), "Success", "status")?;
    same(text(&answer, "/details/name"), "a", "name")?;
    same(text(&answer, "/details/kind"), "specimens", "kind of the deleted")?;
    same(text(&answer, "/details/group"), "conformance.windlass.dev", "group")?;
    same(text(&answer, "/details/uid"), text(&made, "/metadata/uid"), "uid")?;
    refused(desk.get(&SPECIMENS, "a").await, 404, "NotFound").map(drop)
}

async fn a_deleted_service_is_given_back(desk: Desk) -> CaseResult {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
        "spec": { "clusterIP": "None", "ports": [{"port": 80}] },
    });
    desk.post(&SERVICES, &service).await?;
    let answer = desk.delete(&SERVICES, "a", &json!({})).await?;
    same(text(&answer, "/kind"), "Service", "kind")
}

async fn a_missing_object_cannot_be_deleted(desk: Desk) -> CaseResult {
    refused(desk.delete(&SPECIMENS, "a", &json!({})).await, 404, "NotFound").map(drop)
}

async fn a_delete_with_another_uid_conflicts(desk: Desk) -> CaseResult {
    for (kind, object) in [(CONFIG_MAPS, config_map("a", &json!({}), &json!({}))), (SPECIMENS, specimen("a", &json!({})))] {
        desk.post(&kind, &object).await?;
        let options = json!({ "preconditions": { "uid": "11111111-2222-3333-4444-555555555555" } });
        let status = refused(desk.delete(&kind, "a", &options).await, 409, "Conflict")?;
        check(status.message.contains("the UID in the precondition"), status.message)?;
        desk.get(&kind, "a").await?;
    }
    Ok(())
}

async fn a_delete_with_a_stale_version_conflicts(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 1}})).await?;
    let options = json!({ "preconditions": { "resourceVersion": made["metadata"]["resourceVersion"] } });
    refused(desk.delete(&SPECIMENS, "a", &options).await, 409, "Conflict")?;
    desk.get(&SPECIMENS, "a").await?;
    Ok(())
}

async fn a_delete_with_matching_preconditions_is_done(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let options = json!({ "preconditions": {
        "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"],
    } });
    desk.delete(&SPECIMENS, "a", &options).await?;
    refused(desk.get(&SPECIMENS, "a").await, 404, "NotFound").map(drop)
}

async fn a_finalizer_holds_the_object(desk: Desk) -> CaseResult {
    held(&desk).await?;
    let answer = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    same(text(&answer, "/kind"), "Specimen", "kind of the answer")?;
    let object = desk.get(&SPECIMENS, "a").await?;
    check(!text(&object, "/metadata/deletionTimestamp").is_empty(), "it is not marked")?;
    same(&object["metadata"]["deletionGracePeriodSeconds"], &json!(0), "grace")?;
    same(&object["metadata"]["generation"], &json!(2), "generation")
}

async fn a_second_delete_changes_nothing(desk: Desk) -> CaseResult {
    held(&desk).await?;
    let first = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let second = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    same(&version(&second)?, &version(&first)?, "version")?;
    same(text(&second, "/metadata/deletionTimestamp"), text(&first, "/metadata/deletionTimestamp"), "deletion time")
}

async fn the_last_finalizer_lets_the_object_go(desk: Desk) -> CaseResult {
    held(&desk).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"finalizers": [FINALIZER, "conformance.windlass.dev/y"]}})).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
    desk.get(&SPECIMENS, "a").await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"finalizers": null}})).await?;
    refused(desk.get(&SPECIMENS, "a").await, 404, "NotFound").map(drop)
}

async fn an_update_can_let_the_object_go(desk: Desk) -> CaseResult {
    held(&desk).await?;
    let mut object = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    object["metadata"]["finalizers"] = json!([]);
    let answer = desk.put(&SPECIMENS, "a", &object).await?;
    same(text(&answer, "/metadata/name"), "a", "name in the answer")?;
    refused(desk.get(&SPECIMENS, "a").await, 404, "NotFound").map(drop)
}

async fn no_finalizer_is_added_while_deleting(desk: Desk) -> CaseResult {
    held(&desk).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let patch = json!({"metadata": {"finalizers": [FINALIZER, "conformance.windlass.dev/y"]}});
    let status = refused(desk.patch(&SPECIMENS, "a", MERGE, &patch).await, 422, "Invalid")?;
    let causes = status.details.causes;
    check(causes.iter().any(|cause| cause.field == "metadata.finalizers"), format!("{causes:?}"))
}

async fn a_held_object_can_still_be_changed(desk: Desk) -> CaseResult {
    held(&desk).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let written = desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    same(&written["spec"]["size"], &json!(2), "size")?;
    let written = desk.patch(&SPECIMENS, "a/status", MERGE, &json!({"status": {"phase": "Going"}})).await?;
    same(text(&written, "/status/phase"), "Going", "phase")
}

async fn a_deletion_cannot_be_undone(desk: Desk) -> CaseResult {
    held(&desk).await?;
    let marked = desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let mut object = marked.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    let written = desk.put(&SPECIMENS, "a", &object).await?;
    same(&written["metadata"]["deletionTimestamp"], &marked["metadata"]["deletionTimestamp"], "deletion time")
}

async fn a_delete_with_a_stale_version_spares_a_held_object(desk: Desk) -> CaseResult {
    let made = held(&desk).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    let options = json!({ "preconditions": { "resourceVersion": made["metadata"]["resourceVersion"] } });
    refused(desk.delete(&SPECIMENS, "a", &options).await, 409, "Conflict")?;
    let object = desk.get(&SPECIMENS, "a").await?;
    same(text(&object, "/metadata/deletionTimestamp"), "", "deletion time")
}

async fn a_recreated_object_is_another(desk: Desk) -> CaseResult {
    let first = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let second = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    check(text(&first, "/metadata/uid") != text(&second, "/metadata/uid"), "same uid")?;
    let mut stale = first.clone();
    stale["spec"]["size"] = json!(5);
    refused(desk.put(&SPECIMENS, "a", &stale).await, 409, "Conflict").map(drop)
}

async fn a_collection_is_deleted_by_selector(desk: Desk) -> CaseResult {
    for (name, group) in [("a", "x"), ("b", "y"), ("c", "x")] {
        desk.post(&CONFIG_MAPS, &config_map(name, &json!({"group": group}), &json!({}))).await?;
    }
    let path = format!("{}?labelSelector=group%3Dx", desk.path(&CONFIG_MAPS, ""));
    desk.send("DELETE", &path, "application/json", Some(&json!({}))).await?;
    let left = desk.list(&CONFIG_MAPS, "labelSelector=group").await?;
    same(names(&left).join(" ").as_str(), "b", "what is left")
}

async fn a_dry_run_delete_removes_nothing(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.delete(&SPECIMENS, "a", &json!({"dryRun": ["All"]})).await?;
    let path = desk.path(&SPECIMENS, "a?dryRun=All");
    desk.send("DELETE", &path, "application/json", None).await?;
    same(&desk.get(&SPECIMENS, "a").await?, &made, "what is stored")
}

async fn a_delete_with_a_body_does_not_read_the_query(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.delete(&SPECIMENS, "a?dryRun=All", &json!({})).await?;
    refused(desk.get(&SPECIMENS, "a").await, 404, "NotFound").map(drop)
}
