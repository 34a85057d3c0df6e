//! Watches: order, selectors, beginnings and ends, bookmarks.

use serde_json::json;

use super::{
    Case,
    desk::{CaseResult, Desk, MERGE, SPECIMENS, Wrong, check, same, text, version},
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        changes_come_in_order,
        a_deletion_shows_the_last_state,
        a_watch_resumes_after_its_version,
        a_watch_from_zero_begins_with_what_is_there,
        a_watch_without_version_begins_with_what_is_there,
        leaving_the_selector_is_a_deletion,
        entering_the_selector_is_an_addition,
        a_watch_by_name_sees_that_object_alone,
        a_watch_sees_its_namespace_alone,
        a_write_that_changes_nothing_is_no_event,
        a_status_write_is_an_event,
        a_finalized_deletion_is_two_events,
        initial_events_end_with_a_bookmark,
        initial_events_need_a_version_match,
        a_bookmark_comes_before_the_end,
        a_watch_ends_in_time,
        a_version_too_old_is_expired,
        metadata_alone_can_be_watched,
    ]
}

async fn now(desk: &Desk) -> Result<String, Wrong> {
    Ok(text(&desk.list(&SPECIMENS, "").await?, "/metadata/resourceVersion").to_owned())
}

async fn changes_come_in_order(desk: Desk) -> CaseResult {
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", now(&desk).await?)).await?;
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    desk.post(&SPECIMENS, &specimen("b", &json!({"size": 1}))).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let mut last = 0;
    for (kind, name) in [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")] {
        let object = watch.expect(kind, name).await?;
        check(version(&object)? > last, "versions do not rise")?;
        last = version(&object)?;
    }
    Ok(())
}

async fn a_deletion_shows_the_last_state(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 7}))).await?;
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", now(&desk).await?)).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let gone = watch.expect("DELETED", "a").await?;
    same(&gone["spec"]["size"], &json!(7), "size")?;
    check(version(&gone)? > version(&made)?, "the deletion has no version of its own")
}

async fn a_watch_resumes_after_its_version(desk: Desk) -> CaseResult {
    let first = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.post(&SPECIMENS, &specimen("b", &json!({}))).await?;
    desk.post(&SPECIMENS, &specimen("c", &json!({}))).await?;
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", version(&first)?)).await?;
    watch.expect("ADDED", "b").await?;
    watch.expect("ADDED", "c").await.map(drop)
}

async fn begins_with_what_is_there(desk: Desk, query: &str) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    desk.post(&SPECIMENS, &specimen("b", &json!({}))).await?;
    // A watch from zero may lag behind; a list at the newest version waits for the cache.
    let newest = now(&desk).await?;
    desk.list(&SPECIMENS, &format!("resourceVersion={newest}&resourceVersionMatch=NotOlderThan")).await?;
    let mut watch = desk.watch(&SPECIMENS, query).await?;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (kind, object) = watch.next().await?;
        same(kind, "ADDED", "event")?;
        seen.push(text(&object, "/metadata/name").to_owned());
    }
    seen.sort();
    same(seen.join(" ").as_str(), "a b", "what was there")?;
    desk.post(&SPECIMENS, &specimen("c", &json!({}))).await?;
    watch.expect("ADDED", "c").await.map(drop)
}

async fn a_watch_from_zero_begins_with_what_is_there(desk: Desk) -> CaseResult {
    begins_with_what_is_there(desk, "resourceVersion=0").await
}

async fn a_watch_without_version_begins_with_what_is_there(desk: Desk) -> CaseResult {
    begins_with_what_is_there(desk, "").await
}

async fn leaving_the_selector_is_a_deletion(desk: Desk) -> CaseResult {
    let mut object = specimen("a", &json!({"size": 1}));
    object["metadata"]["labels"] = json!({"group": "in"});
    desk.post(&SPECIMENS, &object).await?;
    let query = format!("labelSelector=group%3Din&resourceVersion={}", now(&desk).await?);
    let mut watch = desk.watch(&SPECIMENS, &query).await?;
    let patch = json!({"metadata": {"labels": {"group": "out"}}, "spec": {"size": 2}});
    let left = desk.patch(&SPECIMENS, "a", MERGE, &patch).await?;
    let gone = watch.expect("DELETED", "a").await?;
    same(text(&gone, "/metadata/labels/group"), "in", "the label it had")?;
    same(&gone["spec"]["size"], &json!(1), "the size it had")?;
    same(&version(&gone)?, &version(&left)?, "the version of leaving")
}

async fn entering_the_selector_is_an_addition(desk: Desk) -> CaseResult {
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    let query = format!("labelSelector=group%3Din&resourceVersion={}", now(&desk).await?);
    let mut watch = desk.watch(&SPECIMENS, &query).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"labels": {"group": "in"}}})).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 3}})).await?;
    let came = watch.expect("ADDED", "a").await?;
    same(&came["spec"]["size"], &json!(2), "size on entering")?;
    watch.expect("MODIFIED", "a").await.map(drop)
}

