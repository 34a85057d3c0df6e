//! The simulated servers in their pods: tasks that take their time and go on when nobody waits for them, questions, watches, and
//! clients that write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::mysql::deeds::{Deed, Place, Probe, Task};
use windlass_kinds::mysql::facts::{End, Fact, News, Silence};
use windlass_kinds::mysql::gtid::GtidSet;
use windlass_kinds::mysql::simulation::Servers;
use windlass_kinds::mysql::{MySql, Settings};
use windlass_testkit::FakeApiServer;
use windlass_testkit::world::StatefulSetController;

use super::super::kit::{NAMESPACE, Scenario, World, logbook_name};
use super::pods::{self, Pod, SIZE, host, number_of, pod_name};
use super::scenarios;

/// The lowest server id, as the scenarios ask for it.
pub(super) const FIRST_ID: u32 = 10;
/// How long a server takes to answer a question.
const ANSWER: Duration = Duration::from_millis(50);
/// How long somebody is waited for who does not answer.
const PATIENCE: Duration = Duration::from_millis(3500);
/// How often a watch hears something.
const BEAT: Duration = Duration::from_millis(200);
/// How often clients write a row.
const ROW: Duration = Duration::from_millis(300);
/// How long a server takes to start.
const START: Duration = Duration::from_secs(2);
/// How long a primary whose pod is deleted goes on: long enough for a successor of a dead controller, which is shown the past at first.
const GRACE: Duration = Duration::from_secs(90);
/// How long a pod that is deleted goes on without the office.
const ENDING: Duration = Duration::from_secs(3);
/// A commit that waited for so long does not keep anybody waiting for the end of a scenario.
const IMPATIENCE: Duration = Duration::from_mins(1);

/// A task that runs on a server.
struct Running {
    deed: Deed,
    epoch: u64,
    process: u32,
    ends: Duration,
    waiting: Option<oneshot::Sender<End>>,
}

/// A server's stay in a pod.
#[derive(Clone)]
struct Berth {
    uid: String,
    /// The number of the first process in it.
    first: u32,
    /// When its server starts, while it does not run.
    starts: Option<Duration>,
    /// When it ends, once the pod was deleted.
    ends: Option<Duration>,
}

/// What the servers are, and what is done to them.
pub(super) struct Inner {
    pub(super) now: Duration,
    pub(super) servers: Servers,
    berths: BTreeMap<usize, Berth>,
    pods: [Option<Pod>; SIZE],
    /// The volumes that servers had last.
    volumes: BTreeMap<usize, String>,
    tasks: Vec<Running>,
    /// The highest epoch that each process has seen: whoever comes with a higher one ends the sessions of those before.
    epochs: BTreeMap<(usize, u32), u64>,
    /// Servers that are kept from starting.
    pub(super) held_down: BTreeSet<usize>,
    /// Servers that nobody reaches until then, clients aside.
    pub(super) cut_off: BTreeMap<usize, Duration>,
    pub(super) rows_wanted: u128,
    next_row: Duration,
    /// How many rows clients were told of, and since when.
    told: (u128, Duration),
    /// The recorded primary, once there is one.
    primary: Option<usize>,
    /// What the kubelet was told last, by pod.
    reported: BTreeMap<usize, (String, bool, u32, bool)>,
    /// The revision at which objects were looked at.
    seen: u64,
    /// A copy that somebody keeps of an object.
    pub(super) copy: Option<Value>,
}

/// The servers of the cluster.
pub struct Docks {
    server: FakeApiServer,
    inner: Arc<Mutex<Inner>>,
}

fn duration(task: &Task) -> Duration {
    match task {
        Task::Clone { .. } | Task::Replace { .. } => Duration::from_secs(5),
        Task::CatchUp { .. } | Task::Save { .. } => Duration::from_secs(1),
        _ => Duration::from_millis(300),
    }
}

fn number(place: &Place) -> usize {
    usize::from(place.ordinal.get())
}

fn ended(deed: Deed, end: End) -> Fact {
    Fact { place: deed.place, news: News::Ended { task: deed.task, end } }
}

