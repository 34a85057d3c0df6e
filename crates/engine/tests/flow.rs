//! The whole flow on the fake server: creation, pause, restart, lost memory, and trouble that stays where it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod stage;

use std::time::Duration;

use serde_json::{Value, json};
use stage::{CLUSTER, Crew, NAMESPACE, Stage, cluster};
use windlass_api::ReplicatedStatefulSet;
use windlass_engine::Settings;
use windlass_kinds::replicated::hooks::Deed;

const SET: &str = "rss-harbour";

fn pod(ordinal: u16) -> String {
    format!("{SET}-{ordinal}")
}

/// Everything that a paused cluster may still have written for it.
fn is_report(write: &str) -> bool {
    write.starts_with("update replicatedstatefulsets/status") || write.starts_with("update logbooks")
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_seeded_once_and_then_costs_nothing() {
    let stage = Stage::with_cluster(3).await;
    let deeds = stage.crew.deeds();
    assert_eq!(deeds[0], (Deed::Seed, pod(0)));
    assert_eq!(deeds.iter().filter(|(deed, _)| *deed == Deed::Seed).count(), 1);
    assert_eq!(deeds.len(), 3, "{deeds:?}");
    let writes = stage.writes();
    assert_eq!(writes[0].trim_end(), "create logbooks", "memory comes before the first object");
    for object in ["services harbour-svc", "services harbour-client", "poddisruptionbudgets rss-harbour"] {
        assert_eq!(writes.iter().filter(|write| **write == format!("patch {object}")).count(), 1, "{object} in {writes:?}");
    }
    let sets: Vec<_> = stage.server.mutations().into_iter().filter(|call| call.resource == "statefulsets").collect();
    let by = |manager: &str| sets.iter().filter(|call| call.field_manager.as_deref() == Some(manager)).count();
    assert_eq!(by("windlass"), 1, "{writes:?}");
    assert!(by("windlass-labels") <= 2, "the logbook's edition is noted when there is data: {writes:?}");
    let status = stage.status();
    assert_eq!(status["replicas"], 3);
    assert_eq!(status["restoreReplicas"], 3);
    assert_eq!(status["members"]["primary"], json!([pod(0), pod(1), pod(2)]));
    stage.server.clear_calls();
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.writes(), Vec::<String>::new(), "a quiet cluster writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_and_runs_no_hook() {
    let stage = Stage::with_cluster(3).await;
    let deeds = stage.crew.deeds();
    let stage = stage.restart();
    stage.server.clear_calls();
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.crew.deeds(), deeds);
    // Members are unknown until they were asked, and the status says so truthfully in between.
    assert!(
        stage.writes().iter().all(|write| write.starts_with("update replicatedstatefulsets/status")),
        "{:?}",
        stage.writes()
    );
    stage.until_ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_acknowledged_holds_everything_and_a_resume_does_it_all() {
    let stage = Stage::with_cluster(3).await;
    stage.patch(json!({ "metadata": { "annotations": { "windlass.dev/pause-reason": "maintenance" } }, "spec": { "paused": true } })).await;
    stage.until("the pause is acknowledged", |stage| stage.status()["controlPaused"] == true).await;
    assert_eq!(stage.condition("ReconciliationActive"), ("False".into(), "Paused".into()));
    assert_eq!(stage.condition("ClusteringActive"), ("False".into(), "Paused".into()));
    let acted = stage.status()["observedGeneration"].clone();
    let deeds = stage.crew.deeds().len();
    stage.server.clear_calls();

    stage.crew.kill(&pod(1));
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.patch(json!({ "spec": { "replicas": 5, "pod": { "containers": [{ "name": "app", "image": "app:2" }] } } })).await;
    stage.let_pass(Duration::from_mins(3)).await;

    let writes = stage.writes();
    assert!(writes.iter().all(|write| is_report(write)), "{writes:?}");
    assert!(writes.len() < 20, "a report for each change, and no more: {writes:?}");
    assert_eq!(stage.crew.deeds().len(), deeds, "a hook was run");
    assert_eq!(stage.status()["observedGeneration"], acted, "a held change is not acted upon");
    let logbook = stage.get("logbooks", "rss-harbour").unwrap();
    let held = logbook["spec"]["plan"]["held"].to_string();
    for step in ["apply Service harbour-client", "apply StatefulSet", "from 3 to 5", "start as primary rss-harbour-1"] {
        assert!(held.contains(step), "{step} in {held}");
    }
    assert_eq!(logbook["spec"]["pause"]["resources"]["reason"], "maintenance");
    let since = logbook["spec"]["pause"]["clustering"]["acknowledged"].clone();

    let stage = stage.restart();
    stage.let_pass(Duration::from_mins(3)).await;
    assert!(stage.writes().iter().all(|write| is_report(write)), "{:?}", stage.writes());
    let logbook = stage.get("logbooks", "rss-harbour").unwrap();
    assert_eq!(logbook["spec"]["pause"]["clustering"]["acknowledged"], since, "a restart does not begin the pause anew");

    stage.server.clear_calls();
    stage.patch(json!({ "spec": { "paused": false } })).await;
    stage.until_ready().await;
    let first = stage.writes().into_iter().next().unwrap_or_default();
    assert!(first.starts_with("update replicatedstatefulsets/status"), "the acknowledgement is withdrawn first: {first}");
    assert_eq!(stage.status()["replicas"], 5);
    assert!(stage.get("services", "harbour-client").is_some());
    stage
        .until("every pod has the new template", |stage| {
            (0..5).all(|ordinal| {
                stage.get("pods", &pod(ordinal)).is_some_and(|pod| pod["spec"]["containers"][0]["image"] == "app:2")
            })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_two_lanes_are_paused_apart() {
    let stage = Stage::with_cluster(3).await;
    stage.patch(json!({ "metadata": { "annotations": { "windlass.dev/resources-paused": "true" } } })).await;
    stage.until("one lane is closed", |stage| stage.condition("ReconciliationActive").0 == "False").await;
    assert_eq!(stage.condition("ClusteringActive").0, "True");
    stage.crew.kill(&pod(2));
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.until("the member is started", |stage| stage.crew.deeds().len() == 4).await;
    stage.let_pass(Duration::from_mins(2)).await;
    assert!(stage.get("services", "harbour-client").is_none());

    stage.patch(json!({ "metadata": { "annotations": { "windlass.dev/resources-paused": null, "windlass.dev/clustering-paused": "true" } } })).await;
    stage.until("the Service is back", |stage| stage.get("services", "harbour-client").is_some()).await;
    stage.until("the other lane is closed", |stage| stage.condition("ClusteringActive").0 == "False").await;
    stage.crew.kill(&pod(0));
    stage.let_pass(Duration::from_mins(5)).await;
    assert_eq!(stage.crew.deeds().len(), 4, "a hook was run in the closed lane");
}

#[tokio::test(start_paused = true)]
async fn a_lost_logbook_is_proven_again_by_members_that_all_serve() {
    let stage = Stage::with_cluster(3).await;
    stage.server.store().remove("logbooks", NAMESPACE, "rss-harbour");
    stage.until("it is written anew", |stage| stage.get("logbooks", "rss-harbour").is_some()).await;
    stage
        .until("it knows the history", |stage| {
            stage.get("logbooks", "rss-harbour").is_some_and(|logbook| logbook["spec"]["histories"] == json!(["h"]))
        })
        .await;
    assert_eq!(stage.get("logbooks", "rss-harbour").unwrap()["spec"]["counts"]["restore"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_logbook_beside_stopped_members_seeds_nothing() {
    let stage = Stage::with_cluster(3).await;
    let deeds = stage.crew.deeds().len();
    stage.patch(json!({ "spec": { "paused": true } })).await;
    stage.until("the pause is acknowledged", |stage| stage.status()["controlPaused"] == true).await;
    for ordinal in 0..3 {
        stage.crew.kill(&pod(ordinal));
    }
    stage.let_pass(Duration::from_mins(2)).await;
    stage.server.store().remove("logbooks", NAMESPACE, "rss-harbour");
    stage.patch(json!({ "spec": { "paused": false } })).await;
    stage.until("the loss is told", |stage| stage.condition("Stalled") == ("True".into(), "LogbookLost".into())).await;
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.crew.deeds().len(), deeds);
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_logbook_held_is_said_by_the_user_recorded_and_told() {
    let stage = Stage::with_cluster(3).await;
    for ordinal in 0..3 {
        stage.crew.kill(&pod(ordinal));
    }
    stage.server.store().remove("logbooks", NAMESPACE, "rss-harbour");
    stage.until("the loss is told", |stage| stage.condition("Stalled") == ("True".into(), "LogbookLost".into())).await;
    let uid = stage.get("logbooks", "rss-harbour").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let say = |entry: &str, value: &str| (format!("windlass.dev/override.{entry}"), json!(format!("{value}@{uid}")));
    let said: serde_json::Map<_, _> = [say("counts", "3"), say("histories", "h"), say("intents", "none")].into_iter().collect();
    stage.patch(json!({ "metadata": { "annotations": said } })).await;
    stage.until_ready().await;
    assert_eq!(stage.get("logbooks", "rss-harbour").unwrap()["spec"]["overrides"].as_array().unwrap().len(), 3);
    let events = stage.server.mutations().into_iter().filter(|call| call.resource == "events");
    let told: Vec<String> =
        events.filter(|call| call.body["reason"] == "OverrideTaken").map(|call| call.body["note"].to_string()).collect();
    assert_eq!(told.len(), 3, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_logbook_is_not_proven_by_answers_from_before_the_loss() {
    let stage = Stage::with_cluster(3).await;
    let deeds = stage.crew.deeds().len();
    // The operator believes that all serve: it has not asked them since.
    for ordinal in 0..3 {
        stage.crew.kill(&pod(ordinal));
    }
    stage.server.store().remove("logbooks", NAMESPACE, "rss-harbour");
    stage.until("the loss is told", |stage| stage.condition("Stalled") == ("True".into(), "LogbookLost".into())).await;
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.crew.deeds().len(), deeds, "a hook was run");
}

#[tokio::test(start_paused = true)]
async fn deleting_wins_over_pause_and_nothing_comes_back() {
    let stage = Stage::with_cluster(3).await;
    stage.patch(json!({ "spec": { "paused": true } })).await;
    stage.until("the pause is acknowledged", |stage| stage.status()["controlPaused"] == true).await;
    stage.server.store().remove("replicatedstatefulsets", NAMESPACE, CLUSTER);
    stage.server.clear_calls();
    stage.until("the children are collected", |stage| stage.get("statefulsets", SET).is_none()).await;
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.writes(), Vec::<String>::new());
    assert!(!stage.metrics.text().contains("windlass_paused{"), "gauges go with their cluster");
}

#[tokio::test(start_paused = true)]
async fn leaving_the_selector_means_forget_and_never_clean_up() {
    let stage = Stage::new();
    let (server, crew) = (stage.server.clone(), Crew::default());
    drop(stage);
    let settings = Settings { selector: "release=canary".parse().unwrap(), ..Settings::default() };
    let stage = Stage::on(server, crew, settings);
    stage.create(cluster(3)).await;
    stage.let_pass(Duration::from_mins(1)).await;
    assert_eq!(stage.writes(), Vec::<String>::new(), "a cluster of somebody else");
    stage.patch(json!({ "metadata": { "labels": { "release": "canary" } } })).await;
    stage.until_ready().await;
    stage.patch(json!({ "metadata": { "labels": { "release": "stable" } } })).await;
    stage.let_pass(Duration::from_secs(1)).await;
    stage.server.clear_calls();
    stage.crew.kill(&pod(1));
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.let_pass(Duration::from_mins(3)).await;
    assert_eq!(stage.writes(), Vec::<String>::new());
    assert!(stage.get("statefulsets", SET).is_some());
    assert!(!stage.metrics.text().contains("namespace="), "gauges go with the cluster: {}", stage.metrics.text());
}

#[tokio::test(start_paused = true)]
async fn of_a_cluster_that_is_about_to_go_no_figure_is_shown() {
    let stage = Stage::with_cluster(3).await;
    assert!(stage.metrics.text().contains("windlass_phase{"), "{}", stage.metrics.text());
    stage.patch(json!({ "metadata": { "finalizers": ["example.org/mine"] } })).await;
    let api: kube::Api<ReplicatedStatefulSet> = kube::Api::namespaced(stage.server.client(), NAMESPACE);
    api.delete(CLUSTER, &kube::api::DeleteParams::default()).await.unwrap();
    stage.until("nothing is shown of it", |stage| !stage.metrics.text().contains("namespace=")).await;
    assert_eq!(stage.cluster()["metadata"]["finalizers"], json!(["example.org/mine"]), "it is still there");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_refused_again_and_again_is_told_once() {
    let stage = Stage::with_cluster(3).await;
    stage.server.store().remove("services", NAMESPACE, "harbour-client");
    stage.server.store().put_raw(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "harbour-client", "namespace": NAMESPACE },
        "spec": { "ports": [{ "port": 1 }] },
    }));
    stage.until("it is told", |stage| stage.condition("Stalled") == ("True".into(), "ForeignObject".into())).await;
    stage.server.clear_calls();
    // Something wakes the operator up now and then.
    for round in 0..8 {
        stage.patch(json!({ "metadata": { "annotations": { "example.org/round": round.to_string() } } })).await;
        stage.let_pass(Duration::from_secs(20)).await;
    }
    let told = stage.server.calls().into_iter().filter(|call| call.resource == "events").count();
    assert_eq!(told, 0, "told again");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_counted_and_ends() {
    let stage = Stage::with_cluster(3).await;
    stage.crew.panic_when_asked(true);
    stage.until("a panic is counted", |stage| stage.metrics.text().contains("windlass_panics_total{kind=\"rss\"}")).await;
    stage.crew.panic_when_asked(false);
    stage.crew.kill(&pod(1));
    stage.until("the member is started again", |stage| stage.crew.deeds().len() == 4).await;
    stage.until_ready().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stops_nobody_else() {
    let stage = Stage::new();
    let mut broken = cluster(3);
    broken["metadata"]["name"] = json!("wreck");
    broken["spec"] = json!({ "replicas": "three" });
    stage.server.store().put_raw(broken);
    let mut junk = json!({ "apiVersion": "windlass.dev/v1alpha1", "kind": "Logbook", "metadata": { "name": "rss-wreck", "namespace": NAMESPACE } });
    junk["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "windlass", "app.kubernetes.io/instance": "wreck", "windlass.dev/kind": "rss" });
    junk["spec"] = json!({ "counts": "many" });
    stage.server.store().put_raw(junk);
    stage.create(cluster(3)).await;
    stage.until_ready().await;
    assert!(stage.metrics.text().contains("windlass_unreadable_objects_total"), "{}", stage.metrics.text());
    let told = stage.server.calls().into_iter().find(|call| call.resource == "events" && call.body["reason"] == "Unreadable");
    assert_eq!(told.expect("its owner is not told").body["regarding"]["name"], "wreck");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_spec_is_told_and_heals_by_itself() {
    let stage = Stage::with_cluster(3).await;
    stage.patch(json!({ "spec": { "secrets": ["a", "a"] } })).await;
    stage.until("it is told", |stage| stage.condition("Stalled") == ("True".into(), "InvalidSpec".into())).await;
    assert!(stage.status()["reason"].as_str().unwrap().contains("spec.secrets"), "{}", stage.status()["reason"]);
    assert_ne!(stage.status()["observedGeneration"], stage.cluster()["metadata"]["generation"]);
    stage.crew.kill(&pod(1));
    stage.until("clustering goes on", |stage| stage.crew.deeds().len() == 4).await;
    stage.patch(json!({ "spec": { "secrets": Value::Null } })).await;
    stage.until_ready().await;
    assert_eq!(stage.condition("Stalled").0, "False");
}
