//! The custom resources of TiDB clusters in the bench.

use serde_json::{Value, json};

use crate::cluster::{IMAGE, VARIABLE};
use crate::stage::RUN;

/// How many servers of TiDB a cluster has.
const TIDB: u16 = 2;
/// A storage class that does not exist: nobody makes volumes of it.
const CLASS: &str = "bench-none";
/// A Service with this label is left alone by kube-proxy, which would write rules for thousands of them that nobody uses.
const PROXY: &str = "service.kubernetes.io/service-proxy-name";

/// How many pods a cluster has: those of PD, TiKV and TiDB, and discovery.
pub(crate) fn pods(members: u16) -> usize {
    2 * usize::from(members) + usize::from(TIDB) + 1
}

/// A cluster with so many members of PD, as many stores, and two servers of TiDB. The bench's own scheduler takes its pods: with a claim
/// that is not bound, no other would.
pub(crate) fn resource(run: &str, scheduler: &str, namespace: &str, name: &str, members: u16) -> Value {
    let of = |cpu: &str, storage: Option<&str>| {
        let mut requests = json!({ "cpu": cpu, "memory": "1Gi" });
        if let Some(storage) = storage {
            requests["storage"] = storage.into();
        }
        requests
    };
    json!({
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": { "name": name, "namespace": namespace, "labels": { RUN: run } },
        "spec": {
            "version": "v8.5.0",
            "timezone": "UTC",
            "configUpdateStrategy": "RollingUpdate",
            "schedulerName": scheduler,
            "imagePullPolicy": "Never",
            "pd": {
                "baseImage": IMAGE,
                "replicas": members,
                "requests": of("1", Some("10Gi")),
                "storageClassName": CLASS,
                "service": { "labels": { PROXY: "bench" } },
                "config": "[log]\nlevel = \"info\"\n[replication]\nmax-replicas = 3\n",
            },
            "tikv": {
                "baseImage": IMAGE,
                "replicas": members,
                "requests": of("2", Some("100Gi")),
                "storageClassName": CLASS,
                "config": "[storage]\nreserve-space = \"0MB\"\n",
            },
            "tidb": {
                "baseImage": IMAGE,
                "replicas": TIDB,
                "requests": of("2", None),
                "separateSlowLog": false,
                "terminationGracePeriodSeconds": 0,
                "env": variables("0"),
                "config": "[performance]\ntcp-keep-alive = true\n",
            },
        },
    })
}

/// The change of a template whose arrival is timed: of TiDB's, whose servers hold nothing.
pub(crate) fn change(value: &str) -> Value {
    json!({ "spec": { "tidb": { "env": variables(value) } } })
}

fn variables(value: &str) -> Value {
    json!([{ "name": VARIABLE, "value": value }])
}

#[cfg(test)]
mod tests {
    use windlass_api::tidb::TidbCluster;

    use super::*;

    #[test]
    fn the_resource_is_one_that_the_operator_takes() {
        let given = resource("r", "bench-r", "n", "bench-000007", 3);
        let read: TidbCluster = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read.spec).unwrap(), given["spec"]);
        windlass_kinds::tidb::validate::validate(&read).unwrap();
        assert_eq!(pods(3), 9);
    }
}
