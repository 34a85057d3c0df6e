//! Whether a pod is still the one that something was decided for, and where it is.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};

/// How long one request to the API server may take.
const CALL: Duration = Duration::from_secs(3);

/// Whether the pod and its container are still those that a task was decided for. One that is about to go is: what was decided for it
/// must be done before it goes.
pub(crate) async fn same_process(client: &Client, namespace: &str, name: &str, uid: &str, process: &str) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = read("pod", name, pods.get(name)).await.map_err(|why| format!("{why}; nothing was done to it"))?;
    let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    let runs = statuses.iter().any(|it| it.container_id.as_deref() == Some(process));
    if pod.metadata.uid.as_deref() == Some(uid) && runs {
        Ok(())
    } else {
        Err(format!("pod {name:?} or its server was replaced since this was decided, so nothing was done to it"))
    }
}

/// The labels of the node that a pod is on. It stays there for as long as it has this UID.
pub(crate) async fn node_labels(
    client: &Client,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<BTreeMap<String, String>, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = read("pod", name, pods.get(name)).await?;
    if pod.metadata.uid.as_deref() != Some(uid) {
        return Err(format!("pod {name:?} was replaced since it was asked for"));
    }
    let node = pod.spec.and_then(|spec| spec.node_name).ok_or_else(|| format!("pod {name:?} is on no node yet"))?;
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(read("node", &node, nodes.get_metadata(&node)).await?.metadata.labels.unwrap_or_default())
}

async fn read<T>(kind: &str, name: &str, request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(CALL, request).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(error)) => Err(format!("{kind} {name:?} could not be read: {error}")),
        Err(_) => Err(format!("{kind} {name:?} could not be read within {} s", CALL.as_secs())),
    }
}
