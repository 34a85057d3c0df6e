//! PD and its stores as the harness meets them: questions, tasks that go on when nobody waits for them, what the kubelet sees, and
//! what is judged at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use windlass_api::tidb::keys;
use windlass_kinds::tidb::answers::StoreState;
use windlass_kinds::tidb::deeds::{Deed, Probe};
use windlass_kinds::tidb::facts::{End, Fact};
use windlass_kinds::tidb::{Settings, Tidb};
use windlass_testkit::world::StatefulSetController;
use windlass_testkit::{Call, FakeApiServer, Store};

use super::super::kit::{NAMESPACE, Scenario, World, logbook_name};
use super::super::play::moment;
use super::inner::{Inner, Reported};
use super::places::{self, NAMES, places};
use super::scenarios;

/// How long PD or a server takes to answer a question.
const ANSWER: Duration = Duration::from_millis(50);
/// How long a failed member is waited for.
const FAILED: Duration = Duration::from_mins(1);

/// PD and the servers of the cluster.
pub struct Quay {
    server: FakeApiServer,
    inner: Arc<Mutex<Inner>>,
}

fn ended(deed: Deed, end: End) -> Fact {
    Fact::Ended { deed: Box::new(deed), end }
}

fn unknown(why: &str) -> End {
    End::Unknown { why: why.to_owned() }
}

impl Quay {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Looks at the objects, if something was written since.
    fn look(&self, inner: &mut Inner) {
        let revision = self.server.revision();
        if inner.seen != revision {
            inner.seen = revision;
            inner.objects = places::look(&self.server);
            inner.judge_objects();
        }
    }
}

impl World for Quay {
    type Kind = Tidb;

