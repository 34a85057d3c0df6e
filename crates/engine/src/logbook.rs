//! Writes logbooks, by compare-and-swap.

use std::sync::Arc;

use kube::Api;
use kube::core::ObjectMeta;
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_core::claim::Identity;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;
use windlass_core::likeness::short_hash;
use windlass_core::names::LONGEST_DNS_LABEL;
use windlass_core::step::Owner;

use crate::caches::{Caches, Key};
use crate::calls::{CallError, Calls, written_by};

/// How often giving up is tried.
const RELEASE_TRIES: usize = 5;

/// Writes what is to be remembered. The cache has the answer afterwards.
///
/// An answer that differs from what was sent is a failed write: an older definition dropped a field.
pub(crate) async fn commit(
    calls: &Calls,
    caches: &Caches,
    key: &Key,
    owner: &Owner,
    stored: Option<&Arc<Logbook>>,
    entries: &LogbookSpec,
) -> Result<(), CallError> {
    let name = key.logbook_name();
    let logbook = Logbook { metadata: metadata(key, &name, owner, stored, entries), spec: entries.clone() };
    let what = || format!("write logbook {name:?} of {key}");
    let answer = calls
        .send(what, |client| {
            let (api, logbook, name) = (Api::<Logbook>::namespaced(client, &key.namespace), logbook.clone(), name.clone());
            let fresh = stored.is_none();
            async move {
                let parameters = written_by(labels::FIELD_MANAGER);
                if fresh { api.create(&parameters, &logbook).await } else { api.replace(&name, &parameters, &logbook).await }
            }
        })
        .await?;
    let kept = answer.spec == *entries;
    caches.put_logbook_answer(answer);
    if kept {
        Ok(())
    } else {
        let why = "the answer lacks fields that were sent; install the CustomResourceDefinitions of this release".into();
        Err(CallError::Ambiguous { what: what(), why })
    }
}

/// A release as the value of a label, in which it has no slash and is not long.
fn label_value(release: &str) -> String {
    let value = release.replace('/', ".");
    if value.len() <= LONGEST_DNS_LABEL { value } else { short_hash(release) }
}

fn metadata(key: &Key, name: &str, owner: &Owner, stored: Option<&Arc<Logbook>>, entries: &LogbookSpec) -> ObjectMeta {
    let release = entries.claim.as_ref().map(|claim| label_value(&claim.release)).unwrap_or_default();
    let labels = [
        (labels::MANAGED_BY, labels::MANAGED_BY_WINDLASS),
        (labels::INSTANCE, key.name.as_str()),
        (KIND_LABEL, key.kind.as_str()),
        (labels::RELEASE, release.as_str()),
    ];
    let reference = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(key.namespace.clone()),
        labels: Some(labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect()),
        owner_references: Some(vec![reference]),
        // The version makes the write a compare-and-swap.
        resource_version: stored.and_then(|stored| stored.metadata.resource_version.clone()),
        uid: stored.and_then(|stored| stored.metadata.uid.clone()),
        ..ObjectMeta::default()
    }
}

/// Gives a claim of this release up, as the last write to a cluster that left our selector. A cluster that is gone needs none.
pub(crate) async fn release(calls: &Calls, caches: &Caches, key: &Key, me: &Identity) {
    let name = key.logbook_name();
    let mut logbook = caches.logbook(key).map(|stored| (*stored).clone());
    for _ in 0..RELEASE_TRIES {
        let Some(mut released) = logbook.take() else { return };
        match &mut released.spec.claim {
            Some(claim) if claim.release == me.release && !claim.released => claim.released = true,
            _ => return,
        }
        let write = |client| {
            let (api, released, name) = (Api::<Logbook>::namespaced(client, &key.namespace), released.clone(), name.clone());
            async move { api.replace(&name, &written_by(labels::FIELD_MANAGER), &released).await }
        };
        match calls.send(|| format!("give up the claim in logbook {name:?} of {key}"), write).await {
            Ok(written) => {
                tracing::info!(cluster = %key, "the cluster left the selector, its claim is given up");
                return caches.put_logbook_answer(written);
            }
            Err(error) if error.is_not_found() => return,
            Err(error) => {
                // Another release waits for it; if it never comes, that one waits until our Lease is over or our next start.
                tracing::warn!(cluster = %key, %error, "the claim is not given up yet");
            }
        }
        logbook = read(calls, key).await.ok().flatten();
    }
}

/// The logbook as it is now, past the caches.
pub(crate) async fn read(calls: &Calls, key: &Key) -> Result<Option<Logbook>, CallError> {
    let name = key.logbook_name();
    let get = |client| {
        let (api, name) = (Api::<Logbook>::namespaced(client, &key.namespace), name.clone());
        async move { api.get_opt(&name).await }
    };
    calls.send(|| format!("read logbook {name:?} of {key}"), get).await
}
