//! The finalizer on the fake server: who puts it on, who takes it off, and that no cluster is held for ever by it.
//!
//! The kind here is the one that runs hooks, with a finalizer: its members can be made to take as long as a test needs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stage::{CLUSTER, Crew, NAMESPACE, cluster, server};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use windlass_api::ReplicatedStatefulSet;
use windlass_api::logbook::LogbookSpec;
use windlass_api::replicated::ReplicatedStatefulSetStatus;
use windlass_clients::members::{Acted, Members};
use windlass_core::claim::Identity;
use windlass_core::gate::{PauseRequests, Permit};
use windlass_core::kind::{Figures, Kind, Observed, Report};
use windlass_core::lane::Clustering;
use windlass_core::memory::Entry;
use windlass_core::plan::Plan;
use windlass_core::views::Children;
use windlass_engine::{Calls, Clock, Controller, Health, Metrics, Settings};
use windlass_kinds::replicated::Replicated;
use windlass_kinds::replicated::facts::{Fact, Facts};
use windlass_kinds::replicated::hooks::{HookRun, Question};
use windlass_testkit::world::StatefulSetController;
use windlass_testkit::{Call, CallMatch, Effect, FakeApiServer, Outcome, Verb};

const OURS: &str = "example.org/mooring";
const THEIRS: &str = "example.org/theirs";

static PROCESSES: AtomicUsize = AtomicUsize::new(0);

/// [`Replicated`], with a finalizer.
#[derive(Debug)]
enum Moored {}

fn plain<'a>(observed: &Observed<'a, Moored>) -> Observed<'a, Replicated> {
    let Observed { resource, children, facts, settings, options, memory, answered, running, settled, now } = *observed;
    Observed { resource, children, facts, settings, options, memory, answered, running, settled, now }
}

impl Kind for Moored {
    type Resource = ReplicatedStatefulSet;
    type Status = ReplicatedStatefulSetStatus;
    type Action = HookRun;
    type Probe = Question;
    type Fact = Fact;
    type Facts = Facts;
    type Told = ();
    type Settings = ();

    const NAME: &'static str = Replicated::NAME;
    const INTENTS: &'static [&'static str] = Replicated::INTENTS;
    const FINALIZER: Option<&'static str> = Some(OURS);

    fn stored_status(resource: &ReplicatedStatefulSet) -> Option<&ReplicatedStatefulSetStatus> {
        Replicated::stored_status(resource)
    }
    fn pause(resource: &ReplicatedStatefulSet) -> PauseRequests {
        Replicated::pause(resource)
    }
    fn learn(facts: &mut Facts, fact: Fact, now: Timestamp) -> bool {
        Replicated::learn(facts, fact, now)
    }
    fn forget(facts: &mut Facts, children: &Children) {
        Replicated::forget(facts, children);
    }
    fn probes(observed: &Observed<'_, Self>) -> Vec<Question> {
        Replicated::probes(&plain(observed))
    }
    fn probe_target(probe: &Question) -> String {
        Replicated::probe_target(probe)
    }
    fn plan(observed: &Observed<'_, Self>) -> Plan<HookRun> {
        Replicated::plan(&plain(observed))
    }
    fn remember(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec) {
        Replicated::remember(&plain(observed), logbook);
    }
    fn is_invalid(observed: &Observed<'_, Self>) -> bool {
        Replicated::is_invalid(&plain(observed))
    }
    fn is_blind(observed: &Observed<'_, Self>) -> bool {
        Replicated::is_blind(&plain(observed))
    }
    fn note_intents(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec) {
        Replicated::note_intents(&plain(observed), logbook);
    }
    fn proves(observed: &Observed<'_, Self>) -> Vec<Entry> {
        Replicated::proves(&plain(observed))
    }
    fn status(observed: &Observed<'_, Self>, report: &Report<'_, HookRun>) -> ReplicatedStatefulSetStatus {
        Replicated::status(&plain(observed), report)
    }
    fn figures(observed: &Observed<'_, Self>, report: &Report<'_, HookRun>, status: &ReplicatedStatefulSetStatus) -> Figures {
        Replicated::figures(&plain(observed), report, status)
    }
    fn named(fact: &Fact) -> (&'static str, &'static str) {
        Replicated::named(fact)
    }
    fn look_again(observed: &Observed<'_, Self>) -> Duration {
        Replicated::look_again(&plain(observed))
    }
}

/// The crew, whose deeds end only when the tide lets them.
struct Tide {
    crew: Crew,
    high: Arc<Semaphore>,
}

