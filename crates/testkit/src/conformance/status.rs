//! Status apart from spec, generation, schema, scale.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{
        BUDGETS, CONFIG_MAPS, CaseResult, Desk, MERGE, SPECIMENS, STATEFUL_SETS, check, config_map, refused, same, text,
        version,
    },
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        a_new_object_has_no_status,
        an_update_ignores_status,
        a_status_update_takes_status_alone,
        a_status_patch_takes_status_alone,
        a_status_update_of_a_built_in_kind_leaves_the_spec,
        a_stale_status_update_conflicts,
        a_status_update_that_changes_nothing_is_no_revision,
        a_status_update_needs_a_version,
        status_keeps_unknown_fields,
        status_of_the_wrong_type_is_refused,
        a_config_map_has_no_status,
        generation_follows_the_spec_alone,
        generation_of_built_in_kinds_follows_the_spec_alone,
        a_config_map_has_no_generation,
        unknown_spec_fields_are_pruned,
        a_wrong_type_is_refused,
        a_value_outside_its_bounds_is_refused,
        a_missing_required_field_is_refused,
        a_default_is_filled_in,
        the_scale_of_a_custom_object_is_its_size,
        the_scale_of_a_stateful_set_is_its_replicas,
    ]
}

/// A StatefulSet whose pods nothing can run.
pub(super) fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
            },
        },
    })
}

async fn made(desk: &Desk) -> Result<Value, kube::Error> {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await
}

async fn a_new_object_has_no_status(desk: Desk) -> CaseResult {
    let mut object = specimen("a", &json!({"size": 1}));
    object["status"] = json!({"phase": "Lies"});
    let made = desk.post(&SPECIMENS, &object).await?;
    check(made.get("status").is_none(), format!("status {}", made["status"]))
}

async fn an_update_ignores_status(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["status"] = json!({"phase": "Lies"});
    object["spec"]["size"] = json!(2);
    let written = desk.put(&SPECIMENS, "a", &object).await?;
    same(&written["spec"]["size"], &json!(2), "size")?;
    check(written.get("status").is_none(), "PUT wrote the status")?;
    let written = desk.patch(&SPECIMENS, "a", MERGE, &json!({"status": {"phase": "Lies"}})).await?;
    check(written.get("status").is_none(), "PATCH wrote the status")
}

async fn a_status_update_takes_status_alone(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let mut object = first.clone();
    object["status"] = json!({"phase": "Ready"});
    object["spec"]["size"] = json!(9);
    object["metadata"]["labels"] = json!({"x": "y"});
    object["metadata"]["finalizers"] = json!(["conformance.windlass.dev/x"]);
    let written = desk.put(&SPECIMENS, "a/status", &object).await?;
    same(text(&written, "/status/phase"), "Ready", "phase")?;
    same(&written["spec"], &first["spec"], "spec")?;
    check(written.pointer("/metadata/labels").is_none(), "labels were written")?;
    check(written.pointer("/metadata/finalizers").is_none(), "finalizers were written")?;
    same(&written["metadata"]["generation"], &json!(1), "generation")
}

async fn a_status_patch_takes_status_alone(desk: Desk) -> CaseResult {
    let first = made(&desk).await?;
    let patch = json!({ "metadata": { "annotations": { "x": "y" } }, "spec": { "size": 9 }, "status": { "phase": "Ready" } });
    let written = desk.patch(&SPECIMENS, "a/status", MERGE, &patch).await?;
    same(text(&written, "/status/phase"), "Ready", "phase")?;
    same(&written["spec"], &first["spec"], "spec")?;
    check(written.pointer("/metadata/annotations").is_none(), "annotations were written")
}

