//! A controller on the fake API server, with members that are simulated in memory.
#![allow(dead_code, reason = "each test file uses its part of the stage")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_api::ReplicatedStatefulSet;
use windlass_clients::members::{Acted, Members};
use windlass_core::gate::Permit;
use windlass_core::lane::Clustering;
use windlass_engine::{Calls, Clock, Controller, Health, Metrics, Settings};
use windlass_kinds::replicated::Replicated;
use windlass_kinds::replicated::facts::{Fact, Of};
use windlass_kinds::replicated::hooks::{About, Deed, ExecEnd, HookRun, Question};
use windlass_testkit::FakeApiServer;
use windlass_testkit::world::StatefulSetController;

static PROCESSES: AtomicUsize = AtomicUsize::new(0);

pub const NAMESPACE: &str = "default";
pub const CLUSTER: &str = "harbour";

/// Members that do what hooks tell them, and count it.
#[derive(Clone, Default)]
pub struct Crew {
    inner: Arc<Mutex<CrewState>>,
}

#[derive(Default)]
struct CrewState {
    running: BTreeMap<String, bool>,
    deeds: Vec<(Deed, String)>,
    panics: bool,
}

impl Crew {
    /// Every deed so far.
    pub fn deeds(&self) -> Vec<(Deed, String)> {
        self.inner.lock().unwrap().deeds.clone()
    }

    /// Stops a member behind the operator's back.
    pub fn kill(&self, pod: &str) {
        self.inner.lock().unwrap().running.insert(pod.to_owned(), false);
    }

    /// From now on every question ends in a panic, or not any more.
    pub fn panic_when_asked(&self, panics: bool) {
        self.inner.lock().unwrap().panics = panics;
    }
}

fn exited(code: i32, output: &str) -> ExecEnd {
    ExecEnd::Exited { code, output: output.to_owned(), errors: String::new() }
}

