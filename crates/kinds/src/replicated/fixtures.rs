//! Clusters to test with, as the API server and the members would show them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaim};
use serde_json::{Value, json};
use windlass_api::ReplicatedStatefulSet;
use windlass_api::logbook::LogbookSpec;
use windlass_api::replicated::{Command, Commands, PodPolicy, ReplicatedStatefulSetSpec};
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::{Observed, Options, Report};
use windlass_core::labels;
use windlass_core::likeness::Answered;
use windlass_core::memory::Memory;
use windlass_core::ordinals::Ordinal;
use windlass_core::outcome::Outcome;
use windlass_core::plan::Plan;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, Compact, Meta, ObjectView, PodView, REVISION, StatefulSetView};

use super::build;
use super::facts::{Fact, Facts, Of};
use super::hooks::{About, Deed, Exec, ExecEnd, HookRun};
use super::members::Members;
use super::plan::plan;
use super::validate::{Validated, validate};
use super::{Replicated, ReplicatedStatefulSetStatus, status};

pub(super) const NAMESPACE: &str = "shop";
/// Not the name of what runs in it: a name that means nothing cannot be mistaken for one that does.
pub(super) const CLUSTER: &str = "orders";
pub(super) const CLUSTER_UID: &str = "uid-orders";
pub(super) const SET: &str = "rss-orders";
pub(super) const HISTORY: &str = "6f2c";

pub(super) const PRIMARY: i32 = 8;
pub(super) const SECONDARY: i32 = 0;
pub(super) const STOPPED: i32 = 7;
pub(super) const STARTING: i32 = 190;
pub(super) const STRANDED: i32 = 9;
pub(super) const FAILED: i32 = 1;

/// What each member's own volume is made from.
pub(super) fn claim_template() -> PersistentVolumeClaim {
    serde_json::from_value(json!({ "metadata": { "name": "data" }, "spec": {} })).unwrap()
}

pub(super) fn command(program: &str) -> Command {
    Command { timeout: None, command: vec![format!("/hooks/{program}")] }
}

/// A resource with nothing but what is required.
pub(super) fn resource(replicas: u16) -> ReplicatedStatefulSet {
    let spec = ReplicatedStatefulSetSpec {
        replicas: Some(replicas),
        pod: PodPolicy {
            containers: vec![Container { name: "galera".into(), image: Some("galera:1".into()), ..Container::default() }],
            commands: Commands {
                sequence: command("sequence"),
                status: command("status"),
                stop: command("stop"),
                primary: command("primary"),
                seed: Some(command("seed")),
                ..Commands::default()
            },
            ..PodPolicy::default()
        },
        ..ReplicatedStatefulSetSpec::default()
    };
    let mut resource = ReplicatedStatefulSet::new(CLUSTER, spec);
    resource.metadata.namespace = Some(NAMESPACE.into());
    resource.metadata.uid = Some(CLUSTER_UID.into());
    resource.metadata.generation = Some(1);
    resource
}

