//! Steps: everything that the operator can do to a cluster, as values.
//!
//! A step can be printed, compared, counted, held back and tested. It carries what must be true before it is taken; there is no
//! delete without a precondition. Taking steps is the engine's work, and only its.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lane::Lane;

/// Names one object of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectRef {
    /// Which kind of object.
    pub kind: ObjectKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// The kinds of objects that steps touch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display, strum::EnumIter, strum::IntoStaticStr,
)]
pub enum ObjectKind {
    /// core/v1 Pod
    Pod,
    /// core/v1 Service
    Service,
    /// apps/v1 `StatefulSet`
    StatefulSet,
    /// policy/v1 `PodDisruptionBudget`
    PodDisruptionBudget,
    /// core/v1 `PersistentVolumeClaim`
    PersistentVolumeClaim,
    /// apps/v1 `ControllerRevision`, in which a pod template is kept
    ControllerRevision,
    /// core/v1 `ConfigMap`
    ConfigMap,
    /// core/v1 Secret
    Secret,
    /// core/v1 `ServiceAccount`
    ServiceAccount,
    /// apps/v1 Deployment
    Deployment,
    /// rbac.authorization.k8s.io/v1 Role
    Role,
    /// rbac.authorization.k8s.io/v1 `RoleBinding`
    RoleBinding,
}

impl ObjectKind {
    /// `apiVersion`, as in a manifest.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Pod | Self::Service | Self::PersistentVolumeClaim | Self::ConfigMap | Self::Secret | Self::ServiceAccount => {
                "v1"
            }
            Self::StatefulSet | Self::ControllerRevision | Self::Deployment => "apps/v1",
            Self::PodDisruptionBudget => "policy/v1",
            Self::Role | Self::RoleBinding => "rbac.authorization.k8s.io/v1",
        }
    }

    /// The name of the collection in a path.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Service => "services",
            Self::StatefulSet => "statefulsets",
            Self::PodDisruptionBudget => "poddisruptionbudgets",
            Self::PersistentVolumeClaim => "persistentvolumeclaims",
            Self::ControllerRevision => "controllerrevisions",
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::ServiceAccount => "serviceaccounts",
            Self::Deployment => "deployments",
            Self::Role => "roles",
            Self::RoleBinding => "rolebindings",
        }
    }
}

/// An object as it should be: the fields that we decide, and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// Which object.
    pub object: ObjectRef,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The UID of the custom resource that owns it, and how that is named.
    pub owner: Owner,
    /// `spec`; `data` of a `ControllerRevision` and of a `ConfigMap`; all other fields of a `ServiceAccount`, of a Role and of a
    /// `RoleBinding`; and of a Secret how it is made, a [`Recipe`](crate::secrets::Recipe).
    pub spec: Value,
    /// The object that it was compared with; none when there is none yet.
    pub over: Option<Over>,
    /// Whether no pause holds it back: without it, a cluster that is paused could not even keep what it has.
    pub never_held: bool,
}

/// An object as it was when a step was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
}

/// A version that no object ever has. The server makes an object of an apply with it, and refuses it when there is one already.
const ABSENT: &str = "1";

/// The custom resource that owns an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `name`
    pub name: String,
    /// `uid`
    pub uid: String,
}

