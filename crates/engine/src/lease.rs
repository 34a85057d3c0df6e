//! Leader election: which process of a release may act.
//!
//! The holder renews its Lease and opens the fence until the end of what it renewed. A successor waits until the Lease did not
//! change for its whole period and one call more, by its own clock, so that nothing of the former holder is under way any more.
//! A Lease that was given up is taken at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::core::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use windlass_core::labels;

use crate::calls::{DEADLINE, written_by};
use crate::clock::Clock;
use crate::fence::Fence;

/// How long a renewal holds.
const PERIOD: Duration = Duration::from_secs(6);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(2);
/// After a renewal that failed.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a process that ends waits for what it has sent.
const LAST_CALLS: Duration = Duration::from_millis(800);
/// How long a Lease must not change before its holder is taken for dead.
pub(crate) const PATIENCE: Duration = PERIOD.saturating_add(DEADLINE);
/// Clusters that our selector matches and another release holds, on our own Lease for people to see.
const OVERLAPS: &str = "windlass.dev/overlaps";
/// How many of them are named.
const NAMED_OVERLAPS: usize = 10;

/// Clusters of another release that our selector matches as well, with who holds them.
pub type Overlaps = Arc<Mutex<BTreeMap<String, String>>>;

/// Takes part in the election of one release.
pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    fence: Fence,
    clock: Clock,
    overlaps: Overlaps,
    /// The Lease as it was read or written last.
    known: Mutex<Option<Lease>>,
}

/// A Lease and since when it was not seen to change.
struct Seen {
    lease: Option<Lease>,
    since: Duration,
}

