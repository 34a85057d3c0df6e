//! The ConfigMap of a user's that a cluster depends on. It is not ours: only that it moved is watched, by its metadata, and it is read
//! when it has another version than the copy that a cluster has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use tokio::sync::watch;
use windlass_clients::members::Members;
use windlass_core::kind::{Kind, Options};

use crate::actor::Actor;
use crate::caches::{Caches, Key, Watched, name_of, run_watch};
use crate::metrics::Metrics;

/// Which ConfigMaps exist, in which version, and which clusters depend on them.
#[derive(Default)]
pub(crate) struct Shelf {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    versions: HashMap<(String, String), String>,
    dependents: HashMap<(String, String), HashSet<Key>>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked while it held the lock left maps that are whole: each change is one insertion or removal.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of a ConfigMap, if it is there. From now on the cluster is woken when that changes.
    fn version(&self, key: &Key, name: &(String, String)) -> Option<String> {
        let mut inner = self.lock();
        inner.dependents.entry(name.clone()).or_default().insert(key.clone());
        inner.versions.get(name).cloned()
    }

    /// Forgets a cluster.
    pub(crate) fn forget(&self, key: &Key) {
        let mut inner = self.lock();
        inner.dependents.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
    }

    fn put(&self, name: (String, String), version: Option<String>, caches: &Caches) {
        let mut inner = self.lock();
        for key in inner.dependents.get(&name).into_iter().flatten() {
            caches.wake(key);
        }
        match version {
            Some(version) => inner.versions.insert(name, version),
            None => inner.versions.remove(&name),
        };
    }
}

/// Watches the metadata of all ConfigMaps for ever, and tells when the first list is complete.
pub(crate) async fn watch(
    api: Api<PartialObjectMeta<ConfigMap>>,
    shelf: Arc<Shelf>,
    caches: Arc<Caches>,
    metrics: Arc<Metrics>,
    synced: watch::Sender<bool>,
) {
    let take = move |event: Watched<PartialObjectMeta<ConfigMap>>| match event {
        Watched::Put(map) => shelf.put(name_of(&map.metadata), map.metadata.resource_version, &caches),
        Watched::Gone(map) => shelf.put(name_of(&map.metadata), None, &caches),
        Watched::Begun => {}
        Watched::Listed { all, .. } => {
            let gone: Vec<_> = shelf.lock().versions.keys().filter(|name| !all.contains_key(*name)).cloned().collect();
            for name in gone {
                shelf.put(name, None, &caches);
            }
        }
    };
    run_watch(api, watcher::Config::default(), metrics, synced, take).await;
}

/// A copy of a ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    name: (String, String),
    version: String,
    data: BTreeMap<String, String>,
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    /// What the user's ConfigMap says. A copy that cannot be had now is not known, whatever an older one said.
    pub(crate) async fn read_options(&mut self, resource: &K::Resource) -> Options {
        let Some(name) = K::options(resource) else { return Options::None };
        let name = (self.key.namespace.clone(), name);
        let Some(version) = self.shared.shelf.version(&self.key, &name) else {
            self.copy = None;
            return Options::Missing;
        };
        if let Some(copy) = self.copy.as_ref().filter(|copy| copy.name == name && copy.version == version) {
            return Options::Read(copy.data.clone());
        }
        let read = |client| {
            let api: Api<ConfigMap> = Api::namespaced(client, &name.0);
            let name = name.1.clone();
            async move { api.get(&name).await }
        };
        match self.shared.calls.send(|| format!("read ConfigMap {} in namespace {:?}", name.1, name.0), read).await {
            Ok(map) => {
                let version = map.metadata.resource_version.unwrap_or_default();
                let data = map.data.unwrap_or_default();
                self.copy = Some(Copy { name, version, data: data.clone() });
                Options::Read(data)
            }
            Err(error) if error.is_not_found() => Options::Missing,
            Err(error) => Options::Unknown(error.to_string()),
        }
    }
}
