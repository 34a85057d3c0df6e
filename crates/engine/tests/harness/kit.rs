//! What a kind adds to the harness: a simulated world of members, and scenarios.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource as _;
use serde_json::Value;
use windlass_core::kind::Kind;
use windlass_testkit::world::StatefulSetController;
use windlass_testkit::{Call, FakeApiServer, Store};

/// The namespace in which everything happens.
pub const NAMESPACE: &str = "default";

/// The members of one cluster, simulated. It goes on when a controller dies, and judges what is done to it by what is true in it,
/// whatever the operator believes.
pub trait World: Send + Sync + Sized + 'static {
    /// The kind.
    type Kind: Kind;

    /// The name of the custom resource in all scenarios.
    const CLUSTER: &'static str;

    /// A world without members, behind this server. Registers what the kind needs.
    fn new(server: &FakeApiServer) -> Self;

    /// The same world once more, behind another server. Nothing runs in it.
    fn fork(&self, server: &FakeApiServer) -> Self;

    /// Lets happen what is due. True when something happened.
    fn tick(&self, now: Duration) -> bool;

    /// Whether something is under way that will change the world by itself.
    fn is_busy(&self) -> bool;

    /// What was done to the world that must never be done.
    fn wrongs(&self) -> Vec<String>;

    /// Data and roles, without anything that depends on when it happened.
    fn digest(&self) -> Value;

    /// What the operator is told at its start.
    fn settings() -> <Self::Kind as Kind>::Settings {
        Default::default()
    }

    /// Tells the kubelet how the pods fare. True when that is something new.
    fn tell_kubelet(&self, _kubelet: &mut StatefulSetController) -> bool {
        false
    }

    /// The UUIDs that members gave themselves, and what they mean.
    fn names(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Replaces what in a logbook depends on when something happened by what it means.
    fn settle_logbook(&self, _logbook: &mut Value) {}

    /// Replaces what in a status depends on when something happened by what it means.
    fn settle_status(&self, _status: &mut Value) {}

    /// Whether the end of an object was foretold elsewhere than among the intents: on itself, or by the user.
    fn is_foretold(_store: &Store, _call: &Call) -> bool {
        false
    }

    /// Whether no pause holds back writes to this object.
    fn is_never_held(_call: &Call) -> bool {
        false
    }

    /// Asks a member.
    fn ask(&self, probe: <Self::Kind as Kind>::Probe) -> BoxFuture<'static, <Self::Kind as Kind>::Fact>;

    /// Begins an action at once, by a controller of this epoch; the future only waits for its end.
    fn begin(&self, epoch: u64, action: <Self::Kind as Kind>::Action) -> BoxFuture<'static, <Self::Kind as Kind>::Fact>;

    /// How an action looks whose connection was lost.
    fn lost(action: <Self::Kind as Kind>::Action) -> <Self::Kind as Kind>::Fact;

    /// How an action looks that nobody waits for any longer.
    fn still_runs(action: <Self::Kind as Kind>::Action) -> <Self::Kind as Kind>::Fact;

    /// How an action looks that failed and did nothing.
    fn failed(action: <Self::Kind as Kind>::Action) -> <Self::Kind as Kind>::Fact;

    /// The scenarios.
    fn scenarios() -> Vec<Scenario<Self>>;
}

/// What a person does.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Creates the custom resource.
    Create(Value),
    /// Changes the custom resource by a merge patch.
    Patch(Value),
    /// Deletes the custom resource.
    Delete,
    /// Deletes another object, by plural resource and name.
    DeleteObject(&'static str, String),
    /// Changes another object by a merge patch.
    PatchObject(&'static str, String, Value),
    /// Creates another object.
    CreateObject(&'static str, Value),
}

/// One step of a script.
pub struct Step<W> {
    /// When it is taken.
    pub when: fn(&Scene<'_, W>) -> bool,
    /// What is done to the world, and what is wished of the server.
    pub act: fn(&Scene<'_, W>) -> Vec<Wish>,
}

/// What happens to a cluster, and how it ends.
pub struct Scenario<W> {
    /// Its name in the names of cases.
    pub name: &'static str,
    /// What happens before, unperturbed.
    pub setup: Vec<Step<W>>,
    /// How the setup ends.
    pub ready: fn(&Scene<'_, W>) -> bool,
    /// What happens.
    pub script: Vec<Step<W>>,
    /// How it ends.
    pub goal: fn(&Scene<'_, W>) -> bool,
    /// The case whose end is as good as that of a run without perturbations, if there is such a one. Somebody has looked at it.
    pub or_like: Option<&'static str>,
    /// Whether only the campaigns play it.
    pub long: bool,
}

/// What a script can look at.
pub struct Scene<'a, W> {
    /// The server.
    pub server: &'a FakeApiServer,
    /// The members.
    pub world: &'a W,
}

impl<W: World> Scene<'_, W> {
    /// An object.
    pub fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.server.store().get(plural, NAMESPACE, name)
    }

    /// The custom resource.
    pub fn resource(&self) -> Option<Value> {
        self.get(&plural::<W::Kind>(), W::CLUSTER)
    }

    /// The logbook's content.
    pub fn logbook(&self) -> Option<Value> {
        self.get("logbooks", &logbook_name::<W>()).map(|logbook| logbook["spec"].clone())
    }

    /// Whether a condition of the newest generation is true.
    pub fn is(&self, condition: &str) -> bool {
        let Some(resource) = self.resource() else { return false };
        resource["status"]["observedGeneration"] == resource["metadata"]["generation"] && self.says(condition, "True")
    }

    /// Whether a condition has this status, whatever was observed.
    pub fn says(&self, condition: &str, status: &str) -> bool {
        let Some(resource) = self.resource() else { return false };
        let conditions = resource["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == status)
    }

    /// Whether a condition is false, whatever was observed.
    pub fn is_false(&self, condition: &str) -> bool {
        self.says(condition, "False")
    }

    /// What a condition of the custom resource says while it is true, whatever was observed.
    pub fn message(&self, condition: &str) -> Option<String> {
        let resource = self.resource()?;
        let conditions = resource["status"]["conditions"].as_array()?;
        let told = conditions.iter().find(|it| it["type"] == condition && it["status"] == "True")?;
        told["message"].as_str().map(str::to_owned)
    }
}

/// The plural resource of a kind.
pub fn plural<K: Kind>() -> String {
    K::Resource::plural(&()).into_owned()
}

/// The name of the cluster's logbook.
pub fn logbook_name<W: World>() -> String {
    format!("{}-{}", W::Kind::NAME, W::CLUSTER)
}
