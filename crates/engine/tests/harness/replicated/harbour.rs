//! The simulated members: hooks that take their time and go on when nobody waits for them, questions, and clients that write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use windlass_kinds::replicated::Replicated;
use windlass_kinds::replicated::facts::{Fact, Of};
use windlass_kinds::replicated::hooks::{About, Deed, Exec, ExecEnd, HookRun, Question};
use windlass_testkit::FakeApiServer;

use super::super::kit::{NAMESPACE, Scenario, World};
use super::database::{Database, Role};
use super::scenarios;

/// How long a member takes to answer a question.
const ANSWER: Duration = Duration::from_millis(70);
/// How often clients write a row.
const ROW: Duration = Duration::from_millis(300);

/// A hook that runs in a pod.
struct Hook {
    ordinal: u16,
    pod_uid: String,
    deed: Deed,
    ends: Duration,
    waiting: Option<oneshot::Sender<ExecEnd>>,
}

#[derive(Default)]
struct Inner {
    now: Duration,
    database: Database,
    hooks: Vec<Hook>,
    /// The highest epoch that each pod has seen.
    epochs: BTreeMap<String, u64>,
    /// Members that do not answer until then.
    silent: BTreeMap<u16, Duration>,
    /// Silence is told as "stopped, with nothing": as if somebody took the unknown for known.
    gullible: bool,
    rows_wanted: u64,
    next_row: Duration,
    /// The UIDs of the pods, and the revision at which they were looked at.
    pods: BTreeSet<String>,
    seen: u64,
}

/// The members of the cluster.
pub struct Harbour {
    server: FakeApiServer,
    inner: Arc<Mutex<Inner>>,
}

fn exited(code: i32, output: impl Into<String>) -> ExecEnd {
    ExecEnd::Exited { code, output: output.into(), errors: String::new() }
}

fn lost(why: &str) -> ExecEnd {
    ExecEnd::Unknown { why: why.into() }
}

fn duration(deed: Deed) -> Duration {
    match deed {
        Deed::Seed => Duration::from_secs(3),
        Deed::Primary | Deed::Secondary => Duration::from_secs(4),
        Deed::Stop | Deed::Promote => Duration::from_secs(2),
    }
}

/// Whether the pod is there, and is the one that is meant, with the process that is meant.
fn reaches(server: &FakeApiServer, exec: &Exec) -> bool {
    let Some(pod) = server.store().get("pods", NAMESPACE, &exec.pod) else { return false };
    let containers = pod["status"]["containerStatuses"].as_array();
    let mut containers = containers.into_iter().flatten();
    pod["metadata"]["uid"] == exec.pod_uid.as_str()
        && containers.any(|it| it["name"] == exec.container.as_str() && it["containerID"] == exec.process.as_str())
}

