//! PD and the servers in their pods, and what goes on in them by itself: they start and end with their pods, regions and leaders move,
//! and tasks that were begun are done. And what must never be done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::oneshot;
use windlass_api::tidb::Component;
use windlass_kinds::tidb::answers::{Said, StoreState, Stores};
use windlass_kinds::tidb::deeds::{At, Deed, Pd, Probe, Server, Task};
use windlass_kinds::tidb::facts::{End, Fact};
use windlass_kinds::tidb::simulation::{SimulatedPd, SimulatedStore};

use super::super::play::moment;
use super::places::{NAMES, Objects, Place, places};

/// How long a server takes to start, and how long it waits before it tries again.
const START: Duration = Duration::from_secs(2);
/// How long a pod that is deleted goes on.
const ENDING: Duration = Duration::from_secs(2);
/// How long PD takes to do a task.
const TASK: Duration = Duration::from_millis(300);
/// How many regions a store gives away in a second, unless it is told otherwise.
const SPEED: u64 = 3;

/// A task that runs in PD.
struct Running {
    deed: Deed,
    ends: Duration,
    waiting: Option<oneshot::Sender<End>>,
}

/// What the kubelet is told of a pod.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) uid: String,
    pub(super) ready: bool,
    pub(super) restarts: u32,
    /// Whether it takes its time to end.
    pub(super) holds: bool,
    pub(super) crashed: Option<Duration>,
}

/// A server's stay in a pod.
#[derive(Clone)]
pub(super) struct Berth {
    pub(super) uid: String,
    /// Whether the server runs.
    pub(super) runs: bool,
    /// When it is started, while it does not run.
    starts: Duration,
    /// Whether it was started in vain.
    in_vain: bool,
    /// Since when it ends as soon as it is started: PD does not take what is on its volume.
    pub(super) crashed: Option<Duration>,
    /// When it ends, once the pod was deleted.
    pub(super) ends: Option<Duration>,
    /// How often it was started again.
    pub(super) restarts: u32,
}

/// What the servers are, and what is done to them.
pub(super) struct Inner {
    pub(super) now: Duration,
    pub(super) pd: SimulatedPd,
    pub(super) objects: Objects,
    /// The revision at which objects were looked at.
    pub(super) seen: u64,
    pub(super) berths: BTreeMap<String, Berth>,
    /// What is on a volume, by the UID of its claim: a store, or a member.
    held: BTreeMap<String, u64>,
    tasks: Vec<Running>,
    /// The highest epoch that PD has seen. It knows none; but whoever succeeds a dead one waits longer than a request of that one lives.
    epoch: u64,
    /// Servers that are kept from starting.
    pub(super) held_down: BTreeSet<String>,
    /// How many regions stores give away in a second, where that is not the usual number.
    pub(super) speeds: BTreeMap<String, u64>,
    /// What the kubelet was told last, by pod.
    pub(super) reported: BTreeMap<String, Reported>,
    pub(super) wrongs: BTreeSet<String>,
    /// Stores that are on their way out are told as if there were none: as if somebody took the unknown for gone.
    pub(super) gullible: bool,
}

impl Inner {
    /// A PD that nobody founded, and no servers.
    pub(super) fn new() -> Self {
        Self {
            now: Duration::ZERO,
            pd: SimulatedPd::new(moment(Duration::ZERO)),
            objects: Objects::default(),
            seen: 0,
            berths: BTreeMap::new(),
            held: BTreeMap::new(),
            tasks: Vec::new(),
            epoch: 0,
            held_down: BTreeSet::new(),
            speeds: BTreeMap::new(),
            reported: BTreeMap::new(),
            wrongs: BTreeSet::new(),
            gullible: false,
        }
    }

    /// The same once more. Nothing runs in it.
    pub(super) fn copy(&self) -> Self {
        Self {
            now: self.now,
            pd: self.pd.clone(),
            objects: self.objects.clone(),
            seen: 0,
            berths: self.berths.clone(),
            held: self.held.clone(),
            tasks: Vec::new(),
            epoch: self.epoch,
            held_down: self.held_down.clone(),
            speeds: self.speeds.clone(),
            reported: BTreeMap::new(),
            wrongs: self.wrongs.clone(),
            gullible: self.gullible,
        }
    }

    /// What is on the volume of a place.
    pub(super) fn on(&self, place: Place) -> Option<u64> {
        let claim = self.objects.claims.get(&place.claim()?)?;
        self.held.get(&claim.uid).copied()
    }

    /// Whether what is on the volume of a place is a store or a member that has not left.
    fn lives(&self, place: Place) -> bool {
        self.on(place).is_some_and(|id| self.is_in_pd(id))
    }

    fn is_in_pd(&self, id: u64) -> bool {
        let left = |store: &SimulatedStore| store.state == StoreState::Tombstone;
        self.pd.members.contains_key(&id) || self.pd.stores.get(&id).is_some_and(|store| !left(store))
    }