impl Members<Replicated> for Crew {
    async fn probe(&self, probe: Question) -> Fact {
        let end = {
            let state = self.inner.lock().unwrap();
            let panics = state.panics;
            let running = state.running.get(&probe.exec.pod).copied();
            drop(state);
            assert!(!panics, "a question went wrong");
            match (probe.about, running) {
                (About::Status, Some(true)) => exited(8, ""),
                (About::Status, _) => exited(7, ""),
                (About::Sequence, None) => exited(0, r#"{"history":null,"sequence":null,"safe":false,"kind":"none"}"#),
                (About::Sequence, Some(_)) => exited(0, r#"{"history":"h","sequence":1,"safe":false,"kind":"running"}"#),
            }
        };
        Fact { exec: probe.exec, of: Of::Question(probe.about), end }
    }

    async fn act(&self, _permit: &Permit<Clustering>, action: HookRun) -> Acted<Replicated> {
        let mut state = self.inner.lock().unwrap();
        state.deeds.push((action.deed, action.exec.pod.clone()));
        state.running.insert(action.exec.pod.clone(), action.deed != Deed::Stop);
        drop(state);
        Acted::all(Fact { exec: action.exec, of: Of::Deed(action.deed), end: exited(0, "") })
    }
}

/// A server that knows our definitions, as they are installed.
pub fn server() -> FakeApiServer {
    let server = FakeApiServer::new();
    server.namespace("ops");
    for definition in windlass_api::custom_resource_definitions() {
        server.register_crd(&definition);
    }
    server
}

/// A running controller. It ends with this.
pub struct Stage {
    pub server: FakeApiServer,
    pub crew: Crew,
    pub metrics: Arc<Metrics>,
    world: Mutex<StatefulSetController>,
    stop: CancellationToken,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Stage {
    /// A fresh server and a controller on it.
    pub fn new() -> Self {
        Self::on(server(), Crew::default(), Settings::default())
    }

    /// A controller on a server that was there before.
    pub fn on(server: FakeApiServer, crew: Crew, settings: Settings) -> Self {
        let client = server.client();
        Self::through(client, server, crew, settings)
    }

    /// A controller that reaches the server through this client.
    pub fn through(client: kube::Client, server: FakeApiServer, crew: Crew, mut settings: Settings) -> Self {
        settings.clock = Clock::Counted { start: Timestamp::now(), since: tokio::time::Instant::now() };
        if settings.identity.release.is_empty() {
            settings.identity.release = "ops/windlass".into();
        }
        // Each controller is a process of its own.
        settings.identity.holder = format!("process-{}", PROCESSES.fetch_add(1, Ordering::Relaxed));
        let stop = CancellationToken::new();
        let metrics = Arc::new(Metrics::default());
        let (members, token, counted) = (crew.clone(), stop.clone(), Arc::clone(&metrics));
        tokio::spawn(async move {
            let mut controller = Controller::start(Calls::new(client), counted, settings, token);
            controller.wait_until_synced(&Health::default()).await;
            controller.run::<Replicated, Crew>(members, ()).await;
        });
        let world = Mutex::new(StatefulSetController::new(&server));
        Self { server, crew, metrics, world, stop }
    }

    /// A cluster of this size that serves.
    pub async fn with_cluster(replicas: u16) -> Self {
        let stage = Self::new();
        stage.create(cluster(replicas)).await;
        stage.until_ready().await;
        stage
    }

    /// Posts a custom resource as a user would.
    pub async fn create(&self, cluster: Value) {
        let api: kube::Api<ReplicatedStatefulSet> = kube::Api::namespaced(self.server.client(), NAMESPACE);
        let parameters = kube::api::PostParams { field_manager: Some("user".into()), ..kube::api::PostParams::default() };
        api.create(&parameters, &serde_json::from_value(cluster).unwrap()).await.unwrap();
    }

    pub async fn until_ready(&self) {
        let reported = |stage: &Self| stage.status()["observedGeneration"] == stage.cluster()["metadata"]["generation"];
        self.until("the cluster is ready", |stage| stage.condition("Ready").0 == "True" && reported(stage)).await;
    }

    /// Changes the custom resource as a user would.
    pub async fn patch(&self, patch: Value) {
        let api: kube::Api<ReplicatedStatefulSet> = kube::Api::namespaced(self.server.client(), NAMESPACE);
        let parameters = kube::api::PatchParams { field_manager: Some("user".into()), ..kube::api::PatchParams::default() };
        api.patch(CLUSTER, &parameters, &kube::api::Patch::Merge(patch)).await.unwrap();
    }

    /// Ends the controller and starts another one on the same server.
    pub fn restart(self) -> Self {
        let (server, crew) = (self.server.clone(), self.crew.clone());
        drop(self);
        Self::on(server, crew, Settings::default())
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.server.store().get(kind, NAMESPACE, name)
    }

    pub fn cluster(&self) -> Value {
        self.get("replicatedstatefulsets", CLUSTER).unwrap()
    }

    pub fn status(&self) -> Value {
        self.cluster()["status"].clone()
    }

    pub fn condition(&self, type_: &str) -> (String, String) {
        let status = self.status();
        let found =
            status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == type_).cloned().unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }

    /// Waits until this is so, for five minutes of simulated time at most.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3_000 {
            if holds(self) {
                return;
            }
            self.world.lock().unwrap().step();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (status, deeds) = (self.status(), self.crew.deeds());
        panic!("waited in vain until {what}; the status is {status}\nwrites {:#?}\ndeeds {deeds:?}", self.writes());
    }

    /// Lets everything that is due happen, for this much simulated time.
    pub async fn let_pass(&self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            self.world.lock().unwrap().step();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The mutating calls of the operator since the calls were cleared, but for Events, as `verb resource/subresource name`.
    pub fn writes(&self) -> Vec<String> {
        let calls = self.server.mutations();
        calls
            .iter()
            .filter(|call| call.field_manager.as_deref() != Some("user") && call.resource != "events")
            .map(|call| format!("{} {} {}", call.verb.as_str(), call.rbac_resource(), call.name.as_deref().unwrap_or_default()))
            .collect()
    }
}

/// A cluster of this size.
pub fn cluster(replicas: u16) -> Value {
    let command = json!({ "command": ["true"] });
    json!({
        "apiVersion": "clusterlabs.org/v1alpha1",
        "kind": "ReplicatedStatefulSet",
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE },
        "spec": {
            "replicas": replicas,
            "servicePorts": [{ "name": "main", "port": 3306 }],
            "pod": {
                "containers": [{ "name": "app", "image": "app:1" }],
                "commands": { "sequence": command, "status": command, "stop": command, "primary": command },
            },
        },
    })
}
