//! The scheduler, the provisioner and the kubelet: binds pods and claims, reports pods running, lets deleted pods go.

use std::sync::Arc;

use serde_json::{Value, json};

use super::StatefulSetController;
use super::pods::PROTECTION;
use crate::{
    delete::DeleteOptions,
    object::{is_deleting, meta, text},
    state::State,
};

impl StatefulSetController {
    pub(super) fn run_kubelet(&mut self, state: &mut State) {
        for claim in state.world_objects("persistentvolumeclaims") {
            if is_deleting(&claim) {
                let_claim_go(state, &claim);
            } else if text(&claim, &["status", "phase"]) != "Bound" {
                bind_claim(state, &claim);
            }
        }
        for pod in state.world_objects("pods") {
            self.run_pod(state, &pod);
        }
    }

    fn run_pod(&mut self, state: &mut State, pod: &Arc<Value>) {
        let key = (meta(pod, "namespace").to_owned(), meta(pod, "name").to_owned());
        if is_deleting(pod) {
            if self.lets_go && !self.held.contains(&key) {
                state.world_delete("pods", pod, &DeleteOptions::immediate());
            }
            return;
        }
        if matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed") || self.unscheduled.contains(&key) {
            return;
        }
        if text(pod, &["spec", "nodeName"]).is_empty() {
            let is_there = |claim: &str| {
                let claim = state.world_get("persistentvolumeclaims", meta(pod, "namespace"), claim);
                claim.is_some_and(|claim| !is_deleting(&claim))
            };
            if !claims_of(pod).into_iter().all(is_there) {
                return;
            }
            state.world_edit("pods", pod, "", |pod| pod["spec"]["nodeName"] = json!("node-0"));
            return;
        }
        let next = self.addresses.len() + 1;
        let address = self
            .addresses
            .entry(meta(pod, "uid").to_owned())
            .or_insert_with(|| format!("10.{}.{}.{}", 64 + next / 65536 % 64, next / 256 % 256, next % 256))
            .clone();
        let ready = !self.unready.contains(&key);
        let restarts = self.restarts.get(meta(pod, "uid")).copied().unwrap_or(0);
        let crashed = self.crashed.get(meta(pod, "uid")).map(String::as_str);
        let now = state.now();
        state.world_edit("pods", pod, "status", |pod| {
            report(pod, &address, ready, restarts, &now);
            if let Some(since) = crashed {
                report_crashes(pod, since);
            }
        });
    }
}

/// The status of a pod whose containers run.
fn report(pod: &mut Value, address: &str, ready: bool, restarts: u32, now: &str) {
    let known = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let word = |holds: bool| if holds { "True" } else { "False" };
    let conditions: Vec<Value> = [("PodScheduled", true), ("Initialized", true), ("ContainersReady", ready), ("Ready", ready)]
        .into_iter()
        .map(|(kind, holds)| {
            let same = |condition: &&Value| condition["type"] == kind && condition["status"] == word(holds);
            // The time moves only when the condition turns.
            let since = known.iter().find(same).map_or(json!(now), |condition| condition["lastTransitionTime"].clone());
            json!({ "type": kind, "status": word(holds), "lastTransitionTime": since })
        })
        .collect();
    let started = pod["status"].get("startTime").cloned().unwrap_or_else(|| json!(now));
    let again = if restarts == 0 { String::new() } else { format!("/{restarts}") };
    let containers: Vec<Value> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            json!({
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "containerID": format!("world://{}/{}{again}", pod["metadata"]["uid"].as_str().unwrap_or_default(), container["name"].as_str().unwrap_or_default()),
                "ready": ready,
                "started": true,
                "restartCount": restarts,
                "state": { "running": { "startedAt": started } },
            })
        })
        .collect();
    let status = &mut pod["status"];
    if !status.is_object() {
        *status = json!({});
    }
    status["phase"] = json!("Running");
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{ "ip": address }]);
    status["hostIP"] = json!("10.0.0.1");
    status["startTime"] = started;
    status["conditions"] = Value::Array(conditions);
    status["containerStatuses"] = Value::Array(containers);
}

/// The status of the containers of a pod that end as soon as they are started.
fn report_crashes(pod: &mut Value, since: &str) {
    for container in pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["started"] = json!(false);
        container["state"] = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        container["lastState"] = json!({ "terminated": { "exitCode": 1, "reason": "Error", "finishedAt": since } });
    }
}

fn claims_of(pod: &Value) -> Vec<&str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str()).collect()
}

/// A claim that is to go stays while a pod uses it.
fn let_claim_go(state: &mut State, claim: &Arc<Value>) {
    let uses =
        |pod: &Arc<Value>| meta(pod, "namespace") == meta(claim, "namespace") && claims_of(pod).contains(&meta(claim, "name"));
    if state.world_objects("pods").iter().any(uses) {
        return;
    }
    state.world_edit("persistentvolumeclaims", claim, "", |claim| {
        if let Some(finalizers) = claim["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != PROTECTION);
        }
    });
    let volume = state.world_get("persistentvolumes", "", text(claim, &["spec", "volumeName"]));
    let volume = volume.filter(|it| text(it, &["spec", "claimRef", "uid"]) == meta(claim, "uid"));
    if let Some(volume) = volume.filter(|it| text(it, &["spec", "persistentVolumeReclaimPolicy"]) == "Delete") {
        state.world_delete("persistentvolumes", &volume, &DeleteOptions::immediate());
    }
}

/// A volume as a storage class makes it that says nothing of what becomes of volumes.
fn provision(state: &mut State, claim: &Value, volume: &str) {
    let claim_ref = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta(claim, "namespace"),
        "name": meta(claim, "name"),
        "uid": meta(claim, "uid"),
    });
    let spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": claim["spec"]["resources"]["requests"],
        "claimRef": claim_ref,
        "persistentVolumeReclaimPolicy": "Delete",
    });
    let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": volume }, "spec": spec });
    state.world_create("persistentvolumes", "", volume);
}

fn bind_claim(state: &mut State, claim: &Arc<Value>) {
    let volume = format!("pvc-{}", meta(claim, "uid"));
    if state.world_get("persistentvolumes", "", &volume).is_none() {
        provision(state, claim, &volume);
    }
    state.world_edit("persistentvolumeclaims", claim, "", |claim| {
        claim["spec"]["volumeName"] = json!(volume);
    });
    let Some(claim) = state.world_get("persistentvolumeclaims", meta(claim, "namespace"), meta(claim, "name")) else {
        return;
    };
    state.world_edit("persistentvolumeclaims", &claim, "status", |claim| {
        claim["status"]["phase"] = json!("Bound");
        claim["status"]["accessModes"] = claim["spec"]["accessModes"].clone();
        claim["status"]["capacity"] = claim["spec"]["resources"]["requests"].clone();
    });
}
