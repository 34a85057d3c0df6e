//! What is there for clusters of MySQL: all of `kubectl moco`, and `restart` and `switchover` of `kubectl windlass`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use support::terminal::{Screen, Terminal};
use support::{NAMESPACE, Ran, Running, Stage, condition, ran};
use tokio::process::Command;
use windlass_api::mysql::MySQLCluster;
use windlass_testkit::{Call, Verb};

const KIND: &str = "mysqlclusters";
const CLUSTERING: &str = "moco.cybozu.com/clustering-stopped";
const DEMOTE: &str = "moco.cybozu.com/demote";
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// The cluster `books` of three instances, the second of them the primary.
struct Books {
    stage: Stage,
}

impl Books {
    async fn new() -> Self {
        let stage = Stage::new().await;
        stage.server.register::<MySQLCluster>();
        let store = stage.server.store();
        store
            .put_raw(json!({
                "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
                "metadata": { "name": "books", "namespace": NAMESPACE, "generation": 1 },
                "spec": {
                    "replicas": 3,
                    "podTemplate": {
                        "metadata": { "labels": { "tier": "a" } },
                        "spec": { "containers": [{ "name": "mysqld", "image": "mysql" }] },
                    },
                    "volumeClaimTemplates": [{
                        "metadata": { "name": "mysql-data" },
                        "spec": { "resources": { "requests": { "storage": "1Gi" } } },
                    }],
                },
                "status": {
                    "observedGeneration": 1, "currentPrimaryIndex": 1, "syncedReplicas": 3, "errantReplicas": 0,
                    "conditions": [
                        condition("Ready", "True", "Healthy", "the current state is Healthy"),
                        condition("Available", "True", "Healthy", "the current state is Healthy"),
                        condition("Progressing", "False", "Idle", "nothing is in hand"),
                        condition("Stalled", "False", "NothingBlocked", "nothing waits for a person"),
                    ],
                },
            }))
            .unwrap();
        for number in 0..3 {
            let name = format!("moco-books-{number}");
            let metadata = json!({ "name": name, "namespace": NAMESPACE });
            store.put_raw(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {} })).unwrap();
        }
        store
            .put_raw(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "moco-books", "namespace": NAMESPACE },
                "data": { "READONLY_PASSWORD": "cmVhZA==", "WRITABLE_PASSWORD": "d3JpdGU=", "ADMIN_PASSWORD": "YWRtaW4=" },
            }))
            .unwrap();
        Self { stage }
    }

    /// `kubectl moco` with these arguments.
    fn moco(&self, arguments: &[&str]) -> Command {
        let like = self.stage.command(arguments);
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-moco"));
        command.args(arguments).env_clear();
        command.envs(like.as_std().get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.moco(arguments)).await
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.stage.server.store().edit(KIND, NAMESPACE, "books", change).unwrap();
    }

    /// Plays the operator: tells a condition, of the newest generation.
    fn tell(&self, type_: &str, status: &str, reason: &str, message: &str) {
        self.edit(|object| {
            let mut told = condition(type_, status, reason, message);
            told["observedGeneration"] = object["metadata"]["generation"].clone();
            let all = object["status"]["conditions"].as_array_mut().unwrap();
            *all.iter_mut().find(|it| it["type"] == type_).unwrap() = told;
        });
    }

    fn annotations(&self) -> Value {
        self.stage.server.store().get(KIND, NAMESPACE, "books").unwrap()["metadata"]["annotations"].clone()
    }

    fn pod(&self, number: u16) -> Value {
        self.stage.server.store().get("pods", NAMESPACE, &format!("moco-books-{number}")).unwrap()
    }

    async fn patch(&self) -> Call {
        self.stage.wait_for_patch().await
    }

    /// Plays the operator: the first instance has the office, and takes writes or not yet.
    fn hand_over(&self, writable: bool) {
        if writable {
            self.tell("Progressing", "False", "Idle", "nothing is in hand");
            self.tell("Available", "True", "Healthy", "the current state is Healthy");
        } else {
            self.tell("Available", "False", "Incomplete", "the current state is Incomplete");
            self.tell("Progressing", "True", "Working", "open moco-books-0 to writes");
        }
        self.edit(|object| object["status"]["currentPrimaryIndex"] = json!(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_and_starting_have_the_words_that_scripts_know() {
    let books = Books::new().await;
    for part in ["clustering", "reconciliation"] {
        let key = format!("moco.cybozu.com/{part}-stopped");
        assert_eq!(books.run(&["start", part, "books"]).await.done(), format!("The {part} is already running.\n"));
        let out = books.run(&["stop", part, "books"]).await.done();
        assert_eq!(out, format!("stopped {part} of MySQLCluster \"{NAMESPACE}/books\"\n"));
        assert_eq!(books.annotations()[&key], "true");
        assert_eq!(books.run(&["stop", part, "books"]).await.done(), format!("The {part} is already stopped.\n"));
        let out = books.run(&["start", part, "books"]).await.done();
        assert_eq!(out, format!("started {part} of MySQLCluster \"{NAMESPACE}/books\"\n"));
        assert!(books.annotations().get(&key).is_none(), "{}", books.annotations());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_shown_in_both_forms() {
    let books = Books::new().await;
    assert_eq!(books.run(&["credential", "books"]).await.done(), "read\n");
    assert_eq!(books.run(&["credential", "-u", "moco-admin", "books"]).await.done(), "admin\n");
    let out = books.run(&["credential", "--mysql-user", "moco-writable", "--format", "mycnf", "books"]).await.done();
    assert_eq!(out, "[client]\nuser=moco-writable\npassword=\"write\"\n");
    for (words, told) in [(["-u", "moco-repl"], "invalid user: moco-repl"), (["--format", "yaml"], "unknown format: yaml")] {
        let ran = books.run(&["credential", words[0], words[1], "books"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.errors.contains(told), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_is_asked_to_hand_over_silently_and_at_once() {
    let books = Books::new().await;
    assert_eq!(books.run(&["switchover", "books"]).await.done(), "");
    assert_eq!(books.pod(1)["metadata"]["annotations"], json!({ DEMOTE: "true" }));
    assert!(books.pod(0)["metadata"].get("annotations").is_none());
    for (field, value, told) in [
        ("offline", json!(true), "offline cluster is not able to switch"),
        ("replicas", json!(1), "single-instance cluster is not able to switch"),
    ] {
        let books = Books::new().await;
        books.edit(|object| object["spec"][field] = value);
        let ran = books.run(&["switchover", "books"]).await;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.errors.contains(told), "{ran:?}");
        assert!(books.stage.server.mutations().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mysql_runs_in_the_pod_that_is_meant_with_the_file_of_the_account() {
    let books = Books::new().await;
    let folder = std::env::temp_dir().join(format!("windlass-moco-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubectl = folder.join("kubectl");
    std::fs::write(&kubectl, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = books.moco(arguments);
        command.env("PATH", &folder);
        ran(command).await
    };
    let plain = run(&["mysql", "books"]).await;
    let exec = format!("exec --namespace {NAMESPACE} moco-books-1 --container mysqld -- mysql");
    assert_eq!(plain.out.trim(), format!("{exec} --defaults-extra-file=/mysql-credentials/moco-readonly-my.cnf"));
    assert_eq!(plain.code, 7, "the code of mysql is ours");
    let other = run(&["mysql", "-u", "moco-admin", "--index", "2", "-it", "books", "--", "-e", "SELECT 1"]).await;
    let exec = format!("exec --namespace {NAMESPACE} --stdin --tty moco-books-2 --container mysqld -- mysql");
    assert_eq!(other.out.trim(), format!("{exec} --defaults-extra-file=/mysql-credentials/moco-admin-my.cnf -e SELECT 1"));
    let wrong = run(&["mysql", "--index", "3", "books"]).await;
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""));
    assert!(wrong.errors.contains("index should be smaller than replicas"), "{wrong:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_ends_with_1_and_names_are_completed() {
    let books = Books::new().await;
    for words in
        [vec!["credential"], vec!["sail", "books"], vec!["mysql", "books", "--index", "x"], vec!["switchover", "ships"]]
    {
        let ran = books.run(&words).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{words:?} {ran:?}");
    }
    assert!(books.run(&["--version"]).await.done().starts_with("kubectl-moco "));
    assert_eq!(books.run(&["__complete", "switchover", ""]).await.done(), "books\n:4\n");
    assert_eq!(books.run(&["__complete", "stop", "clustering", "b"]).await.done(), "books\n:4\n");
    assert_eq!(books.run(&["__complete", "switchover", "books", ""]).await.done(), ":4\n");
    let verbs = books.run(&["__complete", "s"]).await.done();
    assert!(verbs.contains("start\t") && verbs.contains("stop\t") && verbs.contains("switchover\t"), "{verbs}");
    assert!(books.run(&["completion", "kubectl"]).await.done().contains("exec kubectl-moco __complete"));
    assert!(books.run(&["completion", "bash"]).await.done().contains("kubectl-moco"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_noted_in_the_template_and_awaited() {
    let books = Books::new().await;
    let mut running = Running::start(books.stage.command(&["restart", "mysql/books"]));
    let call = books.patch().await;
    assert_eq!((call.verb, call.content_type.as_str()), (Verb::Patch, "application/merge-patch+json"));
    let noted = call.body["spec"]["podTemplate"]["metadata"]["annotations"][RESTARTED].as_str().unwrap().to_owned();
    assert_eq!(call.body, json!({ "spec": { "podTemplate": { "metadata": { "annotations": { RESTARTED: noted } } } } }));
    running.wait_for_remark("waiting until mysql/books is restarted: 3 of 3 members ready").await;
    books.tell("Progressing", "True", "Working", "delete Pod moco-books-2");
    running.wait_for_remark("delete Pod moco-books-2").await;
    books.tell("Progressing", "False", "Idle", "nothing is in hand");
    books.tell("Ready", "True", "Healthy", "the current state is Healthy");
    let ran = running.end().await;
    assert!(!ran.errors.contains('\x1b'), "{:?}", ran.errors);
    assert_eq!(ran.done(), "mysql/books restarted: 3 of 3 members ready\n");
    let template = books.stage.server.store().get(KIND, NAMESPACE, "books").unwrap()["spec"]["podTemplate"].clone();
    assert_eq!(template["metadata"]["labels"], json!({ "tier": "a" }), "nothing else is touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_on_a_terminal_shows_a_bar() {
    let books = Books::new().await;
    let terminal = Terminal::start(books.stage.command(&["restart", "mysql", "books"]));
    books.patch().await;
    books.tell("Progressing", "True", "Working", "delete Pod moco-books-2");
    books.edit(|object| object["status"]["syncedReplicas"] = json!(2));
    let screen = terminal.wait_until_seen("delete Pod moco-books-2").await;
    assert!(screen.contains("waiting until mysql/books is restarted"), "{screen}");
    terminal.wait_until_seen("2 of 3 members ready").await;
    books.edit(|object| object["status"]["syncedReplicas"] = json!(3));
    books.tell("Ready", "True", "Healthy", "the current state is Healthy");
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0, "{written}");
    assert_eq!(Screen::after(&written).lines.join("\n").trim(), "mysql/books restarted: 3 of 3 members ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_the_subresource_is_scaled_by_its_spec() {
    let books = Books::new().await;
    let out = books.stage.run(&["scale", "mysql/books", "--replicas", "5", "--no-wait"]).await.done();
    assert_eq!(out, "mysql/books scale to 5 requested\n");
    let call = books.patch().await;
    assert_eq!((call.subresource, call.body), (None, json!({ "spec": { "replicas": 5 } })));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_restarted_or_switched_over_is_said() {
    let stage = Stage::with_cluster().await;
    for verb in ["restart", "switchover"] {
        let ran = stage.run(&[verb, "rss/harbour"]).await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains("rss"), "{ran:?}");
    }
    assert!(stage.server.mutations().is_empty());
    let books = Books::new().await;
    books.edit(|object| object["metadata"]["annotations"] = json!({ CLUSTERING: "true" }));
    for (words, told) in [
        (["restart", "mysql/books"], "mysql/books restart requested\n"),
        (["switchover", "mysql/books"], "mysql/books switchover from moco-books-1 requested\n"),
    ] {
        let ran = books.stage.run(&words).await;
        assert_eq!((ran.code, ran.out.as_str()), (3, told), "{ran:?}");
        assert!(ran.errors.contains("held by a pause of Clustering"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switchover_is_awaited_until_the_new_primary_takes_writes() {
    let books = Books::new().await;
    let mut running = Running::start(books.stage.command(&["switchover", "mysql/books", "--watch"]));
    let call = books.patch().await;
    assert_eq!((call.resource.as_str(), call.name.as_deref()), ("pods", Some("moco-books-1")));
    assert_eq!(call.body["metadata"]["annotations"], json!({ DEMOTE: "true" }));
    running.wait_for_remark("waiting until moco-books-1 of mysql/books has handed over").await;
    books.hand_over(false);
    running.wait_for_remark("waiting until moco-books-0 of mysql/books takes writes: open moco-books-0 to writes").await;
    books.hand_over(true);
    let ran = running.end().await;
    assert!(!ran.errors.contains('\x1b'), "{:?}", ran.errors);
    assert_eq!(ran.done(), "mysql/books switched over from moco-books-1 to moco-books-0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switchover_on_a_terminal_is_drawn_live_and_without_a_wait_ends_at_once() {
    let books = Books::new().await;
    let terminal = Terminal::start(books.stage.command(&["switchover", "mysql/books", "-w"]));
    books.patch().await;
    terminal.wait_until_seen("waiting until moco-books-1 of mysql/books has handed over").await;
    books.hand_over(false);
    terminal.wait_until_seen("takes writes").await;
    books.hand_over(true);
    let (code, written) = terminal.end().await;
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("\x1b[J"), "nothing was drawn: {written:?}");
    let end = Screen::after(&written).lines.join("\n");
    assert_eq!(end.trim(), "mysql/books switched over from moco-books-1 to moco-books-0");
    let books = Books::new().await;
    let out = books.stage.run(&["switchover", "mysql/books", "--dry-run=server"]).await.done();
    assert_eq!(out, "mysql/books switchover from moco-books-1 requested (server dry run)\n");
    assert!(books.pod(1)["metadata"].get("annotations").is_none());
    let out = books.stage.run(&["switchover", "mysql/books", "--no-wait"]).await.done();
    assert_eq!(out, "mysql/books switchover from moco-books-1 requested\n");
    assert_eq!(books.pod(1)["metadata"]["annotations"], json!({ DEMOTE: "true" }));
}
