//! The API server, the controllers of sets and the kubelets of the world.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef};
use windlass_core::views::{ClaimView, Compact, Meta, ObjectView, PodView, REVISION, StatefulSetView};

use super::super::build::{Claims, Inputs, Objects};
use super::super::component::has_stores;
use super::super::deeds::Deed;
use super::super::validate::Validated;
use super::super::walk::partition;
use super::{BAD, COMPONENTS, Event, LARGEST, NAMES, NAMESPACE, World};

/// The template of a component's claims.
fn claim_template(component: Component) -> Option<&'static str> {
    match component {
        Component::Pd => Some("pd"),
        Component::Tikv => Some("tikv"),
        Component::Tiflash => Some("data0"),
        _ => None,
    }
}

/// The set of a component with only the fields that histories change.
pub(super) fn sketch(cluster: &Validated, component: Component, inputs: &Inputs<'_>) -> Option<Objects<Deed>> {
    let image = &cluster.group(component)?.image;
    let set = Manifest {
        object: ObjectRef { kind: ObjectKind::StatefulSet, namespace: NAMESPACE.into(), name: NAMES.set(component) },
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        owner: cluster.owner.clone(),
        spec: json!({
            "replicas": inputs.replicas,
            "template": { "image": image },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": inputs.partition } },
        }),
        over: None,
        never_held: false,
    };
    Some(Objects { applied: vec![set], removals: Vec::new(), claims: Claims::AsAsked })
}

impl World {
    pub(super) fn set(&self, component: Component) -> Option<&StatefulSetView> {
        self.children.stateful_sets.get(&NAMES.set(component))
    }

    pub(super) fn size(&self, component: Component) -> u16 {
        self.set(component).map_or(0, |set| set.replicas)
    }

    pub(super) fn apply(&mut self, manifest: &Manifest) {
        let version = self.fresh();
        let before = self.children.stateful_sets.get(&manifest.object.name);
        let seen = before.map(|set| set.object.meta.as_judged());
        if seen != manifest.over {
            return;
        }
        let size = manifest.spec["replicas"].as_u64().and_then(|size| u16::try_from(size).ok()).unwrap();
        let revision = manifest.spec["template"]["image"].as_str().map(str::to_owned);
        let meta = Meta {
            namespace: NAMESPACE.into(),
            name: manifest.object.name.clone(),
            uid: before.map_or_else(|| format!("set-{version}"), |set| set.object.meta.uid.clone()),
            resource_version: version.to_string(),
            generation: Some(before.and_then(|set| set.object.meta.generation).unwrap_or(0) + 1),
            owner_uid: Some(manifest.owner.uid.clone()),
            ..Meta::default()
        };
        let set = StatefulSetView {
            object: ObjectView { meta, spec: Compact::of(&manifest.spec) },
            replicas: size,
            observed_generation: before.and_then(|set| set.observed_generation),
            current_revision: before.and_then(|set| set.current_revision.clone()).or_else(|| revision.clone()),
            update_revision: before.and_then(|set| set.update_revision.clone()).or(revision),
        };
        self.children.stateful_sets.insert(manifest.object.name.clone(), set);
    }

    pub(super) fn resize(&mut self, component: Component, to: u16) {
        let version = self.fresh().to_string();
        let Some(set) = self.children.stateful_sets.get_mut(&NAMES.set(component)) else { return };
        set.replicas = to;
        let mut spec = set.object.spec.value();
        spec["replicas"] = to.into();
        set.object.spec = Compact::of(&spec);
        set.object.meta.generation = set.object.meta.generation.map(|it| it + 1);
        set.object.meta.resource_version = version;
    }

    /// What the controllers and the kubelets do as soon as they look.
    pub(super) fn controllers(&mut self) {
        for component in COMPONENTS {
            self.controller(component);
            self.readiness(component);
        }
        // A volume goes when nobody uses it any more.
        let used = |claim: &ClaimView| self.children.pods.keys().any(|pod| claim.meta.name.ends_with(&format!("-{pod}")));
        let gone: Vec<String> = self
            .children
            .claims
            .values()
            .filter(|claim| claim.meta.deleting && !used(claim) && !self.lingers(claim))
            .map(|it| it.meta.name.clone())
            .collect();
        for name in gone {
            let claim = self.children.claims.remove(&name);
            self.release(claim.and_then(|claim| claim.volume));
        }
    }