impl Manifest {
    /// The manifest as the body of an apply request.
    pub fn body(&self) -> Value {
        let Owner { api_version, kind, name, uid } = &self.owner;
        let mut body = serde_json::json!({
            "apiVersion": self.object.kind.api_version(),
            "kind": self.object.kind.to_string(),
            "metadata": {
                "name": self.object.name,
                "namespace": self.object.namespace,
                "labels": self.labels,
                "annotations": self.annotations,
                "ownerReferences": [{
                    "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        });
        match self.object.kind {
            ObjectKind::ControllerRevision => {
                body["data"] = self.spec.clone();
                // Its controller would count; nobody counts these.
                body["revision"] = 1.into();
            }
            ObjectKind::ConfigMap => body["data"] = self.spec.clone(),
            ObjectKind::ServiceAccount | ObjectKind::Role | ObjectKind::RoleBinding => {
                for (field, value) in self.spec.as_object().into_iter().flatten() {
                    body[field] = value.clone();
                }
            }
            // What it holds is put in where it is sent: a plan never knows it.
            ObjectKind::Secret => {}
            _ => body["spec"] = self.spec.clone(),
        }
        body["metadata"]["resourceVersion"] = ABSENT.into();
        if let Some(over) = &self.over {
            body["metadata"]["resourceVersion"] = over.resource_version.clone().into();
            body["metadata"]["uid"] = over.uid.clone().into();
        }
        body
    }
}

/// What a kind can do to members, as a value. Each kind has its own; the engine only carries it.
pub trait Action: Clone + Debug + Display + PartialEq + Serialize + Send + Sync + 'static {
    /// On which member the action works; two actions on one member never run at once.
    fn target(&self) -> &str;
    /// The UID of the member's pod that the action was planned for. The engine does not start it on another one.
    fn target_uid(&self) -> &str;
    /// Whether it can be undone. What cannot is announced in the logbook before it starts.
    fn irreversible(&self) -> bool;
    /// The name of the action without its target, for metrics and intents.
    fn name(&self) -> &'static str;
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step<A> {
    /// What is done.
    pub act: Act<A>,
    /// Why, in a sentence without a full stop.
    pub reason: String,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Act<A> {
    /// Make the object so. Nothing is sent when it is already so.
    Apply(Box<Manifest>),
    /// Delete exactly this object.
    Delete {
        /// Which object.
        object: ObjectRef,
        /// As it was judged: another object of the same name, or one that changed since, is not touched.
        over: Over,
    },
    /// Delete a `StatefulSet` alone, to make it again with what cannot be changed in place. Its pods run on, belong to nobody
    /// meanwhile, and to the new one then.
    DeleteAlone {
        /// Which object.
        object: ObjectRef,
        /// As it was judged.
        over: Over,
    },
    /// Put our labels on an object that belongs to a set that was taken over, so that it is found from now on. Only its name is known.
    TakeOver {
        /// Which object.
        object: ObjectRef,
        /// The UID of the object that controls it, where one has to.
        controller: Option<String>,
        /// The labels.
        labels: BTreeMap<String, String>,
    },
    /// Ask for a larger volume. It never becomes smaller again.
    Grow {
        /// Which claim.
        object: ObjectRef,
        /// As it was when the size was decided.
        over: Over,
        /// The size that it asks for.
        from: String,
        /// The size that it is to ask for.
        to: String,
    },
    /// Say what becomes of the volume of a claim when the claim is gone, and note on the claim that it was said.
    SetReclaim {
        /// Which claim.
        object: ObjectRef,
        /// As it was when this was decided.
        over: Over,
        /// The volume that it is bound to.
        volume: String,
        /// `Retain`, `Delete` or `Recycle`.
        policy: String,
    },
    /// Change the size of a `StatefulSet`.
    SetReplicas {
        /// Which object.
        object: ObjectRef,
        /// As it was when the size was decided.
        over: Over,
        /// The size it has.
        from: u16,
        /// The size it gets.
        to: u16,
    },
    /// Set labels and annotations of a pod, or of a claim.
    Label {
        /// Which one.
        object: ObjectRef,
        /// As it was when the labels were decided.
        over: Over,
        /// The labels that change; those without a value are taken away.
        labels: BTreeMap<String, Option<String>>,
        /// The annotations that change; those without a value are taken away.
        annotations: BTreeMap<String, Option<String>>,
    },
    /// Copy the custom resource's labels, and note what the logbook needs, on an object's own metadata.
    Sync {
        /// Which object.
        object: ObjectRef,
        /// As it was when this was decided.
        over: Over,
        /// All labels that come from the custom resource.
        labels: BTreeMap<String, String>,
        /// All notes.
        annotations: BTreeMap<String, String>,
    },
    /// Do something to a member.
    Member(A),
}

impl<A: Action> Step<A> {
    /// A step and why it is taken.
    pub fn new(act: Act<A>, reason: impl Into<String>) -> Self {
        Self { act, reason: reason.into() }
    }

    /// The lane whose pause holds this step back, if any does.
    pub fn lane(&self) -> Option<Lane> {
        match &self.act {
            Act::Apply(manifest) if manifest.never_held => None,
            // What is noted on a volume outlives every member.
            Act::Label { object, .. } if object.kind == ObjectKind::PersistentVolumeClaim => Some(Lane::Resources),
            Act::Apply(_)
            | Act::Delete { .. }
            | Act::DeleteAlone { .. }
            | Act::TakeOver { .. }
            | Act::Grow { .. }
            | Act::SetReclaim { .. }
            | Act::SetReplicas { .. } => Some(Lane::Resources),
            Act::Label { .. } | Act::Member(_) => Some(Lane::Clustering),
            Act::Sync { .. } => None,
        }
    }

    /// Which object it writes to, and as it was judged; `None` where none was seen.
    pub fn judged(&self) -> Option<(&ObjectRef, Option<&Over>)> {
        match &self.act {
            Act::Apply(manifest) => Some((&manifest.object, manifest.over.as_ref())),
            Act::Delete { object, over }
            | Act::DeleteAlone { object, over }
            | Act::Grow { object, over, .. }
            | Act::SetReclaim { object, over, .. }
            | Act::SetReplicas { object, over, .. }
            | Act::Label { object, over, .. }
            | Act::Sync { object, over, .. } => Some((object, Some(over))),
            Act::TakeOver { object, .. } => Some((object, None)),
            Act::Member(_) => None,
        }
    }

    /// A short name for metrics.
    pub fn name(&self) -> &'static str {
        match &self.act {
            Act::Apply(_) => "Apply",
            Act::Delete { .. } => "Delete",
            Act::DeleteAlone { .. } => "DeleteAlone",
            Act::TakeOver { .. } => "TakeOver",
            Act::Grow { .. } => "Grow",
            Act::SetReclaim { .. } => "SetReclaim",
            Act::SetReplicas { .. } => "SetReplicas",
            Act::Label { .. } => "Label",
            Act::Sync { .. } => "Sync",
            Act::Member(action) => action.name(),
        }
    }
}

impl<A: Action> Display for Step<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.act {
            Act::Apply(manifest) => write!(f, "apply {}", manifest.object),
            Act::Delete { object, .. } => write!(f, "delete {object}"),
            Act::DeleteAlone { object, .. } => write!(f, "delete {object} alone and make it again"),
            Act::TakeOver { object, .. } => write!(f, "take over {object}"),
            Act::Grow { object, from, to, .. } => write!(f, "grow {object} from {from} to {to}"),
            Act::SetReclaim { object, policy, .. } => write!(f, "set reclaim policy {policy} on the volume of {object}"),
            Act::SetReplicas { object, from, to, .. } => write!(f, "scale {object} from {from} to {to}"),
            Act::Label { object, labels, annotations, .. } => {
                let label = |(key, value): (&String, &Option<String>)| match value {
                    Some(value) => format!("{key}={value}"),
                    None => format!("{key}-"),
                };
                // Its value may be the time: a step that is held is the same one a second later, and must be told as the same.
                let annotation = |(key, value): (&String, &Option<String>)| match value {
                    Some(_) => key.clone(),
                    None => format!("{key}-"),
                };
                let changes: Vec<String> = labels.iter().map(label).chain(annotations.iter().map(annotation)).collect();
                write!(f, "label {object} {}", changes.join(","))
            }
            Act::Sync { object, .. } => write!(f, "note on {object}"),
            Act::Member(action) => write!(f, "{action}"),
        }
    }
}

/// For tests of steps that are about objects alone.
#[cfg(test)]
pub(crate) mod no_action {
    use super::{Action, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub(crate) struct NoAction;

    impl std::fmt::Display for NoAction {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "nothing")
        }
    }

    impl Action for NoAction {
        fn target(&self) -> &'static str {
            ""
        }
        fn target_uid(&self) -> &'static str {
            ""
        }
        fn irreversible(&self) -> bool {
            false
        }
        fn name(&self) -> &'static str {
            "Nothing"
        }
    }
}

#[cfg(test)]
mod tests;
