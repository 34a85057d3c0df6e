//! A scheduler for pods that no other would take: nobody makes volumes for their claims. It makes one for each claim, which holds nothing
//! and which the real controller binds, and sends the pod to the fake node without waiting for that.

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::stage::{RUN, from_json};

/// How many pods are taken at once.
const AT_ONCE: usize = 16;
/// A directory that nobody ever looks at.
const NOWHERE: &str = "/nonexistent/bench";
/// On the volumes of the bench: the namespace of their claims.
pub(crate) const VOLUMES_OF: &str = "bench.windlass.dev/volumes-of";

/// Sends all pods that ask for the scheduler of this name to the node of this name. Volumes have the label of this run.
pub(crate) async fn serve(client: Client, scheduler: String, node: String, run: String) -> Result<()> {
    let fields = format!("spec.schedulerName={scheduler},spec.nodeName=");
    let config = watcher::Config::default().fields(&fields);
    let mut pods = watcher(Api::<Pod>::all(client.clone()), config).default_backoff().boxed();
    let mut tasks = JoinSet::new();
    loop {
        while tasks.len() >= AT_ONCE {
            tasks.join_next().await;
        }
        match pods.try_next().await {
            Ok(Some(Event::Apply(pod) | Event::InitApply(pod))) => {
                let (client, node, run) = (client.clone(), node.clone(), run.clone());
                tasks.spawn(async move {
                    // Whoever waits for the pod will say that it never became ready.
                    if let Err(error) = place(&client, &pod, &node, &run).await {
                        crate::say(format!("the fake scheduler could not place pod {}: {error}", pod.name_any()));
                    }
                });
            }
            // What is sent to a node leaves the selection.
            Ok(Some(Event::Delete(_) | Event::Init | Event::InitDone)) => {}
            Ok(None) => bail!("the fake scheduler's watch of pods ended"),
            Err(error) => crate::say(format!("the fake scheduler's watch of pods failed and is started again: {error}")),
        }
    }
}

async fn place(client: &Client, pod: &Pod, node: &str, run: &str) -> Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    for name in claims_of(pod) {
        provide(client, &namespace, name, run).await?;
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod.name_any() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let placed = pods.create_subresource::<_, Value>("binding", &pod.name_any(), &PostParams::default(), &binding).await;
    Ok(passing(placed.map(drop))?)
}

/// Lets a claim ask for a volume, and makes that volume: one write each, and what is left is the controller's.
async fn provide(client: &Client, namespace: &str, claim: &str, run: &str) -> Result<()> {
    let name = format!("bench-{namespace}-{claim}");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let asks = Patch::Merge(json!({ "spec": { "volumeName": name } }));
    let asked = match claims.patch(claim, &PatchParams::default(), &asks).await {
        Err(error) => return Ok(passing(Err(error))?),
        Ok(asked) => asked,
    };
    let volume = volume(&name, &asked, run)?;
    let made = Api::<PersistentVolume>::all(client.clone()).create(&PostParams::default(), &volume).await;
    Ok(passing(made.map(drop))?)
}

/// What a provisioner would make of a claim: it goes with the claim, unless somebody says otherwise.
fn volume(name: &str, claim: &PersistentVolumeClaim, run: &str) -> Result<PersistentVolume> {
    let (namespace, spec) = (claim.namespace(), claim.spec.clone().unwrap_or_default());
    from_json(json!({
        "metadata": { "name": name, "labels": { RUN: run, VOLUMES_OF: namespace } },
        "spec": {
            "accessModes": spec.access_modes,
            "capacity": spec.resources.and_then(|resources| resources.requests),
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim.name_any(), "uid": claim.uid(),
            },
            "hostPath": { "path": NOWHERE },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.storage_class_name,
        },
    }))
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref()).map(|claim| claim.claim_name.as_str())
}

/// What is gone, or was placed before, needs no place.
fn passing(done: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_those_of_the_pods_volumes() {
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": { "containers": [], "volumes": [
            { "name": "tikv", "persistentVolumeClaim": { "claimName": "tikv-a-tikv-0" } }, { "name": "config", "configMap": {} },
        ] } }))
        .unwrap();
        assert_eq!(claims_of(&pod).collect::<Vec<_>>(), ["tikv-a-tikv-0"]);
    }

    /// Else the controller would not bind them.
    #[test]
    fn a_volume_is_the_claims_own() {
        let claim = serde_json::from_value(json!({
            "metadata": { "name": "tikv-a-tikv-0", "namespace": "n", "uid": "u-1" },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": { "requests": { "storage": "1Gi" } },
            },
        }));
        let volume = json!(volume("bench-n-tikv-a-tikv-0", &claim.unwrap(), "r").unwrap());
        let spec = &volume["spec"];
        assert_eq!((&spec["claimRef"]["uid"], &spec["claimRef"]["namespace"]), (&json!("u-1"), &json!("n")));
        assert_eq!((&spec["capacity"]["storage"], &spec["storageClassName"]), (&json!("1Gi"), &json!("none")));
        assert_eq!(volume["metadata"]["labels"], json!({ RUN: "r", VOLUMES_OF: "n" }));
    }
}