impl Members<Moored> for Tide {
    async fn probe(&self, probe: Question) -> Fact {
        Members::<Replicated>::probe(&self.crew, probe).await
    }

    async fn act(&self, permit: &Permit<Clustering>, action: HookRun) -> Acted<Moored> {
        let _high = self.high.acquire().await.unwrap();
        let acted = Members::<Replicated>::act(&self.crew, permit, action).await;
        Acted { fact: acted.fact, rest: acted.rest }
    }
}

/// A running release. It ends with this.
struct Berth {
    server: FakeApiServer,
    crew: Crew,
    tide: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Berth {
    fn new() -> Self {
        Self::on(&server(), "windlass", "")
    }

    fn on(server: &FakeApiServer, release: &str, selector: &str) -> Self {
        let holder = format!("process-{}", PROCESSES.fetch_add(1, Ordering::Relaxed));
        let settings = Settings {
            clock: Clock::Counted { start: Timestamp::now(), since: tokio::time::Instant::now() },
            identity: Identity { release: format!("ops/{release}"), version: "1".into(), holder },
            selector: selector.parse().unwrap(),
            ..Settings::default()
        };
        let (crew, tide, stop) = (Crew::default(), Arc::new(Semaphore::new(1)), CancellationToken::new());
        let members = Tide { crew: crew.clone(), high: Arc::clone(&tide) };
        let (client, token) = (server.client(), stop.clone());
        tokio::spawn(async move {
            let mut controller = Controller::start(Calls::new(client), Arc::new(Metrics::default()), settings, token);
            controller.wait_until_synced(&Health::default()).await;
            controller.run::<Moored, Tide>(members, ()).await;
        });
        Self { server: server.clone(), crew, tide, stop }
    }

    async fn with_cluster() -> Self {
        let berth = Self::new();
        berth.create(cluster(1)).await;
        berth.until("it serves", |berth| berth.crew.deeds().len() == 1 && berth.is_told()).await;
        berth
    }

    fn api(&self) -> Api<ReplicatedStatefulSet> {
        Api::namespaced(self.server.client(), NAMESPACE)
    }

    async fn create(&self, cluster: Value) {
        let parameters = PostParams { field_manager: Some("user".into()), ..PostParams::default() };
        self.api().create(&parameters, &serde_json::from_value(cluster).unwrap()).await.unwrap();
    }

    async fn patch(&self, patch: Value) {
        let parameters = PatchParams { field_manager: Some("user".into()), ..PatchParams::default() };
        self.api().patch(CLUSTER, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    async fn move_to(&self, track: &str) {
        self.patch(json!({ "metadata": { "labels": { "track": track } } })).await;
    }

    async fn delete(&self) {
        self.api().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    }

    fn get(&self) -> Option<Value> {
        self.server.store().get("replicatedstatefulsets", NAMESPACE, CLUSTER)
    }

    fn finalizers(&self) -> Value {
        self.get().unwrap()["metadata"]["finalizers"].clone()
    }

    fn has_ours(&self) -> bool {
        self.get().is_some_and(|it| it["metadata"]["finalizers"].to_string().contains(OURS))
    }

    fn is_gone(&self) -> bool {
        self.get().is_none()
    }

    fn is_told(&self) -> bool {
        let Some(cluster) = self.get() else { return false };
        cluster["status"]["observedGeneration"] == cluster["metadata"]["generation"]
            && cluster["status"].to_string().contains("Ready")
    }

    fn claim(&self) -> Value {
        let logbook = self.server.store().get("logbooks", NAMESPACE, "rss-harbour").unwrap_or_default();
        logbook["spec"]["claim"].clone()
    }

    /// The writes of operators to the custom resource, its status apart, that were carried out.
    fn marks(&self) -> Vec<Value> {
        let calls = self.server.mutations().into_iter().filter(Call::succeeded);
        let ours = calls
            .filter(|it| it.rbac_resource() == "replicatedstatefulsets" && it.field_manager.as_deref() == Some("windlass"));
        ours.map(|call| call.body).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let mut world = StatefulSetController::new(&self.server);
        for _ in 0..1_200 {
            if holds(self) {
                return;
            }
            world.step();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("waited in vain until {what}: {:#}\n{:#?}", self.get().unwrap_or_default(), self.marks());
    }

    async fn let_pass(&self, seconds: u64) {
        let mut world = StatefulSetController::new(&self.server);
        for _ in 0..seconds {
            world.step();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn on_clusters() -> CallMatch {
    CallMatch::any().verb(Verb::Patch).resource("replicatedstatefulsets")
}

fn refused(call: &Call) -> bool {
    matches!(call.outcome, Outcome::Answered { code: 409, .. })
}

fn labelled(track: &str) -> Value {
    let mut cluster = cluster(1);
    cluster["metadata"]["labels"] = json!({ "track": track });
    cluster
}

#[tokio::test(start_paused = true)]
async fn it_is_put_on_once_after_the_claim_and_before_the_first_object() {
    let berth = Berth::with_cluster().await;
    assert_eq!(berth.finalizers(), json!([OURS]));
    let calls = berth.server.mutations().into_iter();
    let calls = calls.filter(|call| call.field_manager.as_deref() != Some("user") && call.resource != "events");
    let order: Vec<String> = calls.map(|call| call.rbac_resource()).collect();
    assert_eq!(order[..2], ["logbooks", "replicatedstatefulsets"], "{order:?}");
    let conflicts = berth.server.calls().into_iter().filter(refused).count();
    assert_eq!(conflicts, 0, "the status is told over the version that the finalizer gave");
    berth.let_pass(120).await;
    assert_eq!(berth.marks().len(), 1, "{:?}", berth.marks());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_there_already_is_not_written_again_and_a_pause_does_not_hold_it() {
    let berth = Berth::new();
    let mut made = cluster(1);
    made["metadata"]["finalizers"] = json!([OURS]);
    berth.create(made).await;
    berth.until("it serves", |berth| berth.crew.deeds().len() == 1).await;
    assert_eq!(berth.marks(), Vec::<Value>::new());

    let berth = Berth::new();
    let mut paused = cluster(1);
    paused["spec"]["paused"] = json!(true);
    berth.create(paused).await;
    berth.until("it is put on", Berth::has_ours).await;
    berth.until("the pause is told", |berth| berth.get().unwrap()["status"]["controlPaused"] == true).await;
    berth.delete().await;
    berth.until("it is gone", Berth::is_gone).await;
}

#[tokio::test(start_paused = true)]
async fn those_of_others_stay_when_it_comes_and_when_it_goes() {
    let berth = Berth::new();
    let mut held = cluster(1);
    held["metadata"]["finalizers"] = json!([THEIRS]);
    berth.create(held).await;
    berth.until("it is put on", Berth::has_ours).await;
    assert_eq!(berth.finalizers(), json!([THEIRS, OURS]));
    berth.delete().await;
    berth.until("it is taken off", |berth| !berth.has_ours()).await;
    assert_eq!(berth.finalizers(), json!([THEIRS]));
    berth.let_pass(30).await;
    assert_eq!(berth.marks().len(), 2, "{:?}", berth.marks());
    berth.patch(json!({ "metadata": { "finalizers": null } })).await;
    assert!(berth.is_gone());
}

/// Somebody adds a finalizer between our look and our write: ours is refused, and comes the next time.
#[tokio::test(start_paused = true)]
async fn one_that_came_meanwhile_is_not_lost() {
    let berth = Berth::new();
    berth.server.faults().on(on_clusters(), Effect::conflict());
    berth.create(cluster(1)).await;
    berth.until("ours is refused", |berth| berth.server.calls().iter().any(refused)).await;
    berth.patch(json!({ "metadata": { "finalizers": [THEIRS] } })).await;
    berth.until("it is put on", Berth::has_ours).await;
    assert_eq!(berth.finalizers(), json!([THEIRS, OURS]));
    for body in berth.marks() {
        assert!(body["metadata"]["resourceVersion"].is_string() && body["metadata"]["uid"].is_string(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_with_it_is_overcome_and_holds_nothing_else_up() {
    for effect in [Effect::conflict(), Effect::code(500), Effect::LostAfter, Effect::Hang, Effect::too_many_requests(1)] {
        let berth = Berth::new();
        berth.server.faults().on(on_clusters(), effect.clone());
        berth.create(cluster(1)).await;
        berth.until("it serves", |berth| berth.crew.deeds().len() == 1 && berth.has_ours()).await;
        berth.server.faults().on(on_clusters(), effect.clone());
        berth.delete().await;
        berth.until("it is gone", Berth::is_gone).await;
    }
    let berth = Berth::new();
    berth.server.faults().on(on_clusters().always(), Effect::code(403));
    berth.create(cluster(1)).await;
    berth.until("it serves all the same", |berth| berth.crew.deeds().len() == 1 && berth.is_told()).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_what_runs() {
    let berth = Berth::new();
    let held = Arc::clone(&berth.tide).acquire_owned().await.unwrap();
    berth.create(cluster(1)).await;
    let seeds = |berth: &Berth| {
        berth.server.store().get("logbooks", NAMESPACE, "rss-harbour").unwrap_or_default()["spec"]["intents"].to_string()
    };
    berth.until("a hook runs", |berth| seeds(berth).contains("Seed")).await;
    berth.let_pass(2).await;
    berth.delete().await;
    berth.let_pass(60).await;
    assert!(berth.has_ours(), "it went while a hook ran");
    drop(held);
    berth.until("it is gone", Berth::is_gone).await;
    assert_eq!(berth.crew.deeds().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_ended_while_nobody_looked_goes_at_the_next_start() {
    let berth = Berth::with_cluster().await;
    let server = berth.server.clone();
    drop(berth);
    let berth = Berth { stop: CancellationToken::new(), server, crew: Crew::default(), tide: Arc::new(Semaphore::new(1)) };
    berth.delete().await;
    berth.let_pass(5).await;
    assert!(berth.has_ours());
    let next = Berth::on(&berth.server, "windlass", "");
    next.until("it is gone", Berth::is_gone).await;
}

/// As in a namespace that ends: the logbook went first, and no other one can be made.
#[tokio::test(start_paused = true)]
async fn without_a_logbook_it_is_taken_off_and_none_is_made() {
    let server = server();
    let berth = Berth { stop: CancellationToken::new(), server, crew: Crew::default(), tide: Arc::new(Semaphore::new(1)) };
    let mut made = cluster(1);
    made["metadata"]["finalizers"] = json!([OURS]);
    berth.create(made).await;
    berth.delete().await;
    berth.server.faults().on(CallMatch::any().verb(Verb::Create).resource("logbooks").always(), Effect::code(403));
    let next = Berth::on(&berth.server, "windlass", "");
    next.until("it is gone", Berth::is_gone).await;
    assert!(next.server.store().list("logbooks").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_release_that_does_not_hold_the_cluster_never_touches_it() {
    let mut made = labelled("stable");
    made["metadata"]["finalizers"] = json!([OURS]);
    let berth = Berth::on(&server(), "stable", "track=stable");
    berth.create(made).await;
    berth.until("it is claimed", |berth| berth.claim()["release"] == "ops/stable").await;
    let server = berth.server.clone();
    drop(berth);
    let other = Berth::on(&server, "canary", "");
    other.delete().await;
    other.let_pass(4).await;
    assert!(other.has_ours(), "the owner's Lease is not over yet");
    // The owner is dead: its Lease is missing for longer than its period and one call.
    other.until("it is gone", Berth::is_gone).await;
    assert_eq!(other.marks().len(), 1, "{:?}", other.marks());
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_takes_it_off_before_the_claim_is_given_up() {
    let berth = Berth::on(&server(), "stable", "track=stable");
    berth.create(labelled("stable")).await;
    berth.until("it is put on", Berth::has_ours).await;
    berth.move_to("nobody").await;
    berth.until("the claim is given up", |berth| berth.claim()["released"] == true).await;
    assert!(!berth.has_ours(), "nobody would let it end");
    berth.delete().await;
    assert!(berth.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_while_it_is_deleted_ends_too() {
    let berth = Berth::on(&server(), "stable", "track=stable");
    berth.create(labelled("stable")).await;
    berth.until("it is put on", Berth::has_ours).await;
    let held = Arc::clone(&berth.tide).acquire_owned().await.unwrap();
    berth.until("the hook is due", |berth| !berth.server.store().list("pods").is_empty()).await;
    berth.let_pass(5).await;
    berth.delete().await;
    berth.move_to("canary").await;
    let canary = Berth::on(&berth.server, "canary", "track=canary");
    drop(held);
    canary.until("it is gone", Berth::is_gone).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_changed_selector_left_behind_is_freed_at_the_next_start() {
    let berth = Berth::on(&server(), "stable", "");
    berth.create(labelled("nobody")).await;
    berth.until("it is put on", Berth::has_ours).await;
    let server = berth.server.clone();
    drop(berth);
    let narrow = Berth::on(&server, "stable", "track=stable");
    narrow.until("the claim is given up", |berth| berth.claim()["released"] == true).await;
    assert!(!narrow.has_ours());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_can_end() {
    let berth = Berth::new();
    let mut wreck = cluster(1);
    wreck["spec"] = json!({ "replicas": "three" });
    wreck["metadata"]["finalizers"] = json!([OURS]);
    wreck["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    berth.server.store().put_raw(wreck);
    berth.until("it is gone", Berth::is_gone).await;
}
