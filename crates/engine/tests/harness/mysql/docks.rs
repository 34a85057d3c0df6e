//! The simulated servers as the harness meets them: questions and watches, tasks that go on when nobody waits for them, what the kubelet
//! sees, and what is judged at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use windlass_kinds::mysql::deeds::{Deed, Place, Probe};
use windlass_kinds::mysql::facts::{End, Fact, News, Silence};
use windlass_kinds::mysql::gtid::GtidSet;
use windlass_kinds::mysql::simulation::Server;
use windlass_kinds::mysql::{MySql, Settings};
use windlass_testkit::FakeApiServer;
use windlass_testkit::world::StatefulSetController;

use super::super::kit::{NAMESPACE, Scenario, World, logbook_name};
use super::inner::{Inner, ended, failed, number};
use super::pods::{self, SIZE, host, pod_name};
use super::scenarios;

/// The lowest server id, as the scenarios ask for it.
pub(super) const FIRST_ID: u32 = 10;
/// How long a server takes to answer a question.
const ANSWER: Duration = Duration::from_millis(50);
/// How long somebody is waited for who does not answer.
const PATIENCE: Duration = Duration::from_millis(3500);
/// How often a watch hears something.
const BEAT: Duration = Duration::from_millis(200);
/// A commit that waited for so long does not keep anybody waiting for the end of a scenario.
const IMPATIENCE: Duration = Duration::from_mins(1);

/// The servers of the cluster.
pub struct Docks {
    server: FakeApiServer,
    inner: Arc<Mutex<Inner>>,
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
        Self { server: server.clone(), inner: Arc::new(Mutex::new(Inner::new())) }
    }

    fn fork(&self, server: &FakeApiServer) -> Self {
        Self { server: server.clone(), inner: Arc::new(Mutex::new(self.lock().copy())) }
    }

    fn settings() -> Settings {
        Settings { agent_image: "windlass:1".into(), ..Settings::default() }
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
        inner.count_closed();
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
        let identities = |(number, server): (usize, &Server)| {
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
                Probe::Source { .. } => panic!("no play has a server elsewhere"),
            };
            let (Probe::Look(place) | Probe::Watch(place) | Probe::Source { place, .. }) = probe;
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
