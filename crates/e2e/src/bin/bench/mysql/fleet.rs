//! All servers of the bench: who is at which address, and which of them form a cluster.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::cluster::{Cluster, Loss};

/// How many statements that nobody knows are told.
const TOLD: usize = 5;

/// One server: its cluster, and its number there.
#[derive(Clone)]
pub(super) struct Berth {
    cluster: Arc<Mutex<Cluster>>,
    pub(super) at: usize,
}

impl Berth {
    pub(super) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        lock(&self.cluster)
    }
}

/// What servers were asked so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Traffic {
    /// Log-ins.
    pub(crate) log_ins: u64,
    /// Commands: one may hold several statements.
    pub(crate) commands: u64,
}

impl Traffic {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { log_ins: self.log_ins - before.log_ins, commands: self.commands - before.commands }
    }
}

/// All servers.
#[derive(Clone)]
pub(crate) struct Fleet {
    inner: Arc<Inner>,
}

/// By namespace and name of the set.
type Clusters = HashMap<(String, String), Arc<Mutex<Cluster>>>;

struct Inner {
    size: u16,
    clusters: Mutex<Clusters>,
    berths: Mutex<HashMap<Ipv4Addr, Berth>>,
    open: AtomicUsize,
    log_ins: AtomicU64,
    commands: AtomicU64,
    clients_write: AtomicBool,
    unknown: Mutex<BTreeMap<String, u64>>,
    /// Those of clusters that are gone.
    complaints: Mutex<Vec<String>>,
}

impl Fleet {
    /// No servers yet; their clusters have so many each.
    pub(crate) fn new(size: u16) -> Self {
        let inner = Inner {
            size,
            clusters: Mutex::default(),
            berths: Mutex::default(),
            open: AtomicUsize::new(0),
            log_ins: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            clients_write: AtomicBool::new(false),
            unknown: Mutex::default(),
            complaints: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A pod runs: its server starts, with the data that it had.
    pub(crate) fn start(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        let Some((set, at)) = member_of(pod).filter(|(_, at)| *at < usize::from(self.inner.size)) else { return };
        let made = || Arc::new(Mutex::new(Cluster::new(namespace, set, self.inner.size)));
        let cluster = Arc::clone(lock(&self.inner.clusters).entry(key(namespace, set)).or_insert_with(made));
        lock(&cluster).start(at);
        lock(&self.inner.berths).insert(address, Berth { cluster, at });
    }

    /// A pod is gone, and so is its server; the data of a cluster goes with the last of its pods.
    pub(crate) fn remove(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        let Some((set, at)) = member_of(pod) else { return };
        if let Some(berth) = lock(&self.inner.berths).remove(&address) {
            berth.cluster().stop(at);
        }
        let mut clusters = lock(&self.inner.clusters);
        let empty = |cluster: &Arc<Mutex<Cluster>>| lock(cluster).servers.all.iter().all(|server| !server.up);
        if clusters.get(&key(namespace, set)).is_some_and(empty)
            && let Some(cluster) = clusters.remove(&key(namespace, set))
        {
            lock(&self.inner.complaints).extend(complaints_of(namespace, set, &lock(&cluster)));
        }
    }

    /// The server at an address, while it runs.
    pub(super) fn at(&self, address: Ipv4Addr) -> Option<Berth> {
        let berth = lock(&self.inner.berths).get(&address).cloned()?;
        let up = berth.cluster().servers.all[berth.at].up;
        up.then_some(berth)
    }

    fn cluster(&self, namespace: &str, set: &str) -> Option<Arc<Mutex<Cluster>>> {
        lock(&self.inner.clusters).get(&key(namespace, set)).cloned()
    }

    /// Ends the primary of a cluster as a kill would. Tells which one it was.
    pub(crate) fn kill_primary(&self, namespace: &str, set: &str) -> Option<usize> {
        lock(&*self.cluster(namespace, set)?).lose_primary()
    }

    /// Lets the primary of a cluster hang. Tells which one it was.
    pub(crate) fn silence_primary(&self, namespace: &str, set: &str) -> Option<usize> {
        lock(&*self.cluster(namespace, set)?).silence_primary()
    }

    /// What came of the last loss of a cluster's primary.
    pub(crate) fn loss(&self, namespace: &str, set: &str) -> Option<Loss> {
        lock(&*self.cluster(namespace, set)?).loss()
    }

    /// Whether all servers of a cluster run, one takes writes, and all others receive from it.
    pub(crate) fn is_whole(&self, namespace: &str, set: &str) -> bool {
        self.cluster(namespace, set).is_some_and(|cluster| lock(&cluster).is_whole())
    }

    /// From now on, clients write to every cluster once a second, or to none.
    pub(crate) fn let_clients_write(&self, write: bool) {
        self.inner.clients_write.store(write, Ordering::Relaxed);
    }

    /// The clients of every cluster write something.
    pub(super) async fn write_everywhere(&self) {
        if !self.inner.clients_write.load(Ordering::Relaxed) {
            return;
        }
        let all: Vec<_> = lock(&self.inner.clusters).values().cloned().collect();
        for cluster in all {
            lock(&cluster).write();
            tokio::task::yield_now().await;
        }
    }

    /// What was done to servers that must never be done.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut all = lock(&self.inner.complaints).clone();
        for ((namespace, set), cluster) in lock(&self.inner.clusters).iter() {
            all.extend(complaints_of(namespace, set, &lock(cluster)));
        }
        all
    }

    /// The statements that no server of the bench knows, and how often they came.
    pub(crate) fn unknown_statements(&self) -> Vec<String> {
        lock(&self.inner.unknown).iter().map(|(text, times)| format!("{times} times: {text}")).collect()
    }

    pub(super) fn note_unknown(&self, text: &str) {
        let mut unknown = lock(&self.inner.unknown);
        // Their beginning tells which they are, and has no password in it.
        let start: String = text.chars().take(60).collect();
        if unknown.len() < TOLD || unknown.contains_key(&start) {
            *unknown.entry(start).or_default() += 1;
        }
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.inner.open.load(Ordering::Relaxed)
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { log_ins: self.inner.log_ins.load(Ordering::Relaxed), commands: self.inner.commands.load(Ordering::Relaxed) }
    }

    pub(super) fn note_command(&self) {
        self.inner.commands.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_log_in(&self) {
        self.inner.log_ins.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection for as long as this is kept.
    pub(super) fn count(&self) -> Counted {
        self.inner.open.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

fn complaints_of(namespace: &str, set: &str, cluster: &Cluster) -> Vec<String> {
    cluster.servers.complaints.iter().map(|it| format!("{set} in {namespace}: {it}")).collect()
}

/// An open connection.
pub(super) struct Counted(Fleet);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.inner.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The set and the number of a pod.
fn member_of(pod: &str) -> Option<(&str, usize)> {
    let (set, number) = pod.rsplit_once('-')?;
    Some((set, number.parse().ok()?))
}

fn key(namespace: &str, set: &str) -> (String, String) {
    (namespace.to_owned(), set.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
