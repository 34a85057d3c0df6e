//! What the watches show, kept small and shared by all kinds.
//!
//! A cache never goes back in time: an answer to our own write may arrive before its event, and an older event after it is
//! dropped. Objects are found by the cluster that they belong to; whoever waits for a cluster is woken when one of its objects moves.

mod refresh;
mod slim;
mod watch;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_api::Logbook;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;
use windlass_core::views::{Children, Meta};

pub(crate) use refresh::refresh;
pub(crate) use slim::{Child, DisruptionBudget, Pod, Service, StatefulSet, Template};
pub(crate) use watch::{Watched, run as run_watch, watch_children};

/// The collection of logbooks.
const LOGBOOKS: &str = "logbooks";

/// Names one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The kind's short name.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

impl Key {
    /// The name of the cluster's logbook.
    pub(crate) fn logbook_name(&self) -> String {
        format!("{}-{}", self.kind, self.name)
    }

    /// The cluster that an object belongs to, by its labels.
    fn of(meta: &Meta) -> Option<Self> {
        let label = |key: &str| meta.labels.get(key).cloned();
        Some(Self { kind: label(KIND_LABEL)?, namespace: meta.namespace.clone(), name: label(labels::INSTANCE)? })
    }
}

/// The shared caches of children and logbooks.
#[derive(Default)]
pub struct Caches {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    children: HashMap<Key, Arc<Children>>,
    logbooks: HashMap<Key, Arc<Logbook>>,
    waiting: HashMap<Key, Arc<Notify>>,
    /// What our own writes brought in since the last list of each resource was asked for: a list may not have it yet.
    unlisted: HashMap<String, HashSet<(String, String)>>,
}

impl Inner {
    fn wake(&self, key: &Key) {
        if let Some(notify) = self.waiting.get(key) {
            notify.notify_one();
        }
    }
}

impl Caches {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked while it held the lock left maps that are whole: each change is one insertion or removal.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The children of a cluster.
    pub fn children(&self, key: &Key) -> Arc<Children> {
        self.lock().children.get(key).cloned().unwrap_or_default()
    }

    /// The logbook of a cluster.
    pub fn logbook(&self, key: &Key) -> Option<Arc<Logbook>> {
        self.lock().logbooks.get(key).cloned()
    }

    /// Wakes this when something of the cluster moves.
    pub fn wake_for(&self, key: Key, notify: Arc<Notify>) {
        self.lock().waiting.insert(key, notify);
    }

    /// Nobody waits for the cluster any more.
    pub fn forget(&self, key: &Key) {
        self.lock().waiting.remove(key);
    }

    /// A list is about to be asked for.
    pub(crate) fn expect_list(&self, plural: &str) {
        self.lock().unlisted.remove(plural);
    }

    /// Takes the answer to our own write in.
    pub(crate) fn put_answer<C: Child>(&self, child: C) {
        let known = name_of(child.meta());
        self.put(child);
        self.lock().unlisted.entry(C::plural(&()).into_owned()).or_default().insert(known);
    }

    /// Takes a newer state of a child in.
    pub(crate) fn put<C: Child>(&self, child: C) {
        let view = child.view();
        let Some(key) = Key::of(C::known(&view)) else { return };
        let mut inner = self.lock();
        if let Some(unlisted) = inner.unlisted.get_mut(&*C::plural(&())) {
            unlisted.remove(&(C::known(&view).namespace.clone(), C::known(&view).name.clone()));
        }
        let children = Arc::make_mut(inner.children.entry(key.clone()).or_default());
        let shelved = C::shelf(children);
        let name = C::known(&view).name.clone();
        if shelved.get(&name).is_none_or(|known| is_newer(C::known(&view), C::known(known))) {
            shelved.insert(name, view);
            inner.wake(&key);
        }
    }

    /// Takes the end of a child in.
    pub(crate) fn remove<C: Child>(&self, child: C) {
        let view = child.view();
        let gone = C::known(&view);
        let Some(key) = Key::of(gone) else { return };
        let mut inner = self.lock();
        let Some(children) = inner.children.get_mut(&key) else {
            return;
        };
        let shelved = C::shelf(Arc::make_mut(children));
        // Another object of the same name may have taken its place already.
        if shelved.get(&gone.name).is_some_and(|known| C::known(known).uid == gone.uid) {
            shelved.remove(&gone.name);
        }
        if **children == Children::default() {
            inner.children.remove(&key);
        }
        inner.wake(&key);
    }

