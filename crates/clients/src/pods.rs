//! Whether a pod is still the one that something was decided for.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};

/// How long one request to the API server may take.
const CALL: Duration = Duration::from_secs(3);

/// Whether the pod and its container are still those that a task was decided for. One that is about to go is: what was decided for it
/// must be done before it goes.
pub(crate) async fn same_process(client: &Client, namespace: &str, name: &str, uid: &str, process: &str) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = match tokio::time::timeout(CALL, pods.get(name)).await {
        Ok(Ok(pod)) => pod,
        Ok(Err(error)) => return Err(format!("pod {name:?} could not be read, so nothing was done to it: {error}")),
        Err(_) => {
            return Err(format!("pod {name:?} could not be read within {} s, so nothing was done to it", CALL.as_secs()));
        }
    };
    let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    let runs = statuses.iter().any(|it| it.container_id.as_deref() == Some(process));
    if pod.metadata.uid.as_deref() == Some(uid) && runs {
        Ok(())
    } else {
        Err(format!("pod {name:?} or its server was replaced since this was decided, so nothing was done to it"))
    }
}
