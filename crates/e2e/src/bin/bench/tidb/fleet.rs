//! All servers of TiDB clusters in the bench: who is at which address, which of them form a cluster, and whose PD is a black hole.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use windlass_core::ordinals::Ordinal;

use super::COMPONENTS;
use super::answers::{Jitter, Reply, Request};
use super::cluster::{Cluster, Who};

/// How many requests that nobody knows are told.
const TOLD: usize = 5;

/// A cluster, and whether its PD answers.
struct Moored {
    cluster: Mutex<Cluster>,
    silent: watch::Sender<bool>,
}

/// One server.
#[derive(Clone)]
pub(super) struct Berth {
    moored: Arc<Moored>,
    pub(super) who: Who,
}

impl Berth {
    /// Hears when PD falls silent, and when it speaks again.
    pub(super) fn silence(&self) -> watch::Receiver<bool> {
        self.moored.silent.subscribe()
    }
}

/// What servers were asked so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Traffic {
    /// Connections that were made.
    pub(crate) connections: u64,
    /// Requests.
    pub(crate) requests: u64,
}

impl Traffic {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { connections: self.connections - before.connections, requests: self.requests - before.requests }
    }
}

/// All servers.
#[derive(Clone, Default)]
pub(crate) struct Fleet {
    inner: Arc<Inner>,
}

/// By namespace and name.
type Clusters = HashMap<(String, String), Arc<Moored>>;

#[derive(Default)]
struct Inner {
    clusters: Mutex<Clusters>,
    berths: Mutex<HashMap<Ipv4Addr, Berth>>,
    jitters: AtomicBool,
    open: AtomicUsize,
    connections: AtomicU64,
    requests: AtomicU64,
    unknown: Mutex<BTreeMap<String, u64>>,
    /// Those of clusters that are gone.
    complaints: Mutex<Vec<String>>,
}

impl Fleet {
    /// A pod runs: its server starts, with the data that it had.
    pub(crate) fn start(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        let Some((name, who)) = member_of(pod) else { return };
        let now = Timestamp::now();
        let made = || {
            let cluster = Mutex::new(Cluster::new(namespace, name, now));
            Arc::new(Moored { cluster, silent: watch::Sender::new(false) })
        };
        let moored = Arc::clone(lock(&self.inner.clusters).entry(key(namespace, name)).or_insert_with(made));
        lock(&moored.cluster).start(who, now);
        lock(&self.inner.berths).insert(address, Berth { moored, who });
    }

    /// A pod is gone, and so is its server; the data of a cluster goes with the last of its pods.
    pub(crate) fn remove(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        let Some((name, who)) = member_of(pod) else { return };
        if let Some(berth) = lock(&self.inner.berths).remove(&address) {
            lock(&berth.moored.cluster).stop(who, Timestamp::now());
        }
        let mut clusters = lock(&self.inner.clusters);
        if clusters.get(&key(namespace, name)).is_some_and(|it| lock(&it.cluster).is_empty())
            && let Some(moored) = clusters.remove(&key(namespace, name))
        {
            lock(&self.inner.complaints).extend(complaints_of(namespace, name, &lock(&moored.cluster)));
        }
    }

    /// The server at an address.
    pub(super) fn at(&self, address: Ipv4Addr) -> Option<Berth> {
        lock(&self.inner.berths).get(&address).cloned()
    }

    /// What a server answers.
    pub(super) fn answer(&self, berth: &Berth, request: Request<'_>) -> Reply {
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        let jitters = self.inner.jitters.load(Ordering::Relaxed);
        let jitter = if jitters { Jitter { leaders: number % 7, regions: number % 13 } } else { Jitter::default() };
        let reply = lock(&berth.moored.cluster).answer(berth.who, request, jitter, Timestamp::now());
        reply.unwrap_or_else(|| {
            self.note_unknown(&format!("{} {} {}", berth.who.0, request.method, request.path));
            Reply::no(404, "the bench's servers do not know this request")
        })
    }

    /// From now on the counts of all stores differ from one answer to the next, or not any more.
    pub(crate) fn let_counts_jitter(&self, jitter: bool) {
        self.inner.jitters.store(jitter, Ordering::Relaxed);
    }

    /// Lets the PD of a cluster take connections and answer nothing, or answer again. False when there is no such cluster.
    pub(crate) fn silence_pd(&self, namespace: &str, name: &str, silent: bool) -> bool {
        let moored = lock(&self.inner.clusters).get(&key(namespace, name)).cloned();
        moored.is_some_and(|moored| {
            moored.silent.send_replace(silent);
            true
        })
    }

    /// What was done to servers that must never be done.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut all = lock(&self.inner.complaints).clone();
        for ((namespace, name), moored) in lock(&self.inner.clusters).iter() {
            all.extend(complaints_of(namespace, name, &lock(&moored.cluster)));
        }
        all
    }

    /// The requests that no server of the bench knows, and how often they came.
    pub(crate) fn unknown_requests(&self) -> Vec<String> {
        lock(&self.inner.unknown).iter().map(|(text, times)| format!("{times} times: {text}")).collect()
    }

    fn note_unknown(&self, text: &str) {
        let mut unknown = lock(&self.inner.unknown);
        if unknown.len() < TOLD || unknown.contains_key(text) {
            *unknown.entry(text.to_owned()).or_default() += 1;
        }
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.inner.open.load(Ordering::Relaxed)
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            connections: self.inner.connections.load(Ordering::Relaxed),
            requests: self.inner.requests.load(Ordering::Relaxed),
        }
    }

    /// Counts a connection, and that it is open for as long as this is kept.
    pub(super) fn count(&self) -> Counted {
        self.inner.connections.fetch_add(1, Ordering::Relaxed);
        self.inner.open.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

fn complaints_of(namespace: &str, name: &str, cluster: &Cluster) -> Vec<String> {
    cluster.complaints().iter().map(|it| format!("{name} in {namespace}: {it}")).collect()
}

/// An open connection.
pub(super) struct Counted(Fleet);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.inner.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The cluster of a pod, and which of its servers is in it; nothing for discovery, in which nobody answers.
fn member_of(pod: &str) -> Option<(&str, Who)> {
    let (set, ordinal) = Ordinal::split_pod_name(pod)?;
    let (name, component) = set.rsplit_once('-')?;
    let component = COMPONENTS.into_iter().find(|it| it.as_str() == component)?;
    Some((name, (component, ordinal)))
}

fn key(namespace: &str, name: &str) -> (String, String) {
    (namespace.to_owned(), name.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use windlass_api::tidb::Component;

    use super::*;

    #[test]
    fn pods_are_told_by_their_names_and_discovery_is_none_of_them() {
        let (name, (component, ordinal)) = member_of("bench-000007-tikv-12").unwrap();
        assert_eq!((name, component, ordinal.get()), ("bench-000007", Component::Tikv, 12));
        assert!(member_of("bench-000007-discovery-6d4cf56db6-24567").is_none());
        assert!(member_of("bench-000007-discovery-6d4cf56db6-x7k2p").is_none());
    }
}
