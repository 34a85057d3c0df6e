//! Writes logbooks, by compare-and-swap.

use std::sync::Arc;

use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;
use windlass_core::step::Owner;

use crate::caches::{Caches, Key};
use crate::calls::{CallError, Calls};

/// Writes what is to be remembered, if it differs from what is stored. The cache has the answer afterwards.
///
/// An answer that differs from what was sent is a failed write: an older definition dropped a field.
pub(crate) async fn commit(
    calls: &Calls,
    caches: &Caches,
    key: &Key,
    owner: &Owner,
    stored: Option<&Arc<Logbook>>,
    entries: &LogbookSpec,
) -> Result<bool, CallError> {
    if stored.is_some_and(|stored| stored.spec == *entries) {
        return Ok(false);
    }
    let name = format!("{}-{}", key.kind, key.name);
    let logbook = Logbook { metadata: metadata(key, &name, owner, stored), spec: entries.clone() };
    let what = || format!("write logbook {name:?} of {key}");
    let answer = calls
        .send(what, |client| {
            let (api, logbook, name) = (Api::<Logbook>::namespaced(client, &key.namespace), logbook.clone(), name.clone());
            let fresh = stored.is_none();
            let parameters = PostParams { field_manager: Some(labels::FIELD_MANAGER.into()), ..PostParams::default() };
            async move {
                if fresh { api.create(&parameters, &logbook).await } else { api.replace(&name, &parameters, &logbook).await }
            }
        })
        .await?;
    let kept = answer.spec == *entries;
    caches.put_logbook(answer);
    if kept {
        Ok(true)
    } else {
        let why = "the answer lacks fields that were sent; install the CustomResourceDefinitions of this release".into();
        Err(CallError::Ambiguous { what: what(), why })
    }
}

fn metadata(key: &Key, name: &str, owner: &Owner, stored: Option<&Arc<Logbook>>) -> ObjectMeta {
    let labels = [
        (labels::MANAGED_BY, labels::MANAGED_BY_WINDLASS),
        (labels::INSTANCE, key.name.as_str()),
        (KIND_LABEL, key.kind.as_str()),
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
