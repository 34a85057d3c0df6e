//! Several releases on one server: who looks after a cluster, and how it is handed over.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod stage;

use std::time::Duration;

use serde_json::{Value, json};
use stage::{CLUSTER, Crew, NAMESPACE, Stage, cluster, server};
use windlass_api::Logbook;
use windlass_core::claim::Identity;
use windlass_engine::Settings;
use windlass_kinds::replicated::hooks::Deed;

fn release(name: &str, selector: &str) -> Settings {
    let identity = Identity { release: format!("ops/{name}"), version: "1".into(), holder: String::new() };
    Settings { identity, selector: selector.parse().unwrap(), ..Settings::default() }
}

fn labelled(track: &str) -> Value {
    let mut cluster = cluster(3);
    cluster["metadata"]["labels"] = json!({ "track": track });
    cluster
}

async fn move_to(stage: &Stage, track: &str) {
    stage.patch(json!({ "metadata": { "labels": { "track": track } } })).await;
}

fn claim(stage: &Stage) -> Value {
    stage.get("logbooks", "rss-harbour").unwrap_or_default()["spec"]["claim"].clone()
}

/// The Lease of a release, as if it were renewed for the nth time.
async fn renew(stage: &Stage, name: &str, times: usize) {
    let api: kube::Api<k8s_openapi::api::coordination::v1::Lease> = kube::Api::namespaced(stage.server.client(), "ops");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name },
        "spec": { "holderIdentity": "somebody", "leaseTransitions": times },
    });
    let parameters = kube::api::PatchParams::apply("test").force();
    api.patch(name, &parameters, &kube::api::Patch::Apply(lease)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_claimed_before_the_first_object_is_made() {
    let stage = Stage::on(server(), Crew::default(), release("stable", ""));
    stage.create(cluster(3)).await;
    stage.until_ready().await;
    assert_eq!(claim(&stage)["release"], "ops/stable");
    let first = stage.server.mutations().into_iter().find(|call| call.field_manager.as_deref() == Some("windlass")).unwrap();
    assert_eq!(first.body["spec"]["claim"]["release"], "ops/stable");
    assert_eq!(stage.get("logbooks", "rss-harbour").unwrap()["metadata"]["labels"]["windlass.dev/release"], "ops.stable");
}

#[tokio::test(start_paused = true)]
async fn a_label_moves_a_cluster_and_back_and_nothing_restarts() {
    let stable = Stage::on(server(), Crew::default(), release("stable", "track=stable"));
    let canary = Stage::on(stable.server.clone(), stable.crew.clone(), release("canary", "track=canary"));
    stable.create(labelled("stable")).await;
    stable.until_ready().await;
    let (pods, deeds) = (pod_uids(&stable), stable.crew.deeds().len());
    for (to, name) in [("canary", "ops/canary"), ("stable", "ops/stable"), ("canary", "ops/canary")] {
        let epoch = claim(&stable)["epoch"].as_u64().unwrap();
        move_to(&stable, to).await;
        stable.until("the claim moved", |stage| claim(stage)["release"] == name).await;
        assert!(claim(&stable)["epoch"].as_u64().unwrap() > epoch);
        assert!(claim(&stable)["released"].is_null());
        stable.until_ready().await;
        let set = stable.get("statefulsets", "rss-harbour").unwrap();
        assert_eq!(set["metadata"]["labels"]["track"], to, "labels are copied to the set");
    }
    assert_eq!(pod_uids(&stable), pods);
    assert_eq!(stable.crew.deeds().len(), deeds);
    drop(canary);
}

fn pod_uids(stage: &Stage) -> Vec<String> {
    let uid = |number: u16| stage.get("pods", &format!("rss-{CLUSTER}-{number}")).unwrap()["metadata"]["uid"].to_string();
    (0..3).map(uid).collect()
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_an_overlap_never_writes_and_tells() {
    let stable = Stage::on(server(), Crew::default(), release("stable", ""));
    stable.create(labelled("any")).await;
    stable.until_ready().await;
    let settings = release("canary", "");
    let overlaps = std::sync::Arc::clone(&settings.overlaps);
    let canary = Stage::on(stable.server.clone(), stable.crew.clone(), settings);
    for times in 0..30 {
        renew(&stable, "stable", times).await;
        canary.let_pass(Duration::from_secs(1)).await;
    }
    assert_eq!(claim(&stable)["release"], "ops/stable");
    assert_eq!(overlaps.lock().unwrap().len(), 1);
    assert!(canary.metrics.text().contains("windlass_overlaps_total{kind=\"rss\"} 1"), "{}", canary.metrics.text());
    let told = stable
        .server
        .mutations()
        .into_iter()
        .any(|call| call.resource == "events" && call.body["reason"] == "SelectorsOverlap");
    assert!(told);
}

#[tokio::test(start_paused = true)]
async fn a_dead_owner_is_followed_after_its_lease_and_one_call() {
    let stable = Stage::on(server(), Crew::default(), release("stable", ""));
    stable.create(labelled("any")).await;
    stable.until_ready().await;
    renew(&stable, "stable", 0).await;
    let (server, crew) = (stable.server.clone(), stable.crew.clone());
    drop(stable);
    let started = tokio::time::Instant::now();
    let canary = Stage::on(server, crew, release("canary", ""));
    canary.until("the claim moved", |stage| claim(stage)["release"] == "ops/canary").await;
    assert!(started.elapsed() >= Duration::from_secs(9), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn claims_that_a_changed_selector_left_behind_are_given_up_at_the_next_start() {
    let stable = Stage::on(server(), Crew::default(), release("stable", ""));
    stable.create(labelled("canary")).await;
    stable.until_ready().await;
    let (server, crew) = (stable.server.clone(), stable.crew.clone());
    drop(stable);
    let narrow = Stage::on(server, crew, release("stable", "track=stable"));
    narrow.until("the claim is given up", |stage| claim(stage)["released"] == true).await;
}

#[tokio::test(start_paused = true)]
async fn another_process_of_the_release_takes_the_claim_anew_only_before_it_acts() {
    let stage = Stage::on(server(), Crew::default(), release("stable", ""));
    stage.create(cluster(3)).await;
    stage.until_ready().await;
    let before = claim(&stage);
    let (server, crew) = (stage.server.clone(), stage.crew.clone());
    drop(stage);
    let next = Stage::on(server, crew, release("stable", ""));
    next.let_pass(Duration::from_secs(30)).await;
    assert_eq!(claim(&next), before, "a quiet cluster costs nothing");
    next.patch(json!({ "spec": { "replicas": 4 } })).await;
    next.until_ready().await;
    assert!(claim(&next)["epoch"].as_u64() > before["epoch"].as_u64());
    assert_ne!(claim(&next)["holder"], before["holder"]);
    assert!(next.crew.deeds().iter().any(|(deed, pod)| *deed == Deed::Primary && pod == "rss-harbour-3"));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_begins_to_act_gives_the_set_another_version() {
    let next = Stage::with_cluster(3).await.restart();
    next.let_pass(Duration::from_secs(30)).await;
    let version = |stage: &Stage| stage.get("statefulsets", "rss-harbour").unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&next);
    next.server.store().remove("services", NAMESPACE, "harbour-client");
    next.until("what the process before sent late would be refused", |stage| version(stage) != before).await;
    next.until("the Service is back", |stage| stage.get("services", "harbour-client").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn an_intent_of_a_newer_release_freezes_the_cluster_and_says_so() {
    let stage = Stage::on(server(), Crew::default(), release("stable", ""));
    stage.create(cluster(3)).await;
    stage.until_ready().await;
    let intent = json!({ "act": "Transmute", "target": "rss-harbour-0", "announced": "2026-01-01T00:00:00Z", "into": "gold" });
    let api: kube::Api<Logbook> = kube::Api::namespaced(stage.server.client(), NAMESPACE);
    let parameters = kube::api::PatchParams { field_manager: Some("user".into()), ..kube::api::PatchParams::default() };
    let patch = json!({ "spec": { "intents": [intent], "fromTheFuture": 1 } });
    api.patch("rss-harbour", &parameters, &kube::api::Patch::Merge(patch)).await.unwrap();
    stage.patch(json!({ "spec": { "replicas": 5 } })).await;
    stage.until("the cluster is frozen", |stage| stage.condition("Stalled").1 == "UnknownIntent").await;
    assert_eq!(stage.get("statefulsets", "rss-harbour").unwrap()["spec"]["replicas"], 3);
    let logbook = stage.get("logbooks", "rss-harbour").unwrap();
    assert_eq!(logbook["spec"]["intents"][0]["into"], "gold", "what is not known is kept");
    assert_eq!(logbook["spec"]["fromTheFuture"], 1);
    let patch = json!({ "spec": { "intents": null } });
    api.patch("rss-harbour", &parameters, &kube::api::Patch::Merge(patch)).await.unwrap();
    stage.until_ready().await;
    assert_eq!(stage.get("statefulsets", "rss-harbour").unwrap()["spec"]["replicas"], 5);
}