    fn controller(&mut self, component: Component) {
        let name = NAMES.set(component);
        let Some(set) = self.children.stateful_sets.get_mut(&name) else {
            for ordinal in 0..LARGEST {
                self.delete_pod(&Self::pod(component, ordinal));
            }
            return;
        };
        set.observed_generation = set.object.meta.generation;
        let spec = set.object.spec.value();
        let update = spec["template"]["image"].as_str().unwrap_or_default().to_owned();
        set.update_revision = Some(update.clone());
        let (size, from) = (set.replicas, partition(set));
        let current = set.current_revision.clone().unwrap_or_default();
        for ordinal in 0..size {
            let pod = Self::pod(component, ordinal);
            if !self.children.pods.contains_key(&pod) {
                let revision = if ordinal < from { &current } else { &update };
                self.create_pod(component, ordinal, &revision.clone());
            }
        }
        for ordinal in size..LARGEST {
            self.delete_pod(&Self::pod(component, ordinal));
        }
        self.replace_outdated(component, size, from, &update);
        let done = (0..size).all(|ordinal| {
            let pod = self.children.pods.get(&Self::pod(component, ordinal));
            pod.is_some_and(|pod| pod.ready && pod.meta.labels.get(REVISION) == Some(update.as_str()))
        });
        if let Some(set) = self.children.stateful_sets.get_mut(&name).filter(|_| done) {
            set.current_revision = Some(update);
        }
    }

    fn replace_outdated(&mut self, component: Component, size: u16, from: u16, update: &str) {
        for ordinal in (from..size).rev() {
            let name = Self::pod(component, ordinal);
            let Some(pod) = self.children.pods.get(&name) else { return };
            if pod.meta.labels.get(REVISION) != Some(update) && !pod.meta.deleting {
                self.judge_replacement(component, ordinal);
                return self.delete_pod(&name);
            }
            if !pod.ready || pod.meta.deleting {
                return;
            }
        }
    }

    fn readiness(&mut self, component: Component) {
        let now = self.now;
        for ordinal in 0..LARGEST {
            let name = Self::pod(component, ordinal);
            let serves = match component {
                Component::Pd => self.on(&name).is_some_and(|id| self.pd.members.get(&id).is_some_and(|it| it.alive)),
                _ if has_stores(component) => {
                    self.on(&name).is_some_and(|id| self.pd.stores.get(&id).is_some_and(|it| it.alive))
                }
                _ => true,
            };
            let version = self.ids.to_string();
            if let Some(pod) = self.children.pods.get_mut(&name) {
                let ready = serves && pod.process.is_some();
                if pod.ready != ready {
                    (pod.ready, pod.ready_since) = (ready, Some(now));
                    pod.meta.resource_version = version;
                }
            }
        }
    }

    fn create_pod(&mut self, component: Component, ordinal: u16, revision: &str) {
        let name = Self::pod(component, ordinal);
        if let Some(template) = claim_template(component) {
            let claim = NAMES.claim(template, component, Ordinal::new(ordinal));
            if self.children.claims.get(&claim).is_some_and(|it| it.meta.deleting) {
                return;
            }
            if !self.children.claims.contains_key(&claim) {
                let id = self.fresh();
                let meta = Meta {
                    namespace: NAMESPACE.into(),
                    name: claim.clone(),
                    uid: format!("claim-{id}"),
                    resource_version: id.to_string(),
                    created: Some(self.now),
                    ..Meta::default()
                };
                self.children.claims.insert(claim, ClaimView { meta, requested: Some("1Gi".into()), ..ClaimView::default() });
            }
        }
        let id = self.fresh();
        let meta = Meta {
            namespace: NAMESPACE.into(),
            name: name.clone(),
            uid: format!("pod-{id}"),
            resource_version: id.to_string(),
            created: Some(self.now),
            labels: [(REVISION.to_owned(), revision.to_owned())].into(),
            ..Meta::default()
        };
        let pod = PodView { meta, phase: "Pending".into(), ready_since: Some(self.now), ..PodView::default() };
        self.children.pods.insert(name.clone(), pod);
        let slow = !self.calm && self.dice.chance(5);
        let wait = if slow { 40 } else { self.seconds(1, 4) };
        self.after(wait, Event::Starts { pod: name, uid: format!("pod-{id}") });
    }

