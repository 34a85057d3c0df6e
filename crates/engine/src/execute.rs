//! Takes steps. Every function here that writes asks for the permit of its lane.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{GroupVersionKind, ObjectMeta};
use serde_json::{Value, json};
use windlass_core::gate::Permit;
use windlass_core::labels::{FIELD_MANAGER, FIELD_MANAGER_LABELS};
use windlass_core::lane::{Clustering, Resources, Unpaused};
use windlass_core::likeness::Answered;
use windlass_core::outcome::Outcome;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef, Over};
use windlass_core::views::ObjectView;

use crate::adoption::{adoption, foreign};
use crate::authority::Authority;
use crate::caches::{
    Caches, Child, Claim, ConfigMap, Deployment, DisruptionBudget, Pod, Role, RoleBinding, Secret, Service, ServiceAccount,
    StatefulSet, Template,
};
use crate::calls::{CallError, Calls};
use crate::reclaim::Refusals;
use crate::secrets;

/// After a request that was refused or lost, the caches are looked at again this soon.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// Takes steps for all clusters.
pub(crate) struct Executor<'a> {
    pub(crate) calls: &'a Calls,
    pub(crate) caches: &'a Caches,
    /// Whether objects that others made may be taken over.
    pub(crate) adopts: bool,
    /// Who signs certificates.
    pub(crate) authority: Option<&'a Authority>,
    /// What cannot be done to volumes now.
    pub(crate) refusals: &'a Refusals,
}

