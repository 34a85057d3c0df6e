//! The API server, the `StatefulSet` controller and the kubelets of the world.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_core::labels::DESIRED_HASH;
use windlass_core::ordinals::Ordinal;
use windlass_core::outcome::Outcome;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef};
use windlass_core::views::{Children, ClaimView, Compact, Meta, ObjectView, PodView, REVISION, StatefulSetView};

use super::super::build::{self, Objects};
use super::super::fixtures::{NAMESPACE, SET, pod, stored};
use super::super::hooks::Deed;
use super::super::validate::{Validated, validate};
use super::{Event, LARGEST, World};

impl World {
    pub(super) fn fresh(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn set(&self) -> Option<&StatefulSetView> {
        self.children.stateful_sets.get(SET)
    }

    pub(super) fn pod(&mut self, ordinal: u16) -> Option<&mut PodView> {
        self.children.pods.get_mut(&Ordinal::new(ordinal).pod_name(SET))
    }

    /// The ordinals of the pods that run a container.
    pub(super) fn running_pods(&self) -> Vec<u16> {
        let ordinal = |pod: &PodView| Ordinal::of_pod(SET, &pod.meta.name).map(Ordinal::get);
        self.children.pods.values().filter(|pod| pod.process.is_some()).filter_map(ordinal).collect()
    }

    pub(super) fn apply(&mut self, manifest: &Manifest) -> Outcome {
        let name = manifest.object.name.clone();
        let version = self.fresh();
        let mut object = if self.thorough { stored(manifest, version) } else { stored_sketch(manifest, version) };
        match manifest.object.kind {
            ObjectKind::Service => self.children.services.insert(name, object),
            ObjectKind::PodDisruptionBudget => self.children.disruption_budgets.insert(name, object),
            ObjectKind::ControllerRevision => self.children.templates.insert(name, object),
            ObjectKind::StatefulSet => {
                let before = self.set();
                let size = manifest.spec["replicas"].as_u64().and_then(|size| u16::try_from(size).ok()).unwrap();
                object.meta.uid = before.map_or_else(|| format!("set-{version}"), |set| set.object.meta.uid.clone());
                object.meta.generation = Some(before.and_then(|set| set.object.meta.generation).unwrap_or(0) + 1);
                let revision = manifest.annotations.get(DESIRED_HASH).cloned();
                let observed_generation = before.and_then(|set| set.observed_generation);
                let set = StatefulSetView {
                    object,
                    replicas: size,
                    observed_generation,
                    update_revision: revision,
                    ..StatefulSetView::default()
                };
                self.children.stateful_sets.insert(name, set);
            }
            other => panic!("a {other} is applied"),
        }
        Outcome::Done { changed: true }
    }

    /// The objects of a cluster that has been there for long.
    pub(super) fn begin_with_objects(&mut self, size: u16) {
        let cluster = validate(&self.resource).unwrap();
        let objects = if self.thorough {
            build::objects(&cluster, size, &self.children)
        } else {
            sketches(&cluster, size, &self.children)
        };
        for manifest in objects.applied {
            self.apply(&manifest);
        }
        if let Some(set) = self.children.stateful_sets.get_mut(SET) {
            set.observed_generation = set.object.meta.generation;
            set.update_revision = pod(0).meta.labels.get(REVISION).map(str::to_owned);
        }
    }

    pub(super) fn resize(&mut self, to: u16) {
        let version = self.fresh().to_string();
        let Some(set) = self.children.stateful_sets.get_mut(SET) else { return };
        set.replicas = to;
        let mut spec = set.object.spec.value();
        spec["replicas"] = to.into();
        set.object.spec = Compact::of(&spec);
        set.object.meta.generation = set.object.meta.generation.map(|it| it + 1);
        set.object.meta.resource_version = version;
    }

    /// What the controller and the kubelets do as soon as they look.
    pub(super) fn controllers(&mut self) {
        if let Some(set) = self.children.stateful_sets.get_mut(SET) {
            set.observed_generation = set.object.meta.generation;
            let (size, revision) = (set.replicas, set.update_revision.clone().unwrap_or_default());
            for ordinal in 0..size {
                if self.pod(ordinal).is_none() {
                    self.create_pod(ordinal, &revision);
                }
            }
            for ordinal in size..LARGEST {
                self.delete_pod(ordinal);
            }
        }
        for ordinal in 0..LARGEST {
            let serves = self.database.status(ordinal) == super::super::fixtures::PRIMARY;
            let version = self.ids.to_string();
            if let Some(pod) = self.pod(ordinal).filter(|pod| pod.ready != serves) {
                pod.ready = serves;
                pod.meta.resource_version = version;
            }
        }
    }

    /// The volume of a member is made with its first pod, and stays.
    pub(super) fn claim(&mut self, ordinal: u16) {
        let uid = super::claim_uid(ordinal, self.losses.get(&ordinal).copied().unwrap_or(0));
        let meta = Meta { uid, ..Meta::default() };
        self.children.claims.get_or_insert_with(claim_name(ordinal), || ClaimView { meta, ..ClaimView::default() });
    }

    /// Somebody deletes a member's pod and its volume, or the disk breaks.
    pub(super) fn lose_volume(&mut self, ordinal: u16) {
        if self.children.claims.remove(&claim_name(ordinal)).is_none() {
            return;
        }
        *self.losses.entry(ordinal).or_default() += 1;
        self.crash(&[ordinal]);
        self.database.wipe(ordinal);
        self.children.pods.remove(&Ordinal::new(ordinal).pod_name(SET));
    }

    fn create_pod(&mut self, ordinal: u16, revision: &str) {
        self.claim(ordinal);
        let id = self.fresh();
        let before = pod(ordinal);
        let mut labels = before.meta.labels.clone();
        labels.insert(REVISION.into(), revision.into());
        let meta = Meta {
            uid: format!("pod-{id}"),
            resource_version: id.to_string(),
            namespace: NAMESPACE.into(),
            labels,
            ..before.meta
        };
        self.children.pods.insert(meta.name.clone(), PodView { meta, phase: "Pending".into(), ..PodView::default() });
        let slow = !self.calm && self.dice.chance(10);
        let wait = if slow { 40 } else { self.seconds(1, 4) };
        self.after(wait, Event::ContainerStarts { ordinal, uid: format!("pod-{id}") });
    }

    pub(super) fn delete_pod(&mut self, ordinal: u16) {
        let version = self.fresh().to_string();
        let Some(pod) = self.pod(ordinal).filter(|pod| !pod.meta.deleting) else { return };
        pod.meta.deleting = true;
        pod.meta.resource_version = version;
        let uid = pod.meta.uid.clone();
        let wait = self.seconds(1, 6);
        self.after(wait, Event::PodEnds { ordinal, uid });
    }

    pub(super) fn container_starts(&mut self, ordinal: u16, uid: &str) {
        let id = self.fresh();
        if let Some(pod) = self.pod(ordinal).filter(|pod| pod.meta.uid == uid && pod.process.is_none()) {
            pod.process = Some(format!("process-{id}"));
            pod.phase = "Running".into();
            pod.meta.resource_version = id.to_string();
        }
    }

    pub(super) fn pod_ends(&mut self, ordinal: u16, uid: &str) {
        let Some(pod) = self.pod(ordinal).filter(|pod| pod.meta.uid == uid) else { return };
        let name = pod.meta.name.clone();
        self.children.pods.remove(&name);
        if self.dice.chance(70) {
            self.kill_hook(ordinal);
            self.database.stop(ordinal);
        } else {
            self.crash(&[ordinal]);
        }
        self.disturbed = self.now;
    }

    /// Servers vanish with their containers, or alone.
    pub(super) fn crash(&mut self, ordinals: &[u16]) {
        for ordinal in ordinals {
            self.kill_hook(*ordinal);
        }
        self.database.crash(ordinals);
        self.disturbed = self.now;
    }

    pub(super) fn restart_container(&mut self, ordinal: u16) {
        let version = self.fresh().to_string();
        let Some(pod) = self.pod(ordinal) else { return };
        pod.process = None;
        pod.ready = false;
        pod.meta.resource_version = version;
        let uid = pod.meta.uid.clone();
        let wait = self.seconds(1, 3);
        self.after(wait, Event::ContainerStarts { ordinal, uid });
    }

    /// A hook ends with the container that it runs in. One that copies data leaves it half done.
    fn kill_hook(&mut self, ordinal: u16) {
        let Some(hook) = self.hooks.remove(&ordinal) else { return };
        if hook.deed == Deed::Primary && self.dice.chance(50) {
            self.database.wipe(ordinal);
        }
        if let Some(run) = hook.reports {
            // Nobody is told any more that it still runs.
            self.events.retain(|(_, event)| !matches!(event, Event::Reported { run: other, .. } if *other == run));
            self.after(1, Event::Reported { run, end: super::lost("the container ended") });
        }
    }
}

fn claim_name(ordinal: u16) -> String {
    format!("data-{SET}-{ordinal}")
}

/// The objects of a cluster with only the fields that histories change.
pub(super) fn sketches(cluster: &Validated, size: u16, _: &Children) -> Objects {
    let image = &cluster.spec.pod.containers[0].image;
    let sketch = |kind, name, hash: String, spec| Manifest {
        object: ObjectRef { kind, namespace: cluster.namespace.clone(), name },
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([(DESIRED_HASH.to_owned(), hash)]),
        owner: cluster.owner.clone(),
        spec,
        over: None,
        never_held: false,
    };
    let names = &cluster.names;
    let budget = json!({ "maxUnavailable": cluster.replicas });
    let set = json!({ "replicas": size, "image": image });
    let applied = vec![
        sketch(ObjectKind::Service, names.headless_service(), String::new(), Value::Null),
        sketch(ObjectKind::Service, names.client_service(), String::new(), Value::Null),
        sketch(ObjectKind::PodDisruptionBudget, names.disruption_budget(), String::new(), budget),
        sketch(ObjectKind::StatefulSet, names.stateful_set(), image.clone().unwrap_or_default(), set),
    ];
    Objects { applied, removals: Vec::new() }
}

fn stored_sketch(manifest: &Manifest, version: u64) -> ObjectView {
    let meta = Meta {
        uid: format!("object-{version}"),
        resource_version: version.to_string(),
        annotations: manifest.annotations.clone().into(),
        owner_uid: Some(manifest.owner.uid.clone()),
        name: manifest.object.name.clone(),
        ..Meta::default()
    };
    ObjectView { meta, spec: Compact::of(&manifest.spec) }
}