/// A manifest as the server stores it: with defaults that nobody asked for.
pub(super) fn stored(manifest: &Manifest, version: u64) -> ObjectView {
    let mut spec = manifest.spec.clone();
    let defaults = match manifest.object.kind {
        ObjectKind::Service => json!({ "type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"] }),
        ObjectKind::StatefulSet => {
            json!({ "revisionHistoryLimit": 10, "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" } })
        }
        _ => json!({}),
    };
    add_defaults(&mut spec, defaults);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let target = port["port"].clone();
        add_defaults(port, json!({ "protocol": "TCP", "targetPort": target }));
    }
    if let Some(pod) = spec.pointer_mut("/template/spec") {
        add_defaults(
            pod,
            json!({ "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {} }),
        );
    }
    let has_generation = manifest.object.kind != ObjectKind::Service;
    ObjectView {
        meta: Meta {
            namespace: NAMESPACE.into(),
            name: manifest.object.name.clone(),
            uid: format!("uid-{}-{}", manifest.object.kind, manifest.object.name),
            resource_version: version.to_string(),
            created: None,
            generation: has_generation.then_some(1),
            labels: manifest.labels.clone().into(),
            annotations: manifest.annotations.clone().into(),
            owner_uid: Some(manifest.owner.uid.clone()),
            deleting: false,
        },
        spec: Compact::of(&spec),
    }
}

fn add_defaults(value: &mut Value, defaults: Value) {
    let (Value::Object(value), Value::Object(defaults)) = (value, defaults) else {
        return;
    };
    for (key, default) in defaults {
        value.entry(key).or_insert(default);
    }
}

/// A pod as it is a moment after its container started.
pub(super) fn pod(ordinal: u16) -> PodView {
    let name = Ordinal::new(ordinal).pod_name(SET);
    let labels = [(labels::APP, CLUSTER), (labels::INSTANCE, CLUSTER), (REVISION, "r1")];
    PodView {
        meta: Meta {
            namespace: NAMESPACE.into(),
            uid: format!("uid-{name}-a"),
            name,
            resource_version: "1".into(),
            labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            ..Meta::default()
        },
        phase: "Running".into(),
        ready: false,
        process: Some(format!("containerd://{ordinal}-a")),
        address: None,
        ..PodView::default()
    }
}

pub(super) fn exited(code: i32, output: &str) -> ExecEnd {
    ExecEnd::Exited { code, output: output.into(), errors: String::new() }
}

/// The structured answer of the hook `sequence`.
pub(super) fn position(history: &str, sequence: u64) -> String {
    format!(r#"{{"history":"{history}","sequence":{sequence},"safe":false,"kind":"recovered"}}"#)
}

pub(super) const NO_DATA: &str = r#"{"history":null,"sequence":null,"safe":false,"kind":"none"}"#;

/// Everything that a pass knows, to be bent into the case at hand.
#[derive(Clone, Debug)]
pub(super) struct Fixture {
    pub(super) resource: ReplicatedStatefulSet,
    pub(super) children: Children,
    pub(super) facts: Facts,
    pub(super) memory: Memory,
    pub(super) answered: BTreeMap<ObjectRef, Answered>,
    pub(super) running: Vec<HookRun>,
    pub(super) now: Timestamp,
}

impl Fixture {
    /// A resource that was just made, and nothing else.
    pub(super) fn new(replicas: u16) -> Self {
        Self {
            resource: resource(replicas),
            children: Children::default(),
            facts: Facts::default(),
            memory: Memory::New,
            answered: BTreeMap::new(),
            running: Vec::new(),
            now: Timestamp::from_second(1_800_000_000).unwrap(),
        }
    }

    /// All objects are there and all pods run; nobody was asked anything.
    pub(super) fn started(replicas: u16) -> Self {
        let mut fixture = Self::new(replicas).with_pods(replicas);
        fixture.store(replicas);
        fixture
    }

    fn with_pods(mut self, replicas: u16) -> Self {
        for ordinal in 0..replicas {
            self.add(pod(ordinal));
        }
        self.logbook(|_| {})
    }

    /// All pods run and all members are stopped.
    pub(super) fn stopped(replicas: u16) -> Self {
        (0..replicas).fold(Self::started(replicas), |fixture, ordinal| fixture.role(ordinal, STOPPED))
    }

    /// A healthy cluster that has nothing to wish for.
    pub(super) fn serving(replicas: u16) -> Self {
        let mut fixture = Self::serving_pods(replicas);
        fixture.store(replicas);
        fixture
    }

    /// The members of a healthy cluster, without its objects.
    pub(super) fn serving_pods(replicas: u16) -> Self {
        let mut fixture = Self::new(replicas).with_pods(replicas).logbook(|logbook| {
            logbook.counts.restore = replicas;
            logbook.counts.largest = replicas;
            logbook.histories = vec![HISTORY.into()];
            logbook.acted_generation = Some(1);
        });
        for ordinal in 0..replicas {
            fixture = fixture.role(ordinal, PRIMARY).active(ordinal, "true");
            fixture.pod(ordinal).ready = true;
        }
        fixture
    }

    pub(super) fn validated(&self) -> Validated {
        validate(&self.resource).unwrap()
    }

    pub(super) fn observed(&self) -> Observed<'_, Replicated> {
        Observed {
            resource: &self.resource,
            children: &self.children,
            settings: &(),
            options: &Options::None,
            facts: &self.facts,
            memory: &self.memory,
            answered: &self.answered,
            running: &self.running,
            settled: false,
            now: self.now,
        }
    }

    pub(super) fn members<T>(&self, look: impl FnOnce(&Members<'_>) -> T) -> T {
        look(&Members::of(&self.observed(), &self.validated()))
    }

    pub(super) fn plan(&self) -> Plan<HookRun> {
        let mut observed = self.observed();
        let first = plan(&observed);
        // Objects that are not looked at again change nothing about the rest.
        if first.settled {
            observed.settled = true;
            assert_eq!(plan(&observed), first);
        }
        first
    }

    /// The steps of the plan, in words.
    pub(super) fn steps(&self) -> Vec<String> {
        self.plan().steps.iter().map(ToString::to_string).collect()
    }

    /// The steps, without those that only follow a role with its label.
    pub(super) fn moves(&self) -> Vec<String> {
        self.steps().into_iter().filter(|step| !step.starts_with("label")).collect()
    }

    /// What the plan waits for: reason, whether a person is needed, message.
    pub(super) fn waiting(&self) -> Vec<(&'static str, bool, String)> {
        self.plan().waiting.into_iter().map(|it| (it.reason.as_str(), it.stalled, it.message)).collect()
    }

    /// The message of the first waiting with this reason.
    pub(super) fn said(&self, reason: &str) -> Option<(bool, String)> {
        self.waiting().into_iter().find(|(it, ..)| *it == reason).map(|(_, stalled, message)| (stalled, message))
    }

    /// The status after a pass whose lanes were like this and in which these steps were taken.
    pub(super) fn status(&self, gate: &Gate, taken: &[(Step<HookRun>, Outcome)]) -> ReplicatedStatefulSetStatus {
        let plan = self.plan();
        let held = gate.part(&plan).held;
        let remembered = self.memory.entries();
        status::status(&self.observed(), &Report { plan: &plan, gate, held: &held, taken, remembered: &remembered })
    }

    /// The status after a pass with open lanes that took no step.
    pub(super) fn open_status(&self) -> ReplicatedStatefulSetStatus {
        self.status(&Gate::new(Door::Open, Door::Open), &[])
    }

    /// Stores all objects as the spec wants them, with a `StatefulSet` of this size.
    pub(super) fn store(&mut self, size: u16) {
        for manifest in build::objects(&self.validated(), size, &Children::default()).applied {
            let name = manifest.object.name.clone();
            let object = stored(&manifest, 1);
            match manifest.object.kind {
                ObjectKind::Service => self.children.services.insert(name, object),
                ObjectKind::PodDisruptionBudget => self.children.disruption_budgets.insert(name, object),
                ObjectKind::ControllerRevision => self.children.templates.insert(name, object),
                _ => {
                    let set = StatefulSetView {
                        object,
                        replicas: size,
                        observed_generation: Some(1),
                        update_revision: Some("r1".into()),
                        ..StatefulSetView::default()
                    };
                    self.children.stateful_sets.insert(name, set);
                }
            }
        }
    }

    pub(super) fn add(&mut self, pod: PodView) {
        self.children.pods.insert(pod.meta.name.clone(), pod);
    }

    pub(super) fn pod(&mut self, ordinal: u16) -> &mut PodView {
        self.children.pods.get_mut(&Ordinal::new(ordinal).pod_name(SET)).unwrap()
    }

    pub(super) fn set(&mut self) -> &mut StatefulSetView {
        self.children.stateful_sets.get_mut(SET).unwrap()
    }

    /// Changes the spec's replicas, and nothing that is there.
    pub(super) fn wants(mut self, replicas: u16) -> Self {
        self.resource.spec.replicas = Some(replicas);
        // The budget follows the size at once; it is not what these tests look at.
        let budget = build::objects(&self.validated(), 0, &Children::default())
            .applied
            .into_iter()
            .find(|it| it.object.kind == ObjectKind::PodDisruptionBudget)
            .unwrap();
        if self.children.disruption_budgets.contains_key(&budget.object.name) {
            self.children.disruption_budgets.insert(budget.object.name.clone(), stored(&budget, 2));
        }
        self
    }

    pub(super) fn active(mut self, ordinal: u16, value: &str) -> Self {
        self.pod(ordinal).meta.labels.insert(labels::RSS_ACTIVE_MEMBER.into(), value.into());
        self
    }

    pub(super) fn logbook(mut self, change: impl FnOnce(&mut LogbookSpec)) -> Self {
        let mut entries = LogbookSpec { cluster_uid: CLUSTER_UID.into(), ..self.memory.entries() };
        change(&mut entries);
        self.memory = Memory::Known(Box::new(entries));
        self
    }

    pub(super) fn lost(mut self) -> Self {
        self.memory = Memory::judge(
            None,
            CLUSTER_UID,
            &Children { pods: [("p".into(), PodView::default())].into(), ..Children::default() },
        );
        self
    }

    pub(super) fn later(mut self, seconds: i64) -> Self {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        self
    }

    pub(super) fn exec(&self, ordinal: u16) -> Exec {
        let ordinal = Ordinal::new(ordinal);
        let pod = &self.children.pods[ordinal.pod_name(SET).as_str()];
        Exec {
            namespace: NAMESPACE.into(),
            pod: pod.meta.name.clone(),
            pod_uid: pod.meta.uid.clone(),
            process: pod.process.clone().unwrap_or_default(),
            turn: self.facts.of(ordinal, pod).map_or(0, |facts| facts.turn),
            ordinal,
            container: "galera".into(),
            command: vec!["/hooks/any".into()],
            timeout: Duration::from_secs(10),
        }
    }

    pub(super) fn learns(mut self, ordinal: u16, of: Of, end: ExecEnd) -> Self {
        let exec = self.exec(ordinal);
        self.facts.learn(Fact { exec, of, end }, self.now);
        self
    }

    /// The hook `status` ended with this code.
    pub(super) fn role(self, ordinal: u16, code: i32) -> Self {
        self.learns(ordinal, Of::Question(About::Status), exited(code, ""))
    }

    /// The hook `status` could not be run.
    pub(super) fn silent(self, ordinal: u16) -> Self {
        self.learns(ordinal, Of::Question(About::Status), ExecEnd::Unknown { why: "connection refused".into() })
    }

    /// The hook `sequence` printed this.
    pub(super) fn holds(self, ordinal: u16, output: &str) -> Self {
        self.learns(ordinal, Of::Question(About::Sequence), exited(0, output))
    }

    /// A hook runs in this member.
    pub(super) fn runs(mut self, ordinal: u16, deed: Deed) -> Self {
        let exec = self.exec(ordinal);
        self.running.push(HookRun { deed, exec });
        self
    }
}