impl Executor<'_> {
    /// Makes an object so. The answer is remembered, to know the object again.
    pub(crate) async fn apply(&self, permit: &Permit<Resources>, manifest: &Manifest) -> (Outcome, Option<Answered>) {
        match self.apply_over(permit, manifest).await {
            Ok(live) => (Outcome::Done { changed: true }, Some(Answered::new(manifest, &live))),
            Err(error) if error.is_conflict() && manifest.over.is_none() => self.meet(permit, manifest).await,
            Err(error) => (failed(&error), None),
        }
    }

    async fn apply_over(&self, _permit: &Permit<Resources>, manifest: &Manifest) -> Result<ObjectView, CallError> {
        let (object, mut body) = (&manifest.object, manifest.body());
        if object.kind == ObjectKind::Secret {
            secrets::fill(self.calls, self.authority, manifest, &mut body).await?;
        }
        let _turn = match object.kind {
            ObjectKind::Service if manifest.over.is_none() => self.calls.allocation().await,
            _ => None,
        };
        match object.kind {
            ObjectKind::Service => self.patch_apply::<Service>(object, &body).await.map(Child::view),
            ObjectKind::PodDisruptionBudget => self.patch_apply::<DisruptionBudget>(object, &body).await.map(Child::view),
            ObjectKind::StatefulSet => self.patch_apply::<StatefulSet>(object, &body).await.map(|it| it.view().object),
            ObjectKind::ControllerRevision => self.patch_apply::<Template>(object, &body).await.map(Child::view),
            ObjectKind::ConfigMap => self.patch_apply::<ConfigMap>(object, &body).await.map(Child::view),
            ObjectKind::Secret => self.patch_apply::<Secret>(object, &body).await.map(Child::view),
            ObjectKind::ServiceAccount => self.patch_apply::<ServiceAccount>(object, &body).await.map(Child::view),
            ObjectKind::Deployment => self.patch_apply::<Deployment>(object, &body).await.map(Child::view),
            ObjectKind::Role => self.patch_apply::<Role>(object, &body).await.map(Child::view),
            ObjectKind::RoleBinding => self.patch_apply::<RoleBinding>(object, &body).await.map(Child::view),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => {
                Err(CallError::Senseless { what: format!("apply {object}"), why: "it is never applied as a whole".into() })
            }
        }
    }

    /// There is an object where we thought none to be. It may be our own, not seen yet, or somebody else's: that one is
    /// taken over only when the user says so.
    async fn meet(&self, permit: &Permit<Resources>, manifest: &Manifest) -> (Outcome, Option<Answered>) {
        let object = &manifest.object;
        let found = match self.metadata(object).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return (Outcome::Outrun, None),
            Err(error) => return (failed(&error), None),
        };
        let owner = found.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        // Another operator may have made it for the same custom resource: then we never wrote to it.
        let is_written = found.managed_fields.iter().flatten().any(|it| it.manager.as_deref() == Some(FIELD_MANAGER));
        if owner.is_some_and(|owner| owner.uid == manifest.owner.uid) && is_written {
            return (Outcome::Outrun, None);
        }
        if !self.adopts {
            return (Outcome::Foreign { why: foreign(object, &found) }, None);
        }
        (outcome(self.adopt(permit, manifest, found).await), None)
    }

    /// Makes an object ours by its metadata alone. What else there is to change is decided when it is seen: it may hold passwords, or
    /// the template of pods that run.
    async fn adopt(&self, _permit: &Permit<Resources>, manifest: &Manifest, found: ObjectMeta) -> Result<(), CallError> {
        let object = &manifest.object;
        let body = adoption(manifest, found);
        match object.kind {
            ObjectKind::Service => self.patch_merge::<Service>(object, &body).await.map(drop),
            ObjectKind::PodDisruptionBudget => self.patch_merge::<DisruptionBudget>(object, &body).await.map(drop),
            ObjectKind::StatefulSet => self.patch_merge::<StatefulSet>(object, &body).await.map(drop),
            ObjectKind::ControllerRevision => self.patch_merge::<Template>(object, &body).await.map(drop),
            ObjectKind::ConfigMap => self.patch_merge::<ConfigMap>(object, &body).await.map(drop),
            ObjectKind::Secret => self.patch_merge::<Secret>(object, &body).await.map(drop),
            ObjectKind::ServiceAccount => self.patch_merge::<ServiceAccount>(object, &body).await.map(drop),
            ObjectKind::Deployment => self.patch_merge::<Deployment>(object, &body).await.map(drop),
            ObjectKind::Role => self.patch_merge::<Role>(object, &body).await.map(drop),
            ObjectKind::RoleBinding => self.patch_merge::<RoleBinding>(object, &body).await.map(drop),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => {
                Err(CallError::Senseless { what: format!("adopt {object}"), why: "it is never applied as a whole".into() })
            }
        }
    }

    /// Puts our labels on an object of which only the name is known, if it is the one that is meant.
    pub(crate) async fn take_over(
        &self,
        _permit: &Permit<Resources>,
        object: &ObjectRef,
        controller: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Outcome {
        let found = match self.metadata(object).await {
            Ok(found) => found,
            // It will be made, or will not; whoever makes it from now on puts the labels on it.
            Err(error) if error.is_not_found() => return Outcome::Done { changed: false },
            Err(error) => return failed(&error),
        };
        let owner = found.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        if controller.is_some() && owner.map(|owner| owner.uid.as_str()) != controller {
            return Outcome::Foreign { why: foreign(object, &found) };
        }
        if has_labels(&found, labels) {
            return Outcome::Outrun;
        }
        let metadata = json!({ "uid": found.uid, "resourceVersion": found.resource_version, "labels": labels });
        let body = json!({ "metadata": metadata });
        match object.kind {
            ObjectKind::Pod => outcome(self.patch_merge::<Pod>(object, &body).await),
            ObjectKind::PersistentVolumeClaim => outcome(self.patch_merge::<Claim>(object, &body).await),
            ObjectKind::Secret => outcome(self.patch_merge::<Secret>(object, &body).await),
            _ => Outcome::Failed { why: format!("{object} is never taken over by its name alone") },
        }
    }

    pub(crate) async fn metadata(&self, object: &ObjectRef) -> Result<ObjectMeta, CallError> {
        let (group, version) = object.kind.api_version().rsplit_once('/').unwrap_or(("", object.kind.api_version()));
        let kind = GroupVersionKind::gvk(group, version, object.kind.into());
        let resource = ApiResource::from_gvk_with_plural(&kind, object.kind.plural());
        let read = |client| {
            let api: Api<DynamicObject> = Api::namespaced_with(client, &object.namespace, &resource);
            async move { api.get_metadata(&object.name).await }
        };
        self.calls.send(|| format!("read {object} in namespace {:?}", object.namespace), read).await.map(|it| it.metadata)
    }

    /// Deletes exactly the object that was judged.
    pub(crate) async fn delete(&self, _permit: &Permit<Resources>, object: &ObjectRef, over: &Over) -> Outcome {
        match object.kind {
            ObjectKind::Pod => self.delete_judged::<Pod>(object, over.clone()).await,
            ObjectKind::ControllerRevision => self.delete_judged::<Template>(object, over.clone()).await,
            ObjectKind::ConfigMap => self.delete_judged::<ConfigMap>(object, over.clone()).await,
            ObjectKind::PodDisruptionBudget => self.delete_judged::<DisruptionBudget>(object, over.clone()).await,
            ObjectKind::PersistentVolumeClaim => self.delete_judged::<Claim>(object, over.clone()).await,
            ObjectKind::StatefulSet => self.delete_judged::<StatefulSet>(object, over.clone()).await,
            _ => Outcome::Failed { why: format!("{object} is never deleted") },
        }
    }

    /// Deletes exactly the set that was judged, and nothing that belongs to it.
    pub(crate) async fn delete_alone(&self, _permit: &Permit<Resources>, object: &ObjectRef, over: &Over) -> Outcome {
        match object.kind {
            ObjectKind::StatefulSet => self.delete_with::<StatefulSet>(object, over.clone(), DeleteParams::orphan()).await,
            _ => Outcome::Failed { why: format!("{object} is never deleted alone") },
        }
    }

    /// Lets exactly this claim ask for more.
    pub(crate) async fn grow(&self, _permit: &Permit<Resources>, object: &ObjectRef, over: &Over, to: &str) -> Outcome {
        let Over { uid, resource_version } = over;
        let body = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": { "resources": { "requests": { "storage": to } } },
        });
        match self.patch_merge::<Claim>(object, &body).await {
            Err(error) if error.is_forbidden() => {
                let why = "look whether its StorageClass has allowVolumeExpansion: true; where it cannot grow, copy the data to a new cluster";
                Outcome::Failed { why: format!("{error}; {why}") }
            }
            answer => outcome(answer),
        }
    }

    async fn delete_judged<C: Child>(&self, object: &ObjectRef, over: Over) -> Outcome {
        self.delete_with::<C>(object, over, DeleteParams::default()).await
    }

    async fn delete_with<C: Child>(&self, object: &ObjectRef, over: Over, parameters: DeleteParams) -> Outcome {
        let preconditions = Preconditions { uid: Some(over.uid), resource_version: Some(over.resource_version) };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..parameters };
        let what = || format!("delete {object} in namespace {:?}", object.namespace);
        let answer = self
            .calls
            .send(what, |client| {
                let (api, parameters) = (Api::<C>::namespaced(client, &object.namespace), parameters.clone());
                async move { api.delete(&object.name, &parameters).await }
            })
            .await;
        match answer {
            Ok(answer) => {
                answer.map_left(|ending| self.caches.put_answer(ending));
                Outcome::Done { changed: true }
            }
            // Somebody was faster; the caches will show it.
            Err(error) if error.is_not_found() => Outcome::Done { changed: false },
            Err(error) => failed(&error),
        }
    }

    /// Changes the size of a `StatefulSet` that is still the one that was judged.
    pub(crate) async fn set_replicas(&self, _permit: &Permit<Resources>, object: &ObjectRef, over: &Over, to: u16) -> Outcome {
        let Over { uid, resource_version } = over;
        let body = json!({ "metadata": { "uid": uid, "resourceVersion": resource_version }, "spec": { "replicas": to } });
        outcome(self.patch_merge::<StatefulSet>(object, &body).await)
    }

    /// Sets labels and annotations of exactly this pod.
    pub(crate) async fn label(
        &self,
        _permit: &Permit<Clustering>,
        (object, over): (&ObjectRef, &Over),
        labels: &BTreeMap<String, Option<String>>,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Outcome {
        outcome(self.patch_merge::<Pod>(object, &noted(over, labels, annotations)).await)
    }

    /// Sets labels and annotations of exactly this claim.
    pub(crate) async fn mark(
        &self,
        _permit: &Permit<Resources>,
        (object, over): (&ObjectRef, &Over),
        labels: &BTreeMap<String, Option<String>>,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Outcome {
        outcome(self.patch_merge::<Claim>(object, &noted(over, labels, annotations)).await)
    }

    /// Sets our copies on an object's metadata. Unforced: what somebody else set stays hers.
    pub(crate) async fn sync(
        &self,
        _permit: &Permit<Unpaused>,
        object: &ObjectRef,
        over: &Over,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Outcome {
        let body = json!({
            "apiVersion": object.kind.api_version(),
            "kind": object.kind.to_string(),
            "metadata": {
                "name": object.name,
                "uid": over.uid,
                "resourceVersion": over.resource_version,
                "labels": labels,
                "annotations": annotations,
            },
        });
        let parameters = PatchParams::apply(FIELD_MANAGER_LABELS);
        let patch = Patch::Apply(&body);
        let answer = match object.kind {
            ObjectKind::Pod => self.patch::<Pod>(object, "note on", &parameters, &patch).await.map(drop),
            _ => self.patch::<StatefulSet>(object, "copy labels to", &parameters, &patch).await.map(drop),
        };
        match answer {
            Err(error) if error.is_field_conflict() => Outcome::Failed { why: error.to_string() },
            answer => outcome(answer),
        }
    }

    async fn patch_apply<C: Child>(&self, object: &ObjectRef, body: &Value) -> Result<C, CallError> {
        // Forced: what the spec of the custom resource decides is decided there.
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        self.patch(object, "apply", &parameters, &Patch::Apply(body)).await
    }

    pub(crate) async fn patch_merge<C: Child>(&self, object: &ObjectRef, body: &Value) -> Result<C, CallError> {
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
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
        self.caches.put_answer(answer.clone());
        Ok(answer)
    }
}

fn noted(over: &Over, labels: &BTreeMap<String, Option<String>>, annotations: &BTreeMap<String, Option<String>>) -> Value {
    let Over { uid, resource_version } = over;
    json!({ "metadata": { "uid": uid, "resourceVersion": resource_version, "labels": labels, "annotations": annotations } })
}

fn has_labels(found: &ObjectMeta, labels: &BTreeMap<String, String>) -> bool {
    let has = found.labels.as_ref();
    labels.iter().all(|(key, value)| has.and_then(|has| has.get(key)) == Some(value))
}

fn outcome<T>(answer: Result<T, CallError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done { changed: true },
        Err(error) => failed(&error),
    }
}

pub(crate) fn failed(error: &CallError) -> Outcome {
    if error.is_conflict() {
        Outcome::Outrun
    } else if error.is_final() {
        Outcome::Failed { why: error.to_string() }
    } else {
        Outcome::Retry { after: SOON, why: error.to_string() }
    }
}
