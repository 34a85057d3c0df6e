//! What the watches show, kept small and shared by all kinds.
//!
//! A cache never goes back in time. The answer to our own write may arrive before its event: an older event after it is dropped. Or
//! it may arrive long after: what the watch has already passed by is not brought back. Objects are found by the cluster that they
//! belong to; whoever waits for a cluster is woken when one of its objects moves. Those of a cluster that came to rest are packed.

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

use crate::parcel::Parcel;
pub(crate) use refresh::refresh;
pub(crate) use slim::{
    Child, Claim, ConfigMap, Deployment, DisruptionBudget, Pod, Role, RoleBinding, Secret, Service, ServiceAccount,
    StatefulSet, Template,
};
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
        let label = |key: &str| meta.labels.get(key).map(str::to_owned);
        Some(Self { kind: label(KIND_LABEL)?, namespace: meta.namespace.clone(), name: label(labels::INSTANCE)? })
    }
}

/// The shared caches of children and logbooks.
#[derive(Default)]
pub struct Caches {
    inner: Mutex<Inner>,
}

/// The children of one cluster.
#[derive(Default)]
struct Family {
    children: Arc<Children>,
    /// Another one for each change, and the same for all who were given the same children.
    edition: u64,
}

#[derive(Default)]
struct Inner {
    families: HashMap<Key, Family>,
    /// The last edition that was given out.
    edition: u64,
    logbooks: HashMap<Key, Parcel<Logbook>>,
    waiting: HashMap<Key, Arc<Notify>>,
    /// How far the watch of each resource has come.
    passed: HashMap<String, u64>,
    /// What our own writes brought in since the last list of each resource was asked for: a list may not have it yet.
    unlisted: HashMap<String, HashSet<(String, String)>>,
    /// Clusters of which something may be kept here that is gone.
    doubtful: HashSet<Key>,
}

impl Inner {
    /// The watch of a resource shows something of this version.
    fn pass(&mut self, plural: &str, version: u64) {
        match self.passed.get_mut(plural) {
            Some(passed) => *passed = version.max(*passed),
            None => drop(self.passed.insert(plural.to_owned(), version)),
        }
    }

    /// Whether the watch of a resource has shown everything up to this version. What it does not show then is gone.
    fn has_passed(&self, plural: &str, version: u64) -> bool {
        self.passed.get(plural).is_some_and(|passed| version <= *passed)
    }

    /// Our own write brought this in.
    fn note_unlisted(&mut self, plural: &str, name: (String, String)) {
        self.unlisted.entry(plural.to_owned()).or_default().insert(name);
    }

    /// Takes a newer state of a child in; one that is not known only when it `may_be_new`.
    fn shelve<C: Child>(&mut self, child: C, may_be_new: bool) {
        let view = child.view();
        let Some(key) = Key::of(C::known(&view)) else { return };
        let meta = C::known(&view);
        let known = self.families.get(&key).and_then(|family| C::shelf(&family.children).get(&meta.name));
        if known.map_or(may_be_new, |known| is_newer(meta, C::known(known))) {
            let name = meta.name.clone();
            let family = self.families.entry(key.clone()).or_default();
            C::shelf_mut(Arc::make_mut(&mut family.children)).insert(name, view);
            self.edition += 1;
            family.edition = self.edition;
            self.wake(&key);
        }
    }

    /// Drops the children of a kind that do not stay, and tells whether there were any. What nothing changes in is not touched: whoever
    /// holds it would take it for something else, and a list would cost a copy of every cluster.
    fn retain<C: Child>(&mut self, key: &Key, mut stays: impl FnMut(&String, &C::View) -> bool) -> bool {
        let Some(family) = self.families.get_mut(key) else { return false };
        let all = C::shelf(&family.children).iter();
        let gone: Vec<String> = all.filter(|(name, known)| !stays(name, known)).map(|(name, _)| name.clone()).collect();
        if gone.is_empty() {
            return false;
        }
        let children = Arc::make_mut(&mut family.children);
        C::shelf_mut(children).retain(|name, _| !gone.contains(name));
        self.edition += 1;
        family.edition = self.edition;
        if *children == Children::default() {
            self.families.remove(key);
        }
        true
    }

    fn shelve_logbook(&mut self, logbook: Logbook, may_be_new: bool) {
        let Some(key) = logbook_key(&logbook) else { return };
        let version = version_of(&logbook.metadata);
        if self.logbooks.get(&key).map_or(may_be_new, |known| version > known.version) {
            self.logbooks.insert(key.clone(), Parcel::new(logbook));
            self.wake(&key);
        }
    }

