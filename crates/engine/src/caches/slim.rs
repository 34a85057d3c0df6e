//! Kubernetes objects with only the fields that decisions need. The rest is never allocated.

use std::collections::BTreeMap;
use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::api::{apps, core, policy, rbac};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use windlass_core::secrets;
use windlass_core::shelf::Shelf;
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
    type View: Send + Sync;
    /// Keeps what is needed.
    fn view(self) -> Self::View;
    /// Where it is kept.
    fn shelf(children: &Children) -> &Shelf<Self::View>;
    /// Where it is kept, to be changed.
    fn shelf_mut(children: &mut Children) -> &mut Shelf<Self::View>;
    /// Its metadata.
    fn known(view: &Self::View) -> &Meta;
}

/// Reads metadata without who wrote which field: a third of an object's bytes, which nobody here reads. What is passed over leaves no
/// holes in the memory between what is kept.
fn wanted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let wanted = Wanted::deserialize(deserializer)?;
    Ok(ObjectMeta {
        namespace: wanted.namespace,
        name: wanted.name,
        uid: wanted.uid,
        resource_version: wanted.resource_version,
        creation_timestamp: wanted.creation_timestamp,
        generation: wanted.generation,
        labels: wanted.labels,
        annotations: wanted.annotations,
        owner_references: wanted.owner_references,
        deletion_timestamp: wanted.deletion_timestamp,
        ..ObjectMeta::default()
    })
}

/// What [`slim`] keeps of metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Time>,
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
        labels: metadata.labels.unwrap_or_default().into(),
        annotations: metadata.annotations.unwrap_or_default().into(),
        owner_uid: owner.map(|owner| owner.uid),
        deleting: metadata.deletion_timestamp.is_some(),
    }
}