async fn a_watch_by_name_sees_that_object_alone(desk: Desk) -> CaseResult {
    let query = format!("fieldSelector=metadata.name%3Db&resourceVersion={}", now(&desk).await?);
    let mut watch = desk.watch(&SPECIMENS, &query).await?;
    for name in ["a", "b", "c"] {
        desk.post(&SPECIMENS, &specimen(name, &json!({}))).await?;
    }
    desk.delete(&SPECIMENS, "b", &json!({})).await?;
    watch.expect("ADDED", "b").await?;
    watch.expect("DELETED", "b").await.map(drop)
}

async fn a_watch_sees_its_namespace_alone(desk: Desk) -> CaseResult {
    let name = desk.namespace.clone();
    let elsewhere = desk.moved_to("default");
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", now(&desk).await?)).await?;
    elsewhere.post(&SPECIMENS, &specimen(&name, &json!({}))).await?;
    elsewhere.delete(&SPECIMENS, &name, &json!({})).await?;
    desk.post(&SPECIMENS, &specimen("here", &json!({}))).await?;
    watch.expect("ADDED", "here").await.map(drop)
}

async fn a_write_that_changes_nothing_is_no_event(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", version(&made)?)).await?;
    desk.put(&SPECIMENS, "a", &made).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 1}})).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"spec": {"size": 2}})).await?;
    let event = watch.expect("MODIFIED", "a").await?;
    same(&event["spec"]["size"], &json!(2), "size of the first event")
}

async fn a_status_write_is_an_event(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", version(&made)?)).await?;
    desk.patch(&SPECIMENS, "a/status", MERGE, &json!({"status": {"phase": "Ready"}})).await?;
    let event = watch.expect("MODIFIED", "a").await?;
    same(text(&event, "/status/phase"), "Ready", "phase")
}

async fn a_finalized_deletion_is_two_events(desk: Desk) -> CaseResult {
    let mut object = specimen("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["conformance.windlass.dev/x"]);
    let made = desk.post(&SPECIMENS, &object).await?;
    let mut watch = desk.watch(&SPECIMENS, &format!("resourceVersion={}", version(&made)?)).await?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    desk.patch(&SPECIMENS, "a", MERGE, &json!({"metadata": {"finalizers": null}})).await?;
    let marked = watch.expect("MODIFIED", "a").await?;
    check(!text(&marked, "/metadata/deletionTimestamp").is_empty(), "it is not marked")?;
    let (kind, _) = watch.next().await?;
    same(kind, "DELETED", "second event")
}

async fn initial_events_end_with_a_bookmark(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = desk.watch(&SPECIMENS, query).await?;
    let (kind, object) = watch.next().await?;
    same(&(kind, text(&object, "/metadata/name")), &("ADDED", "a"), "first event")?;
    let (kind, object) = watch.next().await?;
    same(kind, "BOOKMARK", "second event")?;
    same(text(&object, "/metadata/annotations/k8s.io~1initial-events-end"), "true", "annotation")?;
    check(version(&object)? >= version(&made)?, "the bookmark is older than what was sent")?;
    desk.post(&SPECIMENS, &specimen("b", &json!({}))).await?;
    watch.expect("ADDED", "b").await.map(drop)
}

async fn initial_events_need_a_version_match(desk: Desk) -> CaseResult {
    let path = format!("{}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true", desk.path(&SPECIMENS, ""));
    let answer = desk.send("GET", &path, "application/json", None).await;
    super::desk::refused(answer, 422, "Invalid").map(drop)
}

async fn a_bookmark_comes_before_the_end(desk: Desk) -> CaseResult {
    let made = desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?;
    let query = format!("allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={}", version(&made)?);
    let mut watch = desk.watch(&SPECIMENS, &query).await?;
    let mut bookmarked = None;
    loop {
        let (kind, object) = watch.next().await?;
        match kind {
            "BOOKMARK" => bookmarked = Some(version(&object)?),
            "END" => break,
            other => return Err(Wrong::new(format!("unexpected {other}"))),
        }
    }
    check(bookmarked.is_some_and(|at| version(&made).is_ok_and(|made| at >= made)), format!("bookmark {bookmarked:?}"))
}

async fn a_watch_ends_in_time(desk: Desk) -> CaseResult {
    let mut watch = desk.watch(&SPECIMENS, &format!("timeoutSeconds=1&resourceVersion={}", now(&desk).await?)).await?;
    let (kind, _) = watch.next().await?;
    same(kind, "END", "event")
}

async fn a_version_too_old_is_expired(desk: Desk) -> CaseResult {
    let mut watch = desk.watch(&SPECIMENS, "resourceVersion=1").await?;
    let (kind, object) = watch.next().await?;
    same(kind, "ERROR", "event")?;
    same(&object["code"], &json!(410), "code")?;
    same(text(&object, "/reason"), "Expired", "reason")
}

async fn metadata_alone_can_be_watched(desk: Desk) -> CaseResult {
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let query = format!("resourceVersion={}", now(&desk).await?);
    let mut watch = desk.watch_as(&SPECIMENS, &query, accept).await?;
    desk.post(&SPECIMENS, &specimen("a", &json!({"size": 1}))).await?;
    let object = watch.expect("ADDED", "a").await?;
    same(text(&object, "/kind"), "PartialObjectMetadata", "kind")?;
    check(object.get("spec").is_none(), "the spec is there")
}
