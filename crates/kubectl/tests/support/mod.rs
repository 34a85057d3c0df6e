//! The real program against the fake API server on the loopback, in a pipe and on a pseudo-terminal.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod terminal;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use windlass_api::{Logbook, ReplicatedStatefulSet};
use windlass_testkit::{Call, FakeApiServer, Served};

/// Long enough for anything on a busy machine; nothing passes or fails by it but a hang.
pub const LONG: Duration = Duration::from_mins(2);
pub const NAMESPACE: &str = "shop";
const KIND: &str = "replicatedstatefulsets";

/// A server with clusters, and the way to it.
pub struct Stage {
    pub server: FakeApiServer,
    served: Served,
    kubeconfig: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub errors: String,
}

impl Ran {
    /// What it printed, if it ended well.
    pub fn done(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }
}

pub fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "observedGeneration": 1, "lastTransitionTime": "2026-11-16T00:46:00Z",
    })
}

fn members(count: u16) -> Vec<String> {
    (0..count).map(|ordinal| format!("rss-harbour-{ordinal}")).collect()
}

impl Stage {
    /// A server that serves our kinds.
    pub async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = FakeApiServer::new();
        server.register::<ReplicatedStatefulSet>().register::<Logbook>();
        server.namespace(NAMESPACE).namespace("other");
        let address = server.serve().await.unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-kubectl-{}-{number}.json", std::process::id());
        let kubeconfig = std::env::temp_dir().join(name);
        std::fs::write(&kubeconfig, address.kubeconfig(NAMESPACE)).unwrap();
        Self { server, served: address, kubeconfig }
    }

    /// As above, with the cluster `harbour`, healthy, of three members.
    pub async fn with_cluster() -> Self {
        let stage = Self::new().await;
        stage.put_cluster(NAMESPACE, "harbour");
        stage
    }

    pub fn put_cluster(&self, namespace: &str, name: &str) {
        let stored = self.server.store().put_raw(json!({
            "apiVersion": "clusterlabs.org/v1alpha1",
            "kind": "ReplicatedStatefulSet",
            "metadata": {
                "name": name, "namespace": namespace, "generation": 1, "labels": { "tier": name },
                "creationTimestamp": "2026-11-12T00:00:00Z",
            },
            "spec": { "replicas": 3, "pod": { "containers": [] } },
            "status": {
                "observedGeneration": 1, "phase": "Running", "replicas": 3,
                "members": { "ready": members(3), "primary": members(3) },
                "conditions": [
                    condition("Ready", "True", "AllMembersServe", "all 3 members serve"),
                    condition("Progressing", "False", "Idle", "nothing is in hand"),
                    condition("Stalled", "False", "NothingBlocked", "nothing waits for a person"),
                    condition("ReconciliationActive", "True", "Active", "steps are taken"),
                    condition("ClusteringActive", "True", "Active", "steps are taken"),
                    condition("Managed", "True", "Owned", "this operator manages the cluster"),
                ],
            },
        }));
        let uid = stored.unwrap()["metadata"]["uid"].clone();
        self.server.store().put_raw(json!({
            "apiVersion": "windlass.dev/v1alpha1",
            "kind": "Logbook",
            "metadata": { "name": format!("rss-{name}"), "namespace": namespace },
            "spec": {
                "clusterUid": uid, "edition": 1, "counts": { "largest": 3, "restore": 3 }, "pause": {}, "plan": {}, "summary": {},
                "claim": { "release": "windlass-system/windlass", "version": "0.1.0", "holder": "windlass-abc", "epoch": 7 },
            },
        }));
    }

    pub fn cluster(&self) -> Value {
        self.server.store().get(KIND, NAMESPACE, "harbour").unwrap()
    }

    /// Plays the operator: changes the stored cluster.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.server.store().edit(KIND, NAMESPACE, "harbour", change).unwrap();
    }

    pub fn edit_logbook(&self, change: impl FnOnce(&mut Value)) {
        self.server.store().edit("logbooks", NAMESPACE, "rss-harbour", change).unwrap();
    }

    /// Plays the operator: tells a condition, of the newest generation.
    pub fn tell(&self, type_: &str, status: &str, reason: &str, message: &str) {
        self.edit(|object| {
            let mut told = condition(type_, status, reason, message);
            told["observedGeneration"] = object["metadata"]["generation"].clone();
            let all = object["status"]["conditions"].as_array_mut().unwrap();
            let place = all.iter_mut().find(|it| it["type"] == type_).unwrap();
            *place = told;
        });
    }

    /// The program with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-windlass"));
        command.args(arguments).env_clear().env("KUBECONFIG", &self.kubeconfig).env("TERM", "xterm");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs the program in a pipe until it ends.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments)).await
    }

    /// Waits until the program has made this change.
    pub async fn wait_for_patch(&self) -> Call {
        wait_for("a change", || self.server.mutations().into_iter().next()).await
    }
}

/// Runs a prepared command until it ends.
pub async fn ran(mut command: Command) -> Ran {
    let output = tokio::time::timeout(LONG, command.output()).await.expect("the program hangs").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), errors: text(output.stderr) }
}

/// Looks until there is something to see.
pub async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("{what} did not come"))
}
