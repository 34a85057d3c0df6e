//! Starts an actor for each cluster of a kind, and ends it when the cluster is gone or not ours any more.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt as _};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_clients::members::Members;
use windlass_core::claim::Identity;
use windlass_core::kind::Kind;
use windlass_core::selector::Selector;

use crate::actor::{Actor, Shared, Signals};
use crate::authority::Authority;
use crate::caches::{Caches, Key, Watched, run_watch, version_of, watch_children};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::events::Events;
use crate::finalizer;
use crate::lease::Overlaps;
use crate::logbook;
use crate::metrics::Metrics;
use crate::neighbours::Neighbours;
use crate::options::{self, Shelf};
use crate::parcel::Parcel;
use crate::reclaim::Refusals;
use crate::server::Health;

/// How many passes run at once.
const PASSES: usize = 32;
/// The longest wait before an actor that panicked is started again.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// What a controller is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The namespace to look at; all of them when absent.
    pub namespace: Option<String>,
    /// Which custom resources are ours.
    pub selector: Selector,
    /// Where the time comes from.
    pub clock: Clock,
    /// Who we are.
    pub identity: Identity,
    /// Where clusters are noted that another release holds although our selector matches them.
    pub overlaps: Overlaps,
    /// Who signs certificates.
    pub authority: Option<Arc<Authority>>,
}

/// The clusters of a kind, as the watch or the answer to our own write showed them last.
pub(crate) struct Clusters<K: Kind> {
    inner: Mutex<HashMap<Key, Parcel<K::Resource>>>,
}

impl<K: Kind> Clusters<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Parcel<K::Resource>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K::Resource>> {
        self.lock().get(key).map(Parcel::get)
    }

    /// Packs a cluster that is at rest.
    pub(crate) fn pack(&self, key: &Key) {
        if let Some(known) = self.lock().get_mut(key) {
            known.pack();
        }
    }

    /// Takes a newer state in. A cluster that is not known (any more) is not brought back by a late answer.
    pub(crate) fn put(&self, key: &Key, mut resource: K::Resource) {
        resource.managed_fields_mut().clear();
        if let Some(known) = self.lock().get_mut(key)
            && version_of(resource.meta()) > known.version
        {
            *known = Parcel::new(resource);
        }
    }
}

