//! Takes steps. Every function here that writes asks for the permit of its lane.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{GroupVersionKind, ObjectMeta};
use serde_json::{Value, json};
use windlass_core::gate::Permit;
use windlass_core::labels::{ADOPT, FIELD_MANAGER, FIELD_MANAGER_LABELS};
use windlass_core::lane::{Clustering, Resources, Unpaused};
use windlass_core::likeness::Answered;
use windlass_core::outcome::Outcome;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef, Over};
use windlass_core::views::ObjectView;

use crate::caches::{Caches, Child, DisruptionBudget, Pod, Service, StatefulSet, Template};
use crate::calls::{CallError, Calls};

/// After a request that was refused or lost, the caches are looked at again this soon.
const SOON: Duration = Duration::from_secs(1);

/// Takes steps for all clusters.
pub(crate) struct Executor<'a> {
    pub(crate) calls: &'a Calls,
    pub(crate) caches: &'a Caches,
    /// Whether objects that others made may be taken over.
    pub(crate) adopts: bool,
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
        let (object, body) = (&manifest.object, manifest.body());
        let _turn = match object.kind {
            ObjectKind::Service if manifest.over.is_none() => self.calls.allocation().await,
            _ => None,
        };
        match object.kind {
            ObjectKind::Service => self.patch_apply::<Service>(object, &body).await.map(Child::view),
            ObjectKind::PodDisruptionBudget => self.patch_apply::<DisruptionBudget>(object, &body).await.map(Child::view),
            ObjectKind::StatefulSet => self.patch_apply::<StatefulSet>(object, &body).await.map(|it| it.view().object),
            ObjectKind::ControllerRevision => self.patch_apply::<Template>(object, &body).await.map(Child::view),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => {
                Err(CallError::Senseless { what: format!("apply {object}"), why: "it is never applied as a whole" })
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
        if owner.is_some_and(|owner| owner.uid == manifest.owner.uid) {
            return (Outcome::Outrun, None);
        }
        if !self.adopts {
            return (Outcome::Foreign { why: foreign(object, &found) }, None);
        }
        let over = Over { uid: found.uid.unwrap_or_default(), resource_version: found.resource_version.unwrap_or_default() };
        let manifest = Manifest { over: Some(over), ..manifest.clone() };
        match self.apply_over(permit, &manifest).await {
            Ok(live) => (Outcome::Done { changed: true }, Some(Answered::new(&manifest, &live))),
            Err(error) => (failed(&error), None),
        }
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<ObjectMeta, CallError> {
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
            _ => Outcome::Failed { why: format!("{object} is never deleted") },
        }
    }

    async fn delete_judged<C: Child>(&self, object: &ObjectRef, over: Over) -> Outcome {
        let preconditions = Preconditions { uid: Some(over.uid), resource_version: Some(over.resource_version) };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
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

    /// Sets labels of exactly this pod.
    pub(crate) async fn label(
        &self,
        _permit: &Permit<Clustering>,
        object: &ObjectRef,
        over: &Over,
        wanted: &BTreeMap<String, String>,
    ) -> Outcome {
        let Over { uid, resource_version } = over;
        let body = json!({ "metadata": { "uid": uid, "resourceVersion": resource_version, "labels": wanted } });
        outcome(self.patch_merge::<Pod>(object, &body).await)
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

    async fn patch_merge<C: Child>(&self, object: &ObjectRef, body: &Value) -> Result<C, CallError> {
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

fn outcome<T>(answer: Result<T, CallError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done { changed: true },
        Err(error) => failed(&error),
    }
}

fn foreign(object: &ObjectRef, found: &ObjectMeta) -> String {
    let owner = found.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| format!(" for {} {}", owner.kind, owner.name)).unwrap_or_default();
    let writers: BTreeSet<&str> = found.managed_fields.iter().flatten().filter_map(|it| it.manager.as_deref()).collect();
    let writers: Vec<&str> = writers.into_iter().collect();
    format!(
        "{object} is there already and was made{owner} by {}; delete or rename it, or let Windlass take it over with the annotation {ADOPT}: \"true\" \
         once nobody else writes to it",
        if writers.is_empty() { "somebody else".to_owned() } else { writers.join(", ") },
    )
}

fn failed(error: &CallError) -> Outcome {
    if error.is_conflict() {
        Outcome::Outrun
    } else if error.is_final() {
        Outcome::Failed { why: error.to_string() }
    } else {
        Outcome::Retry { after: SOON, why: error.to_string() }
    }
}
