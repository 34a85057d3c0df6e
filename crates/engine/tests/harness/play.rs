//! Plays a scenario from a snapshot to its end: one life of the controller after another, each in a runtime of its own, so that its
//! death takes every task of it along. Time is simulated and goes on over all lives.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_engine::{Calls, Clock, Controller, Health, Metrics, Settings};
use windlass_testkit::world::StatefulSetController;
use windlass_testkit::{Clock as ServerClock, FakeApiServer, Line};

use super::digest::digest;
use super::director::{Director, EXPIRY, Numbered};
use super::judge::{Breach, Law};
use super::kit::{NAMESPACE, Scene, Step, Wish, World};
use super::members::{Backstage, Life, Reach};
use super::sabotage::{self, Sabotage};

/// A cluster is at rest when nothing moved for this long: longer than the operator ever waits before it tries something again.
const REST: Duration = Duration::from_secs(50);
/// A fresh controller is left alone for this long before the script begins.
const SETTLE: Duration = Duration::from_secs(10);
/// A cluster that is not where it should be, and does not move for this long, is stuck. Longer than the operator waits for anybody: it
/// gives a store of TiDB five minutes to join.
const STUCK: Duration = Duration::from_mins(6);
/// No scenario takes longer than this.
const LONGEST: Duration = Duration::from_mins(40);
/// How long a fresh controller is shown the past.
const PAST: Duration = Duration::from_secs(15);
/// How often the world moves while something happens, and while nothing does.
const PACE: Duration = Duration::from_millis(100);
const SLOW_PACE: Duration = Duration::from_millis(500);
/// The day on which simulated time begins: 2026-01-01T00:00:00Z.
const FIRST_DAY: i64 = 1_767_225_600;

/// The moment at which so much simulated time has passed.
pub fn moment(time: Duration) -> Timestamp {
    Timestamp::from_second(FIRST_DAY).unwrap() + SignedDuration::try_from(time).unwrap()
}

/// A state from which scenarios can begin.
pub struct Snapshot<W> {
    server: FakeApiServer,
    world: W,
    kubernetes: StatefulSetController,
    time: Duration,
}

impl<W: World> Snapshot<W> {
    pub fn empty() -> Self {
        let server = FakeApiServer::new();
        let (world, kubernetes) = (W::new(&server), StatefulSetController::new(&server));
        Self { server, world, kubernetes, time: Duration::ZERO }
    }

    fn fork(&self) -> Self {
        let server = self.server.fork();
        let (world, kubernetes) = (self.world.fork(&server), self.kubernetes.fork(&server));
        Self { server, world, kubernetes, time: self.time }
    }

    pub fn world(&self) -> &W {
        &self.world
    }

    pub fn revision(&self) -> u64 {
        self.server.revision()
    }
}

/// What is played.
pub struct Part<'a, W> {
    pub script: &'a [Step<W>],
    pub goal: fn(&Scene<'_, W>) -> bool,
    /// Whether the first controller settles before the script begins.
    pub settles: bool,
    /// The revision that controllers are shown at first: the first one if it does not settle, else those after a crash.
    pub past: Option<u64>,
    /// The law that is broken on purpose.
    pub sabotage: Option<Sabotage>,
}

/// How it ended.
pub struct Ended<W> {
    pub calls: Vec<Numbered>,
    pub events: std::collections::BTreeMap<String, Vec<String>>,
    pub trace: Vec<String>,
    pub breaches: Vec<Breach>,
    pub digest: Value,
    /// The revision at which the script began.
    pub begun: u64,
    pub end: Snapshot<W>,
}

#[derive(PartialEq, Eq)]
enum Curtain {
    Killed,
    AtRest,
    Stuck,
}

struct Play<'a, W: World> {
    stage: Arc<Backstage<W>>,
    kubernetes: StatefulSetController,
    part: &'a Part<'a, W>,
    /// Steps of the script that were taken.
    taken: usize,
    settled: bool,
    begun: u64,
    base: Duration,
    /// Lines of the dead, on which requests may still lie.
    lines: Vec<Line>,
    /// Until then the aftermath of a perturbation may come.
    aftermath: Duration,
    /// The revision at which Kubernetes had nothing to do.
    idle_at: u64,
}

