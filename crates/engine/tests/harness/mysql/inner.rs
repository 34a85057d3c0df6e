//! The servers in their pods, and what goes on in them by itself: they start and end with their pods, replicate, do the tasks that were
//! begun, and take the writes of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use windlass_kinds::mysql::deeds::{Deed, Place, Task};
use windlass_kinds::mysql::facts::{End, Fact, News, Silence};
use windlass_kinds::mysql::simulation::Servers;

use super::pods::{Pod, SIZE, number_of};

/// How often clients write a row.
const ROW: Duration = Duration::from_millis(300);
/// How long a server takes to start.
const START: Duration = Duration::from_secs(2);
/// How long a primary whose pod is deleted goes on: long enough for a successor of a dead controller, which is shown the past at first.
const GRACE: Duration = Duration::from_secs(90);
/// How long a pod that is deleted goes on without the office.
const ENDING: Duration = Duration::from_secs(3);

/// A task that runs on a server.
pub(super) struct Running {
    deed: Deed,
    epoch: u64,
    process: u32,
    ends: Duration,
    waiting: Option<oneshot::Sender<End>>,
}

/// A server's stay in a pod.
#[derive(Clone)]
pub(super) struct Berth {
    pub(super) uid: String,
    /// The number of the first process in it.
    pub(super) first: u32,
    /// When its server starts, while it does not run.
    pub(super) starts: Option<Duration>,
    /// When it ends, once the pod was deleted.
    pub(super) ends: Option<Duration>,
}

/// What the servers are, and what is done to them.
pub(super) struct Inner {
    pub(super) now: Duration,
    pub(super) servers: Servers,
    pub(super) berths: BTreeMap<usize, Berth>,
    pub(super) pods: [Option<Pod>; SIZE],
    /// The volumes that servers had last.
    pub(super) volumes: BTreeMap<usize, String>,
    pub(super) tasks: Vec<Running>,
    /// The highest epoch that each process has seen: whoever comes with a higher one ends the sessions of those before.
    pub(super) epochs: BTreeMap<(usize, u32), u64>,
    /// Servers that are kept from starting.
    pub(super) held_down: BTreeSet<usize>,
    /// Servers that nobody reaches until then, clients aside.
    pub(super) cut_off: BTreeMap<usize, Duration>,
    pub(super) rows_wanted: u128,
    pub(super) next_row: Duration,
    /// How many rows clients were told of, and since when.
    pub(super) told: (u128, Duration),
    /// The recorded primary, once there is one.
    pub(super) primary: Option<usize>,
    /// What the kubelet was told last, by pod.
    pub(super) reported: BTreeMap<usize, (String, bool, u32, bool)>,
    /// The revision at which objects were looked at.
    pub(super) seen: u64,
    /// A copy that somebody keeps of an object.
    pub(super) copy: Option<Value>,
    /// Whether servers acknowledge what is not on their disks.
    pub(super) careless: bool,
    /// When a server was last seen to take writes.
    last_open: Option<Duration>,
    /// For how long at the most none did, until one did again.
    pub(super) longest_closed: Duration,
}

fn duration(task: &Task) -> Duration {
    match task {
        Task::Clone { .. } | Task::Replace { .. } => Duration::from_secs(5),
        Task::CatchUp { .. } | Task::Save { .. } => Duration::from_secs(1),
        _ => Duration::from_millis(300),
    }
}

pub(super) fn number(place: &Place) -> usize {
    usize::from(place.ordinal.get())
}

pub(super) fn ended(deed: Deed, end: End) -> Fact {
    Fact { place: deed.place, news: News::Ended { task: deed.task, end } }
}

pub(super) fn failed(why: &str) -> End {
    End::Failed { why: why.to_owned() }
}

impl Inner {
    /// Servers that have no pods yet.
    pub(super) fn new() -> Self {
        let mut servers = Servers::new(SIZE);
        servers.all.iter_mut().for_each(|it| it.up = false);
        Self {
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
            careless: false,
            last_open: None,
            longest_closed: Duration::ZERO,
        }
    }

    /// The same servers once more. Nothing runs on them.
    pub(super) fn copy(&self) -> Self {
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
            careless: self.careless,
            last_open: self.last_open,
            longest_closed: self.longest_closed,
        }
    }

    /// Servers live and end with their pods.
    pub(super) fn follow_pods(&mut self) -> bool {
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

    pub(super) fn reach(&mut self) {
        for (number, server) in self.servers.all.iter_mut().enumerate() {
            let cut_off = self.cut_off.get(&number).is_some_and(|until| *until > self.now);
            (server.reachable, server.linked) = (!cut_off, !cut_off);
        }
    }

    /// Tasks whose time has come are done. Those of a server that ended end with it.
    pub(super) fn end_tasks(&mut self) -> bool {
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
    pub(super) fn replicate(&mut self) -> bool {
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
    pub(super) fn write(&mut self) -> bool {
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

    /// Notes whether a server takes writes.
    pub(super) fn count_closed(&mut self) {
        if self.has_writer() {
            let before = self.last_open.replace(self.now).unwrap_or(self.now);
            self.longest_closed = self.longest_closed.max(self.now.saturating_sub(before));
        }
    }

    pub(super) fn has_writer(&self) -> bool {
        self.servers.all.iter().any(|server| server.up && !server.read_only)
    }

    /// Begins a task. What comes back at once is why it does not begin.
    pub(super) fn begin(&mut self, epoch: u64, deed: Deed, waiting: oneshot::Sender<End>) {
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
    pub(super) fn silence(&self, place: &Place) -> Option<Silence> {
        let at = number(place);
        let server = &self.servers.all[at];
        match self.pods[at].as_ref().filter(|pod| pod.uid == place.pod_uid) {
            Some(_) if server.up && server.reachable => None,
            Some(_) if !server.reachable => Some(Silence::Unreachable),
            _ => Some(Silence::Closed),
        }
    }

    /// Everything that clients were told of, as it is at the primary.
    pub(super) fn is_complete(&self, number: usize) -> bool {
        self.servers.told.is_within(&self.servers.all[number].executed)
    }
}
