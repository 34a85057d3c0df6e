//! The laws that every call must obey, judged on the wire before it is carried out, with the objects as they are stored then.
//!
//! The judge knows nothing of what the operator thinks: it sees requests, the store, and actions on members.

use serde_json::Value;
use windlass_core::step::Action;
use windlass_testkit::{Call, Store, Verb};

use super::kit::NAMESPACE;

/// A law, as it appears in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A delete names the UID and the version of what it deletes.
    DeletePrecondition,
    /// A write to an object names its UID or its version; what is created must not exist.
    WritePrecondition,
    /// What cannot be undone is announced in the stored logbook, for exactly this object, before it is done.
    IntentFirst,
    /// After a pause was acknowledged, nothing is written outside the list.
    PauseHolds,
    /// Spec, labels and annotations of the custom resource are the user's.
    UsersOwn,
    /// What the members themselves found wrong: lost rows, two clusters, a hook of a dead controller.
    World,
    /// A panic was contained.
    NoPanic,
    /// The cluster came to rest where it should.
    Rest,
    /// The state at the end is that of the run without perturbations.
    SameEnd,
}

impl Law {
    pub const ALL: [Self; 9] = [
        Self::DeletePrecondition,
        Self::WritePrecondition,
        Self::IntentFirst,
        Self::PauseHolds,
        Self::UsersOwn,
        Self::World,
        Self::NoPanic,
        Self::Rest,
        Self::SameEnd,
    ];
}

/// A law that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub law: Law,
    pub how: String,
}

/// Judges calls about one cluster.
pub struct Judge {
    /// The plural resource of the kind.
    pub resource: String,
    /// The name of the cluster.
    pub cluster: String,
    /// The name of its logbook.
    pub logbook: String,
    /// Whether the end of an object was foretold elsewhere than among the intents.
    pub is_foretold: fn(&Store, &Call) -> bool,
    /// Whether no pause holds back writes to an object.
    pub is_never_held: fn(&Call) -> bool,
}

/// Whether a call is one of those that are numbered and judged. Events and leases are the process's own.
pub fn is_judged(call: &Call) -> bool {
    call.is_mutation() && !matches!(call.resource.as_str(), "events" | "leases")
}

/// A call in a few words.
pub fn describe(call: &Call) -> String {
    let name = call.name.as_deref().or_else(|| call.body["metadata"]["name"].as_str()).unwrap_or_default();
    format!("{} {} {name}{}", call.verb.as_str(), call.rbac_resource(), details(call))
}

