//! One client's own line: its guard, its view of the past, its kept requests; and servers that go on from another one.

#![expect(clippy::unwrap_used, reason = "what tests share fails like a test")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::watcher,
};
use serde_json::json;
use windlass_testkit::{Call, Effect, EventEffect, FakeApiServer, Guard, Sighting};

/// Writes down what it sees, and stands in the way of what it was told.
#[derive(Default)]
struct Sentry {
    seen: Mutex<Vec<String>>,
    effect: Mutex<Option<Effect>>,
    on_event: Mutex<Option<EventEffect>>,
}

impl Guard for Sentry {
    fn before(&self, call: &Call) -> Option<Effect> {
        self.seen.lock().unwrap().push(format!("before {}", call.verb.as_str()));
        if call.is_mutation() { self.effect.lock().unwrap().take() } else { None }
    }

    fn after(&self, call: &Call, done: bool) {
        self.seen.lock().unwrap().push(format!("after {} {done}", call.verb.as_str()));
    }

    fn event(&self, sighting: &Sighting) -> Option<EventEffect> {
        self.seen.lock().unwrap().push(format!("event {} {}", sighting.kind, sighting.name));
        self.on_event.lock().unwrap().take()
    }
}

fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn make(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await
}

async fn set(api: &Api<ConfigMap>, name: &str, value: &str) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "data": { "k": value } }))).await.unwrap();
}

async fn names(api: &Api<ConfigMap>) -> Vec<String> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().filter_map(|it| it.metadata.name).collect()
}

type Events<'a> = std::pin::Pin<Box<dyn Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Send + 'a>>;

/// The values of one object, in the order in which a watch shows them, until the last one is seen.
async fn values_until(events: &mut Events<'_>, last: &str) -> Vec<String> {
    let mut values = Vec::new();
    while values.last().is_none_or(|value| value != last) {
        let event = tokio::time::timeout(Duration::from_mins(5), events.next()).await.unwrap().unwrap();
        if let Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) = event {
            values.extend(map.data.unwrap_or_default().remove("k"));
        }
    }
    values
}

#[tokio::test(start_paused = true)]
async fn a_guard_sees_its_own_client_alone_before_and_after() {
    let server = FakeApiServer::new();
    let sentry = Arc::new(Sentry::default());
    let (mine, other) = (api(&server.line(sentry.clone()).client()), api(&server.client()));
    make(&other, "a").await.unwrap();
    assert!(make(&mine, "a").await.is_err());
    make(&mine, "b").await.unwrap();
    assert_eq!(*sentry.seen.lock().unwrap(), ["before create", "after create false", "before create", "after create true"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_view_is_one_clients_alone_and_its_gets_and_writes_are_not_held() {
    let server = FakeApiServer::new();
    let line = server.line(Arc::new(Sentry::default()));
    let (mine, other) = (api(&line.client()), api(&server.client()));
    make(&other, "a").await.unwrap();
    line.hold_view_at(server.revision());
    make(&other, "b").await.unwrap();
    make(&mine, "c").await.unwrap();
    assert_eq!(names(&mine).await, ["a"]);
    assert_eq!(names(&other).await, ["a", "b", "c"]);
    mine.get("b").await.unwrap();
    let mut events: Events<'_> = Box::pin(watcher::watcher(mine.clone(), watcher::Config::default()));
    set(&other, "a", "1").await;
    assert!(tokio::time::timeout(Duration::from_mins(1), values_until(&mut events, "1")).await.is_err());
    line.release_view();
    assert_eq!(values_until(&mut events, "1").await, ["1"]);
    assert_eq!(names(&mine).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_request_arrives_when_it_is_delivered_and_is_judged_then() {
    let server = FakeApiServer::new();
    let sentry = Arc::new(Sentry::default());
    let line = server.line(sentry.clone());
    let (mine, other) = (api(&line.client()), api(&server.client()));
    for _ in 0..2 {
        *sentry.effect.lock().unwrap() = Some(Effect::Keep);
        assert!(tokio::time::timeout(Duration::from_mins(1), make(&mine, "a")).await.is_err());
    }
    assert!(names(&other).await.is_empty());
    assert_eq!(line.deliver_kept(), [Ok(()), Err("409 AlreadyExists".to_owned())]);
    assert_eq!(names(&other).await, ["a"]);
    assert!(line.deliver_kept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_skipped_event_is_made_up_for_by_a_new_list() {
    let server = FakeApiServer::new();
    let sentry = Arc::new(Sentry::default());
    let (mine, other) = (api(&server.line(sentry.clone()).client()), api(&server.client()));
    make(&other, "a").await.unwrap();
    let mut events: Events<'_> = Box::pin(watcher::watcher(mine, watcher::Config::default()));
    set(&other, "a", "1").await;
    assert_eq!(values_until(&mut events, "1").await, ["1"]);
    *sentry.on_event.lock().unwrap() = Some(EventEffect::Skip(Duration::from_secs(30)));
    set(&other, "a", "2").await;
    assert!(tokio::time::timeout(Duration::from_secs(20), values_until(&mut events, "2")).await.is_err());
    assert_eq!(values_until(&mut events, "2").await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn a_merged_event_gives_way_to_the_next_or_comes_late() {
    let server = FakeApiServer::new();
    let sentry = Arc::new(Sentry::default());
    let (mine, other) = (api(&server.line(sentry.clone()).client()), api(&server.client()));
    make(&other, "a").await.unwrap();
    let mut events: Events<'_> = Box::pin(watcher::watcher(mine, watcher::Config::default()));
    set(&other, "a", "1").await;
    assert_eq!(values_until(&mut events, "1").await, ["1"]);
    *sentry.on_event.lock().unwrap() = Some(EventEffect::Merge(Duration::from_secs(30)));
    set(&other, "a", "2").await;
    assert!(tokio::time::timeout(Duration::from_secs(20), values_until(&mut events, "2")).await.is_err());
    set(&other, "a", "3").await;
    assert_eq!(values_until(&mut events, "3").await, ["3"]);
    *sentry.on_event.lock().unwrap() = Some(EventEffect::Merge(Duration::from_secs(30)));
    set(&other, "a", "4").await;
    assert_eq!(values_until(&mut events, "4").await, ["4"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_by_itself_from_the_same_revision() {
    let server = FakeApiServer::new();
    make(&api(&server.client()), "a").await.unwrap();
    let fork = server.fork();
    assert_eq!(fork.revision(), server.revision());
    api(&fork.client()).delete("a", &DeleteParams::default()).await.unwrap();
    make(&api(&fork.client()), "b").await.unwrap();
    assert_eq!(names(&api(&server.client())).await, ["a"]);
    assert_eq!(names(&api(&fork.client())).await, ["b"]);
    assert_eq!(fork.revision(), server.revision() + 2);
}
