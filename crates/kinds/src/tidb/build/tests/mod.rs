//! What is built, as it is sent: names, ports and labels in tables, whole objects as snapshots, and scripts run by a real shell.

mod configs;
mod discovery;
mod pods;
mod scripts;
mod services;
mod sets;

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::tidb::Component;
use windlass_core::step::{Action, Manifest, ObjectKind};
use windlass_core::views::{Compact, Meta, ObjectView};

use super::super::fixture::valid;
use super::super::validate::Validated;
use super::*;

/// Nothing that is done to members is done here.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
enum NoAction {}

impl std::fmt::Display for NoAction {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl Action for NoAction {
    fn target(&self) -> &str {
        match *self {}
    }
    fn target_uid(&self) -> &str {
        match *self {}
    }
    fn irreversible(&self) -> bool {
        match *self {}
    }
    fn name(&self) -> &'static str {
        match *self {}
    }
}

/// A component of a cluster that is not there yet.
fn built(cluster: &Validated, component: Component) -> Vec<Manifest> {
    built_over(cluster, component, &Children::default()).applied
}

fn built_over(cluster: &Validated, component: Component, children: &Children) -> Objects<NoAction> {
    let replicas = cluster.group(component).unwrap().replicas;
    super::component(cluster, component, &Inputs { replicas, partition: replicas, children }).unwrap()
}

fn find(objects: &[Manifest], kind: ObjectKind) -> &Manifest {
    objects.iter().find(|it| it.object.kind == kind).unwrap()
}

/// The `StatefulSet` of a component.
fn set(cluster: &Validated, component: Component) -> Manifest {
    find(&built(cluster, component), ObjectKind::StatefulSet).clone()
}

/// The component's own container.
fn container(cluster: &Validated, component: Component) -> Value {
    set(cluster, component).spec["template"]["spec"]["containers"][0].clone()
}

/// What the `ConfigMap` of a component has under a key.
fn text(cluster: &Validated, component: Component, key: &str) -> String {
    find(&built(cluster, component), ObjectKind::ConfigMap).spec[key].as_str().unwrap().to_owned()
}

/// What is there once these were applied.
fn there(objects: &[Manifest]) -> Children {
    let mut children = Children::default();
    for manifest in objects {
        let object = ObjectView {
            meta: Meta {
                namespace: manifest.object.namespace.clone(),
                name: manifest.object.name.clone(),
                uid: "u-2".to_owned(),
                resource_version: "7".to_owned(),
                labels: manifest.labels.clone().into(),
                annotations: manifest.annotations.clone().into(),
                owner_uid: Some(manifest.owner.uid.clone()),
                ..Meta::default()
            },
            spec: Compact::of(&manifest.spec),
        };
        let name = manifest.object.name.clone();
        match manifest.object.kind {
            ObjectKind::StatefulSet => {
                let set = StatefulSetView { object, ..StatefulSetView::default() };
                children.stateful_sets.insert(name, set);
            }
            ObjectKind::ControllerRevision => children.templates.insert(name, object),
            ObjectKind::Deployment => children.deployments.insert(name, object),
            _ => {}
        }
    }
    children
}

/// Objects as they are sent, without what differs from one build to the next for no reason that a reader cares about.
fn written(objects: &[Manifest]) -> Vec<Value> {
    let body = |manifest: &Manifest| {
        let mut body = manifest.body();
        for key in ["windlass.dev/desired-hash", "windlass.dev/template-inputs", "windlass.dev/claim-inputs"] {
            body["metadata"]["annotations"].as_object_mut().unwrap().remove(key);
        }
        // What it holds has snapshots of its own.
        if let Some(data) = body.get_mut("data").and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| *value = "...".into());
        }
        for field in ["ownerReferences", "resourceVersion", "namespace"] {
            body["metadata"].as_object_mut().unwrap().remove(field);
        }
        body
    };
    objects.iter().filter(|it| it.object.kind != ObjectKind::ControllerRevision).map(body).collect()
}

fn sorted(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