/// What of the body is worth to know.
fn details(call: &Call) -> String {
    let spec = &call.body["spec"];
    match call.resource.as_str() {
        "logbooks" => {
            let intents: Vec<String> =
                spec["intents"].as_array().into_iter().flatten().map(|it| format!("{} to {}", it["act"], it["to"])).collect();
            let acts = spec["acts"].as_array().map_or(0, Vec::len);
            format!(" (edition {}, {acts} acts, intents {intents:?})", spec["edition"])
        }
        "statefulsets" if spec["template"].is_null() && !spec.is_null() => format!(" ({} replicas)", spec["replicas"]),
        _ => String::new(),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Judge {
    /// The laws that a request would break.
    pub fn request(&self, store: &Store, call: &Call) -> Vec<Breach> {
        let laws = [self.preconditions(call), self.intent(store, call), self.pause(store, call), self.own(call)];
        laws.into_iter().flatten().collect()
    }

    /// The laws that an action on a member would break.
    pub fn action<A: Action>(&self, store: &Store, action: &A) -> Vec<Breach> {
        let mut breaches = Vec::new();
        if action.irreversible() && !self.is_announced(store, action.name(), action.target_uid()) {
            breaches.push(Breach { law: Law::IntentFirst, how: format!("{action}, without an intent for this pod") });
        }
        if self.is_paused(store, "ClusteringActive") {
            breaches.push(Breach { law: Law::PauseHolds, how: format!("{action}") });
        }
        breaches
    }

    fn preconditions(&self, call: &Call) -> Option<Breach> {
        let what = describe(call);
        let body = &call.body;
        match call.verb {
            Verb::Delete | Verb::DeleteCollection => {
                let named =
                    !text(body, "/preconditions/uid").is_empty() && !text(body, "/preconditions/resourceVersion").is_empty();
                (!named).then_some(Breach { law: Law::DeletePrecondition, how: what })
            }
            Verb::Update | Verb::Patch => {
                let named = !text(body, "/metadata/uid").is_empty() || !text(body, "/metadata/resourceVersion").is_empty();
                (!named).then_some(Breach { law: Law::WritePrecondition, how: what })
            }
            Verb::Create | Verb::Get | Verb::List | Verb::Watch => None,
        }
    }

    fn intent(&self, store: &Store, call: &Call) -> Option<Breach> {
        let name = call.name.as_deref().unwrap_or_default();
        let (act, uid) = match (call.verb, call.resource.as_str()) {
            (Verb::Delete, "pods") => ("DeletePod", text(&call.body, "/preconditions/uid").to_owned()),
            (Verb::Update | Verb::Patch, "statefulsets") => {
                let stored = store.get("statefulsets", NAMESPACE, name)?;
                let wanted = call.body["spec"]["replicas"].as_u64()?;
                if wanted >= stored["spec"]["replicas"].as_u64().unwrap_or(1) {
                    return None;
                }
                ("ScaleIn", text(&stored, "/metadata/uid").to_owned())
            }
            (Verb::Delete, "statefulsets" | "persistentvolumeclaims") if (self.is_foretold)(store, call) => return None,
            (Verb::Delete, "statefulsets") => ("RecreateSet", text(&call.body, "/preconditions/uid").to_owned()),
            (Verb::Delete | Verb::DeleteCollection, "statefulsets" | "persistentvolumeclaims") => ("Delete", String::new()),
            _ => return None,
        };
        let announced = self.is_announced(store, act, &uid);
        (!announced).then(|| Breach { law: Law::IntentFirst, how: format!("{}, without the intent {act}", describe(call)) })
    }

    fn is_announced(&self, store: &Store, act: &str, uid: &str) -> bool {
        let logbook = store.get("logbooks", NAMESPACE, &self.logbook).unwrap_or_default();
        let intents = logbook["spec"]["intents"].as_array();
        !uid.is_empty() && intents.into_iter().flatten().any(|intent| intent["act"] == act && intent["uid"] == uid)
    }

    fn is_paused(&self, store: &Store, condition: &str) -> bool {
        let resource = store.get(&self.resource, NAMESPACE, &self.cluster).unwrap_or_default();
        let conditions = resource["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == "False")
    }

    fn pause(&self, store: &Store, call: &Call) -> Option<Breach> {
        let condition = match call.resource.as_str() {
            resource if resource == self.resource || resource == "logbooks" => return None,
            _ if (self.is_never_held)(call) => return None,
            // Labels that are copied from the custom resource restart nothing, and a hand-over needs them.
            "statefulsets" if call.verb == Verb::Patch && call.body.get("spec").is_none() => return None,
            "pods" if call.verb == Verb::Patch => "ClusteringActive",
            _ => "ReconciliationActive",
        };
        self.is_paused(store, condition).then(|| Breach { law: Law::PauseHolds, how: describe(call) })
    }

    /// The custom resource itself is written for its finalizers at most.
    fn own(&self, call: &Call) -> Option<Breach> {
        if call.resource != self.resource || call.subresource.is_some() {
            return None;
        }
        let only_finalizers = call.verb == Verb::Patch
            && call.body.as_object().is_some_and(|root| root.keys().all(|key| key == "metadata"))
            && call.body["metadata"]
                .as_object()
                .is_some_and(|it| it.keys().all(|key| matches!(key.as_str(), "finalizers" | "uid" | "resourceVersion")));
        (!only_finalizers).then(|| Breach { law: Law::UsersOwn, how: describe(call) })
    }

    /// What belongs to the user in the stored custom resource; none when that has ended.
    pub fn users_own(&self, store: &Store) -> Option<Value> {
        let resource = store.get(&self.resource, NAMESPACE, &self.cluster)?;
        let metadata = &resource["metadata"];
        Some(serde_json::json!([resource["spec"], metadata["labels"], metadata["annotations"]]))
    }
}
