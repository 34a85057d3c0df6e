//! A scheduler for pods that no other would take: their claims are never bound. It gives each claim a volume that does not exist, so that
//! nobody tries to make one again and again, and sends the pod to the fake node.

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// How many pods are taken at once.
const AT_ONCE: usize = 16;
/// The volume of all claims.
const NOWHERE: &str = "bench-nowhere";

/// Sends all pods that ask for the scheduler of this name to the node of this name.
pub(crate) async fn serve(client: Client, scheduler: String, node: String) -> Result<()> {
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
                let (client, node) = (client.clone(), node.clone());
                tasks.spawn(async move {
                    // Whoever waits for the pod will say that it never became ready.
                    if let Err(error) = place(&client, &pod, &node).await {
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

async fn place(client: &Client, pod: &Pod, node: &str) -> Result<(), kube::Error> {
    let namespace = pod.namespace().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    let volume = json!({ "spec": { "volumeName": NOWHERE } });
    for name in claims_of(pod) {
        passing(claims.patch_metadata(name, &PatchParams::default(), &Patch::Merge(&volume)).await.map(drop))?;
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod.name_any() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let placed = pods.create_subresource::<_, Value>("binding", &pod.name_any(), &PostParams::default(), &binding).await;
    passing(placed.map(drop))
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
}