    fn wake(&self, key: &Key) {
        if let Some(notify) = self.waiting.get(key) {
            notify.notify_one();
        }
    }
}

impl Caches {
    /// Something that a cluster depends on moved.
    pub(crate) fn wake(&self, key: &Key) {
        self.lock().wake(key);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked while it held the lock left maps that are whole: each change is one insertion or removal.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The children of a cluster. Whoever looks into those that are packed unpacks them for himself.
    pub fn children(&self, key: &Key) -> Arc<Children> {
        let kept = self.lock().families.get(key).map(|family| Arc::clone(&family.children)).unwrap_or_default();
        if kept.are_packed() { Arc::new(Children::clone(&kept)) } else { kept }
    }

    /// Which edition the children of a cluster are: as long as it is the same, so are they. Asked before they are read, it is never newer
    /// than what is read.
    pub(crate) fn edition(&self, key: &Key) -> u64 {
        self.lock().families.get(key).map_or(0, |family| family.edition)
    }

    /// Packs the logbook of a cluster that is at rest.
    pub(crate) fn pack_logbook(&self, key: &Key) {
        if let Some(known) = self.lock().logbooks.get_mut(key) {
            known.pack();
        }
    }

    /// Packs the children of a cluster that is at rest.
    pub(crate) fn pack(&self, key: &Key) {
        let loose = match self.lock().families.get(key) {
            Some(family) if !family.children.are_closed() => Arc::clone(&family.children),
            _ => return,
        };
        // It takes its time, and others wait for the lock.
        let mut packed = Children::clone(&loose);
        packed.pack();
        if let Some(family) = self.lock().families.get_mut(key)
            && Arc::ptr_eq(&family.children, &loose)
        {
            family.children = Arc::new(packed);
        }
    }

    /// The logbook of a cluster.
    pub fn logbook(&self, key: &Key) -> Option<Arc<Logbook>> {
        self.lock().logbooks.get(key).map(Parcel::get)
    }

    /// Wakes this when something of the cluster moves.
    pub fn wake_for(&self, key: Key, notify: Arc<Notify>) {
        self.lock().waiting.insert(key, notify);
    }

    /// Nobody waits for the cluster any more.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.lock();
        inner.waiting.remove(key);
        inner.doubtful.remove(key);
    }

    /// A list is about to be asked for.
    pub(crate) fn expect_list(&self, plural: &str) {
        self.lock().unlisted.remove(plural);
    }

    /// Takes an answer of the server to a call of our own in.
    pub(crate) fn put_answer<C: Child>(&self, child: C) {
        let (plural, name, version) = (C::plural(&()), name_of(child.meta()), version_of(child.meta()));
        let mut inner = self.lock();
        let may_be_new = !inner.has_passed(&plural, version);
        inner.shelve(child, may_be_new);
        inner.note_unlisted(&plural, name);
    }

    /// Takes what the watch shows of a child in.
    pub(crate) fn put<C: Child>(&self, child: C) {
        let plural = C::plural(&());
        let mut inner = self.lock();
        inner.pass(&plural, version_of(child.meta()));
        if let Some(unlisted) = inner.unlisted.get_mut(&*plural) {
            unlisted.remove(&name_of(child.meta()));
        }
        inner.shelve(child, true);
    }

    /// Takes the end of a child in.
    pub(crate) fn remove<C: Child>(&self, child: C) {
        let view = child.view();
        let gone = C::known(&view);
        let Some(key) = Key::of(gone) else { return };
        let mut inner = self.lock();
        inner.pass(&C::plural(&()), version(&gone.resource_version));
        // Another object of the same name may have taken its place already.
        inner.retain::<C>(&key, |name, known| *name != gone.name || C::known(known).uid != gone.uid);
        inner.wake(&key);
    }