    /// Whether a server does what it is for.
    pub(super) fn serves(&self, place: Place) -> bool {
        if !self.berths.get(&place.pod()).is_some_and(|berth| berth.runs) {
            return false;
        }
        let on = self.on(place);
        match place.component {
            Component::Pd => on.is_some_and(|id| self.pd.members.get(&id).is_some_and(|it| it.alive)),
            Component::Tikv | Component::Tiflash => on.is_some_and(|id| self.pd.stores.get(&id).is_some_and(|it| it.alive)),
            _ => true,
        }
    }

    /// Time goes on in PD. True when a store came to its end.
    pub(super) fn pass(&mut self) -> bool {
        let left = |pd: &SimulatedPd| pd.stores.values().filter(|it| it.state == StoreState::Tombstone).count();
        let before = left(&self.pd);
        self.pd.pass(moment(self.now));
        left(&self.pd) != before
    }

    /// Servers live and end with their pods.
    pub(super) fn follow_pods(&mut self) -> bool {
        let mut moved = false;
        for place in places() {
            let name = place.pod();
            let pod = self.objects.pods.get(&name).cloned();
            if self.berths.get(&name).is_some_and(|berth| pod.as_ref().is_none_or(|pod| pod.uid != berth.uid)) {
                self.stop(place);
                self.berths.remove(&name);
                moved = true;
            }
            let Some(pod) = pod else { continue };
            let fresh = || Berth {
                uid: pod.uid.clone(),
                runs: false,
                starts: self.now + START,
                in_vain: false,
                crashed: None,
                ends: None,
                restarts: 0,
            };
            let berth = self.berths.entry(name.clone()).or_insert_with(fresh);
            if pod.deleting {
                berth.ends.get_or_insert(self.now + ENDING);
            }
            let (ended, due) = (berth.ends.is_some_and(|ends| ends <= self.now), !berth.runs && berth.starts <= self.now);
            if ended {
                moved |= berth.runs;
                self.stop(place);
            } else if due && berth.ends.is_none() && !self.held_down.contains(&name) {
                moved |= self.start(place);
            }
        }
        moved
    }

    /// A server starts, and finds its place in PD, or tries again later.
    fn start(&mut self, place: Place) -> bool {
        let (name, claim) = (place.pod(), place.claim().and_then(|claim| self.objects.claims.get(&claim)).cloned());
        let works = match (place.component, &claim) {
            (Component::Tidb, _) => true,
            (_, None) => false,
            (component, Some(claim)) => {
                let was = self.held.get(&claim.uid).copied();
                let speed = self.speeds.get(&name).copied().unwrap_or(SPEED);
                let id = match component {
                    Component::Pd => self.pd.start_member(&name, was),
                    _ => self.pd.start_store(&place.address(), component == Component::Tiflash, speed, was),
                };
                self.held.extend(id.map(|id| (claim.uid.clone(), id)));
                id.is_some()
            }
        };
        let (now, refused) =
            (self.now, !works && matches!(place.component, Component::Tikv | Component::Tiflash) && self.pd.serves());
        if let Some(berth) = self.berths.get_mut(&name) {
            (berth.runs, berth.starts, berth.in_vain) = (works, now + START, !works);
            berth.crashed = if refused { berth.crashed.or(Some(now)) } else { None };
        }
        works
    }

    /// A server ends.
    fn stop(&mut self, place: Place) {
        let again = self.now + START;
        let Some(berth) = self.berths.get_mut(&place.pod()) else { return };
        let ran = std::mem::replace(&mut berth.runs, false);
        (berth.starts, berth.in_vain) = (again, false);
        if let Some(id) = self.on(place).filter(|_| ran) {
            match place.component {
                Component::Pd => self.pd.stop_member(id),
                _ => self.pd.stop_store(id),
            }
        }
    }

    /// A server ends at once, and another process takes its place.
    pub(super) fn kill(&mut self, place: Place) {
        self.stop(place);
        if let Some(berth) = self.berths.get_mut(&place.pod()) {
            berth.restarts += 1;
        }
    }

    /// Whether a server that has to start or to end has not done so yet.
    pub(super) fn is_under_way(&self) -> bool {
        let moves = |(name, berth): (&String, &Berth)| match berth.ends {
            Some(ends) => ends > self.now,
            None => !berth.runs && !berth.in_vain && !self.held_down.contains(name),
        };
        !self.tasks.is_empty() || self.berths.iter().any(moves)
    }

    /// Whether regions or leaders are on their way.
    pub(super) fn are_regions_moving(&self) -> bool {
        let moves = |(id, store): (&u64, &SimulatedStore)| match store.state {
            StoreState::Offline => store.speed > 0 && self.pd.serves(),
            StoreState::Up if store.alive => store.regions < 12 || (self.pd.evicting.contains(id) && store.leaders > 0),
            _ => false,
        };
        self.pd.stores.iter().any(moves)
    }