/// Plays a part from a snapshot.
pub fn play<W: World>(start: &Snapshot<W>, part: &Part<'_, W>, director: Director) -> Ended<W> {
    let Snapshot { server, world, kubernetes, time } = start.fork();
    let begun = server.revision();
    let stage = Arc::new(Backstage::new(server, world, director));
    let mut play = Play {
        stage,
        kubernetes,
        part,
        taken: 0,
        settled: !part.settles,
        begun,
        base: time,
        lines: Vec::new(),
        aftermath: Duration::ZERO,
        idle_at: 0,
    };
    if play.settled {
        play.stage.director.record();
    }
    let mut lives = 0;
    loop {
        let past = part.past.filter(|_| lives > 0 || !part.settles);
        let curtain = play.live(past);
        lives += 1;
        match curtain {
            Curtain::Killed => play.stage.director.note("the controller dies, another one begins"),
            Curtain::AtRest => break,
            Curtain::Stuck => {
                let why = format!("not at rest where it should be after {} s", play.base.checked_sub(time).unwrap().as_secs());
                play.stage.accuse(vec![Breach { law: Law::Rest, how: why }]);
                break;
            }
        }
    }
    play.finish()
}

impl<W: World> Play<'_, W> {
    fn scene(&self) -> Scene<'_, W> {
        Scene { server: &self.stage.server, world: &self.stage.world }
    }

    fn finish(self) -> Ended<W> {
        let stage = &self.stage;
        let wrongs = stage.world.wrongs();
        stage.accuse(wrongs.into_iter().map(|how| Breach { law: Law::World, how }).collect());
        let (server, world) = (stage.server.clone(), stage.world.fork(&stage.server));
        Ended {
            calls: stage.director.calls(),
            events: stage.director.events(),
            trace: stage.director.trace(),
            breaches: stage.breaches.lock().unwrap().clone(),
            digest: digest(&server, &world),
            begun: self.begun,
            end: Snapshot { server, world, kubernetes: self.kubernetes, time: self.base },
        }
    }

    /// One life of a controller. Its runtime ends with it, and every task with that.
    fn live(&mut self, past: Option<u64>) -> Curtain {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let life = Arc::new(Life::new(&self.stage));
        let line = self.stage.server.line(life.clone());
        self.lines.push(line.clone());
        let metrics = Arc::new(Metrics::default());
        let base = self.base;
        let curtain = runtime.block_on(async {
            let since = Instant::now();
            // Kubernetes and the operator have the same time.
            self.stage.server.set_clock(ServerClock::tokio(moment(base)));
            if let Some(past) = past {
                line.hold_view_at(past);
            }
            let calls = Calls::new(sabotage::client(&line, self.part.sabotage));
            start(&life, calls, &metrics, base, self.lines.len());
            let curtain = self.watch(&life, &line, since, past).await;
            self.base = base + since.elapsed();
            curtain
        });
        drop(runtime);
        if metrics.text().contains("windlass_panics_total{") {
            self.stage.accuse(vec![Breach { law: Law::NoPanic, how: "a panic was contained".into() }]);
        }
        curtain
    }

    /// Lets time pass until the controller dies or everything is at rest.
    async fn watch(&mut self, life: &Life<W>, line: &Line, since: Instant, past: Option<u64>) -> Curtain {
        let base = self.base;
        let client = self.stage.server.client();
        let (mut moved, mut calls) = (since, 0);
        loop {
            let now = base + since.elapsed();
            let happened = self.stage.world.tick(now) | self.run_kubernetes() | self.act(&client).await;
            let count = self.stage.director.count();
            if happened || count != calls || self.stage.world.is_busy() {
                (moved, calls) = (Instant::now(), count);
            }
            if past.is_some() && since.elapsed() > PAST {
                line.release_view();
            }
            if self.stage.director.take_struck_event() {
                self.aftermath = now + EXPIRY + SETTLE;
            }
            if life.is_dead() {
                return Curtain::Killed;
            }
            if !self.settled && moved.elapsed() > SETTLE {
                self.settled = true;
                self.begun = self.stage.server.revision();
                self.stage.director.record();
                moved = Instant::now();
            }
            let still = moved.elapsed();
            let complete = self.settled && self.taken == self.part.script.len() && now > self.aftermath;
            let shown = past.is_none() || since.elapsed() > PAST + REST;
            if still > REST && complete && shown && (self.part.goal)(&self.scene()) {
                if !self.deliver_late() {
                    return Curtain::AtRest;
                }
                moved = Instant::now();
            }
            if still > STUCK || since.elapsed() > LONGEST {
                return Curtain::Stuck;
            }
            let pace = if still < Duration::from_secs(3) { PACE } else { SLOW_PACE };
            tokio::select! {
                biased;
                () = life.died.notified() => return Curtain::Killed,
                () = tokio::time::sleep(pace) => {}
            }
        }
    }

    /// Lets the controllers of Kubernetes work, if there is anything that they have not seen. True when they did something.
    fn run_kubernetes(&mut self) -> bool {
        if self.stage.world.tell_kubelet(&mut self.kubernetes) {
            self.idle_at = 0;
        }
        if self.stage.server.revision() == self.idle_at {
            return false;
        }
        let worked = self.kubernetes.step() > 0;
        self.idle_at = if worked { 0 } else { self.stage.server.revision() };
        worked
    }

    /// Takes the next step of the script, if it is time for it.
    async fn act(&mut self, client: &Client) -> bool {
        let Some(step) = self.part.script.get(self.taken).filter(|_| self.settled) else { return false };
        if !(step.when)(&self.scene()) {
            return false;
        }
        let wishes = (step.act)(&self.scene());
        self.taken += 1;
        for wish in wishes {
            self.stage.director.note(format!("the user: {}", shortened(&wish)));
            grant::<W>(client, wish).await;
        }
        true
    }

    /// What the dead sent arrives at last. True when there was something.
    fn deliver_late(&self) -> bool {
        let requests: Vec<_> = self.lines.iter().flat_map(Line::deliver_kept).collect();
        for request in &requests {
            self.stage.director.note(format!("a late request arrives: {request:?}"));
        }
        let actions = std::mem::take(&mut *self.stage.late.lock().unwrap());
        for (epoch, action) in &actions {
            self.stage.director.note(format!("a late hook arrives: {action}"));
            drop(self.stage.world.begin(*epoch, action.clone()));
        }
        !requests.is_empty() || !actions.is_empty()
    }
}

