//! The API server fails in every way it can, at several of the operator's writes: the cluster comes up all the same, seeded once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod stage;

use std::time::Duration;

use serde_json::json;
use stage::{Crew, NAMESPACE, Stage, cluster, server};
use windlass_engine::Settings;
use windlass_kinds::replicated::hooks::Deed;
use windlass_testkit::{Call, CallMatch, Effect};

/// The effects, each at the first, the second, … write of the operator.
const WRITES: [usize; 6] = [0, 1, 2, 4, 6, 8];

async fn comes_up_in_spite_of(effect: &Effect, nth: usize) {
    let stage = Stage::new();
    stage.create(cluster(3)).await;
    stage.server.faults().on(CallMatch::writes().nth(nth), effect.clone());
    stage.until_ready().await;
    let seeds = stage.crew.deeds().into_iter().filter(|(deed, _)| *deed == Deed::Seed).count();
    assert_eq!(seeds, 1, "{effect:?} at write {nth}");
    assert_eq!(stage.server.store().list("statefulsets").len(), 1);
    assert_eq!(stage.server.store().list("logbooks").len(), 1);
}

async fn at_every_write(effect: Effect) {
    for nth in WRITES {
        comes_up_in_spite_of(&effect, nth).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_looked_at_again() {
    at_every_write(Effect::conflict()).await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_sent_later() {
    at_every_write(Effect::too_many_requests(2)).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_is_overcome() {
    at_every_write(Effect::code(500)).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_done_twice() {
    at_every_write(Effect::LostAfter).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_holds_nothing_up_for_ever() {
    at_every_write(Effect::Hang).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_after_its_events() {
    at_every_write(Effect::DelayAnswer(Duration::from_secs(2))).await;
}

/// The object that the answer tells of is gone when it arrives, and the event that said so was the last one about it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_end_of_its_object_brings_nothing_back() {
    let stage = Stage::with_cluster(1).await;
    let there = |stage: &Stage| stage.get("services", "harbour-client").is_some();
    let slow = CallMatch::writes().resource("services").name("harbour-client");
    stage.server.faults().on(slow, Effect::DelayAnswer(Duration::from_secs(2)));
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.until("the Service is back", there).await;
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.until("the Service is back once more", there).await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_acknowledged_when_it_is_on_record_and_not_before() {
    let stage = Stage::with_cluster(3).await;
    stage.until_ready().await;
    let before = stage.status()["observedGeneration"].clone();
    stage.server.faults().on(CallMatch::writes().resource("logbooks").times(3), Effect::code(500));
    stage.patch(json!({ "spec": { "paused": true } })).await;
    stage.until("the pause is seen", |stage| stage.condition("ClusteringActive").1 == "Pausing").await;
    assert_eq!(stage.status()["controlPaused"], false);
    assert_eq!(stage.status()["observedGeneration"], before, "it is told as acted upon, and nothing says so");
    stage.until("the pause is acknowledged", |stage| stage.condition("ClusteringActive").1 == "Paused").await;
    assert!(!stage.get("logbooks", "rss-harbour").unwrap()["spec"]["pause"]["clustering"].is_null());
}

/// Whoever installs a release and forgets its definitions must not have an operator that writes as fast as it can.
#[tokio::test(start_paused = true)]
async fn a_server_that_drops_what_is_to_be_remembered_is_not_asked_over_and_over() {
    let server = server();
    let definitions = windlass_api::custom_resource_definitions();
    let logbooks = definitions.iter().find(|it| it.spec.names.plural == "logbooks").unwrap();
    let mut older = serde_json::to_value(logbooks).unwrap();
    let spec = &mut older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["x-kubernetes-preserve-unknown-fields"] = false.into();
    spec["properties"].as_object_mut().unwrap().remove("claim").unwrap();
    server.register_crd(&serde_json::from_value(older).unwrap());
    let stage = Stage::on(server, Crew::default(), Settings::default());
    stage.create(cluster(3)).await;
    let is_write = |call: &&Call| call.resource == "logbooks" && call.verb.is_write();
    stage.until("it was tried to remember something", |stage| stage.server.calls().iter().any(|it| is_write(&it))).await;
    stage.let_pass(Duration::from_mins(5)).await;
    let calls = stage.server.calls();
    let tried = calls.iter().filter(is_write).count();
    assert!((5..20).contains(&tried), "{tried} times");
    assert_eq!(stage.server.store().list("statefulsets").len(), 0, "something was done that is not on record");
    let told =
        |call: &Call| call.body["reason"] == "LogbookNotWritten" && call.body["note"].to_string().contains("Definitions");
    assert!(calls.iter().any(told), "nobody is told");
    stage.server.register_crd(logbooks);
    stage.until_ready().await;
}