async fn a_status_update_of_a_built_in_kind_leaves_the_spec(desk: Desk) -> CaseResult {
    let first = desk.post(&STATEFUL_SETS, &stateful_set("a", 0)).await?;
    let patch = json!({
        "metadata": { "labels": { "x": "y" } },
        "spec": { "replicas": 3 },
        "status": { "conditions": [{ "type": "Odd", "status": "True" }] },
    });
    let written = desk.patch(&STATEFUL_SETS, "a/status", MERGE, &patch).await?;
    same(&written["spec"], &first["spec"], "spec")?;
    same(&written["metadata"]["generation"], &json!(1), "generation")?;
    same(text(&written, "/status/conditions/0/type"), "Odd", "condition")?;
    same(text(&written, "/metadata/labels/x"), "y", "a label sent with the status")
}

async fn a_stale_status_update_conflicts(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"labels": {"x": "y"}}})).await?;
    object["status"] = json!({"phase": "Ready"});
    refused(desk.put(&SPECIMENS, "a/status", &object).await, 409, "Conflict").map(drop)
}

async fn a_status_update_that_changes_nothing_is_no_revision(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["status"] = json!({"phase": "Ready"});
    let first = desk.put(&SPECIMENS, "a/status", &object).await?;
    let again = desk.put(&SPECIMENS, "a/status", &first).await?;
    same(&version(&again)?, &version(&first)?, "version")
}

async fn a_status_update_needs_a_version(desk: Desk) -> CaseResult {
    made(&desk).await?;
    let mut object = specimen("a", &json!({"size": 1}));
    object["status"] = json!({"phase": "Ready"});
    refused(desk.put(&SPECIMENS, "a/status", &object).await, 422, "Invalid").map(drop)
}

async fn status_keeps_unknown_fields(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    let status = json!({"odd": {"deep": [1, "two", {"three": null}]}, "size": 4});
    object["status"] = status.clone();
    let written = desk.put(&SPECIMENS, "a/status", &object).await?;
    same(&written["status"], &status, "status")
}

async fn status_of_the_wrong_type_is_refused(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    object["status"] = json!({"size": "many"});
    let status = refused(desk.put(&SPECIMENS, "a/status", &object).await, 422, "Invalid")?;
    let causes = status.details.causes;
    check(causes.iter().any(|cause| cause.field == "status.size"), format!("{causes:?}"))
}

async fn a_config_map_has_no_status(desk: Desk) -> CaseResult {
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?;
    match desk.get(&CONFIG_MAPS, "a/status").await {
        Err(kube::Error::Api(status)) => same(&status.code, &404, "code"),
        other => check(false, format!("{other:?}")),
    }
}

async fn generation_follows_the_spec_alone(desk: Desk) -> CaseResult {
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    same(&generation(&made(&desk).await?), &Some(1), "at first")?;
    let labels = json!({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}});
    same(&generation(&desk.patch(&SPECIMENS, "a", MERGE, &labels).await?), &Some(1), "after labels")?;
    let status = json!({"status": {"phase": "Ready"}});
    same(&generation(&desk.patch(&SPECIMENS, "a/status", MERGE, &status).await?), &Some(1), "after status")?;
    let spec = json!({"spec": {"size": 2}});
    same(&generation(&desk.patch(&SPECIMENS, "a", MERGE, &spec).await?), &Some(2), "after spec")?;
    same(&generation(&desk.patch(&SPECIMENS, "a", MERGE, &spec).await?), &Some(2), "after the same spec")
}

async fn generation_of_built_in_kinds_follows_the_spec_alone(desk: Desk) -> CaseResult {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "none" } } },
    });
    for (kind, object, spec) in [
        (STATEFUL_SETS, stateful_set("a", 0), json!({"spec": {"minReadySeconds": 5}})),
        (BUDGETS, budget, json!({"spec": {"maxUnavailable": 2}})),
    ] {
        let made = desk.post(&kind, &object).await?;
        same(&made["metadata"]["generation"], &json!(1), "generation at first")?;
        let labels = json!({"metadata": {"labels": {"x": "y"}}});
        let written = desk.patch(&kind, "a", MERGE, &labels).await?;
        same(&written["metadata"]["generation"], &json!(1), "generation after labels")?;
        let written = desk.patch(&kind, "a", MERGE, &spec).await?;
        same(&written["metadata"]["generation"], &json!(2), "generation after spec")?;
    }
    Ok(())
}

