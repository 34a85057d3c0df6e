//! A fresh look at one cluster, past the caches: what another release did last may not have reached our watches yet, and what a
//! watch never tells of would stay in the caches for ever.

use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;

use super::slim::{
    Child, Claim, ConfigMap, Deployment, DisruptionBudget, Pod, Role, RoleBinding, Secret, Service, ServiceAccount,
    StatefulSet, Template,
};
use super::{Caches, Key, version};
use crate::calls::{CallError, Calls};
use crate::logbook;

/// Lists everything of a cluster and takes it into the caches.
pub(crate) async fn refresh(calls: &Calls, caches: &Caches, key: &Key) -> Result<(), CallError> {
    children::<StatefulSet>(calls, caches, key, "").await?;
    children::<Pod>(calls, caches, key, "").await?;
    children::<Claim>(calls, caches, key, "").await?;
    children::<Service>(calls, caches, key, "").await?;
    children::<DisruptionBudget>(calls, caches, key, "").await?;
    children::<ConfigMap>(calls, caches, key, "").await?;
    children::<Secret>(calls, caches, key, "").await?;
    children::<ServiceAccount>(calls, caches, key, "").await?;
    children::<Deployment>(calls, caches, key, "").await?;
    children::<Role>(calls, caches, key, "").await?;
    children::<RoleBinding>(calls, caches, key, "").await?;
    children::<Template>(calls, caches, key, &format!(",{}={}", labels::KEEPS, labels::KEEPS_TEMPLATE)).await?;
    let before = caches.logbook(key);
    match (logbook::read(calls, key).await?, before) {
        (Some(logbook), _) => caches.put_logbook_answer(logbook),
        (None, Some(before)) => caches.lose_logbook(key, &before),
        (None, None) => {}
    }
    Ok(())
}

async fn children<C: Child>(calls: &Calls, caches: &Caches, key: &Key, more: &str) -> Result<(), CallError> {
    let labels = format!("{}={},{KIND_LABEL}={}{more}", labels::INSTANCE, key.name, key.kind);
    let list = |client| {
        let (api, parameters) = (Api::<C>::namespaced(client, &key.namespace), ListParams::default().labels(&labels));
        async move { api.list(&parameters).await }
    };
    let listed = calls.send(|| format!("list {} of {key}", C::plural(&())), list).await?;
    let newest = version(listed.metadata.resource_version.as_deref().unwrap_or_default());
    let mut all = BTreeMap::new();
    for child in listed.items {
        let meta = child.meta();
        all.insert(meta.name.clone().unwrap_or_default(), meta.uid.clone().unwrap_or_default());
        caches.put_answer(child);
    }
    caches.retain_of::<C>(key, &all, newest);
    Ok(())
}
