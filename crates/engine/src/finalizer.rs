//! The finalizer of a kind: put on a cluster before anything is made for it, taken off when nothing is left to do for it.
//!
//! Each change carries the version of the object that the list was read from, so nobody else's finalizer is lost by it. No pause holds
//! it back: deleting wins. Only the release that holds the claim touches it, and takes it off before it gives the claim up: whoever does
//! not look after a cluster any more must not stand in the way of its end. Where there is no logbook nobody holds a claim, and none can
//! be taken any more: a namespace that ends takes the logbook first.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use windlass_api::logbook::Claim;
use windlass_clients::members::Members;
use windlass_core::claim;
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::{Bond, Kind};
use windlass_core::labels::FIELD_MANAGER;
use windlass_core::outcome::Outcome;

use crate::actor::{Actor, Shared};
use crate::caches::Key;
use crate::calls::{CallError, Calls};
use crate::logbook;
use crate::pass::{LATER, Next, SOON};

/// How often taking it off is tried where no pass follows.
const TRIES: usize = 5;
const PUT_ON: &str = "put the finalizer on";
const TAKE_OFF: &str = "take the finalizer off";

/// Whether the kind has a finalizer that this object lacks.
pub(crate) fn is_missing<K: Kind>(metadata: &ObjectMeta) -> bool {
    K::FINALIZER.is_some() && !is_on::<K>(metadata)
}

/// Whether the kind's finalizer is on this object.
pub(crate) fn is_on<K: Kind>(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().flatten().any(|it| K::FINALIZER == Some(it))
}

/// The change that makes this the list of finalizers, for exactly the object that was read.
fn change(metadata: &ObjectMeta, finalizers: &[&str]) -> Value {
    let (uid, version) = (&metadata.uid, &metadata.resource_version);
    json!({ "metadata": { "uid": uid, "resourceVersion": version, "finalizers": finalizers } })
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() }
}

fn with<K: Kind>(metadata: &ObjectMeta) -> Value {
    let all: Vec<&str> = metadata.finalizers.iter().flatten().map(String::as_str).chain(K::FINALIZER).collect();
    change(metadata, &all)
}

fn without<K: Kind>(metadata: &ObjectMeta) -> Value {
    let all = metadata.finalizers.iter().flatten().map(String::as_str);
    let all: Vec<&str> = all.filter(|it| K::FINALIZER != Some(*it)).collect();
    change(metadata, &all)
}

/// Sends a change. The answer is the object after it, and differs from the one that was read in nothing else.
async fn send<K: Kind>(calls: &Calls, key: &Key, what: &str, body: &Value) -> Result<K::Resource, CallError> {
    let send = |client| {
        let api = Api::<K::Resource>::namespaced(client, &key.namespace);
        async move { api.patch(&key.name, &parameters(), &Patch::Merge(body)).await }
    };
    calls.send(|| format!("{what} {key}"), send).await
}