    pub(super) fn delete_pod(&mut self, name: &str) {
        let version = self.fresh().to_string();
        let Some(pod) = self.children.pods.get_mut(name).filter(|pod| !pod.meta.deleting) else { return };
        pod.meta.deleting = true;
        pod.meta.resource_version = version;
        let uid = pod.meta.uid.clone();
        let wait = self.seconds(1, 5);
        self.after(wait, Event::Ends { pod: name.to_owned(), uid });
    }

    /// A process starts, finds its place in PD, or ends again.
    pub(super) fn process_starts(&mut self, name: &str, uid: &str) {
        let now = self.now;
        let (component, ordinal) = Self::place(name);
        let Some(pod) = self.children.pods.get(name).filter(|pod| pod.meta.uid == uid && !pod.meta.deleting) else { return };
        let is_bad = pod.meta.labels.get(REVISION).is_some_and(|image| image.ends_with(BAD));
        let ran = pod.process.is_some();
        self.bind(name);
        let works = !is_bad && self.join(component, ordinal, name);
        let id = self.fresh();
        let wait = if works { None } else { Some(self.seconds(3, 6)) };
        if let Some(pod) = self.children.pods.get_mut(name) {
            // One that cannot join runs for a while, and is started again after a pause.
            let runs = works || !(is_bad || ran);
            pod.process = runs.then(|| format!("process-{id}"));
            pod.ended = if runs { pod.ended } else { Some(now) };
            pod.address = Some(format!("10.0.0.{id}"));
            pod.phase = "Running".into();
            pod.meta.resource_version = id.to_string();
        }
        if let Some(wait) = wait {
            self.after(wait, Event::Starts { pod: name.to_owned(), uid: uid.to_owned() });
        }
    }

    fn join(&mut self, component: Component, ordinal: Ordinal, name: &str) -> bool {
        let Some(template) = claim_template(component) else { return true };
        let claim = NAMES.claim(template, component, ordinal);
        let Some(uid) = self.children.claims.get(&claim).map(|claim| claim.meta.uid.clone()) else { return false };
        let was = self.held.get(&uid).copied();
        let id = if component == Component::Pd {
            self.pd.start_member(name, was)
        } else {
            let address = format!("{}:20160", NAMES.host(component, ordinal));
            let speed = self.speeds[usize::from(ordinal.get())];
            self.pd.start_store(&address, component == Component::Tiflash, speed, was)
        };
        self.held.extend(id.map(|id| (uid, id)));
        id.is_some()
    }

    /// A process ends with its pod, or alone.
    pub(super) fn process_ends(&mut self, name: &str) {
        let (component, _) = Self::place(name);
        if let Some(id) = self.on(name) {
            match component {
                Component::Pd => self.pd.stop_member(id),
                _ => self.pd.stop_store(id),
            }
        }
        let (version, now) = (self.fresh().to_string(), self.now);
        if let Some(pod) = self.children.pods.get_mut(name) {
            (pod.process, pod.ended) = (None, Some(now));
            pod.meta.resource_version = version;
        }
    }

    pub(super) fn pod_ends(&mut self, name: &str, uid: &str) {
        if self.children.pods.get(name).is_some_and(|pod| pod.meta.uid == uid) {
            self.process_ends(name);
            self.children.pods.remove(name);
            self.disturbed = self.now;
        }
    }

    /// The image that a component's pods are to have.
    pub(super) fn image(&self, component: Component) -> Option<String> {
        let spec: Value = self.set(component)?.object.spec.value();
        spec["template"]["image"].as_str().map(str::to_owned)
    }
}