impl Inner {
    fn sample(&self, question: &Question) -> ExecEnd {
        let ordinal = question.exec.ordinal.get();
        if self.silent.get(&ordinal).is_some_and(|until| *until > self.now) {
            return match question.about {
                _ if !self.gullible => lost("connection timed out"),
                About::Status => exited(7, ""),
                About::Sequence => exited(0, r#"{"history":"h1","sequence":0,"safe":false,"kind":"clean"}"#),
            };
        }
        let starts = self
            .hooks
            .iter()
            .any(|hook| hook.pod_uid == question.exec.pod_uid && !matches!(hook.deed, Deed::Stop | Deed::Promote));
        let server = self.database.server(ordinal).filter(|server| server.pod_uid == question.exec.pod_uid);
        match (question.about, server) {
            (About::Status, None) if starts => exited(190, ""),
            (About::Status, None) => exited(7, ""),
            (About::Status, Some(server)) => exited(
                match server.role {
                    Role::Primary => 8,
                    Role::Secondary => 0,
                    Role::WithoutQuorum => 9,
                },
                "",
            ),
            (About::Sequence, server) => {
                let answer = self.database.data(ordinal).map_or_else(
                    || json!({ "history": null, "sequence": null, "safe": false, "kind": "none" }),
                    |data| {
                        let kind = if server.is_some() { "running" } else { "clean" };
                        json!({ "history": format!("h{}", data.history), "sequence": data.rows, "safe": false, "kind": kind })
                    },
                );
                exited(0, answer.to_string())
            }
        }
    }

    /// Begins a hook. What comes back at once is why it does not begin.
    fn begin(&mut self, epoch: u64, run: &HookRun, waiting: oneshot::Sender<ExecEnd>) {
        let seen = self.epochs.entry(run.exec.pod_uid.clone()).or_default();
        if epoch < *seen {
            // The sender was replaced; it must not act any more, and does not wait either.
            let _gone = waiting.send(exited(1, ""));
            return;
        }
        *seen = epoch;
        let (ordinal, pod_uid) = (run.exec.ordinal.get(), run.exec.pod_uid.clone());
        let up = self.database.server(ordinal).is_some();
        let stranded = self.database.server(ordinal).is_some_and(|server| server.role == Role::WithoutQuorum);
        if run.deed == Deed::Stop {
            self.hooks.retain(|hook| hook.pod_uid != pod_uid);
        } else if run.deed == Deed::Promote && stranded {
            // It is for servers that run.
        } else if up || self.hooks.iter().any(|hook| hook.pod_uid == pod_uid) {
            // Hooks that start a server refuse to do it twice.
            let _gone = waiting.send(exited(i32::from(!up), ""));
            return;
        }
        self.hooks.push(Hook { ordinal, pod_uid, deed: run.deed, ends: self.now + duration(run.deed), waiting: Some(waiting) });
    }

    fn end(&mut self, hook: Hook) {
        let Hook { ordinal, pod_uid, deed, waiting, .. } = hook;
        let done = match deed {
            Deed::Seed => {
                self.database.seed(ordinal, &pod_uid);
                true
            }
            Deed::Primary => self.database.join(ordinal, &pod_uid, Role::Primary),
            Deed::Secondary => self.database.join(ordinal, &pod_uid, Role::Secondary),
            Deed::Promote => self.database.promote(ordinal),
            Deed::Stop => {
                self.database.stop(ordinal);
                true
            }
        };
        if let Some(waiting) = waiting {
            // Nobody listens when the controller died meanwhile.
            let _gone = waiting.send(exited(i32::from(!done), ""));
        }
    }
}

impl Harbour {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Clients want to write this many rows more.
    pub(super) fn write_rows(&self, count: u64) {
        self.lock().rows_wanted += count;
    }

    /// Servers end at once, without their pods.
    pub(super) fn kill(&self, ordinals: &[u16]) {
        self.lock().database.crash(ordinals);
    }

    /// The volume of a member is gone, and what was on it.
    pub(super) fn lose_volume(&self, ordinal: u16) {
        self.lock().database.lose(ordinal);
    }

    /// A person said that what is lost is lost.
    pub(super) fn accept_losses(&self) {
        self.lock().database.accept_losses();
    }

    /// A row is written right now.
    pub(super) fn commit(&self) {
        let mut inner = self.lock();
        inner.database.commit();
        inner.rows_wanted += 1;
    }

    /// A member does not answer for some time.
    pub(super) fn silence(&self, ordinal: u16, time: Duration) {
        let mut inner = self.lock();
        let until = inner.now + time;
        inner.silent.insert(ordinal, until);
    }

    /// From now on silence is taken for an answer.
    pub fn believe_silence(&self) {
        self.lock().gullible = true;
    }

    /// How many members serve.
    pub(super) fn serving(&self) -> usize {
        self.lock().database.servers().filter(|(_, server)| server.role != Role::WithoutQuorum).count()
    }
}

impl World for Harbour {
    type Kind = Replicated;

    const CLUSTER: &'static str = "harbour";

