//! The scripted faults, and what a test can see of the server.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what tests share fails like a test")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use windlass_testkit::{CallMatch, Effect, EventEffect, EventMatch, FakeApiServer, Outcome, Verb};

fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

async fn make(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &map(name)).await
}

fn code(result: kube::Result<ConfigMap>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("wanted a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_refusal_fires_once_and_does_nothing() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    for wanted in [409, 410, 429, 500, 503, 504] {
        server.faults().on(CallMatch::writes().resource("configmaps"), Effect::code(wanted));
        assert_eq!(code(make(&api, "a").await), wanted);
        assert!(server.store().get("configmaps", "default", "a").is_none());
    }
    make(&api, "a").await.unwrap();
    assert_eq!(server.faults().fired(), 6);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_tells_when_to_come_back() {
    let server = FakeApiServer::new();
    server.faults().on(CallMatch::any(), Effect::too_many_requests(7));
    let request = http::Request::get("/api/v1/namespaces/default/configmaps").body(kube::client::Body::empty()).unwrap();
    let response = server.client().send(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test(start_paused = true)]
async fn an_answer_lost_after_the_write_leaves_the_write() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    server.faults().on(CallMatch::writes(), Effect::LostAfter);
    assert!(matches!(make(&api, "a").await, Err(kube::Error::Service(_))));
    assert!(server.store().get("configmaps", "default", "a").is_some());
    assert_eq!(server.calls()[0].outcome, Outcome::Lost { done: true });
    assert_eq!(code(make(&api, "a").await), 409);
}

#[tokio::test(start_paused = true)]
async fn a_request_lost_before_the_write_leaves_nothing() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    server.faults().on(CallMatch::writes(), Effect::LostBefore);
    assert!(make(&api, "a").await.is_err());
    assert!(server.store().get("configmaps", "default", "a").is_none());
    assert_eq!(server.calls()[0].outcome, Outcome::Lost { done: false });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_write_leaves_the_write() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    server.faults().on(CallMatch::writes(), Effect::RefuseAfter { code: 504 });
    assert_eq!(code(make(&api, "a").await), 504);
    assert!(server.store().get("configmaps", "default", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hang_never_answers() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    let day = Duration::from_hours(24);
    server.faults().on(CallMatch::writes().name("").nth(0), Effect::Hang);
    assert!(tokio::time::timeout(day, make(&api, "a")).await.is_err());
    assert!(server.store().get("configmaps", "default", "a").is_none());
    server.faults().on(CallMatch::writes(), Effect::HangAfter);
    assert!(tokio::time::timeout(day, make(&api, "b")).await.is_err());
    assert!(server.store().get("configmaps", "default", "b").is_some());
    assert_eq!(server.calls()[1].outcome, Outcome::Hung);
}

#[tokio::test(start_paused = true)]
async fn a_delay_takes_its_time() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    server.faults().on(CallMatch::any().verb(Verb::Create), Effect::Delay(Duration::from_secs(40)));
    let began = tokio::time::Instant::now();
    make(&api, "a").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 40);
}

#[tokio::test(start_paused = true)]
async fn the_nth_write_is_chosen_and_reads_do_not_count() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    server.faults().on(CallMatch::writes().nth(1), Effect::code(500));
    make(&api, "a").await.unwrap();
    api.get("a").await.unwrap();
    assert_eq!(code(make(&api, "b").await), 500);
    make(&api, "b").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_shows_an_older_revision() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    make(&api, "a").await.unwrap();
    let past = server.revision();
    make(&api, "b").await.unwrap();
    server.faults().on(CallMatch::any().verb(Verb::List), Effect::StaleAt(past));
    let stale = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(stale.items.len(), 1);
    assert_eq!(stale.metadata.resource_version, Some(past.to_string()));
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_held_view_stands_still_until_it_is_released() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    make(&api, "a").await.unwrap();
    let past = server.revision();
    server.faults().hold_view_at(past);
    let mut events = api.watch(&WatchParams::default(), &past.to_string()).await.unwrap().boxed();
    make(&api, "b").await.unwrap();
    assert!(api.get_opt("b").await.unwrap().is_none());
    let silent = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    server.faults().release_view();
    assert!(
        matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(map)) if map.metadata.name.as_deref() == Some("b"))
    );
    assert!(api.get_opt("b").await.unwrap().is_some());
}

/// The names of the next `count` events of a watch, after `script` was set up and a, b, c were made.
async fn watched(script: impl FnOnce(&FakeApiServer), count: usize) -> Vec<String> {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    let from = server.revision().to_string();
    script(&server);
    let events = api.watch(&WatchParams::default(), &from).await.unwrap();
    for name in ["a", "b", "c"] {
        make(&api, name).await.unwrap();
    }
    let named = |event: kube::Result<WatchEvent<ConfigMap>>| match event {
        Ok(WatchEvent::Added(map)) => map.metadata.name.unwrap_or_default(),
        Ok(WatchEvent::Error(status)) => format!("error {}", status.code),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("broken: {error}"),
    };
    events.map(named).take(count).collect().await
}