async fn a_config_map_has_no_generation(desk: Desk) -> CaseResult {
    let made = desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?;
    check(made.pointer("/metadata/generation").is_none(), "it has one")
}

async fn unknown_spec_fields_are_pruned(desk: Desk) -> CaseResult {
    let spec = json!({"size": 1, "odd": true, "nested": {"left": "l", "odd": 1}, "parts": [{"name": "p", "odd": 1}]});
    let made = desk.post(&SPECIMENS, &specimen("a", &spec)).await?;
    let wanted = json!({"size": 1, "level": "low", "nested": {"left": "l"}, "parts": [{"name": "p"}]});
    same(&made["spec"], &wanted, "spec")
}

async fn a_wrong_type_is_refused(desk: Desk) -> CaseResult {
    let status = refused(desk.post(&SPECIMENS, &specimen("a", &json!({"size": "one"}))).await, 422, "Invalid")?;
    let details = status.details;
    same(&details.kind, "Specimen", "details.kind")?;
    let cause = details.causes.iter().find(|cause| cause.field == "spec.size");
    same(&cause.map(|cause| cause.reason.as_str()), &Some("FieldValueTypeInvalid"), "cause")?;
    refused(desk.post(&SPECIMENS, &specimen("a", &json!("text"))).await, 422, "Invalid").map(drop)
}

async fn a_value_outside_its_bounds_is_refused(desk: Desk) -> CaseResult {
    for spec in [json!({"size": -1}), json!({"size": 101}), json!({"mode": "other"})] {
        refused(desk.post(&SPECIMENS, &specimen("a", &spec)).await, 422, "Invalid")?;
    }
    Ok(())
}

async fn a_missing_required_field_is_refused(desk: Desk) -> CaseResult {
    let answer = desk.post(&SPECIMENS, &specimen("a", &json!({"parts": [{"value": "v"}]}))).await;
    let status = refused(answer, 422, "Invalid")?;
    let causes = status.details.causes;
    let found = causes.iter().any(|cause| cause.field == "spec.parts[0].name" && cause.reason == "FieldValueRequired");
    check(found, format!("{causes:?}"))
}

async fn a_default_is_filled_in(desk: Desk) -> CaseResult {
    let mut object = made(&desk).await?;
    same(text(&object, "/spec/level"), "low", "level of a new object")?;
    object["spec"] = json!({"size": 1});
    let written = desk.put(&SPECIMENS, "a", &object).await?;
    same(text(&written, "/spec/level"), "low", "level after an update without it")
}

async fn the_scale_of_a_custom_object_is_its_size(desk: Desk) -> CaseResult {
    made(&desk).await?;
    let scale = desk.get(&SPECIMENS, "a/scale").await?;
    same(text(&scale, "/kind"), "Scale", "kind")?;
    same(&scale["spec"]["replicas"], &json!(1), "replicas")?;
    desk.patch(&SPECIMENS, "a/scale", MERGE, &json!({"spec": {"replicas": 4}})).await?;
    let object = desk.get(&SPECIMENS, "a").await?;
    same(&object["spec"]["size"], &json!(4), "size")?;
    same(&object["metadata"]["generation"], &json!(2), "generation")
}

async fn the_scale_of_a_stateful_set_is_its_replicas(desk: Desk) -> CaseResult {
    desk.post(&STATEFUL_SETS, &stateful_set("a", 0)).await?;
    let mut scale = desk.get(&STATEFUL_SETS, "a/scale").await?;
    same(text(&scale, "/status/selector"), "app=a", "selector")?;
    desk.patch(&STATEFUL_SETS, "a", MERGE, &json!({"metadata": {"labels": {"x": "y"}}})).await?;
    scale["spec"]["replicas"] = json!(0);
    refused(desk.put(&STATEFUL_SETS, "a/scale", &scale).await, 409, "Conflict").map(drop)
}
