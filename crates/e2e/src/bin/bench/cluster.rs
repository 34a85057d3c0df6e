//! The custom resources of the bench.

use serde_json::{Value, json};
use windlass_api::ReplicatedStatefulSet;

use crate::stage::{FAKE, RUN};

/// The image of all containers, which nobody ever starts.
pub(crate) const IMAGE: &str = "localhost/bench:none";
/// The container of the members' pods.
pub(crate) const CONTAINER: &str = "member";
/// The variable that spec changes set.
pub(crate) const VARIABLE: &str = "BENCH_CHANGE";

/// The name of the n-th cluster. All names have the same length, so that all objects have the same size.
pub(crate) fn name(number: usize) -> String {
    format!("bench-{number:06}")
}

/// A cluster whose pods go to the fake node, and whose members are asked once an hour.
pub(crate) fn resource(run: &str, namespace: &str, name: &str, members: u16) -> Value {
    let hook = |name: &str| json!({ "command": ["/hooks/run", name], "timeout": "10s" });
    json!({
        "apiVersion": api_version(),
        "kind": "ReplicatedStatefulSet",
        "metadata": { "name": name, "namespace": namespace, "labels": { RUN: run } },
        "spec": {
            "replicas": members,
            "reconcileInterval": "1h",
            "servicePorts": [{ "name": "sql", "port": 3306 }],
            "nodeSelector": { FAKE: run },
            "tolerations": [{ "operator": "Exists" }],
            "resources": { "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "memory": "1Gi" } },
            "pod": {
                "terminationGracePeriodSeconds": 0,
                "containers": [container("0")],
                "commands": {
                    "sequence": hook("sequence"),
                    "status": hook("status"),
                    "stop": hook("stop"),
                    "primary": hook("primary"),
                    "seed": hook("seed"),
                },
            },
        },
    })
}

/// The change of a template whose arrival is timed.
pub(crate) fn change(value: &str) -> Value {
    json!({ "spec": { "pod": { "containers": [container(value)] } } })
}

fn container(value: &str) -> Value {
    json!({
        "name": CONTAINER,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "env": [{ "name": VARIABLE, "value": value }],
        "ports": [{ "name": "sql", "containerPort": 3306 }, { "name": "replication", "containerPort": 4567 }],
        "readinessProbe": { "exec": { "command": ["/hooks/run", "ready"] }, "periodSeconds": 5 },
    })
}

fn api_version() -> String {
    use kube::Resource as _;
    ReplicatedStatefulSet::api_version(&()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_one_that_the_api_knows() {
        let given = resource("r", "n", &name(7), 3);
        let read: ReplicatedStatefulSet = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read.spec).unwrap(), given["spec"]);
    }
}
