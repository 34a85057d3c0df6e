//! The StatefulSet controller: makes, removes and replaces pods in order, and reports.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{REVISION, build_claims, build_pod, build_revision, owner_of, revision_name};
use crate::{
    delete::DeleteOptions,
    object::{is_deleting, meta, text},
    state::State,
};

/// What the controller sees of one set.
struct Sight {
    set: Arc<Value>,
    /// (ordinal, pod), in order.
    pods: Vec<(u64, Arc<Value>)>,
    current: String,
    update: String,
    first: u64,
    replicas: u64,
    partition: u64,
    parallel: bool,
}

pub(super) fn run(state: &mut State) {
    for set in state.world_objects("statefulsets") {
        if is_deleting(&set) {
            continue;
        }
        let sight = look(state, set);
        manage(state, &sight);
        report(state, &sight);
    }
}

fn look(state: &mut State, set: Arc<Value>) -> Sight {
    adopt_orphans(state, &set);
    let update = revision_name(&set);
    ensure_revision(state, &set, &update);
    let known = text(&set, &["status", "currentRevision"]);
    let current = if known.is_empty() { update.clone() } else { known.to_owned() };
    let spec = &set["spec"];
    Sight {
        pods: pods_of(state, &set),
        current,
        update,
        first: spec["ordinals"]["start"].as_u64().unwrap_or(0),
        replicas: spec["replicas"].as_u64().unwrap_or(1),
        partition: spec["updateStrategy"]["rollingUpdate"]["partition"].as_u64().unwrap_or(0),
        parallel: spec["podManagementPolicy"] == "Parallel",
        set,
    }
}

fn pods_of(state: &State, set: &Value) -> Vec<(u64, Arc<Value>)> {
    let prefix = format!("{}-", meta(set, "name"));
    let mine = |pod: &Arc<Value>| {
        let owners = pod["metadata"]["ownerReferences"].as_array();
        owners.into_iter().flatten().any(|owner| owner["uid"] == set["metadata"]["uid"])
    };
    let mut pods: Vec<(u64, Arc<Value>)> = state
        .world_objects("pods")
        .into_iter()
        .filter(mine)
        .filter_map(|pod| Some((meta(&pod, "name").strip_prefix(&prefix)?.parse().ok()?, pod)))
        .collect();
    pods.sort_by_key(|(ordinal, _)| *ordinal);
    pods
}

/// Pods that match, are named as members, and belong to nobody become the set's.
fn adopt_orphans(state: &mut State, set: &Value) {
    let wanted = set["spec"]["selector"]["matchLabels"].as_object();
    let prefix = format!("{}-", meta(set, "name"));
    for pod in state.world_objects("pods") {
        let labels = &pod["metadata"]["labels"];
        let matches = wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
        let is_member = meta(&pod, "name").strip_prefix(&prefix).is_some_and(|number| number.parse::<u64>().is_ok());
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let is_free = !owners.into_iter().flatten().any(|owner| owner["controller"] == true);
        if matches && is_member && is_free && !is_deleting(&pod) && meta(&pod, "namespace") == meta(set, "namespace") {
            state.world_edit("pods", &pod, "", |pod| pod["metadata"]["ownerReferences"] = owner_of(set));
        }
    }
}

fn ensure_revision(state: &mut State, set: &Value, name: &str) {
    if state.world_get("controllerrevisions", meta(set, "namespace"), name).is_some() {
        return;
    }
    let number = state
        .world_objects("controllerrevisions")
        .iter()
        .filter(|revision| revision["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"])
        .filter_map(|revision| revision["revision"].as_u64())
        .max();
    let object = build_revision(set, name, number.unwrap_or(0) + 1);
    state.world_create("controllerrevisions", meta(set, "namespace"), object);
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    text(pod, &["status", "phase"]) == "Running" && conditions.into_iter().flatten().any(ready)
}

fn is_healthy(pod: &Value) -> bool {
    is_ready(pod) && !is_deleting(pod)
}

fn revision_of(pod: &Value) -> &str {
    text(pod, &["metadata", "labels", REVISION])
}

/// Does at most one thing to a set in order, or all at once for a parallel one.
fn manage(state: &mut State, sight: &Sight) {
    let wanted = sight.first..sight.first + sight.replicas;
    for ordinal in wanted.clone() {
        let mut leaving = false;
        for claim in build_claims(&sight.set, ordinal) {
            match state.world_get("persistentvolumeclaims", meta(&claim, "namespace"), meta(&claim, "name")) {
                None => {
                    state.world_create("persistentvolumeclaims", meta(&sight.set, "namespace"), claim);
                }
                Some(there) => leaving |= is_deleting(&there),
            }
        }
        let pod = sight.pods.iter().find(|(number, _)| *number == ordinal).map(|(_, pod)| pod);
        match pod {
            // Its volume is about to go, and it would start with it.
            None if leaving => {}
            None => make_pod(state, sight, ordinal),
            Some(pod) if text(pod, &["status", "phase"]) == "Failed" && !is_deleting(pod) => {
                state.world_delete("pods", pod, &DeleteOptions::default());
            }
            Some(pod) if is_healthy(pod) => continue,
            Some(_) => {}
        }
        if !sight.parallel {
            return;
        }
    }
    let surplus: Vec<&(u64, Arc<Value>)> = sight.pods.iter().filter(|(ordinal, _)| !wanted.contains(ordinal)).collect();
    for (_, pod) in surplus.iter().rev() {
        if !is_deleting(pod) {
            state.world_delete("pods", pod, &DeleteOptions::default());
        }
        if !sight.parallel {
            return;
        }
    }
    if surplus.is_empty() && sight.set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        replace_one(state, sight);
    }
}

/// From the top down to the partition: one outdated pod at a time, the next when all above are healthy again.
fn replace_one(state: &mut State, sight: &Sight) {
    for (ordinal, pod) in sight.pods.iter().rev() {
        if *ordinal < sight.partition {
            return;
        }
        if revision_of(pod) != sight.update && !is_deleting(pod) {
            state.world_delete("pods", pod, &DeleteOptions::default());
            return;
        }
        if !is_healthy(pod) {
            return;
        }
    }
}

fn make_pod(state: &mut State, sight: &Sight, ordinal: u64) {
    // Below the partition the old revision is made again.
    let name = if ordinal < sight.partition { &sight.current } else { &sight.update };
    let kept = state.world_get("controllerrevisions", meta(&sight.set, "namespace"), name);
    let template = kept.map_or_else(|| sight.set["spec"]["template"].clone(), |kept| kept["data"]["spec"]["template"].clone());
    let pod = build_pod(&sight.set, &template, name, ordinal);
    state.world_create("pods", meta(&sight.set, "namespace"), pod);
}

fn report(state: &mut State, sight: &Sight) {
    let Some(set) = state.world_get("statefulsets", meta(&sight.set, "namespace"), meta(&sight.set, "name")) else {
        return;
    };
    let pods = pods_of(state, &set);
    let count = |holds: &dyn Fn(&Value) -> bool| pods.iter().filter(|(_, pod)| holds(pod)).count();
    let replicas = pods.len();
    let ready = count(&is_ready);
    let updated = count(&|pod| revision_of(pod) == sight.update);
    let complete = updated == replicas && ready == replicas && replicas as u64 == sight.replicas && sight.partition == 0;
    let current = if complete { &sight.update } else { &sight.current };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": count(&|pod| revision_of(pod) == current.as_str()),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": sight.update,
        "collisionCount": 0,
    });
    state.world_edit("statefulsets", &set, "status", |set| set["status"] = status);
}