fn failed(why: &str) -> End {
    End::Failed { why: why.to_owned() }
}

impl Inner {
    /// The same servers once more. Nothing runs on them.
    fn copy(&self) -> Self {
        Self {
            now: self.now,
            servers: self.servers.clone(),
            berths: self.berths.clone(),
            pods: self.pods.clone(),
            volumes: self.volumes.clone(),
            tasks: Vec::new(),
            epochs: self.epochs.clone(),
            held_down: self.held_down.clone(),
            cut_off: self.cut_off.clone(),
            rows_wanted: self.rows_wanted,
            next_row: self.next_row,
            told: self.told,
            primary: self.primary,
            reported: BTreeMap::new(),
            seen: 0,
            copy: self.copy.clone(),
        }
    }

    /// Servers live and end with their pods.
    fn follow_pods(&mut self) -> bool {
        let mut moved = false;
        for number in 0..SIZE {
            let pod = self.pods[number].clone();
            let server = &mut self.servers.all[number];
            if self.berths.get(&number).is_some_and(|berth| pod.as_ref().is_none_or(|pod| pod.uid != berth.uid)) {
                server.crash();
                self.berths.remove(&number);
                moved = true;
            }
            let Some(pod) = pod else { continue };
            if !self.berths.contains_key(&number) {
                if self.volumes.insert(number, pod.claim.clone()).is_some_and(|before| before != pod.claim) {
                    server.wipe(server.next_identity());
                }
                let berth =
                    Berth { uid: pod.uid.clone(), first: server.process + 1, starts: Some(self.now + START), ends: None };
                self.berths.insert(number, berth);
                moved = true;
            }
            let Some(berth) = self.berths.get_mut(&number) else { continue };
            if pod.deleting {
                let latest = *berth.ends.get_or_insert(self.now + GRACE);
                if self.primary != Some(number) {
                    berth.ends = Some(latest.min(self.now + ENDING));
                }
            }
            if berth.ends.is_some_and(|ends| ends <= self.now) {
                moved |= server.up;
                server.crash();
            } else if !server.up {
                let starts = *berth.starts.get_or_insert(self.now + START);
                if starts <= self.now && !self.held_down.contains(&number) {
                    server.start();
                    (berth.starts, moved) = (None, true);
                }
            }
        }
        moved
    }

    fn reach(&mut self) {
        for (number, server) in self.servers.all.iter_mut().enumerate() {
            let cut_off = self.cut_off.get(&number).is_some_and(|until| *until > self.now);
            (server.reachable, server.linked) = (!cut_off, !cut_off);
        }
    }

    /// Tasks whose time has come are done. Those of a server that ended end with it.
    fn end_tasks(&mut self) -> bool {
        let before = self.tasks.len();
        let servers = &self.servers.all;
        self.tasks.retain(|it| {
            let server = &servers[number(&it.deed.place)];
            server.up && server.process == it.process
        });
        while let Some(index) = self.tasks.iter().position(|it| it.ends <= self.now) {
            let Running { deed, waiting, .. } = self.tasks.remove(index);
            let pods = &self.pods;
            let end = self.servers.carry_out(deed.place.ordinal, &deed.task, |host| number_of(pods, host));
            if let Some(waiting) = waiting {
                // Nobody listens when the controller died meanwhile.
                let _gone = waiting.send(end);
            }
        }
        self.tasks.len() != before
    }

    /// What was received a moment ago is acknowledged and applied; then more is received.
    fn replicate(&mut self) -> bool {
        let mut moved = false;
        for number in 0..SIZE {
            if !self.servers.all[number].up {
                continue;
            }
            let applied = self.servers.all[number].executed.count();
            self.servers.acknowledge(number);
            self.servers.all[number].apply();
            moved |= self.servers.all[number].executed.count() != applied;
            moved |= self.servers.receive(number);
        }
        moved
    }