    const CLUSTER: &'static str = places::CLUSTER;

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
        Settings { discovery_image: "windlass:1".into(), failover_period: FAILED, ..Settings::default() }
    }

    fn tick(&self, now: Duration) -> bool {
        let mut inner = self.lock();
        inner.now = now;
        self.look(&mut inner);
        let mut moved = inner.pass();
        moved |= inner.follow_pods();
        moved |= inner.end_tasks();
        moved
    }

    fn tell_kubelet(&self, kubelet: &mut StatefulSetController) -> bool {
        let mut inner = self.lock();
        let mut news = false;
        for place in places() {
            let name = place.pod();
            let report = match inner.berths.get(&name) {
                // Until its server was seen to work.
                None => Reported::default(),
                Some(berth) => Reported {
                    uid: berth.uid.clone(),
                    ready: inner.serves(place),
                    restarts: berth.restarts,
                    holds: berth.ends.is_none_or(|ends| ends > inner.now),
                    crashed: berth.crashed,
                },
            };
            if inner.reported.get(&name) == Some(&report) {
                continue;
            }
            if report.ready {
                kubelet.let_run(NAMESPACE, &name)
            } else {
                kubelet.keep_unready(NAMESPACE, &name)
            };
            kubelet.hold(NAMESPACE, &name, report.holds);
            if !report.uid.is_empty() {
                kubelet.restarted(&report.uid, report.restarts);
                kubelet.crashed(&report.uid, report.crashed.map(|since| moment(since).to_string()).as_deref());
            }
            inner.reported.insert(name, report);
            news = true;
        }
        news
    }

    fn is_busy(&self) -> bool {
        let inner = self.lock();
        inner.is_under_way() || inner.are_regions_moving()
    }

    fn wrongs(&self) -> Vec<String> {
        let inner = self.lock();
        inner.wrongs.iter().chain(&inner.pd.complaints).cloned().collect()
    }

    fn digest(&self) -> Value {
        let inner = self.lock();
        let (left, there): (Vec<_>, Vec<_>) = inner.pd.stores.values().partition(|store| store.state == StoreState::Tombstone);
        // How a silent one is told depends on for how long it is.
        let stores: BTreeMap<&str, String> =
            there.iter().map(|it| (it.address.as_str(), format!("{:?}, {}", it.state, it.alive))).collect();
        let mut left: Vec<&str> = left.iter().map(|it| it.address.as_str()).collect();
        left.sort_unstable();
        let members: BTreeMap<&str, bool> = inner.pd.members.values().map(|it| (it.name.as_str(), it.alive)).collect();
        let evicting: Vec<String> = inner.pd.evicting.iter().map(ToString::to_string).collect();
        json!({ "stores": stores, "left": left, "members": members, "evicting": evicting, "led": inner.pd.leader.is_some() })
    }

    /// Who leads PD, how often a set was written, and when somebody failed depend on what happened when.
    fn settle_status(&self, status: &mut Value) {
        let inner = self.lock();
        if let Some(leader) = status.pointer_mut("/pd/leader").filter(|it| !it.is_null()) {
            let name = leader["name"].as_str().unwrap_or_default();
            let leads = inner.pd.leader.and_then(|id| inner.pd.members.get(&id)).is_some_and(|it| it.name == name);
            *leader = if leads { "(who leads)".into() } else { "(who does not lead)".into() };
        }
        let silent: Vec<String> = inner.pd.stores.iter().filter(|(_, it)| !it.alive).map(|(id, _)| id.to_string()).collect();
        for (id, store) in status.pointer_mut("/tikv/stores").and_then(Value::as_object_mut).into_iter().flatten() {
            if silent.contains(id) && store["state"] != "Offline" {
                store["state"] = "(silent)".into();
            }
        }
        for block in status.as_object_mut().into_iter().flat_map(|status| status.values_mut()) {
            if let Some(set) = block.get_mut("statefulSet").and_then(Value::as_object_mut) {
                set.remove("observedGeneration");
            }
            if let Some(name) = block.get_mut("failoverUID").filter(|it| it.as_str().is_some_and(|it| !it.is_empty())) {
                *name = "(a name)".into();
            }
        }
    }

    /// A volume says itself that it is of no use, or it is on record that what is on it has left: the mark is stored on the very object
    /// that goes, before it goes, and stays readable after a restart, which is all that an intent in the logbook would do; the delete names
    /// the version that carries it. Whether it was set with right is not believed: `judge_objects` compares with what PD has. A set that is
    /// to be stopped is made again as it was.
    fn is_foretold(store: &Store, call: &Call) -> bool {
        let name = call.name.as_deref().unwrap_or_default();
        if call.resource == "statefulsets" {
            let resource = store.get("tidbclusters", NAMESPACE, Self::CLUSTER).unwrap_or_default();
            return !resource["spec"]["suspendAction"].is_null();
        }
        let claim = store.get("persistentvolumeclaims", NAMESPACE, name).unwrap_or_default();
        let marked = claim["metadata"]["annotations"][keys::PVC_DEFER_DELETING].as_str().is_some_and(|it| !it.is_empty());
        let logbook = store.get("logbooks", NAMESPACE, &logbook_name::<Self>()).unwrap_or_default();
        let left = |entry: &Value| {
            let claims = entry["claims"].as_array();
            entry["left"] == true && claims.is_some_and(|claims| claims.contains(&claim["metadata"]["uid"]))
        };
        marked || logbook["spec"]["tidb"]["members"].as_object().is_some_and(|members| members.values().any(left))
    }

    fn is_never_held(call: &Call) -> bool {
        let name = call.name.as_deref().or_else(|| call.body["metadata"]["name"].as_str()).unwrap_or_default();
        name.starts_with(&NAMES.discovery())
    }

    fn ask(&self, probe: Probe) -> BoxFuture<'static, Fact> {
        let inner = Arc::clone(&self.inner);
        async move {
            tokio::time::sleep(ANSWER).await;
            inner.lock().unwrap().sample(&probe)
        }
        .boxed()
    }

    fn begin(&self, epoch: u64, action: Deed) -> BoxFuture<'static, Fact> {
        let (waiting, end) = oneshot::channel();
        self.lock().begin(epoch, action.clone(), waiting);
        async move {
            let end = end.await.unwrap_or_else(|_| unknown("the connection ended before the task did"));
            ended(action, end)
        }
        .boxed()
    }

    fn lost(action: Deed) -> Fact {
        ended(action, unknown("connection reset"))
    }

    fn still_runs(action: Deed) -> Fact {
        ended(action, unknown("timed out"))
    }

    fn failed(action: Deed) -> Fact {
        ended(action, End::Failed { why: "PD says no".into() })
    }

    fn scenarios() -> Vec<Scenario<Self>> {
        scenarios::all()
    }
}