/// A child that is applied as a whole: its name here, its type, the field with what it is about, how that is kept, and where.
macro_rules! applied {
    ($(#[$about:meta])* $name:ident, $type:ty, $field:ident, $keep:expr, $shelf:ident) => {
        $(#[$about])*
        #[derive(Resource, Clone, Debug, Deserialize, Serialize)]
        #[resource(inherit = $type)]
        pub(crate) struct $name {
            #[serde(deserialize_with = "wanted")]
            metadata: ObjectMeta,
            #[serde(default)]
            $field: Value,
        }

        impl Child for $name {
            type View = ObjectView;

            fn view(self) -> ObjectView {
                let keep: fn(&Value) -> Compact = $keep;
                ObjectView { meta: slim(self.metadata), spec: keep(&self.$field) }
            }

            fn shelf(children: &Children) -> &Shelf<ObjectView> {
                &children.$shelf
            }

            fn shelf_mut(children: &mut Children) -> &mut Shelf<ObjectView> {
                &mut children.$shelf
            }

            fn known(view: &ObjectView) -> &Meta {
                &view.meta
            }
        }
    };
}

applied!(Service, core::v1::Service, spec, Compact::of, services);
applied!(DisruptionBudget, policy::v1::PodDisruptionBudget, spec, Compact::of, disruption_budgets);
applied!(
    /// A pod template that is kept in a `ControllerRevision`.
    Template, apps::v1::ControllerRevision, data, Compact::of, templates
);
applied!(ConfigMap, core::v1::ConfigMap, data, Compact::of, config_maps);
applied!(
    /// What it holds is forgotten at once.
    Secret, core::v1::Secret, data, |data| Compact::of(&secrets::fingerprint(data)), secrets
);
applied!(
    /// Only that it is there counts.
    ServiceAccount, core::v1::ServiceAccount, secrets, |_| Compact::of(&Value::Object(Map::new())), service_accounts
);

applied!(Deployment, apps::v1::Deployment, spec, Compact::of, deployments);

/// A child that is applied as a whole and has no spec: its name here, its type, and where it is kept. All of its fields are.
macro_rules! specless {
    ($name:ident, $type:ty, $shelf:ident) => {
        #[derive(Resource, Clone, Debug, Deserialize, Serialize)]
        #[resource(inherit = $type)]
        pub(crate) struct $name {
            metadata: ObjectMeta,
            #[serde(flatten)]
            fields: Map<String, Value>,
        }

        impl Child for $name {
            type View = ObjectView;

            fn view(self) -> ObjectView {
                let mut fields = self.fields;
                fields.retain(|name, _| name != "apiVersion" && name != "kind");
                ObjectView { meta: slim(self.metadata), spec: Compact::of(&Value::Object(fields)) }
            }

            fn shelf(children: &Children) -> &Shelf<ObjectView> {
                &children.$shelf
            }

            fn shelf_mut(children: &mut Children) -> &mut Shelf<ObjectView> {
                &mut children.$shelf
            }

            fn known(view: &ObjectView) -> &Meta {
                &view.meta
            }
        }
    };
}

specless!(Role, rbac::v1::Role, roles);
specless!(RoleBinding, rbac::v1::RoleBinding, role_bindings);

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = apps::v1::StatefulSet)]
pub(crate) struct StatefulSet {
    #[serde(deserialize_with = "wanted")]
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
    current_revision: Option<String>,
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
            current_revision: self.status.current_revision,
        }
    }

    fn shelf(children: &Children) -> &Shelf<StatefulSetView> {
        &children.stateful_sets
    }

    fn shelf_mut(children: &mut Children) -> &mut Shelf<StatefulSetView> {
        &mut children.stateful_sets
    }

    fn known(view: &StatefulSetView) -> &Meta {
        &view.object.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = core::v1::Pod)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "wanted")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct PodSpec {
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    volumes: Vec<Volume>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    config_map: Option<ConfigMapVolume>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ConfigMapVolume {
    #[serde(default)]
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Container {
    name: String,
    #[serde(default)]
    args: Vec<String>,
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
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct PodCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    #[serde(rename = "containerID")]
    container_id: Option<String>,
    #[serde(default)]
    state: ContainerState,
    #[serde(default)]
    last_state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ContainerState {
    running: Option<Value>,
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    finished_at: Option<Time>,
}

impl ContainerStatus {
    /// When its last process ended. A kubelet that lost sight of one tells that it ended, and not when.
    fn ended(&self) -> Option<Timestamp> {
        let terminated = self.state.terminated.as_ref().or(self.last_state.terminated.as_ref())?;
        Some(terminated.finished_at.as_ref().map_or(Timestamp::MAX, |time| time.0))
    }
}

impl Child for Pod {
    type View = PodView;

    fn view(self) -> PodView {
        let Self { metadata, spec, status } = self;
        let first = spec.containers.first().map(|container| container.name.clone()).unwrap_or_default();
        let ready = status.conditions.into_iter().find(|it| it.type_ == "Ready");
        let main = status.container_statuses.into_iter().find(|it| it.name == first);
        PodView {
            meta: slim(metadata),
            phase: status.phase,
            ready: ready.as_ref().is_some_and(|it| it.status == "True"),
            ready_since: ready.and_then(|it| it.last_transition_time).map(|time| time.0),
            ended: main.as_ref().and_then(ContainerStatus::ended),
            process: main.filter(|it| it.state.running.is_some()).and_then(|it| it.container_id),
            address: status.pod_ip,
            config_maps: spec.volumes.into_iter().filter_map(|volume| Some(volume.config_map?.name)).collect(),
            arguments: spec.containers.into_iter().filter_map(|it| Some((it.name, it.args.into_iter().next()?))).collect(),
        }
    }

    fn shelf(children: &Children) -> &Shelf<PodView> {
        &children.pods
    }

    fn shelf_mut(children: &mut Children) -> &mut Shelf<PodView> {
        &mut children.pods
    }

    fn known(view: &PodView) -> &Meta {
        &view.meta
    }
}

#[derive(Resource, Clone, Debug, Deserialize, Serialize)]
#[resource(inherit = core::v1::PersistentVolumeClaim)]
pub(crate) struct Claim {
    #[serde(deserialize_with = "wanted")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ClaimSpec,
    #[serde(default)]
    status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSpec {
    storage_class_name: Option<String>,
    volume_name: Option<String>,
    #[serde(default)]
    resources: ClaimResources,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ClaimStatus {
    #[serde(default)]
    phase: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ClaimResources {
    #[serde(default)]
    requests: BTreeMap<String, String>,
}

impl Child for Claim {
    type View = ClaimView;

    fn view(self) -> ClaimView {
        let Self { metadata, spec, status } = self;
        let requested = spec.resources.requests.get("storage").cloned();
        let volume = spec.volume_name.filter(|_| status.phase == "Bound");
        ClaimView { meta: slim(metadata), requested, class: spec.storage_class_name, volume }
    }

    fn shelf(children: &Children) -> &Shelf<ClaimView> {
        &children.claims
    }

    fn shelf_mut(children: &mut Children) -> &mut Shelf<ClaimView> {
        &mut children.claims
    }

    fn known(view: &ClaimView) -> &Meta {
        &view.meta
    }
}