#[tokio::test(start_paused = true)]
async fn an_event_can_be_dropped() {
    let names = watched(
        |server| {
            server.faults().on_event(EventMatch::of("configmaps").name("b"), EventEffect::Drop);
        },
        2,
    )
    .await;
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn two_events_can_change_places() {
    let names = watched(
        |server| {
            server.faults().on_event(EventMatch::of("configmaps").kind("ADDED").nth(1), EventEffect::SwapWithNext);
        },
        3,
    )
    .await;
    assert_eq!(names, ["a", "c", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_can_come_late() {
    let began = tokio::time::Instant::now();
    let names = watched(
        |server| {
            server.faults().on_event(EventMatch::of("configmaps").name("c"), EventEffect::Delay(Duration::from_secs(30)));
        },
        3,
    )
    .await;
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_end_break_or_expire() {
    for (effect, wanted) in [(EventEffect::Close, vec!["a"]), (EventEffect::Gone, vec!["a", "error 410"])] {
        let names = watched(
            |server| {
                server.faults().on_event(EventMatch::of("configmaps").name("b"), effect);
            },
            9,
        )
        .await;
        assert_eq!(names, wanted);
    }
    let names = watched(
        |server| {
            server.faults().on_event(EventMatch::of("configmaps").name("b"), EventEffect::Break);
        },
        9,
    )
    .await;
    assert_eq!(names[0], "a");
    assert!(names[1].starts_with("broken"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_compacted_revision_is_gone_for_watches_and_pages() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    for name in ["a", "b", "c"] {
        make(&api, name).await.unwrap();
    }
    let from = server.revision().to_string();
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    make(&api, "d").await.unwrap();
    server.compact();
    let mut events = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Error(status)) if status.code == 410));
    let token = page.metadata.continue_.unwrap();
    let next = api.list(&ListParams::default().limit(1).continue_token(&token)).await;
    assert!(matches!(next, Err(kube::Error::Api(status)) if status.code == 410 && status.reason == "Expired"));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_when_asked_for() {
    let server = FakeApiServer::new();
    let api = api(&server.client());
    let mut events = api.watch(&WatchParams::default(), &server.revision().to_string()).await.unwrap().boxed();
    server.namespace("other").send_bookmarks();
    let revision = server.revision().to_string();
    assert!(
        matches!(events.try_next().await.unwrap(), Some(WatchEvent::Bookmark(mark)) if mark.metadata.resource_version == revision)
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_ahead_of_the_server_is_refused() {
    let server = FakeApiServer::new();
    let ahead = (server.revision() + 1).to_string();
    let list = api(&server.client()).list(&ListParams::default().at(&ahead)).await;
    assert!(matches!(list, Err(kube::Error::Api(status)) if status.code == 504 && status.reason == "Timeout"));
}

#[tokio::test(start_paused = true)]
async fn calls_are_recorded_as_rbac_sees_them() {
    let server = FakeApiServer::new();
    let client = server.client();
    let maps = api(&client);
    let rehearsal = PostParams { dry_run: true, field_manager: None };
    maps.create(&rehearsal, &map("a")).await.unwrap();
    make(&maps, "a").await.unwrap();
    maps.get("a").await.unwrap();
    maps.patch("a", &PatchParams::apply("me").force(), &Patch::Apply(map("a"))).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let sets: Api<k8s_openapi::api::apps::v1::StatefulSet> = Api::all(client);
    sets.list(&ListParams::default()).await.unwrap();
    assert!(sets.get_scale("x").await.is_err());

    let verbs: Vec<Verb> = server.calls().iter().map(|call| call.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Create, Verb::Get, Verb::Patch, Verb::Delete, Verb::List, Verb::Get]);
    let mutations: Vec<usize> = server.mutations().iter().map(|call| call.index).collect();
    assert_eq!(mutations, [1, 3, 4]);
    assert_eq!(server.calls()[3].field_manager.as_deref(), Some("me"));
    let access = server.access();
    let entry = |verb: &str, group: &str, resource: &str| (verb.to_owned(), group.to_owned(), resource.to_owned());
    assert!(access.contains(&entry("patch", "", "configmaps")));
    assert!(access.contains(&entry("list", "apps", "statefulsets")));
    assert!(access.contains(&entry("get", "apps", "statefulsets/scale")));
    assert_eq!(access.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn objects_can_be_planted_past_every_rule() {
    let server = FakeApiServer::new();
    let mut object =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "NOT legal", "namespace": "default" } });
    object["data"] = json!(17);
    let planted = server.store().put_raw(object).unwrap();
    assert_eq!(server.store().get("ConfigMap", "default", "NOT legal"), Some(planted));
    server.store().edit("configmaps", "default", "NOT legal", |map| map["data"] = json!("text")).unwrap();
    assert_eq!(server.store().list("configmaps")[0]["data"], "text");
    server.store().remove("configmaps", "default", "NOT legal").unwrap();
    assert!(server.store().list("configmaps").is_empty());
    assert!(server.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_watcher_of_the_client_library_recovers_from_every_fault() {
    for streaming in [false, true] {
        let server = FakeApiServer::new();
        let maps = api(&server.client());
        let config = if streaming { watcher::Config::default().streaming_lists() } else { watcher::Config::default() };
        let mut objects = watcher(maps.clone(), config).default_backoff().applied_objects().boxed();
        make(&maps, "first").await.unwrap();
        for (index, effect) in [EventEffect::Close, EventEffect::Gone, EventEffect::Break].into_iter().enumerate() {
            let name = format!("map-{index}");
            server.faults().on_event(EventMatch::of("configmaps").name(&name), effect);
            make(&maps, &name).await.unwrap();
            // Errors are passed on and the stream goes on behind them.
            loop {
                match objects.next().await.unwrap() {
                    Ok(map) if map.metadata.name.as_deref() == Some(&name) => break,
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}
