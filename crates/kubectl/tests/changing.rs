//! `pause`, `resume`, `scale`: what is written, what is waited for, and how that looks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod support;

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{NAMESPACE, Ran, Running, Stage, ran, wait_for};
use windlass_testkit::{Call, CallMatch, Effect, Verb};

const RESOURCES: &str = "windlass.dev/resources-paused";
const CLUSTERING: &str = "windlass.dev/clustering-paused";
const REASON: &str = "windlass.dev/pause-reason";

/// A change by this program: its name, and nothing but what it changes.
fn check(call: &Call, body: &Value) {
    assert_eq!(call.verb, Verb::Patch);
    assert_eq!(call.field_manager.as_deref(), Some("kubectl-windlass"));
    assert_eq!(call.content_type, "application/merge-patch+json");
    assert_eq!(&call.body, body);
}

/// Plays the operator that acknowledges one lane, and has something to end in the other.
async fn begin_to_acknowledge(stage: &Stage) {
    stage.wait_for_patch().await;
    stage.tell("ReconciliationActive", "False", "Paused", "nothing is written");
    stage.tell("ClusteringActive", "True", "Pausing", "awaiting the end of: start as primary rss-harbour-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_awaited_until_both_lanes_have_answered() {
    let stage = Stage::with_cluster().await;
    let terminal = Terminal::start(stage.command(&["pause", "rss/harbour", "--reason", "disk"]));
    begin_to_acknowledge(&stage).await;
    let screen = terminal.wait_until_seen("awaiting the end of: start as primary rss-harbour-1").await;
    assert!(screen.contains("waiting until rss/harbour is paused"), "{screen}");
    assert!(!screen.contains("ReconciliationActive"), "what has answered is not awaited: {screen}");
    stage.tell("ClusteringActive", "False", "Paused", "nothing is written");
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("\x1b[J") && written.contains('⠙'), "no spinner: {written:?}");
    let end = support::terminal::Screen::after(&written).lines.join("\n");
    assert_eq!(end.trim(), "rss/harbour paused: Resources and Clustering", "the wait is wiped away");
    let body = json!({ "spec": { "paused": true }, "metadata": { "annotations": { REASON: "disk" } } });
    check(&stage.wait_for_patch().await, &body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_in_a_pipe_tells_in_plain_lines_what_is_awaited() {
    let stage = Stage::with_cluster().await;
    let mut running = Running::start(stage.command(&["pause", "rss/harbour"]));
    begin_to_acknowledge(&stage).await;
    running.wait_for_remark("awaiting the end of: start as primary rss-harbour-1").await;
    stage.tell("ClusteringActive", "False", "Paused", "nothing is written");
    let ran = running.end().await;
    assert!(!ran.errors.contains('\x1b') && ran.errors.contains("waiting until rss/harbour is paused: "), "{}", ran.errors);
    assert_eq!(ran.done(), "rss/harbour paused: Resources and Clustering\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_an_older_request_is_no_answer() {
    let stage = Stage::with_cluster().await;
    // It said so of generation 1; the request makes generation 2.
    stage.tell("ReconciliationActive", "False", "Paused", "");
    stage.tell("ClusteringActive", "False", "Paused", "");
    let ran = stage.run(&["pause", "rss/harbour", "--timeout", "2s"]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.errors.contains("gave up after 2s") && ran.errors.contains("the request stays"), "{}", ran.errors);
    assert_eq!(stage.cluster()["spec"]["paused"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lane_is_paused_by_its_annotation() {
    let stage = Stage::with_cluster().await;
    let play = async {
        stage.wait_for_patch().await;
        stage.tell("ClusteringActive", "False", "Paused", "");
    };
    let (ran, ()) = tokio::join!(stage.run(&["pause", "rss", "harbour", "--lane", "clustering"]), play);
    assert_eq!(ran.done(), "rss/harbour paused: Clustering\n");
    check(&stage.wait_for_patch().await, &json!({ "metadata": { "annotations": { CLUSTERING: "true" } } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_waited_for_ends_at_once_and_a_dry_run_changes_nothing() {
    let stage = Stage::with_cluster().await;
    let out = stage.run(&["pause", "rss/harbour", "--dry-run=server"]).await.done();
    assert_eq!(out, "rss/harbour pause of Resources and Clustering requested (server dry run)\n");
    assert!(stage.cluster()["spec"]["paused"].is_null());
    let out = stage.run(&["scale", "rss/harbour", "--replicas", "5", "--dry-run=server"]).await.done();
    assert_eq!(out, "rss/harbour scale to 5 requested (server dry run)\n");
    assert_eq!(stage.cluster()["spec"]["replicas"], 3);
    let out = stage.run(&["pause", "rss/harbour", "--no-wait", "-o", "json"]).await.done();
    let view: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((view["lanes"][0]["state"].as_str(), view["lanes"][0]["requested"].as_bool()), (Some("Pausing"), Some(true)));
    assert_eq!(stage.cluster()["spec"]["paused"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_others_at_the_same_time_are_kept() {
    let stage = Stage::with_cluster().await;
    let edit = |stage: &Stage| {
        stage.edit(|object| {
            object["metadata"]["annotations"]["example.org/mine"] = json!("kept");
            object["spec"]["reconcileInterval"] = json!("7s");
        });
    };
    edit(&stage);
    stage.run(&["pause", "rss/harbour", "--no-wait", "--reason", "disk"]).await.done();
    let object = stage.cluster();
    assert_eq!(
        (&object["metadata"]["annotations"]["example.org/mine"], &object["spec"]["reconcileInterval"]),
        (&json!("kept"), &json!("7s"))
    );
    assert_eq!(object["spec"]["replicas"], 3);
    stage.run(&["resume", "rss/harbour", "--no-wait"]).await.done();
    let object = stage.cluster();
    assert_eq!(object["metadata"]["annotations"], json!({ "example.org/mine": "kept" }));
    assert!(object["spec"].get("paused").is_none(), "{}", object["spec"]);
}

fn paused(stage: &Stage) {
    stage.edit(|object| {
        object["spec"]["paused"] = json!(true);
        object["metadata"]["annotations"] = json!({ REASON: "disk" });
    });
    for type_ in ["ReconciliationActive", "ClusteringActive"] {
        stage.tell(type_, "False", "Paused", "nothing is written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_waits_for_both_lanes_and_shows_what_runs() {
    let stage = Stage::with_cluster().await;
    paused(&stage);
    let play = async {
        stage.wait_for_patch().await;
        stage.tell("ReconciliationActive", "True", "Active", "steps are taken");
        stage.tell("Progressing", "True", "Working", "start as primary rss-harbour-2");
        stage.edit_logbook(|book| book["spec"]["plan"]["running"] = json!([{ "step": "start as primary rss-harbour-2" }]));
        stage.tell("ClusteringActive", "True", "Resuming", "the pause is withdrawn");
        stage.tell("ClusteringActive", "True", "Active", "steps are taken");
    };
    let (ran, ()) = tokio::join!(stage.run(&["resume", "rss/harbour"]), play);
    let out = ran.done();
    assert!(out.starts_with("rss/harbour resumed: Resources and Clustering\n"), "{out}");
    assert!(out.contains("Running") && out.contains("start as primary rss-harbour-2"), "{out}");
    let nothing = json!({ RESOURCES: null, CLUSTERING: null, REASON: null });
    check(&stage.wait_for_patch().await, &json!({ "spec": { "paused": null }, "metadata": { "annotations": nothing } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lane_of_a_whole_pause_is_resumed_against_the_version_that_was_read() {
    let stage = Stage::with_cluster().await;
    paused(&stage);
    // Somebody else writes between the read and the change: it has to be read again.
    let first = CallMatch::any().verb(Verb::Patch);
    stage.server.faults().on(first, Effect::conflict());
    let play = async {
        wait_for("the second attempt", || stage.server.mutations().into_iter().nth(1)).await;
        stage.tell("ClusteringActive", "True", "Active", "steps are taken");
    };
    let (ran, ()) = tokio::join!(stage.run(&["resume", "rss/harbour", "--lane", "clustering"]), play);
    assert!(ran.errors.contains("Resources stays paused"), "{}", ran.errors);
    assert!(ran.done().starts_with("rss/harbour resumed: Clustering\n"));
    let object = stage.cluster();
    assert_eq!(object["metadata"]["annotations"], json!({ RESOURCES: "true", REASON: "disk" }));
    assert!(object["spec"].get("paused").is_none());
    assert!(stage.server.mutations()[1].body["metadata"]["resourceVersion"].is_string());
}

/// Plays the operator that brings up a fourth member.
fn grow(stage: &Stage, ready: u16, settled: bool) {
    let names: Vec<String> = (0..ready).map(|ordinal| format!("rss-harbour-{ordinal}")).collect();
    stage.edit(|object| {
        object["status"]["members"]["ready"] = json!(names);
        object["status"]["replicas"] = json!(4);
    });
    if settled {
        stage.tell("Progressing", "False", "Idle", "nothing is in hand");
        stage.tell("Ready", "True", "AllMembersServe", "all 4 members serve");
    } else {
        stage.tell("Ready", "False", "Progressing", "start as primary rss-harbour-3");
        stage.tell("Progressing", "True", "Working", "start as primary rss-harbour-3");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_shows_a_bar_until_the_cluster_has_settled() {
    let stage = Stage::with_cluster().await;
    let terminal = Terminal::start(stage.command(&["scale", "rss/harbour", "--replicas", "4"]));
    let call = stage.wait_for_patch().await;
    check(&call, &json!({ "spec": { "replicas": 4 } }));
    assert_eq!(call.subresource.as_deref(), Some("scale"));
    grow(&stage, 3, false);
    let screen = terminal.wait_until_seen("start as primary rss-harbour-3").await;
    assert!(screen.contains("██████████████████░░░░░░ 3 of 4 members ready"), "{screen}");
    grow(&stage, 4, true);
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0, "{written}");
    let end = support::terminal::Screen::after(&written).lines.join("\n");
    assert_eq!(end.trim(), "rss/harbour scaled to 4: 4 of 4 members ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_in_a_pipe_tells_each_change_once() {
    let stage = Stage::with_cluster().await;
    let mut running = Running::start(stage.command(&["scale", "rss/harbour", "--replicas", "4"]));
    running.wait_for_remark("waiting until rss/harbour has settled at 4: 3 of 4 members ready").await;
    grow(&stage, 3, false);
    running.wait_for_remark("start as primary rss-harbour-3").await;
    grow(&stage, 4, true);
    let ran = running.end().await;
    assert!(!ran.errors.contains('\x1b'), "{:?}", ran.errors);
    let mut told: Vec<&str> = ran.errors.lines().collect();
    let count = told.len();
    told.dedup();
    assert_eq!(told.len(), count, "told twice: {}", ran.errors);
    assert_eq!(ran.done(), "rss/harbour scaled to 4: 4 of 4 members ready\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_a_scaling_and_that_is_said() {
    let stage = Stage::with_cluster().await;
    paused(&stage);
    let Ran { code, out, errors } = stage.run(&["scale", "rss/harbour", "--replicas", "4"]).await;
    assert_eq!((code, out.as_str()), (3, "rss/harbour scale to 4 requested\n"));
    assert!(errors.contains("held by a pause of Resources and Clustering"), "{errors}");
    assert!(errors.contains("kubectl windlass resume rss/harbour -n shop"), "{errors}");
    assert_eq!(stage.cluster()["spec"]["replicas"], 4);
    let ran = stage.run(&["scale", "rss/harbour", "--replicas", "5", "--no-wait"]).await;
    assert!(ran.errors.contains("held by a pause"), "{}", ran.errors);
    assert_eq!(ran.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_refuses_is_told_in_its_words() {
    let stage = Stage::with_cluster().await;
    let ran = stage.run(&["scale", "rss/harbour", "--replicas", "100"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.errors.contains("cannot scale rss/harbour to 100") && ran.errors.contains("spec.replicas"), "{}", ran.errors);
    let ran = stage.run(&["pause", "rss/quay"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.errors.contains("there is no rss/quay"), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_away_ends_the_wait() {
    let stage = Stage::with_cluster().await;
    let play = async {
        stage.wait_for_patch().await;
        wait_for("a watch", || stage.server.calls().into_iter().find(|call| call.verb == Verb::Watch)).await;
        stage.server.store().remove("replicatedstatefulsets", NAMESPACE, "harbour").unwrap();
    };
    let (ran, ()) = tokio::join!(stage.run(&["pause", "rss/harbour"]), play);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.errors.contains("rss/harbour was deleted meanwhile"), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_no_reason_to_give_up() {
    let stage = Stage::with_cluster().await;
    stage.server.faults().on(CallMatch::any().verb(Verb::Watch), Effect::LostBefore);
    stage.server.faults().on(CallMatch::any().verb(Verb::List), Effect::LostBefore);
    let play = async {
        stage.wait_for_patch().await;
        wait_for("a second watch", || stage.server.calls().into_iter().filter(|call| call.verb == Verb::Watch).nth(1)).await;
        for type_ in ["ReconciliationActive", "ClusteringActive"] {
            stage.tell(type_, "False", "Paused", "nothing is written");
        }
    };
    let (ran, ()) = tokio::join!(ran(stage.command(&["pause", "rss/harbour"])), play);
    assert_eq!(ran.done(), "rss/harbour paused: Resources and Clustering\n");
}
