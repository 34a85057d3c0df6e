//! Takes steps. Every function here that writes asks for the permit of its lane.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use windlass_core::gate::Permit;
use windlass_core::labels;
use windlass_core::lane::{Clustering, Resources};
use windlass_core::likeness::Answered;
use windlass_core::outcome::Outcome;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef};

use crate::caches::{Caches, Child, DisruptionBudget, Pod, Service, StatefulSet};
use crate::calls::{CallError, Calls};

/// After a request that was refused or lost, the caches are looked at again this soon.
const SOON: Duration = Duration::from_secs(1);

/// Takes steps for all clusters.
pub(crate) struct Executor<'a> {
    pub(crate) calls: &'a Calls,
    pub(crate) caches: &'a Caches,
}

impl Executor<'_> {
    /// Makes an object so. The answer is remembered, to know the object again.
    pub(crate) async fn apply(&self, _permit: &Permit<Resources>, manifest: &Manifest) -> (Outcome, Option<Answered>) {
        let object = &manifest.object;
        let body = manifest.body();
        let answer = match object.kind {
            ObjectKind::Service => self.patch_apply::<Service>(object, &body).await.map(Child::view),
            ObjectKind::PodDisruptionBudget => self.patch_apply::<DisruptionBudget>(object, &body).await.map(Child::view),
            ObjectKind::StatefulSet => self.patch_apply::<StatefulSet>(object, &body).await.map(|it| it.view().object),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => {
                return (Outcome::Failed { why: format!("{object} is never applied as a whole") }, None);
            }
        };
        match answer {
            Ok(live) => (Outcome::Done { changed: true }, Some(Answered::new(manifest, &live))),
            Err(error) => (failed(&error), None),
        }
    }

    /// Deletes exactly the object that was judged.
    pub(crate) async fn delete(
        &self,
        _permit: &Permit<Resources>,
        object: &ObjectRef,
        uid: &str,
        resource_version: &str,
    ) -> Outcome {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: Some(resource_version.to_owned()) };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let what = || format!("delete {object} in namespace {:?}", object.namespace);
        let answer = self
            .calls
            .send(what, |client| {
                let (api, parameters) = (Api::<Pod>::namespaced(client, &object.namespace), parameters.clone());
                async move { api.delete(&object.name, &parameters).await }
            })
            .await;
        match answer {
            Ok(answer) => {
                answer.map_left(|pod| self.caches.put(pod));
                Outcome::Done { changed: true }
            }
            // Somebody was faster; the caches will show it.
            Err(error) if error.is_not_found() => Outcome::Done { changed: false },
            Err(error) => failed(&error),
        }
    }

    /// Changes the size of a `StatefulSet` that is still the one that was judged.
    pub(crate) async fn set_replicas(
        &self,
        _permit: &Permit<Resources>,
        object: &ObjectRef,
        uid: &str,
        resource_version: &str,
        to: u16,
    ) -> Outcome {
        let body = json!({ "metadata": { "uid": uid, "resourceVersion": resource_version }, "spec": { "replicas": to } });
        outcome(self.patch_merge::<StatefulSet>(object, &body).await)
    }

    /// Sets labels of exactly this pod.
    pub(crate) async fn label(
        &self,
        _permit: &Permit<Clustering>,
        object: &ObjectRef,
        uid: &str,
        wanted: &std::collections::BTreeMap<String, String>,
    ) -> Outcome {
        let body = json!({ "metadata": { "uid": uid, "labels": wanted } });
        outcome(self.patch_merge::<Pod>(object, &body).await)
    }

    async fn patch_apply<C: Child>(&self, object: &ObjectRef, body: &Value) -> Result<C, CallError> {
        // Forced: what the spec of the custom resource decides is decided there.
        let parameters = PatchParams::apply(labels::FIELD_MANAGER).force();
        self.patch(object, "apply", &parameters, &Patch::Apply(body)).await
    }

    async fn patch_merge<C: Child>(&self, object: &ObjectRef, body: &Value) -> Result<C, CallError> {
        let parameters = PatchParams { field_manager: Some(labels::FIELD_MANAGER.into()), ..PatchParams::default() };
        self.patch(object, "change", &parameters, &Patch::Merge(body)).await
    }

    async fn patch<C: Child>(
        &self,
        object: &ObjectRef,
        verb: &str,
        parameters: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<C, CallError> {
        let what = || format!("{verb} {object} in namespace {:?}", object.namespace);
        let answer = self
            .calls
            .send(what, |client| {
                let api = Api::<C>::namespaced(client, &object.namespace);
                async move { api.patch(&object.name, parameters, patch).await }
            })
            .await?;
        self.caches.put(answer.clone());
        Ok(answer)
    }
}

fn outcome<T>(answer: Result<T, CallError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done { changed: true },
        Err(error) => failed(&error),
    }
}

fn failed(error: &CallError) -> Outcome {
    if error.is_final() {
        Outcome::Failed { why: error.to_string() }
    } else {
        Outcome::Retry { after: SOON, why: error.to_string() }
    }
}
