//! `list`, `status`, `plan`, `log`, `owner`: what is told, in which form, and with which exit code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod support;

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{NAMESPACE, Running, Stage};
use windlass_testkit::{CallMatch, Effect};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_a_line_per_cluster_of_the_namespace() {
    let stage = Stage::with_cluster().await;
    stage.put_cluster("other", "quay");
    let out = stage.run(&["list"]).await.done();
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "READY", "STATUS", "MEMBERS", "PAUSED", "HELD", "OWNER", "VERSION", "AGE"]);
    assert_eq!(lines[1][..8], ["rss/harbour", "True", "AllMembersServe", "3/3", "-", "0", "windlass-system/windlass", "0.1.0"]);
    assert_eq!(lines.len(), 2);

    let out = stage.run(&["list", "-A"]).await.done();
    assert!(out.starts_with("NAMESPACE"), "{out}");
    let names: Vec<&str> = out.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(names, ["rss/quay", "rss/harbour"]);

    let out = stage.run(&["list", "-A", "-l", "tier=quay", "-o", "json"]).await.done();
    let clusters = parse(&out)["clusters"].clone();
    assert_eq!(clusters.as_array().unwrap().len(), 1);
    assert_eq!((clusters[0]["namespace"].as_str(), clusters[0]["handle"].as_str()), (Some("other"), Some("rss/quay")));

    let ran = stage.run(&["list", "-n", "default"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.errors.contains("no clusters found in namespace \"default\""), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_claim_is_listed_as_nobodys() {
    let stage = Stage::with_cluster().await;
    stage.server.store().remove("logbooks", NAMESPACE, "rss-harbour").unwrap();
    assert!(stage.run(&["list"]).await.done().contains("<none>"));
    let out = stage.run(&["owner", "rss/harbour"]).await.done();
    assert!(out.contains("Unclaimed") && out.contains("no release of Windlass has taken it"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logbooks_that_may_not_be_read_hide_no_cluster() {
    let stage = Stage::with_cluster().await;
    let logbooks = CallMatch::any().resource("logbooks");
    stage.server.faults().on(logbooks.always(), Effect::code(403));
    let ran = stage.run(&["list"]).await;
    assert!(ran.errors.contains("logbooks cannot be read"), "{}", ran.errors);
    assert!(ran.done().contains("<unknown>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_are_told_by_release() {
    let stage = Stage::with_cluster().await;
    stage.put_cluster(NAMESPACE, "quay");
    stage.put_cluster(NAMESPACE, "buoy");
    stage.edit_logbook(|book| book["spec"]["claim"]["released"] = json!(true));
    let out = stage.run(&["owner", "-o", "wide"]).await.done();
    let rows: Vec<Vec<&str>> = out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["windlass-system/windlass", "0.1.0", "Claimed", "2"]);
    assert_eq!(rows[1][..4], ["windlass-system/windlass", "0.1.0", "Released", "1"]);
    let out = stage.run(&["owner", "rss", "quay", "-o", "json"]).await.done();
    let owner = parse(&out)["owner"].clone();
    assert_eq!((owner["state"].as_str(), owner["epoch"].as_u64()), (Some("Claimed"), Some(7)));
    let out = stage.run(&["owner", "rss/harbour"]).await.done();
    assert!(out.contains("Released") && out.contains("gave it up"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_tells_what_will_happen_on_resume() {
    let stage = Stage::with_cluster().await;
    let ran = stage.run(&["plan", "rss/harbour"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.errors.contains("nothing to do"), "{}", ran.errors);
    stage.tell("Progressing", "True", "Working", "seed rss-harbour-0");
    stage.edit_logbook(|book| {
        book["spec"]["plan"] = json!({
            "held": [{ "lane": "Resources", "step": "scale StatefulSet rss-harbour", "reason": "4 are wanted" }],
            "running": [{ "step": "seed rss-harbour-0", "percent": 40 }],
        });
    });
    let out = stage.run(&["plan", "replicatedstatefulset/harbour"]).await.done();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].starts_with("Running") && lines[1].contains("seed rss-harbour-0 (40 %)"), "{out}");
    assert!(lines[2].starts_with("Held") && lines[2].contains("Resources") && lines[2].ends_with("4 are wanted"), "{out}");
    let yaml = stage.run(&["plan", "rss/harbour", "-o", "yaml"]).await.done();
    assert!(yaml.contains("state: Held") && yaml.contains("percent: 40"), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_follows_new_acts() {
    let stage = Stage::with_cluster().await;
    let act = |minute: u32, outcome: &str| {
        json!({ "act": "Seed", "target": format!("rss-harbour-{minute}"), "announced": format!("2026-11-16T00:0{minute}:00Z"),
                "outcome": outcome, "by": "windlass-system/windlass@0.1.0" })
    };
    stage.edit_logbook(|book| book["spec"]["acts"] = json!([act(1, "Done")]));
    let mut running = Running::start(stage.command(&["log", "rss/harbour", "-w"]));
    assert!(running.wait_for_line("").await.starts_with("TIME"));
    assert!(running.wait_for_line("").await.contains("rss-harbour-1"));
    stage.edit_logbook(|book| book["spec"]["acts"] = json!([act(1, "Done"), act(2, "Withdrawn")]));
    let line = running.wait_for_line("").await;
    assert!(line.contains("rss-harbour-2") && line.contains("Withdrawn"), "{line}");
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_gets_neither_colours_nor_cursor_movement_and_a_terminal_gets_colours() {
    let stage = Stage::with_cluster().await;
    for verb in ["list", "status"] {
        let arguments: &[&str] = if verb == "list" { &["list"] } else { &["status", "rss/harbour"] };
        let piped = stage.run(arguments).await.done();
        assert!(!piped.contains('\x1b'), "{piped:?}");
        let (code, shown) = Terminal::start(stage.command(arguments)).end().await;
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("\x1b[32m"), "nothing is green: {shown:?}");

        let (_, plain) = Terminal::start(stage.command(&[arguments, &["--no-color"]].concat())).end().await;
        assert!(!plain.contains('\x1b') && plain.contains("rss/harbour"), "{plain:?}");
        let mut command = stage.command(arguments);
        command.env("NO_COLOR", "1");
        let (_, plain) = Terminal::start(command).end().await;
        assert!(!plain.contains('\x1b') && plain.contains("rss/harbour"), "{plain:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_status_is_redrawn_on_a_terminal() {
    let stage = Stage::with_cluster().await;
    let terminal = Terminal::start(stage.command(&["status", "rss/harbour", "--watch", "--for", "stalled"]));
    let before = terminal.wait_until_seen("Ready: all 3 members serve").await;
    assert!(before.contains("windlass-system/windlass 0.1.0, epoch 7"), "{before}");
    stage.tell("Ready", "False", "MembersNotReady", "2 of 3 members serve");
    let after = terminal.wait_until_replaced("all 3 members serve", "2 of 3 members serve").await;
    assert_eq!(after.matches("CONDITION").count(), 1, "drawn twice: {after}");
    stage.tell("Stalled", "True", "InvalidSpec", "spec.pod is wrong");
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("\x1b[J") && written.contains("A\r"), "not redrawn: {written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_status_is_one_plain_line_per_change_in_a_pipe() {
    let stage = Stage::with_cluster().await;
    let mut running = Running::start(stage.command(&["status", "rss/harbour", "--watch", "--for", "ready=false"]));
    running.wait_for_line("Ready=True").await;
    stage.tell("ClusteringActive", "True", "Active", "another message changes nothing that is told");
    stage.tell("Ready", "False", "MembersNotReady", "2 of 3 members serve");
    let out = running.end().await.done();
    assert!(!out.contains('\x1b'), "{out:?}");
    let lines: Vec<&str> = out.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(
        lines,
        [
            "rss/harbour  Ready=True AllMembersServe  members=3/3  Resources=Active Clustering=Active  held=0  all 3 members serve",
            "rss/harbour  Ready=False MembersNotReady  members=3/3  Resources=Active Clustering=Active  held=0  2 of 3 members serve",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_so_in_time_ends_with_3() {
    let stage = Stage::with_cluster().await;
    for arguments in [&["--for", "stalled"][..], &["--watch", "--for", "stalled"]] {
        let ran = stage.run(&[&["status", "rss/harbour", "--timeout", "1s"], arguments].concat()).await;
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.errors.contains("gave up after 1s"), "{}", ran.errors);
    }
    stage.run(&["status", "rss/harbour", "--for", "ready", "--timeout", "1m"]).await.done();
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_with_the_way_out() {
    let stage = Stage::with_cluster().await;
    let ran = stage.run(&["status", "rss/harbour", "-n", "other"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.errors.contains("there is no rss/harbour in namespace \"other\"; there is one with -n shop"), "{}", ran.errors);
    let ran = stage.run(&["status", "pod/harbour"]).await;
    assert_eq!(ran.code, 2);
    assert!(ran.errors.contains("it serves: rss"), "{}", ran.errors);
    assert_eq!(stage.run(&["status"]).await.code, 2);
    assert_eq!(stage.run(&["list", "--context", "nowhere"]).await.code, 1);
    let ran = support::ran({
        let mut command = stage.command(&["list"]);
        command.env("KUBECONFIG", "/nonexistent");
        command
    })
    .await;
    assert_eq!(ran.code, 1);
    assert!(ran.errors.contains("set KUBECONFIG"), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_cannot_be_led_astray_by_what_people_wrote() {
    let stage = Stage::with_cluster().await;
    stage.tell("Ready", "False", "Odd", "before\x1b[2Jafter\x07");
    for arguments in [&["status", "rss/harbour"][..], &["list", "-o", "wide"]] {
        let (_, shown) = Terminal::start(stage.command(&[arguments, &["--no-color"]].concat())).end().await;
        assert!(!shown.contains('\x1b') && !shown.contains('\x07') && shown.contains("before"), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_candidates_and_a_directive() {
    let stage = Stage::with_cluster().await;
    let complete = async |words: &[&str]| stage.run(&[&["__complete"], words].concat()).await.done();
    assert_eq!(
        complete(&["sta"]).await,
        "status\tOne cluster on one screen: what it is, what is in hand, what is stalled and what to do\n:4\n"
    );
    assert_eq!(complete(&["pause", ""]).await, "rss/\tReplicatedStatefulSet\nmysql/\tMySQLCluster\ntc/\tTidbCluster\n:6\n");
    assert_eq!(complete(&["pause", "rss/"]).await, "rss/harbour\n:4\n");
    assert_eq!(complete(&["pause", "rss", "h"]).await, "harbour\n:4\n");
    assert_eq!(complete(&["pause", "-n", "other", "rss/"]).await, ":4\n");
    assert_eq!(complete(&["list", "-n", "sh"]).await, "shop\n:4\n");
    assert_eq!(complete(&["list", "--context", ""]).await, "fake\n:4\n");
    assert_eq!(complete(&["list", "--output", "j"]).await, "json\tFor programs\n:4\n");
    for shell in ["bash", "zsh", "fish"] {
        let script = stage.run(&["completion", shell]).await.done();
        assert!(script.contains("kubectl-windlass"), "{shell}: {script}");
    }
    assert!(stage.run(&["completion", "kubectl"]).await.done().starts_with("#!/bin/sh\n"));
}