    fn new(server: &FakeApiServer) -> Self {
        for definition in windlass_api::custom_resource_definitions() {
            server.register_crd(&definition);
        }
        Self { server: server.clone(), inner: Arc::default() }
    }

    fn fork(&self, server: &FakeApiServer) -> Self {
        let inner = self.lock();
        let copy = Inner {
            now: inner.now,
            database: inner.database.clone(),
            hooks: Vec::new(),
            epochs: inner.epochs.clone(),
            silent: inner.silent.clone(),
            gullible: inner.gullible,
            rows_wanted: inner.rows_wanted,
            next_row: inner.next_row,
            ..Inner::default()
        };
        Self { server: server.clone(), inner: Arc::new(Mutex::new(copy)) }
    }

    fn tick(&self, now: Duration) -> bool {
        let mut inner = self.lock();
        inner.now = now;
        let revision = self.server.revision();
        if inner.seen != revision {
            inner.seen = revision;
            let pods = self.server.store().list("pods");
            inner.pods = pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).map(str::to_owned).collect();
        }
        let pods = inner.pods.clone();
        // A server and the hooks in a pod end with it.
        let gone: Vec<u16> =
            inner.database.servers().filter(|(_, it)| !pods.contains(&it.pod_uid)).map(|(ordinal, _)| ordinal).collect();
        let mut moved = !gone.is_empty();
        if moved {
            inner.database.crash(&gone);
        }
        inner.hooks.retain(|hook| pods.contains(&hook.pod_uid));
        while let Some(index) = inner.hooks.iter().position(|hook| hook.ends <= now) {
            let hook = inner.hooks.remove(index);
            inner.end(hook);
            moved = true;
        }
        if inner.next_row <= now && inner.database.acknowledged() < inner.rows_wanted && inner.database.has_primary() {
            inner.database.commit();
            inner.next_row = now + ROW;
        }
        moved
    }

    fn is_busy(&self) -> bool {
        let inner = self.lock();
        let writes = inner.database.acknowledged() < inner.rows_wanted && inner.database.has_primary();
        !inner.hooks.is_empty() || writes || inner.silent.values().any(|until| *until > inner.now)
    }

    fn wrongs(&self) -> Vec<String> {
        self.lock().database.wrongs.clone()
    }

    fn digest(&self) -> Value {
        self.lock().database.digest()
    }

    fn ask(&self, probe: Question) -> BoxFuture<'static, Fact> {
        let (inner, server) = (Arc::clone(&self.inner), self.server.clone());
        async move {
            tokio::time::sleep(ANSWER).await;
            let end =
                if reaches(&server, &probe.exec) { inner.lock().unwrap().sample(&probe) } else { lost("no such container") };
            Fact { exec: probe.exec, of: Of::Question(probe.about), end }
        }
        .boxed()
    }

    fn begin(&self, epoch: u64, action: HookRun) -> BoxFuture<'static, Fact> {
        let (waiting, ended) = oneshot::channel();
        if reaches(&self.server, &action.exec) {
            self.lock().begin(epoch, &action, waiting);
        }
        async move {
            let end = ended.await.unwrap_or_else(|_| lost("the connection ended before the hook did"));
            Fact { exec: action.exec, of: Of::Deed(action.deed), end }
        }
        .boxed()
    }

    fn lost(action: HookRun) -> Fact {
        Fact { exec: action.exec, of: Of::Deed(action.deed), end: lost("connection reset") }
    }

    fn still_runs(action: HookRun) -> Fact {
        let end = ExecEnd::StillRunning { after: action.exec.timeout };
        Fact { exec: action.exec, of: Of::Deed(action.deed), end }
    }

    fn failed(action: HookRun) -> Fact {
        Fact { exec: action.exec, of: Of::Deed(action.deed), end: exited(1, "") }
    }

    fn scenarios() -> Vec<Scenario<Self>> {
        scenarios::all()
    }
}