    /// Clients may reach anybody who takes writes.
    fn write(&mut self) -> bool {
        let told = self.servers.told.count();
        let moved = told != self.told.0;
        if moved {
            self.told = (told, self.now);
        }
        if told >= self.rows_wanted || self.next_row > self.now {
            return moved;
        }
        self.next_row = self.now + ROW;
        for number in 0..SIZE {
            if self.servers.all[number].waiting.is_empty() {
                self.servers.write(number);
            }
        }
        moved
    }

    fn has_writer(&self) -> bool {
        self.servers.all.iter().any(|server| server.up && !server.read_only)
    }

    /// Begins a task. What comes back at once is why it does not begin.
    fn begin(&mut self, epoch: u64, deed: Deed, waiting: oneshot::Sender<End>) {
        let at = number(&deed.place);
        let is_meant = |pod: &Pod| pod.uid == deed.place.pod_uid && pod.process == deed.place.process;
        let server = &self.servers.all[at];
        let why = match &self.pods[at] {
            Some(pod) if is_meant(pod) && server.up && server.reachable => None,
            Some(pod) if is_meant(pod) => Some("nobody answers"),
            _ => Some("it was replaced since this was decided"),
        };
        let seen = self.epochs.entry((at, server.process)).or_default();
        let why = why.or_else(|| (epoch < *seen).then_some("the sender was replaced, and its session was ended"));
        if let Some(why) = why {
            let _gone = waiting.send(failed(why));
            return;
        }
        *seen = epoch;
        self.tasks.retain(|it| number(&it.deed.place) != at || it.epoch >= epoch);
        let (process, ends) = (server.process, self.now + duration(&deed.task));
        self.tasks.push(Running { deed, epoch, process, ends, waiting: Some(waiting) });
    }

    /// How a server is heard in this pod, if it is silent.
    fn silence(&self, place: &Place) -> Option<Silence> {
        let at = number(place);
        let server = &self.servers.all[at];
        match self.pods[at].as_ref().filter(|pod| pod.uid == place.pod_uid) {
            Some(_) if server.up && server.reachable => None,
            Some(_) if !server.reachable => Some(Silence::Unreachable),
            _ => Some(Silence::Closed),
        }
    }

    /// Everything that clients were told of, as it is at the primary.
    fn is_complete(&self, number: usize) -> bool {
        self.servers.told.is_within(&self.servers.all[number].executed)
    }
}

impl Docks {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Looks at the objects, if something was written since.
    fn look(&self, inner: &mut Inner) {
        let revision = self.server.revision();
        if inner.seen == revision {
            return;
        }
        inner.seen = revision;
        inner.pods = pods::look(&self.server);
        let logbook = self.server.store().get("logbooks", NAMESPACE, &logbook_name::<Self>()).unwrap_or_default();
        inner.primary = logbook["spec"]["mysql"]["primary"].as_u64().and_then(|it| usize::try_from(it).ok());
    }
}

impl World for Docks {
    type Kind = MySql;

    const CLUSTER: &'static str = "harbour";

    fn new(server: &FakeApiServer) -> Self {
        for definition in windlass_api::custom_resource_definitions() {
            server.register_crd(&definition);
        }
        let mut servers = Servers::new(SIZE);
        servers.all.iter_mut().for_each(|it| it.up = false);
        let inner = Inner {
            now: Duration::ZERO,
            servers,
            berths: BTreeMap::new(),
            pods: std::array::from_fn(|_| None),
            volumes: BTreeMap::new(),
            tasks: Vec::new(),
            epochs: BTreeMap::new(),
            held_down: BTreeSet::new(),
            cut_off: BTreeMap::new(),
            rows_wanted: 0,
            next_row: Duration::ZERO,
            told: (0, Duration::ZERO),
            primary: None,
            reported: BTreeMap::new(),
            seen: 0,
            copy: None,
        };
        Self { server: server.clone(), inner: Arc::new(Mutex::new(inner)) }
    }

    fn fork(&self, server: &FakeApiServer) -> Self {
        Self { server: server.clone(), inner: Arc::new(Mutex::new(self.lock().copy())) }
    }