    /// After a new list: what was not in it is gone, unless our own write made it since and it is newer than all that was listed.
    /// That one may be gone as well, and no event would tell: it is doubtful.
    pub(crate) fn retain<C: Child>(&self, listed: &BTreeMap<(String, String), String>, newest_listed: u64) {
        let mut inner = self.lock();
        let unlisted = inner.unlisted.remove(&*C::plural(&())).unwrap_or_default();
        let (mut touched, mut doubtful) = (Vec::new(), Vec::new());
        for key in inner.families.keys().cloned().collect::<Vec<_>>() {
            let stays = |name: &String, known: &C::View| {
                let meta = C::known(known);
                let known = (meta.namespace.clone(), name.clone());
                let is_listed = listed.get(&known).is_some_and(|uid| *uid == meta.uid);
                let is_ours = unlisted.contains(&known) && version(&meta.resource_version) > newest_listed;
                if is_ours && !is_listed {
                    doubtful.push(key.clone());
                }
                is_listed || is_ours
            };
            if inner.retain::<C>(&key, stays) {
                touched.push(key);
            }
        }
        for key in touched.iter().chain(&doubtful) {
            inner.wake(key);
        }
        inner.doubtful.extend(doubtful);
    }

    /// After a list of one cluster's children: what was not in it is gone, unless it is newer than the list.
    pub(crate) fn retain_of<C: Child>(&self, key: &Key, listed: &BTreeMap<String, String>, newest_listed: u64) {
        self.lock().retain::<C>(key, |name, known| {
            let meta = C::known(known);
            listed.get(name) == Some(&meta.uid) || version(&meta.resource_version) > newest_listed
        });
    }

    /// All logbooks of a kind of cluster.
    pub(crate) fn logbooks(&self, kind: &str) -> Vec<(Key, Arc<Logbook>)> {
        let inner = self.lock();
        let of_kind = inner.logbooks.iter().filter(|(key, _)| key.kind == kind);
        of_kind.map(|(key, logbook)| (key.clone(), logbook.get())).collect()
    }

    /// Takes an answer of the server to a call of our own in.
    pub(crate) fn put_logbook_answer(&self, logbook: Logbook) {
        let name = name_of(&logbook.metadata);
        let mut inner = self.lock();
        let may_be_new = !inner.has_passed(LOGBOOKS, version_of(&logbook.metadata));
        inner.shelve_logbook(logbook, may_be_new);
        inner.note_unlisted(LOGBOOKS, name);
    }

    /// Takes what the watch shows of a logbook in.
    pub(crate) fn put_logbook(&self, logbook: Logbook) {
        let mut inner = self.lock();
        inner.pass(LOGBOOKS, version_of(&logbook.metadata));
        inner.shelve_logbook(logbook, true);
    }

    /// Takes the end of a logbook in.
    pub(crate) fn remove_logbook(&self, logbook: &Logbook) {
        let Some(key) = logbook_key(logbook) else { return };
        let mut inner = self.lock();
        inner.pass(LOGBOOKS, version_of(&logbook.metadata));
        if inner.logbooks.get(&key).is_some_and(|known| known.uid == logbook.metadata.uid) {
            inner.logbooks.remove(&key);
            inner.wake(&key);
        }
    }

    /// After a new list of logbooks.
    pub(crate) fn retain_logbooks(&self, listed: &BTreeMap<(String, String), String>, newest_listed: u64) {
        let mut inner = self.lock();
        let (mut gone, mut doubtful) = (Vec::new(), Vec::new());
        let unlisted = inner.unlisted.remove(LOGBOOKS).unwrap_or_default();
        inner.logbooks.retain(|key, known| {
            let known_as = (key.namespace.clone(), known.name.clone().unwrap_or_default());
            let is_listed = listed.get(&known_as) == known.uid.as_ref();
            let is_ours = unlisted.contains(&known_as) && known.version > newest_listed;
            match (is_listed, is_ours) {
                (true, _) => {}
                (false, true) => doubtful.push(key.clone()),
                (false, false) => gone.push(key.clone()),
            }
            is_listed || is_ours
        });
        for key in gone.iter().chain(&doubtful) {
            inner.wake(key);
        }
        inner.doubtful.extend(doubtful);
    }

    /// After a look at the server that found no logbook: what was known `before` the look is gone.
    pub(crate) fn lose_logbook(&self, key: &Key, before: &Logbook) {
        let mut inner = self.lock();
        if inner.logbooks.get(key).is_some_and(|known| known.version == version_of(&before.metadata)) {
            inner.logbooks.remove(key);
        }
    }

    /// What is kept of this cluster may be wrong in a way that no event will put right.
    pub(crate) fn doubt(&self, key: &Key) {
        self.lock().doubtful.insert(key.clone());
    }

    /// Whether it was doubted; asked once, by whoever looks at the server then.
    pub(crate) fn take_doubt(&self, key: &Key) -> bool {
        self.lock().doubtful.remove(key)
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