    /// Tasks whose time has come are done.
    pub(super) fn end_tasks(&mut self) -> bool {
        let before = self.tasks.len();
        while let Some(index) = self.tasks.iter().position(|it| it.ends <= self.now) {
            let Running { deed, waiting, .. } = self.tasks.remove(index);
            let end = self.carry_out(&deed);
            if let Some(waiting) = waiting {
                // Nobody listens when the controller died meanwhile.
                let _gone = waiting.send(end);
            }
        }
        self.tasks.len() != before
    }

    fn carry_out(&mut self, deed: &Deed) -> End {
        let At::Pd(pd) = &deed.at else { panic!("{deed}: no play has such a server") };
        if self.reached(pd).is_none() {
            return End::Failed { why: "nobody answers".into() };
        }
        if let Task::DeleteStore { store, .. } = &deed.task {
            self.judge_parallelism(*store);
        }
        self.pd.act(pd.cluster, &deed.task)
    }

    /// Begins a task. What comes back at once is why it does not begin.
    pub(super) fn begin(&mut self, epoch: u64, deed: Deed, waiting: oneshot::Sender<End>) {
        if epoch < self.epoch {
            let _gone = waiting.send(End::Failed { why: "the sender was replaced".into() });
            return;
        }
        self.epoch = epoch;
        self.tasks.push(Running { deed, ends: self.now + TASK, waiting: Some(waiting) });
    }

    fn reaches(&self, server: &Server) -> bool {
        let berth = self.berths.get(&server.pod).filter(|berth| berth.runs && berth.uid == server.pod_uid);
        let pod = self.objects.pods.get(&server.pod).filter(|pod| pod.uid == server.pod_uid && pod.process == server.process);
        berth.is_some() && pod.is_some()
    }

    fn reached<'a>(&self, pd: &'a Pd) -> Option<&'a Server> {
        pd.servers.iter().find(|server| self.reaches(server))
    }

    /// What would be answered now.
    pub(super) fn sample(&self, probe: &Probe) -> Fact {
        match probe {
            Probe::Pd { pd, asked } => {
                let told = self.reached(pd).and_then(|by| {
                    let mut seen = self.pd.look()?;
                    if let (true, Ok(Stores::Listed(stores))) = (self.gullible, &mut seen.stores) {
                        stores.retain(|_, store| store.state != StoreState::Offline);
                    }
                    Some(Box::new((by.clone(), seen)))
                });
                Fact::Pd { asked: *asked, answer: told.ok_or_else(|| "no leader".to_owned()) }
            }
            Probe::Look { server, asked } => {
                let said = if self.reaches(server) { self.say(server) } else { None };
                Fact::Server {
                    server: Box::new(server.clone()),
                    asked: *asked,
                    answer: said.ok_or_else(|| "refused".to_owned()),
                }
            }
            // Nobody asks: its PD has no location labels.
            Probe::Node { server, asked } => {
                Fact::Node { server: Box::new(server.clone()), asked: *asked, answer: Err("no node".to_owned()) }
            }
        }
    }

    fn say(&self, server: &Server) -> Option<Said> {
        let place = places().find(|place| place.pod() == server.pod)?;
        let on = self.on(place);
        Some(match place.component {
            Component::Pd => Said::Pd { ready: on.is_some_and(|id| self.pd.members.contains_key(&id)) },
            Component::Tikv => Said::Tikv { leaders: self.pd.stores.get(&on?)?.leaders },
            Component::Tiflash => Said::Tiflash { running: self.pd.stores.contains_key(&on?) },
            _ => Said::Tidb,
        })
    }

    /// No pod goes whose store or member has not left, and no volume. The end of the whole cluster is the user's.
    pub(super) fn judge_objects(&mut self) {
        if self.objects.resource.is_none() {
            return;
        }
        let alive: Vec<Place> = places().filter(|place| self.lives(*place)).collect();
        for place in alive {
            let (name, set) = (place.pod(), NAMES.set(place.component));
            if self.objects.sizes.get(&set).is_some_and(|size| u64::from(place.ordinal.get()) >= *size) {
                self.wrongs.insert(format!("{set} leaves {name} out, and what is on its volume has not left PD"));
            }
            if place.claim().and_then(|claim| self.objects.claims.get(&claim)).is_some_and(|claim| claim.deleting) {
                self.wrongs.insert(format!("the volume of {name} is deleted, and what is on it has not left PD"));
            }
        }
    }

    /// Never more stores leave at once than may.
    fn judge_parallelism(&mut self, id: u64) {
        let Some(store) = self.pd.stores.get(&id).filter(|it| it.state == StoreState::Up) else { return };
        let component = if store.columns { "tiflash" } else { "tikv" };
        let under_way =
            self.pd.stores.values().filter(|it| it.columns == store.columns && it.state == StoreState::Offline).count();
        let spec = self.objects.resource.as_ref().map(|it| &it["spec"][component]["scalePolicy"]["scaleInParallelism"]);
        let allowed = spec.and_then(serde_json::Value::as_u64).unwrap_or(1);
        if u64::try_from(under_way).unwrap() >= allowed {
            self.wrongs.insert(format!("a store of {component} is sent away while {under_way} leave and {allowed} may"));
        }
    }
}
