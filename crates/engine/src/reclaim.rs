//! Tells volumes what becomes of them when their claims go, and notes on the claims that it was told.
//!
//! A volume is in no namespace, and everybody's volumes are beside each other: one is changed only when it says itself that it belongs to
//! the very claim that was judged. What was refused is not asked for at every pass: it is remembered for a while, for all clusters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{Api, Resource};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use windlass_core::gate::Permit;
use windlass_core::labels::{FIELD_MANAGER, RECLAIM_POLICY};
use windlass_core::lane::Resources;
use windlass_core::outcome::Outcome;
use windlass_core::reclaim::note;
use windlass_core::step::{ObjectRef, Over};

use crate::caches::Claim;
use crate::calls::CallError;
use crate::execute::{Executor, SOON, failed};

/// After what was refused, or is not there, the server is asked again this late: no event tells of a right that was given.
const AGAIN: Duration = Duration::from_mins(1);
/// Stands for all volumes.
const ALL: &str = "";

/// A volume, with only the fields that are looked at. All others would be a large part of what a pass takes.
#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = PersistentVolume)]
struct Volume {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: ClaimOfVolume,
    persistent_volume_reclaim_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ClaimOfVolume {
    uid: Option<String>,
}

/// What cannot be done to volumes now.
#[derive(Default)]
pub(crate) struct Refusals {
    /// By volume: since when, and what came of it.
    known: Mutex<BTreeMap<String, (Instant, Outcome)>>,
}

impl Refusals {
    /// What came of the last try, if it is not worth another one yet.
    fn recall(&self, volume: &str) -> Option<Outcome> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (since, _)| since.elapsed() < AGAIN);
        known.get(ALL).or_else(|| known.get(volume)).map(|(_, outcome)| outcome.clone())
    }

    fn keep(&self, volume: &str, outcome: Outcome) -> Outcome {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(volume.to_owned(), (Instant::now(), outcome.clone()));
        outcome
    }
}

impl Executor<'_> {
    /// Tells the volume of exactly this claim. Whoever is interrupted between the two writes finds the first one done, and sends the
    /// second. The claim is looked at before them, past the caches: a volume cannot refuse what was decided from an old state of its claim.
    pub(crate) async fn set_reclaim(
        &self,
        permit: &Permit<Resources>,
        (object, over): (&ObjectRef, &Over),
        volume: &str,
        policy: &str,
    ) -> Outcome {
        if let Some(outcome) = self.refusals.recall(volume) {
            return outcome;
        }
        let Over { uid, resource_version } = over;
        match self.metadata(object).await {
            Ok(found) if found.uid.as_ref() == Some(uid) && found.resource_version.as_ref() == Some(resource_version) => {}
            Ok(_) => return Outcome::Outrun,
            Err(error) if error.is_not_found() => return Outcome::Outrun,
            Err(error) => return failed(&error),
        }
        let changed = match self.tell_volume(permit, (object, over), volume, policy).await {
            Ok(changed) => changed,
            Err(outcome) => return outcome,
        };
        let annotations = json!({ RECLAIM_POLICY: note(policy, uid) });
        let body = json!({ "metadata": { "uid": uid, "resourceVersion": resource_version, "annotations": annotations } });
        match self.patch_merge::<Claim>(object, &body).await {
            // The note alone is nothing to tell anybody.
            Ok(_) => Outcome::Done { changed },
            Err(error) => failed(&error),
        }
    }

    /// Makes the policy so, and returns whether it was not so before.
    async fn tell_volume(
        &self,
        _permit: &Permit<Resources>,
        (object, over): (&ObjectRef, &Over),
        volume: &str,
        policy: &str,
    ) -> Result<bool, Outcome> {
        let found = self.read_volume(volume).await.map_err(|error| self.refused_read(object, volume, &error))?;
        if found.spec.claim_ref.uid.as_ref() != Some(&over.uid) {
            let why = format!("PersistentVolume {volume:?} does not say that it belongs to {object}; it is looked at again");
            return Err(self.refusals.keep(volume, Outcome::Waiting { why }));
        }
        if found.spec.persistent_volume_reclaim_policy.as_deref() == Some(policy) {
            return Ok(false);
        }
        let metadata = json!({ "uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version });
        let body = json!({ "metadata": metadata, "spec": { "persistentVolumeReclaimPolicy": policy } });
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let (parameters, patch) = (&parameters, &Patch::Merge(&body));
        let answer = self.calls.send(
            || format!("change PersistentVolume {volume:?}"),
            |client| async move { Api::<Volume>::all(client).patch(volume, parameters, patch).await },
        );
        answer.await.map(|_| true).map_err(|error| self.refused_change(volume, &error))
    }

    async fn read_volume(&self, volume: &str) -> Result<Volume, CallError> {
        let what = || format!("read PersistentVolume {volume:?}");
        self.calls.send(what, |client| async move { Api::<Volume>::all(client).get(volume).await }).await
    }

    fn refused_read(&self, object: &ObjectRef, volume: &str, error: &CallError) -> Outcome {
        if error.is_not_found() {
            let why = format!("{object} is bound to PersistentVolume {volume:?}, which is not there; it is looked at again");
            self.refusals.keep(volume, Outcome::Waiting { why })
        } else if error.is_forbidden() {
            tracing::error!(%error, "volumes cannot be read");
            // It is told of every cluster: the name of somebody else's volume has no place in it.
            let why = "the operator has no right to get persistentvolumes, so volumes do as their StorageClass says; the chart gives it in \
                       a ClusterRole (get and patch): upgrade the release with its chart, or add the right to the role that it has";
            self.refusals.keep(ALL, Outcome::Failed { why: why.into() })
        } else {
            failed(error)
        }
    }

    fn refused_change(&self, volume: &str, error: &CallError) -> Outcome {
        if error.is_conflict() {
            // Of the volume. What was judged is the claim, and that may be as it was.
            Outcome::Retry { after: SOON, why: error.to_string() }
        } else if error.is_forbidden() {
            let hint = "the chart gives the right to patch persistentvolumes in a ClusterRole: upgrade the release with its chart; if the \
                        operator has it, an admission policy refuses the change";
            self.refusals.keep(volume, Outcome::Failed { why: format!("{error}; {hint}") })
        } else {
            failed(error)
        }
    }
}

#[cfg(test)]
#[path = "reclaim_tests.rs"]
mod tests;
