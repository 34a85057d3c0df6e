//! Whether a cluster is this release's to look after: standing aside while another one does, taking over, giving up.

use std::sync::PoisonError;
use std::time::Duration;

use kube::Resource as _;
use windlass_api::logbook::Claim;
use windlass_clients::members::Members;
use windlass_core::claim::{self, Standing};
use windlass_core::kind::Kind;

use crate::actor::Actor;
use crate::finalizer;
use crate::lease::PATIENCE;
use crate::logbook;
use crate::pass::Next;

/// How often it is looked whether the other release still lives.
const LOOK: Duration = Duration::from_secs(1);
/// How long a hand-over may take before it is told as an overlap.
const OVERLAP: Duration = Duration::from_secs(5);

impl<K: Kind, M: Members<K>> Actor<K, M> {
    /// What to do instead of a pass while another release holds the cluster. Before a cluster is taken over from one, everything
    /// of it is listed afresh.
    pub(crate) async fn stand_aside(&mut self, resource: &K::Resource) -> Option<Next> {
        let stored = self.shared.caches.logbook(&self.key);
        let held = stored.as_ref().and_then(|stored| stored.spec.claim.as_ref());
        let me = &self.shared.identity;
        let silent = match held {
            Some(held) if held.release != me.release && !held.released => self.shared.neighbours.silent(&held.release).await,
            _ => None,
        };
        match claim::judge(held, me, silent, PATIENCE) {
            Standing::Ours | Standing::Unclaimed => {
                self.end_overlap();
                None
            }
            Standing::Left => {
                self.end_overlap();
                if !self.look("taking it over").await {
                    return Some(Next::new("Retry", LOOK));
                }
                // A third release may have been faster: what is taken is the claim that was judged, and no other.
                (self.claim_now() != held.cloned()).then(|| Next::new("Outrun", Duration::ZERO))
            }
            Standing::Foreign { release, version } => {
                self.gauges.hide();
                self.tell_overlap(resource, &release, &version);
                Some(Next::new("Foreign", LOOK))
            }
        }
    }

    fn claim_now(&self) -> Option<Claim> {
        self.shared.caches.logbook(&self.key).and_then(|logbook| logbook.spec.claim.clone())
    }

    fn tell_overlap(&mut self, resource: &K::Resource, release: &str, version: &str) {
        let since = *self.foreign_since.get_or_insert_with(tokio::time::Instant::now);
        if since.elapsed() < OVERLAP {
            return;
        }
        let owner = format!("{release} (version {version})");
        let known = self.overlaps().insert(self.key.to_string(), owner.clone());
        if known.as_ref() != Some(&owner) {
            self.shared.metrics.overlap(K::NAME);
            let note = format!("the selector of {} matches this cluster, but {owner} holds it", self.shared.identity.release);
            tracing::warn!(cluster = %self.key, "{note}");
            self.shared.events.warning(&resource.object_ref(&()), "SelectorsOverlap", note);
        }
    }

    fn end_overlap(&mut self) {
        if self.foreign_since.take().is_some() {
            self.overlaps().remove(&self.key.to_string());
        }
    }

    fn overlaps(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<String, String>> {
        self.shared.overlaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cluster left our selector: what runs is awaited, the finalizer taken off, then the claim given up. It is our last write to it.
    pub(crate) async fn give_up(&mut self) {
        self.gauges.hide();
        self.end_overlap();
        let left = match &self.last_seen {
            Some(uid) => match finalizer::read_metadata::<K>(&self.shared.calls, &self.key).await {
                Ok(now) => now.is_some_and(|now| {
                    now.uid.as_ref() == Some(uid) && (now.deletion_timestamp.is_none() || finalizer::is_on::<K>(&now))
                }),
                Err(_) => true,
            },
            None => true,
        };
        if !left {
            return;
        }
        while !self.running.is_empty() {
            if self.next_message().await.is_err() {
                break;
            }
        }
        finalizer::leave(&self.shared, &self.key).await;
        logbook::release(&self.shared.calls, &self.shared.caches, &self.key, &self.shared.identity).await;
    }
}
