//! The custom resources of MySQL clusters in the bench.

use serde_json::{Value, json};

use super::cluster::FIRST_SERVER_ID;
use crate::cluster::IMAGE;
use crate::stage::RUN;

/// The containers of the pods that run; the server's comes first.
pub(crate) const CONTAINERS: &[&str] = &["mysqld", "agent"];
/// A Service with this label is left alone by kube-proxy, which would write rules for thousands of them that nobody uses.
const PROXY: &str = "service.kubernetes.io/service-proxy-name";

/// The name of a cluster's StatefulSet.
pub(crate) fn set(name: &str) -> String {
    format!("moco-{name}")
}

/// A cluster whose pods are on the fake node from the beginning: a pod with an unbound claim would never be sent there. The claims name
/// a volume that does not exist, and so wait in silence for ever.
pub(crate) fn resource(run: &str, node: &str, namespace: &str, name: &str, members: u16) -> Value {
    let service = json!({ "metadata": { "labels": { PROXY: "bench" } } });
    json!({
        "apiVersion": "moco.cybozu.com/v1beta2",
        "kind": "MySQLCluster",
        "metadata": { "name": name, "namespace": namespace, "labels": { RUN: run } },
        "spec": {
            "replicas": members,
            "serverIDBase": FIRST_SERVER_ID,
            "disableSlowQueryLogContainer": true,
            "primaryServiceTemplate": service,
            "replicaServiceTemplate": service,
            "podTemplate": { "spec": {
                "nodeName": node,
                "tolerations": [{ "operator": "Exists" }],
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "mysqld",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "resources": { "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "memory": "1Gi" } },
                }],
            } },
            "volumeClaimTemplates": [{
                "metadata": { "name": "mysql-data" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "",
                    "volumeName": "bench-nowhere",
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_one_that_the_operator_takes() {
        let given = resource("r", "bench-r", "n", "bench-000007", 3);
        let read: windlass_api::mysql::MySQLCluster = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read.spec).unwrap(), given["spec"]);
        windlass_kinds::mysql::validate(&read).unwrap();
    }
}