    /// After a new list: what was not in it is gone, unless our own write made it since and it is newer than all that was listed.
    pub(crate) fn retain<C: Child>(&self, listed: &BTreeMap<(String, String), String>, newest_listed: u64) {
        let mut inner = self.lock();
        let unlisted = inner.unlisted.remove(&*C::plural(&())).unwrap_or_default();
        let mut touched = Vec::new();
        for (key, children) in &mut inner.children {
            let shelved = C::shelf(Arc::make_mut(children));
            let before = shelved.len();
            shelved.retain(|name, known| {
                let meta = C::known(known);
                let known = (meta.namespace.clone(), name.clone());
                listed.get(&known).is_some_and(|uid| *uid == meta.uid)
                    || unlisted.contains(&known) && version(&meta.resource_version) > newest_listed
            });
            if shelved.len() != before {
                touched.push(key.clone());
            }
        }
        inner.children.retain(|_, children| **children != Children::default());
        for key in touched {
            inner.wake(&key);
        }
    }

    /// After a list of one cluster's children: what was not in it is gone, unless it is newer than the list.
    pub(crate) fn retain_of<C: Child>(&self, key: &Key, listed: &BTreeMap<String, String>, newest_listed: u64) {
        let mut inner = self.lock();
        let Some(children) = inner.children.get_mut(key) else { return };
        C::shelf(Arc::make_mut(children)).retain(|name, known| {
            let meta = C::known(known);
            listed.get(name) == Some(&meta.uid) || version(&meta.resource_version) > newest_listed
        });
    }

    /// All logbooks of a kind of cluster.
    pub(crate) fn logbooks(&self, kind: &str) -> Vec<(Key, Arc<Logbook>)> {
        let inner = self.lock();
        let of_kind = inner.logbooks.iter().filter(|(key, _)| key.kind == kind);
        of_kind.map(|(key, logbook)| (key.clone(), Arc::clone(logbook))).collect()
    }

    /// Takes the answer to our own write of a logbook in.
    pub(crate) fn put_logbook_answer(&self, logbook: Logbook) {
        let known = name_of(&logbook.metadata);
        self.put_logbook(logbook);
        self.lock().unlisted.entry(LOGBOOKS.to_owned()).or_default().insert(known);
    }

    /// Takes a newer state of a logbook in.
    pub(crate) fn put_logbook(&self, logbook: Logbook) {
        let Some(key) = logbook_key(&logbook) else { return };
        let mut inner = self.lock();
        let newer = inner.logbooks.get(&key).is_none_or(|known| {
            known.metadata.uid != logbook.metadata.uid || version_of(&logbook.metadata) > version_of(&known.metadata)
        });
        if newer {
            inner.logbooks.insert(key.clone(), Arc::new(logbook));
            inner.wake(&key);
        }
    }

    /// Takes the end of a logbook in.
    pub(crate) fn remove_logbook(&self, logbook: &Logbook) {
        let Some(key) = logbook_key(logbook) else { return };
        let mut inner = self.lock();
        if inner.logbooks.get(&key).is_some_and(|known| known.metadata.uid == logbook.metadata.uid) {
            inner.logbooks.remove(&key);
            inner.wake(&key);
        }
    }

    /// After a new list of logbooks.
    pub(crate) fn retain_logbooks(&self, listed: &BTreeMap<(String, String), String>, newest_listed: u64) {
        let mut inner = self.lock();
        let mut gone = Vec::new();
        let unlisted = inner.unlisted.remove(LOGBOOKS).unwrap_or_default();
        inner.logbooks.retain(|key, known| {
            let name = known.metadata.name.clone().unwrap_or_default();
            let known_as = (key.namespace.clone(), name);
            let keep = listed.get(&known_as) == known.metadata.uid.as_ref()
                || unlisted.contains(&known_as) && version_of(&known.metadata) > newest_listed;
            if !keep {
                gone.push(key.clone());
            }
            keep
        });
        for key in gone {
            inner.wake(&key);
        }
    }
}

fn logbook_key(logbook: &Logbook) -> Option<Key> {
    let labels = logbook.metadata.labels.as_ref()?;
    let label = |key: &str| labels.get(key).cloned();
    Some(Key { kind: label(KIND_LABEL)?, namespace: logbook.metadata.namespace.clone()?, name: label(labels::INSTANCE)? })
}

/// Namespace and name.
pub(crate) fn name_of(metadata: &kube::core::ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// Versions are numbers that grow; what is no number is older than everything.
pub(crate) fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

pub(crate) fn version_of(metadata: &kube::core::ObjectMeta) -> u64 {
    version(metadata.resource_version.as_deref().unwrap_or_default())
}

fn is_newer(new: &Meta, known: &Meta) -> bool {
    // Another UID is another object; which of the two is later shows in the version as well.
    version(&new.resource_version) > version(&known.resource_version)
}

#[cfg(test)]
mod tests;