/// Everything that runs for one process, whatever the kinds.
pub struct Controller {
    calls: Arc<Calls>,
    caches: Arc<Caches>,
    shelf: Arc<Shelf>,
    metrics: Arc<Metrics>,
    events: Events,
    settings: Settings,
    synced: Vec<watch::Receiver<bool>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Controller {
    /// Starts the watches that all kinds share.
    pub fn start(calls: Calls, metrics: Arc<Metrics>, settings: Settings, stop: CancellationToken) -> Self {
        let tasks = TaskTracker::new();
        let caches = Arc::new(Caches::default());
        let mut synced = watch_children(&calls.client(), settings.namespace.as_deref(), &caches, &metrics, (&tasks, &stop));
        let shelf = Arc::new(Shelf::default());
        let (sender, receiver) = watch::channel(false);
        let maps = match &settings.namespace {
            Some(namespace) => Api::namespaced(calls.client(), namespace),
            None => Api::all(calls.client()),
        };
        let feed = options::watch(maps, Arc::clone(&shelf), Arc::clone(&caches), Arc::clone(&metrics), sender);
        tasks.spawn(stop.clone().run_until_cancelled_owned(feed));
        synced.push(receiver);
        let events = Events::start(calls.client(), &tasks);
        Self { calls: Arc::new(calls), caches, shelf, metrics, events, settings, synced, tasks, stop }
    }

    /// Waits until the caches are complete: nothing is decided before.
    pub async fn wait_until_synced(&mut self, health: &Health) {
        for receiver in &mut self.synced {
            // The sender lives as long as the process.
            let _closed = receiver.wait_for(|synced| *synced).await;
        }
        health.set_ready();
    }

    /// Runs a kind until told to stop.
    pub async fn run<K: Kind, M: Members<K>>(&self, members: M, settings: K::Settings) {
        let shared = Arc::new(Shared::<K, M> {
            calls: Arc::clone(&self.calls),
            caches: Arc::clone(&self.caches),
            clusters: Clusters { inner: Mutex::default() },
            metrics: Arc::clone(&self.metrics),
            events: self.events.clone(),
            members,
            settings,
            shelf: Arc::clone(&self.shelf),
            passes: Semaphore::new(PASSES),
            tasks: self.tasks.clone(),
            clock: self.settings.clock,
            identity: self.settings.identity.clone(),
            neighbours: Neighbours::new(self.calls.client(), self.settings.clock),
            overlaps: Arc::clone(&self.settings.overlaps),
            authority: self.settings.authority.clone(),
            refusals: Refusals::default(),
        });
        let api: Api<DeserializeGuard<K::Resource>> = match &self.settings.namespace {
            Some(namespace) => Api::namespaced(self.calls.client(), namespace),
            None => Api::all(self.calls.client()),
        };
        let mut config = watcher::Config::default();
        if !self.settings.selector.is_everything() {
            config = config.labels(&self.settings.selector.to_string());
        }
        let (events, mut queue) = mpsc::unbounded_channel();
        let (synced, _) = watch::channel(false);
        let feed = run_watch(api, config, Arc::clone(&self.metrics), synced, move |event| {
            // The receiver ends only with the process.
            let _ended = events.send(event);
        });
        let mut clusters =
            Supervisor { shared, actors: HashMap::new(), ending: HashMap::new(), listed: false, stop: self.stop.clone() };
        let serve = async {
            while let Some(event) = queue.recv().await {
                clusters.take(event);
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = feed => {}
            () = serve => {}
        }
    }
}

struct Supervisor<K: Kind, M> {
    shared: Arc<Shared<K, M>>,
    actors: HashMap<Key, (Signals, JoinHandle<()>)>,
    /// Actors that give their cluster up. One that comes back waits for their end.
    ending: HashMap<Key, JoinHandle<()>>,
    /// Whether the first list is complete.
    listed: bool,
    stop: CancellationToken,
}

impl<K: Kind, M: Members<K>> Supervisor<K, M> {
    fn key(metadata: &kube::core::ObjectMeta) -> Key {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Key { kind: K::NAME.to_owned(), namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }

    fn reference(metadata: &kube::core::ObjectMeta) -> ObjectReference {
        ObjectReference {
            api_version: Some(K::Resource::api_version(&()).into_owned()),
            kind: Some(K::Resource::kind(&()).into_owned()),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..ObjectReference::default()
        }
    }

    fn take(&mut self, event: Watched<DeserializeGuard<K::Resource>>) {
        match event {
            Watched::Put(DeserializeGuard(Ok(resource))) => self.put(resource),
            Watched::Put(DeserializeGuard(Err(invalid))) => {
                let key = Self::key(&invalid.metadata);
                self.shared.metrics.unreadable(K::NAME);
                let note = format!("it cannot be read, and is left as it is: {}", invalid.error);
                self.shared.events.warning(&Self::reference(&invalid.metadata), "Unreadable", note);
                tracing::error!(cluster = %key, error = invalid.error, "custom resource cannot be read; it is left as it is");
                if invalid.metadata.deletion_timestamp.is_some() && finalizer::is_on::<K>(&invalid.metadata) {
                    let shared = Arc::clone(&self.shared);
                    self.shared.tasks.spawn(async move { finalizer::leave(&shared, &key).await });
                }
            }
            Watched::Gone(DeserializeGuard(gone)) => {
                let metadata = match &gone {
                    Ok(resource) => resource.meta(),
                    Err(invalid) => &invalid.metadata,
                };
                self.forget(&Self::key(metadata));
            }
            Watched::Begun => {}
            Watched::Listed { all, .. } => {
                let missing = self.actors.keys().filter(|key| !all.contains_key(&(key.namespace.clone(), key.name.clone())));
                for key in missing.cloned().collect::<Vec<_>>() {
                    self.forget(&key);
                }
                if !self.listed {
                    self.listed = true;
                    self.give_up_strays(&all);
                }
            }
        }
    }

    fn put(&mut self, resource: K::Resource) {
        let key = Self::key(resource.meta());
        let another = self.shared.clusters.lock().get(&key).is_some_and(|known| known.uid != resource.meta().uid);
        if another {
            self.forget(&key);
        }
        if let Some((signals, _)) = self.actors.get(&key) {
            self.shared.clusters.put(&key, resource);
            signals.wake.notify_one();
            return;
        }
        self.shared.clusters.lock().insert(key.clone(), Parcel::new(resource));
        let (wake, leave, stop) = (Arc::new(Notify::new()), CancellationToken::new(), self.stop.clone());
        self.shared.caches.wake_for(key.clone(), Arc::clone(&wake));
        let signals = Signals { wake, leave, stop };
        let before = self.ending.remove(&key);
        let task = self.shared.tasks.spawn(supervise(key.clone(), Arc::clone(&self.shared), signals.clone(), before));
        self.actors.insert(key, (signals, task));
    }

    /// The cluster is gone, or left our selector: we forget it, and clean nothing up.
    fn forget(&mut self, key: &Key) {
        self.ending.retain(|_, task| !task.is_finished());
        self.shared.clusters.lock().remove(key);
        self.shared.caches.forget(key);
        self.shared.shelf.forget(key);
        if let Some((signals, task)) = self.actors.remove(key) {
            signals.leave.cancel();
            self.ending.insert(key.clone(), task);
        }
    }

    /// Gives up claims of this release on clusters that its selector does not match any more: they left while nobody was here.
    fn give_up_strays(&self, all: &BTreeMap<(String, String), String>) {
        let me = &self.shared.identity;
        for (key, logbook) in self.shared.caches.logbooks(K::NAME) {
            let ours = logbook.spec.claim.as_ref().is_some_and(|claim| claim.release == me.release && !claim.released);
            if ours && !all.contains_key(&(key.namespace.clone(), key.name.clone())) {
                let shared = Arc::clone(&self.shared);
                self.shared.tasks.spawn(async move {
                    finalizer::leave(&shared, &key).await;
                    logbook::release(&shared.calls, &shared.caches, &key, &shared.identity).await;
                });
            }
        }
    }
}

/// Runs an actor, and starts it again with growing waits when it panicked.
async fn supervise<K: Kind, M: Members<K>>(
    key: Key,
    shared: Arc<Shared<K, M>>,
    signals: Signals,
    before: Option<JoinHandle<()>>,
) {
    if let Some(before) = before {
        // It gives the cluster up; only then may it be taken again. How it ended does not matter.
        let _ended = before.await;
    }
    let mut wait = Duration::from_secs(1);
    loop {
        let actor = Actor::new(key.clone(), Arc::clone(&shared));
        let ended = shared.tasks.spawn(actor.run(signals.clone())).await;
        let why = match ended {
            Ok(Ok(())) => return,
            Ok(Err(broken)) => broken.to_string(),
            Err(panic) => panic.to_string(),
        };
        shared.metrics.panic(K::NAME);
        tracing::error!(cluster = %key, why, "a panic was contained; the cluster is taken up again in {} s", wait.as_secs());
        tokio::select! {
            () = signals.stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(LONGEST_BACKOFF);
    }
}
