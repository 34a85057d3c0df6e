//! Kubernetes objects with only the fields that decisions need. The rest is never allocated.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::{apps, core, policy};
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_core::views::{Children, ClaimView, Compact, Meta, ObjectView, PodView, StatefulSetView};

/// A kind of child object.
pub(crate) trait Child:
    Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
    /// What is kept of it.
    type View: Send;
    /// Keeps what is needed.
    fn view(self) -> Self::View;
    /// Where it is kept.
    fn shelf(children: &mut Children) -> &mut BTreeMap<String, Self::View>;
    /// Its metadata.
    fn known(view: &Self::View) -> &Meta;
}

fn slim(metadata: ObjectMeta) -> Meta {
    let owner = metadata.owner_references.unwrap_or_default().into_iter().find(|owner| owner.controller == Some(true));
    Meta {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        created: metadata.creation_timestamp.map(|time| time.0),
        generation: metadata.generation,
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        owner_uid: owner.map(|owner| owner.uid),
        deleting: metadata.deletion_timestamp.is_some(),
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = core::v1::Service)]
pub(crate) struct Service {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

impl Child for Service {
    type View = ObjectView;

    fn view(self) -> ObjectView {
        ObjectView { meta: slim(self.metadata), spec: Compact::of(&self.spec) }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, ObjectView> {
        &mut children.services
    }

    fn known(view: &ObjectView) -> &Meta {
        &view.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = policy::v1::PodDisruptionBudget)]
pub(crate) struct DisruptionBudget {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

impl Child for DisruptionBudget {
    type View = ObjectView;

    fn view(self) -> ObjectView {
        ObjectView { meta: slim(self.metadata), spec: Compact::of(&self.spec) }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, ObjectView> {
        &mut children.disruption_budgets
    }

    fn known(view: &ObjectView) -> &Meta {
        &view.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = apps::v1::StatefulSet)]
pub(crate) struct StatefulSet {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: StatefulSetStatus,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatefulSetStatus {
    observed_generation: Option<i64>,
    update_revision: Option<String>,
}

impl Child for StatefulSet {
    type View = StatefulSetView;

    fn view(self) -> StatefulSetView {
        let replicas = self.spec.get("replicas").and_then(Value::as_u64).and_then(|count| u16::try_from(count).ok());
        StatefulSetView {
            object: ObjectView { meta: slim(self.metadata), spec: Compact::of(&self.spec) },
            replicas: replicas.unwrap_or(1),
            observed_generation: self.status.observed_generation,
            update_revision: self.status.update_revision,
        }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, StatefulSetView> {
        &mut children.stateful_sets
    }

    fn known(view: &StatefulSetView) -> &Meta {
        &view.object.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = core::v1::Pod)]
pub(crate) struct Pod {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct PodSpec {
    #[serde(default)]
    containers: Vec<Named>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Named {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<PodCondition>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct PodCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    #[serde(rename = "containerID")]
    container_id: Option<String>,
    #[serde(default)]
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ContainerState {
    running: Option<Value>,
}

impl Child for Pod {
    type View = PodView;

    fn view(self) -> PodView {
        let Self { metadata, spec, status } = self;
        let first = spec.containers.into_iter().next().map(|container| container.name).unwrap_or_default();
        let process = status.container_statuses.into_iter().find(|it| it.name == first && it.state.running.is_some());
        PodView {
            meta: slim(metadata),
            phase: status.phase,
            ready: status.conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"),
            process: process.and_then(|it| it.container_id),
        }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, PodView> {
        &mut children.pods
    }

    fn known(view: &PodView) -> &Meta {
        &view.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = core::v1::PersistentVolumeClaim)]
pub(crate) struct Claim {
    metadata: ObjectMeta,
}

impl Child for Claim {
    type View = ClaimView;

    fn view(self) -> ClaimView {
        ClaimView { meta: slim(self.metadata) }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, ClaimView> {
        &mut children.claims
    }

    fn known(view: &ClaimView) -> &Meta {
        &view.meta
    }
}

/// A pod template that is kept in a `ControllerRevision`.
#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = apps::v1::ControllerRevision)]
pub(crate) struct Template {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Value,
}

impl Child for Template {
    type View = ObjectView;

    fn view(self) -> ObjectView {
        ObjectView { meta: slim(self.metadata), spec: Compact::of(&self.data) }
    }

    fn shelf(children: &mut Children) -> &mut BTreeMap<String, ObjectView> {
        &mut children.templates
    }

    fn known(view: &ObjectView) -> &Meta {
        &view.meta
    }
}
