//! Garbage collection by owner references. The waits are generous: on a real server a controller does it.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{CONFIG_MAPS, CaseResult, Desk, MERGE, SPECIMENS, Wrong, check, config_map, eventually, refused, same, text},
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        dependents_follow_their_owner,
        dependents_follow_over_two_steps,
        an_owner_is_known_by_its_uid,
        orphans_stay_without_their_owner,
        a_foreground_delete_waits_for_dependents,
        an_object_with_another_living_owner_stays,
        a_finalizer_holds_a_dependent,
    ]
}

fn owned_by(owners: &[&Value]) -> Value {
    owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": true,
            })
        })
        .collect()
}

async fn dependent(desk: &Desk, name: &str, owners: &[&Value]) -> Result<Value, kube::Error> {
    let mut object = config_map(name, &json!({"case": "gc"}), &json!({}));
    object["metadata"]["ownerReferences"] = owned_by(owners);
    desk.post(&CONFIG_MAPS, &object).await
}

async fn is_gone(desk: &Desk, name: &str) -> Result<bool, Wrong> {
    match desk.get(&CONFIG_MAPS, name).await {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

async fn dependents_follow_their_owner(desk: Desk) -> CaseResult {
    let owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    dependent(&desk, "child", &[&owner]).await?;
    desk.post(&CONFIG_MAPS, &config_map("stranger", &json!({}), &json!({}))).await?;
    desk.delete(&SPECIMENS, "owner", &json!({"propagationPolicy": "Background"})).await?;
    eventually("the dependent is collected", || is_gone(&desk, "child")).await?;
    desk.get(&CONFIG_MAPS, "stranger").await?;
    Ok(())
}

async fn dependents_follow_over_two_steps(desk: Desk) -> CaseResult {
    let owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    let child = dependent(&desk, "child", &[&owner]).await?;
    dependent(&desk, "grandchild", &[&child]).await?;
    desk.delete(&SPECIMENS, "owner", &json!({})).await?;
    eventually("both are collected", || async { Ok(is_gone(&desk, "child").await? && is_gone(&desk, "grandchild").await?) })
        .await
}

async fn an_owner_is_known_by_its_uid(desk: Desk) -> CaseResult {
    let mut owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    owner["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    dependent(&desk, "child", &[&owner]).await?;
    eventually("the dependent of another uid is collected", || is_gone(&desk, "child")).await
}

async fn orphans_stay_without_their_owner(desk: Desk) -> CaseResult {
    let owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    dependent(&desk, "child", &[&owner]).await?;
    desk.delete(&SPECIMENS, "owner", &json!({"propagationPolicy": "Orphan"})).await?;
    eventually("the owner is gone", || async { Ok(desk.list_names(&SPECIMENS, "").await?.is_empty()) }).await?;
    let child = desk.get(&CONFIG_MAPS, "child").await?;
    check(child.pointer("/metadata/ownerReferences").is_none(), "the reference is kept")
}

async fn a_foreground_delete_waits_for_dependents(desk: Desk) -> CaseResult {
    let owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    dependent(&desk, "child", &[&owner]).await?;
    desk.patch(&CONFIG_MAPS, "child", MERGE, &json!({"metadata": {"finalizers": ["conformance.windlass.dev/x"]}})).await?;
    desk.delete(&SPECIMENS, "owner", &json!({"propagationPolicy": "Foreground"})).await?;
    eventually("the dependent is marked", || async {
        let child = desk.get(&CONFIG_MAPS, "child").await?;
        Ok(!text(&child, "/metadata/deletionTimestamp").is_empty())
    })
    .await?;
    let owner = desk.get(&SPECIMENS, "owner").await?;
    same(&owner["metadata"]["finalizers"], &json!(["foregroundDeletion"]), "finalizers of the waiting owner")?;
    desk.patch(&CONFIG_MAPS, "child", MERGE, &json!({"metadata": {"finalizers": null}})).await?;
    eventually("the owner is gone", || async { Ok(desk.list_names(&SPECIMENS, "").await?.is_empty()) }).await
}

async fn an_object_with_another_living_owner_stays(desk: Desk) -> CaseResult {
    let first = desk.post(&SPECIMENS, &specimen("first", &json!({}))).await?;
    let second = desk.post(&SPECIMENS, &specimen("second", &json!({}))).await?;
    dependent(&desk, "child", &[&first, &second]).await?;
    desk.delete(&SPECIMENS, "first", &json!({})).await?;
    eventually("the dead owner is forgotten", || async {
        let child = desk.get(&CONFIG_MAPS, "child").await?;
        Ok(text(&child, "/metadata/ownerReferences/0/name") == "second")
    })
    .await
}

async fn a_finalizer_holds_a_dependent(desk: Desk) -> CaseResult {
    let owner = desk.post(&SPECIMENS, &specimen("owner", &json!({}))).await?;
    dependent(&desk, "child", &[&owner]).await?;
    desk.patch(&CONFIG_MAPS, "child", MERGE, &json!({"metadata": {"finalizers": ["conformance.windlass.dev/x"]}})).await?;
    desk.delete(&SPECIMENS, "owner", &json!({})).await?;
    eventually("the dependent is marked", || async {
        let child = desk.get(&CONFIG_MAPS, "child").await?;
        Ok(!text(&child, "/metadata/deletionTimestamp").is_empty())
    })
    .await?;
    desk.patch(&CONFIG_MAPS, "child", MERGE, &json!({"metadata": {"finalizers": null}})).await?;
    eventually("the dependent is gone", || is_gone(&desk, "child")).await?;
    refused(desk.get(&SPECIMENS, "owner").await, 404, "NotFound").map(drop)
}