    fn settings() -> Settings {
        Settings { agent_image: "windlass:1".into() }
    }

    fn tick(&self, now: Duration) -> bool {
        let mut inner = self.lock();
        inner.now = now;
        self.look(&mut inner);
        inner.reach();
        let mut moved = inner.follow_pods();
        moved |= inner.end_tasks();
        moved |= inner.replicate();
        moved |= inner.write();
        // One that takes writes already need not be opened.
        if let Some(primary) = inner.primary.filter(|it| inner.servers.all[*it].up && !inner.servers.all[*it].read_only) {
            inner.servers.holds(primary);
        }
        moved
    }

    fn tell_kubelet(&self, kubelet: &mut StatefulSetController) -> bool {
        let mut inner = self.lock();
        let mut news = false;
        for number in 0..SIZE {
            let name = pod_name(number);
            let report = match inner.berths.get(&number) {
                // Until its server was seen to work.
                None => (String::new(), false, 0, false),
                Some(berth) => {
                    let server = &inner.servers.all[number];
                    let ready = server.up && (!server.read_only || (server.connects && server.applies));
                    let ended = berth.ends.is_some_and(|ends| ends <= inner.now);
                    (berth.uid.clone(), ready, server.process.saturating_sub(berth.first), !ended)
                }
            };
            if inner.reported.get(&number) == Some(&report) {
                continue;
            }
            let (uid, ready, restarts, holds) = report.clone();
            inner.reported.insert(number, report);
            if ready {
                kubelet.let_run(NAMESPACE, &name)
            } else {
                kubelet.keep_unready(NAMESPACE, &name)
            };
            kubelet.hold(NAMESPACE, &name, holds);
            if !uid.is_empty() {
                kubelet.restarted(&uid, restarts);
            }
            news = true;
        }
        news
    }

    fn is_busy(&self) -> bool {
        let inner = self.lock();
        let starts = inner.berths.iter().any(|(number, it)| it.starts.is_some() && !inner.held_down.contains(number));
        let ends = inner.berths.values().any(|it| it.ends.is_some_and(|ends| ends > inner.now));
        let writes = inner.told.0 < inner.rows_wanted && inner.has_writer() && inner.told.1 + IMPATIENCE > inner.now;
        let cut_off = inner.cut_off.values().any(|until| *until > inner.now);
        !inner.tasks.is_empty() || starts || ends || writes || cut_off
    }

    fn wrongs(&self) -> Vec<String> {
        let inner = self.lock();
        let servers = inner.servers.all.iter().enumerate();
        let writers: Vec<usize> = servers.filter(|(_, it)| it.up && !it.read_only).map(|(number, _)| number).collect();
        let lacking = writers.iter().filter(|number| !inner.is_complete(**number));
        let lacking = lacking.map(|number| {
            let lost = inner.servers.told.without(&inner.servers.all[*number].executed);
            format!("server {number} takes writes at the end, and lacks {lost}, which clients were told of")
        });
        let many = (writers.len() > 1).then(|| format!("servers {writers:?} take writes at the end"));
        inner.servers.complaints.iter().cloned().chain(lacking).chain(many).collect()
    }

    fn digest(&self) -> Value {
        let inner = self.lock();
        let server = |number: usize| {
            let it = &inner.servers.all[number];
            json!({
                "up": it.up,
                "open": it.up && !it.read_only,
                "follows": it.source.filter(|_| it.up && it.connects),
                "applies": it.up && it.applies,
                "acknowledges": it.up && it.acknowledges,
                "awaits": it.awaits.filter(|_| it.up),
                // How far a stopped one got depends on when it was stopped.
                "complete": it.up.then(|| inner.is_complete(number)),
                "saved": !it.saved.is_empty(),
            })
        };
        let servers: BTreeMap<String, Value> = (0..SIZE).map(|number| (format!("server {number}"), server(number))).collect();
        json!({ "servers": servers, "rows": inner.servers.told.count() >= inner.rows_wanted })
    }