fn shortened(wish: &Wish) -> String {
    format!("{wish:?}").chars().take(160).collect()
}

/// Starts a controller at this time. Each is another process of the same release.
fn start<W: World>(life: &Arc<Life<W>>, calls: Calls, metrics: &Arc<Metrics>, time: Duration, number: usize) {
    let mut settings = Settings { clock: Clock::Counted { start: moment(time), since: Instant::now() }, ..Settings::default() };
    settings.identity.release = "ops/windlass".into();
    // A time is not enough: two may begin at the same one.
    settings.identity.holder = format!("process-{}-{number}", time.as_millis());
    let (metrics, members) = (Arc::clone(metrics), Reach(Arc::clone(life)));
    tokio::spawn(async move {
        let mut controller = Controller::start(calls, metrics, settings, CancellationToken::new());
        controller.wait_until_synced(&Health::default()).await;
        controller.run::<W::Kind, _>(members, W::settings()).await;
    });
}

/// Does what a person wishes, as any client would.
async fn grant<W: World>(client: &Client, wish: Wish) {
    let resource = ApiResource::erase::<<W::Kind as windlass_core::kind::Kind>::Resource>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    match wish {
        Wish::Create(object) => {
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.map(drop).unwrap();
        }
        Wish::Patch(patch) => {
            api.patch(W::CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop).unwrap();
        }
        Wish::Delete => api.delete(W::CLUSTER, &DeleteParams::default()).await.map(drop).unwrap(),
        Wish::DeleteObject(plural, name) => send(client, "DELETE", &path_of(plural, &name), Value::Null).await,
        Wish::PatchObject(plural, name, patch) => send(client, "PATCH", &path_of(plural, &name), patch).await,
        Wish::CreateObject(plural, object) => send(client, "POST", &path_of(plural, ""), object).await,
    }
}

async fn send(client: &Client, method: &str, path: &str, body: Value) {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind).body(body).unwrap();
    client.request_text(request).await.map(drop).unwrap();
}

fn path_of(plural: &str, name: &str) -> String {
    let root = match plural {
        "statefulsets" => "/apis/apps/v1",
        "poddisruptionbudgets" => "/apis/policy/v1",
        "logbooks" => "/apis/windlass.dev/v1alpha1",
        _ => "/api/v1",
    };
    format!("{root}/namespaces/{NAMESPACE}/{plural}/{name}").trim_end_matches('/').to_owned()
}