impl Election {
    /// For the Lease `namespace/name`. The client must not be behind the fence: renewing is what opens it.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, fence: Fence, clock: Clock) -> Self {
        let (name, identity) = (name.to_owned(), identity.to_owned());
        let (overlaps, known) = (Overlaps::default(), Mutex::default());
        Self { api: Api::namespaced(client, namespace), name, identity, fence, clock, overlaps, known }
    }

    /// Where overlaps are noted, to be told on the Lease.
    pub fn overlaps(&self) -> Overlaps {
        Arc::clone(&self.overlaps)
    }

    /// Waits until this process holds the Lease. `stands_by` is called when another one holds it.
    pub async fn win(&self, mut stands_by: impl FnMut()) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let events = watcher(self.api.clone(), config).default_backoff();
        pin_mut!(events);
        let mut seen: Option<Seen> = None;
        let mut listed = None;
        loop {
            let wait = match &seen {
                None => PATIENCE,
                Some(seen) if self.is_free(seen.lease.as_ref()) => Duration::ZERO,
                Some(seen) => PATIENCE.saturating_sub(self.clock.uptime().saturating_sub(seen.since)),
            };
            if let Some(seen) = seen.as_mut().filter(|_| wait.is_zero()) {
                match self.take(seen.lease.as_ref()).await {
                    Ok(()) => return,
                    Err(error) => tracing::info!(lease = self.name, %error, "the Lease could not be taken"),
                }
                // Somebody else may have been first: what is there now is looked at again.
                match self.read().await {
                    Ok(lease) => *seen = Seen { lease, since: self.clock.uptime() },
                    Err(error) => {
                        tracing::warn!(lease = self.name, %error, "the Lease cannot be read");
                        tokio::time::sleep(AGAIN).await;
                    }
                }
                continue;
            }
            if seen.is_some() {
                stands_by();
            }
            let fresh = tokio::select! {
                event = events.next() => match event {
                    Some(Ok(Event::Init)) => { listed = None; continue }
                    Some(Ok(Event::InitApply(lease))) => { listed = Some(lease); continue }
                    Some(Ok(Event::InitDone)) => listed.take(),
                    Some(Ok(Event::Apply(lease))) => Some(lease),
                    Some(Ok(Event::Delete(_))) => None,
                    Some(Err(error)) => {
                        tracing::warn!(lease = self.name, %error, "the Lease cannot be watched");
                        continue;
                    }
                    None => continue,
                },
                () = tokio::time::sleep(wait) => continue,
            };
            let changed = seen.as_ref().is_none_or(|seen| version(seen.lease.as_ref()) != version(fresh.as_ref()));
            if changed {
                seen = Some(Seen { lease: fresh, since: self.clock.uptime() });
            }
        }
    }

    fn is_free(&self, lease: Option<&Lease>) -> bool {
        let holder = lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref());
        // The same identity is the same pod: what ran in it before has ended.
        holder.is_none_or(|holder| holder.is_empty() || holder == self.identity)
    }

    /// Renews the Lease until it is lost or this process is told to stop.
    pub async fn hold(&self, stop: &CancellationToken) {
        let mut wait = RENEWAL;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait.min(self.fence.remaining())) => {}
            }
            if self.fence.check().is_err() {
                return tracing::error!(lease = self.name, "the Lease ran out before it could be renewed");
            }
            wait = match self.renew().await {
                Ok(true) => RENEWAL,
                Ok(false) => {
                    self.fence.close();
                    return tracing::error!(lease = self.name, "another process took the Lease");
                }
                Err(error) => {
                    tracing::warn!(lease = self.name, %error, "the Lease could not be renewed, it is tried again");
                    AGAIN
                }
            };
        }
    }

    /// Gives the Lease up, after what was sent has been answered.
    pub async fn release(&self) {
        self.fence.close();
        self.fence.drained(LAST_CALLS).await;
        let Some(mut lease) = self.lock().clone() else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        match self.write(&lease).await {
            Ok(_) => tracing::info!(lease = self.name, "the Lease was given up"),
            Err(error) => tracing::warn!(lease = self.name, %error, "the Lease could not be given up; it runs out"),
        }
    }

    async fn take(&self, found: Option<&Lease>) -> Result<(), kube::Error> {
        let transitions = found.and_then(|lease| lease.spec.as_ref()?.lease_transitions).map_or(0, |count| count + 1);
        let now = MicroTime(Timestamp::now());
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(PERIOD.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        let metadata = found.map_or_else(|| self.fresh_metadata(), |lease| lease.metadata.clone());
        self.open_by(&Lease { metadata, spec: Some(spec) }).await?;
        tracing::info!(lease = self.name, identity = self.identity, "this process holds the Lease");
        Ok(())
    }

    fn fresh_metadata(&self) -> ObjectMeta {
        let label = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_WINDLASS.to_owned());
        ObjectMeta { name: Some(self.name.clone()), labels: Some([label].into()), ..ObjectMeta::default() }
    }

    /// Renews. False when the Lease is another's.
    async fn renew(&self) -> Result<bool, kube::Error> {
        let Some(mut lease) = self.lock().clone() else { return Ok(false) };
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        self.note_overlaps(&mut lease.metadata);
        match self.open_by(&lease).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                let found = self.read().await?;
                let ours = found.as_ref().is_some_and(|found| {
                    let holder = found.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
                    found.metadata.uid == lease.metadata.uid && holder == Some(self.identity.as_str())
                });
                if !ours {
                    return Ok(false);
                }
                // Somebody wrote a label on it.
                let metadata = found.map(|found| found.metadata).unwrap_or_default();
                self.open_by(&Lease { metadata, ..lease }).await.map(|()| true)
            }
            result => result.map(|()| true),
        }
    }

    fn note_overlaps(&self, metadata: &mut ObjectMeta) {
        let overlaps = self.overlaps.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Vec<String> =
            overlaps.iter().take(NAMED_OVERLAPS).map(|(cluster, owner)| format!("{cluster} is held by {owner}")).collect();
        let more = overlaps.len().saturating_sub(named.len());
        drop(overlaps);
        let annotations = metadata.annotations.get_or_insert_default();
        if named.is_empty() {
            annotations.remove(OVERLAPS);
        } else {
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            annotations.insert(OVERLAPS.to_owned(), named.join("; ") + &more);
        }
    }

    /// Writes the Lease, and opens the fence for its period, counted from before the write was sent.
    async fn open_by(&self, lease: &Lease) -> Result<(), kube::Error> {
        let sent = self.clock.uptime();
        let written = self.write(lease).await?;
        *self.lock() = Some(written);
        self.fence.open_until(sent + PERIOD);
        Ok(())
    }

    /// Every write but the first carries the version that it was made from.
    async fn write(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let parameters = written_by(labels::FIELD_MANAGER);
        if lease.metadata.resource_version.is_none() {
            in_time(self.api.create(&parameters, lease)).await
        } else {
            in_time(self.api.replace(&self.name, &parameters, lease)).await
        }
    }

    async fn read(&self) -> Result<Option<Lease>, kube::Error> {
        in_time(self.api.get_opt(&self.name)).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Lease>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn version(lease: Option<&Lease>) -> Option<(&str, &str)> {
    let metadata = &lease?.metadata;
    Some((metadata.uid.as_deref()?, metadata.resource_version.as_deref()?))
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(format!("no answer within {} s", DEADLINE.as_secs()).into())),
    }
}