    fn names(&self) -> BTreeMap<String, String> {
        let inner = self.lock();
        let identities = |(number, server): (usize, &windlass_kinds::mysql::simulation::Server)| {
            let named = server
                .identities()
                .enumerate()
                .map(move |(time, uuid)| (uuid.to_string(), format!("server {number} ({time})")));
            named.collect::<Vec<_>>()
        };
        inner.servers.all.iter().enumerate().flat_map(identities).collect()
    }

    fn settle_logbook(&self, logbook: &mut Value) {
        let inner = self.lock();
        let Some(floor) = logbook.pointer_mut("/mysql/floor").filter(|it| !it.is_null()) else { return };
        let set: GtidSet = floor.as_str().unwrap_or_default().parse().unwrap();
        let primary = inner.primary.map(|number| inner.servers.all[number].has()).unwrap_or_default();
        // Where it lies depends on when it was read.
        *floor = if set.is_within(&primary) { "(what the primary had)".into() } else { "(what the primary lacks)".into() };
    }

    fn ask(&self, probe: Probe) -> BoxFuture<'static, Fact> {
        let inner = Arc::clone(&self.inner);
        let silence = move |place: &Place| inner.lock().unwrap().silence(place);
        let inner = Arc::clone(&self.inner);
        async move {
            let news = match &probe {
                Probe::Look(place) => {
                    tokio::time::sleep(ANSWER).await;
                    let known = inner.lock().unwrap().servers.look(number(place), host, FIRST_ID);
                    match (silence(place), known) {
                        (None, Some(known)) => News::Seen(Box::new(known)),
                        (how, _) => {
                            if how == Some(Silence::Unreachable) {
                                tokio::time::sleep(PATIENCE).await;
                            }
                            News::Silent { how: how.unwrap_or(Silence::Closed), why: "no answer".into() }
                        }
                    }
                }
                Probe::Watch(place) => {
                    let process = inner.lock().unwrap().servers.all[number(place)].process;
                    let gone = |place: &Place| {
                        let other = inner.lock().unwrap().servers.all[number(place)].process != process;
                        silence(place).or(other.then_some(Silence::Closed))
                    };
                    let how = loop {
                        tokio::time::sleep(BEAT).await;
                        if let Some(how) = gone(place) {
                            break how;
                        }
                    };
                    let quiet = if how == Silence::Closed { BEAT } else { PATIENCE };
                    tokio::time::sleep(quiet.saturating_sub(BEAT)).await;
                    News::Gone { how, quiet, why: "no answer".into() }
                }
            };
            let (Probe::Look(place) | Probe::Watch(place)) = probe;
            Fact { place, news }
        }
        .boxed()
    }

    fn begin(&self, epoch: u64, action: Deed) -> BoxFuture<'static, Fact> {
        let (waiting, end) = oneshot::channel();
        let mut inner = self.lock();
        self.look(&mut inner);
        inner.begin(epoch, action.clone(), waiting);
        async move {
            let end = end.await.unwrap_or_else(|_| End::Unknown { why: "the connection ended before the task did".into() });
            ended(action, end)
        }
        .boxed()
    }

    fn lost(action: Deed) -> Fact {
        ended(action, End::Unknown { why: "connection reset".into() })
    }

    fn still_runs(action: Deed) -> Fact {
        ended(action, End::StillRunning)
    }

    fn failed(action: Deed) -> Fact {
        ended(action, failed("the server says no"))
    }

    fn scenarios() -> Vec<Scenario<Self>> {
        scenarios::all()
    }
}

#[test]
fn hosts_and_addresses_are_those_of_the_instances() {
    let mut pods: [Option<Pod>; SIZE] = std::array::from_fn(|_| None);
    let text = String::new;
    pods[3] = Some(Pod { uid: text(), address: "10.64.0.9".into(), deleting: false, claim: text(), process: text() });
    assert_eq!((number_of(&pods, &host(2)), number_of(&pods, "10.64.0.9")), (Some(2), Some(3)));
    assert_eq!(Ordinal::new(2).pod_name(pods::SET), pod_name(2));
}