/// Takes it off an object of which only the metadata is read: one that cannot be read as a whole must be able to end as well.
async fn take_off<K: Kind>(calls: &Calls, key: &Key, metadata: &ObjectMeta) -> Result<(), CallError> {
    let body = without::<K>(metadata);
    let send = |client| {
        let (api, body) = (Api::<K::Resource>::namespaced(client, &key.namespace), Patch::Merge(&body));
        async move { api.patch_metadata(&key.name, &parameters(), &body).await }
    };
    match calls.send(|| format!("{TAKE_OFF} {key}"), send).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The metadata of a custom resource as it is now, past the caches.
pub(crate) async fn read_metadata<K: Kind>(calls: &Calls, key: &Key) -> Result<Option<ObjectMeta>, CallError> {
    let read = |client| {
        let api = Api::<K::Resource>::namespaced(client, &key.namespace);
        async move { api.get_metadata_opt(&key.name).await }
    };
    Ok(calls.send(|| format!("read {key}"), read).await?.map(|it| it.metadata))
}

/// Takes it off where no pass follows: the cluster left our selector, or cannot be read. Without a logbook only one that is being
/// deleted is touched.
pub(crate) async fn leave<K: Kind, M: Members<K>>(shared: &Shared<K, M>, key: &Key) {
    if K::FINALIZER.is_none() {
        return;
    }
    let mut wait = Duration::from_millis(200);
    for _ in 0..TRIES {
        let error = match try_to_leave(shared, key).await {
            Ok(()) => return,
            Err(error) => error,
        };
        tracing::warn!(cluster = %key, %error, "the finalizer is not taken off yet");
        tokio::time::sleep(wait).await;
        wait *= 4;
    }
}

async fn try_to_leave<K: Kind, M: Members<K>>(shared: &Shared<K, M>, key: &Key) -> Result<(), CallError> {
    let Some(metadata) = read_metadata::<K>(&shared.calls, key).await? else { return Ok(()) };
    if !is_on::<K>(&metadata) {
        return Ok(());
    }
    let may = match logbook::read(&shared.calls, key).await? {
        Some(logbook) => is_of(logbook.spec.claim.as_ref(), &shared.identity.release),
        None => metadata.deletion_timestamp.is_some(),
    };
    if may { take_off::<K>(&shared.calls, key, &metadata).await } else { Ok(()) }
}

/// Whether the claim is one of this release, whichever of its processes took it.
fn is_of(claim: Option<&Claim>, release: &str) -> bool {
    claim.is_some_and(|claim| claim.release == release && !claim.released)
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    /// Puts the finalizer on a cluster that this process holds. Nothing else waits for it: what is made for a cluster goes with its
    /// owner references. Returns the object after it, where it had to be put on.
    pub(crate) async fn mark(&self, resource: &K::Resource) -> Result<Option<K::Resource>, ()> {
        if !is_missing::<K>(resource.meta()) || !self.holds_claim() {
            return Ok(None);
        }
        match send::<K>(&self.shared.calls, &self.key, PUT_ON, &with::<K>(resource.meta())).await {
            Ok(marked) => {
                self.shared.clusters.put(&self.key, marked.clone());
                Ok(Some(marked))
            }
            Err(error) => {
                tracing::warn!(cluster = %self.key, %error, "the finalizer is not put on yet");
                Err(())
            }
        }
    }

    /// A pass for a cluster that is being deleted. Owner references take away what was made for it; the finalizer goes when what runs
    /// has ended.
    pub(crate) async fn end(&mut self, resource: &K::Resource) -> Next {
        self.gauges.hide();
        if !is_on::<K>(resource.meta()) || !self.running.is_empty() {
            return Next::new("Deleting", LATER);
        }
        if let Some(next) = self.stand_aside(resource).await {
            return next;
        }
        if !self.may_end(resource).await {
            return Next::new("Retry", SOON);
        }
        if !self.loosen().await {
            return Next::new("Retry", SOON);
        }
        match send::<K>(&self.shared.calls, &self.key, TAKE_OFF, &without::<K>(resource.meta())).await {
            Ok(freed) => {
                self.shared.clusters.put(&self.key, freed);
                tracing::info!(cluster = %self.key, "the cluster is deleted, nothing is left to do for it");
                Next::new("Deleting", LATER)
            }
            Err(error) if error.is_not_found() => Next::new("Deleting", LATER),
            Err(error) if error.is_conflict() => Next::new("Outrun", SOON),
            Err(error) => {
                tracing::warn!(cluster = %self.key, %error, "the finalizer is not taken off yet");
                Next::new("Retry", SOON)
            }
        }
    }

    /// Takes away what keeps pods from being deleted: they shall go with the cluster. A deletion ends every pause.
    async fn loosen(&self) -> bool {
        let Some(permit) = Gate::new(Door::Open, Door::Open).permit() else { return false };
        let mut loose = true;
        for Bond { pod, over, annotation } in K::bonds(&self.shared.caches.children(&self.key)) {
            let change = BTreeMap::from([(annotation.to_owned(), None)]);
            let outcome = self.executor().label(&permit, (&pod, &over), &BTreeMap::new(), &change).await;
            loose &= matches!(outcome, Outcome::Done { .. });
        }
        loose
    }

    /// Whether the end of the cluster is ours to allow. A claim that another release left is taken first; without a logbook it is
    /// looked, past the caches, that there is none.
    async fn may_end(&self, resource: &K::Resource) -> bool {
        let Some(stored) = self.shared.caches.logbook(&self.key) else {
            // One that the caches do not have yet is judged when they do.
            let there = logbook::read(&self.shared.calls, &self.key).await;
            return there
                .inspect_err(|error| tracing::warn!(cluster = %self.key, %error, "the end waits"))
                .is_ok_and(|it| it.is_none());
        };
        let (held, me) = (stored.spec.claim.as_ref(), &self.shared.identity);
        if is_of(held, &me.release) {
            return true;
        }
        let mut entries = stored.spec.clone();
        entries.claim = Some(claim::taken(held, me, self.shared.clock.now()));
        let owner = K::owner(resource);
        let taken = logbook::commit(&self.shared.calls, &self.shared.caches, &self.key, &owner, Some(&stored), &entries).await;
        taken.inspect_err(|error| tracing::warn!(cluster = %self.key, %error, "the end waits")).is_ok()
    }
}
