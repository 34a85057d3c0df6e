//! Clusters for the tests of this crate.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Logbook};
use crate::kinds::SERVED;
use crate::render::paint::Paint;

/// No colours.
pub(crate) const PLAIN: Paint = Paint { colour: false };

/// The time at which the tests look.
pub(crate) fn now() -> Timestamp {
    "2026-11-16T01:00:00Z".parse().unwrap()
}

/// `rss/harbour` in the namespace `shop`, with these things changed, and with this logbook.
pub(crate) fn cluster(change: Value, logbook: Option<Value>) -> Cluster {
    let mut object = json!({
        "apiVersion": "clusterlabs.org/v1alpha1",
        "kind": "ReplicatedStatefulSet",
        "metadata": { "name": "harbour", "namespace": "shop", "uid": "u1", "generation": 4, "creationTimestamp": "2026-11-12T00:00:00Z" },
    });
    merge(&mut object, change);
    let object: kube::core::DynamicObject = serde_json::from_value(object).unwrap();
    let logbook = logbook.map_or(Logbook::Absent, |spec| {
        let book = json!({ "metadata": { "name": "rss-harbour" }, "spec": spec });
        Logbook::read(&serde_json::from_value(book).unwrap(), "u1")
    });
    Cluster { kind: &SERVED[0], object: Arc::new(object), logbook }
}

fn merge(into: &mut Value, from: Value) {
    match from {
        Value::Object(fields) if into.is_object() => {
            for (name, value) in fields {
                merge(&mut into[name], value);
            }
        }
        other => *into = other,
    }
}

/// A condition of generation 4.
pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "observedGeneration": 4, "lastTransitionTime": "2026-11-16T00:46:00Z",
    })
}

/// A claim of the release `windlass`.
pub(crate) fn claim() -> Value {
    json!({ "release": "windlass-system/windlass", "version": "0.1.0", "holder": "windlass-5d9f-abcde", "epoch": 7 })
}

/// All is well.
pub(crate) fn healthy() -> Cluster {
    let names = ["rss-harbour-0", "rss-harbour-1", "rss-harbour-2"];
    cluster(
        json!({
            "spec": { "replicas": 3 },
            "status": {
                "observedGeneration": 4, "phase": "Running", "replicas": 3,
                "members": { "ready": names, "primary": names },
                "conditions": [
                    condition("Ready", "True", "AllMembersServe", "all 3 members serve"),
                    condition("Available", "True", "MembersServe", "at least one member serves"),
                    condition("Progressing", "False", "Idle", "nothing is in hand"),
                    condition("Stalled", "False", "NothingBlocked", "nothing waits for a person"),
                    condition("ReconciliationActive", "True", "Active", "steps are taken"),
                    condition("ClusteringActive", "True", "Active", "steps are taken"),
                    condition("Managed", "True", "Owned", "this operator manages the cluster"),
                ],
            },
        }),
        Some(json!({ "clusterUid": "u1", "claim": claim() })),
    )
}

/// Paused, one member down, one more asked for.
pub(crate) fn held() -> Cluster {
    let message = "a pause holds back: scale StatefulSet rss-harbour; start as primary rss-harbour-2";
    let paused = "nothing is written, by the user's wish: disk replacement";
    cluster(
        json!({
            "metadata": { "generation": 5, "annotations": { "windlass.dev/pause-reason": "disk replacement" } },
            "spec": { "replicas": 4, "paused": true },
            "status": {
                "observedGeneration": 4, "phase": "Paused", "replicas": 3,
                "members": {
                    "ready": ["rss-harbour-0", "rss-harbour-1"], "primary": ["rss-harbour-0", "rss-harbour-1"],
                    "unready": ["rss-harbour-2"],
                },
                "conditions": [
                    condition("Ready", "False", "HeldByPause", message),
                    condition("Progressing", "False", "Idle", "nothing is in hand"),
                    condition("Stalled", "False", "NothingBlocked", "nothing waits for a person"),
                    condition("ReconciliationActive", "False", "Paused", paused),
                    condition("ClusteringActive", "False", "Paused", paused),
                ],
            },
        }),
        Some(json!({
            "clusterUid": "u1",
            "claim": claim(),
            "pause": {
                "resources": { "acknowledged": "2026-11-16T00:50:00Z", "reason": "disk replacement" },
                "clustering": { "acknowledged": "2026-11-16T00:50:02Z", "reason": "disk replacement" },
            },
            "plan": { "held": [
                { "lane": "Resources", "step": "scale StatefulSet rss-harbour from 3 to 4", "reason": "the spec asks for 4 members" },
                { "lane": "Clustering", "step": "start as primary rss-harbour-2", "reason": "it is stopped" },
            ] },
        })),
    )
}

/// At work, with something that cannot be undone announced, and something that waits for a person.
pub(crate) fn busy() -> Cluster {
    cluster(
        json!({
            "spec": { "replicas": 3 },
            "status": {
                "phase": "Failed", "replicas": 3,
                "members": { "ready": ["rss-harbour-0"], "primary": ["rss-harbour-0"], "unready": ["rss-harbour-1", "rss-harbour-2"] },
                "conditions": [
                    condition("Ready", "False", "SeedUndecided", "members rss-harbour-1 and rss-harbour-2 have not answered"),
                    condition("Progressing", "True", "Working", "start as primary rss-harbour-1"),
                    condition("Stalled", "True", "SeedUndecided", "members rss-harbour-1 and rss-harbour-2 have not answered"),
                    condition("ReconciliationActive", "True", "Active", "steps are taken"),
                    condition("ClusteringActive", "True", "Pausing", "no step starts; awaiting the end of: start as primary rss-harbour-1"),
                ],
            },
            "metadata": { "annotations": { "windlass.dev/clustering-paused": "true" } },
        }),
        Some(json!({
            "clusterUid": "u1",
            "claim": { "release": "canary/windlass", "version": "0.2.0", "epoch": 3, "released": true },
            "unproven": [{ "entry": "counts", "why": "the logbook was missing beside volumes of the cluster" }],
            "plan": {
                "running": [{ "step": "start as primary rss-harbour-1", "percent": 40 }],
                "next": [{ "lane": "Resources", "step": "apply Service harbour-client", "reason": "it is missing" }],
            },
            "intents": [{ "act": "Seed", "target": "rss-harbour-0", "announced": "2026-11-16T00:58:00Z", "reason": "all members are empty" }],
            "acts": [
                { "act": "Seed", "target": "rss-harbour-0", "announced": "2026-11-14T08:00:00Z", "reason": "all members are empty",
                  "by": "windlass-system/windlass@0.1.0", "outcome": "Done" },
            ],
            "overrides": [{ "entry": "histories", "value": "8f1c", "uid": "v9", "used": "2026-11-15T10:00:00Z" }],
        })),
    )
}

/// Nobody has looked at it yet.
pub(crate) fn fresh() -> Cluster {
    cluster(json!({ "spec": {} }), None)
}

/// A TidbCluster of which two stores leave.
pub(crate) fn shrinking() -> Cluster {
    let pod = |name: &str| json!({ "health": true, "name": name });
    let store = |number: u16, state: &str| json!({ "podName": format!("db-tikv-{number}"), "state": state });
    let sized = |replicas: u16| json!({ "replicas": replicas, "readyReplicas": replicas });
    let object = json!({
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": { "name": "db", "namespace": "shop", "uid": "u1", "generation": 4, "creationTimestamp": "2026-11-12T00:00:00Z" },
        "spec": { "pd": { "replicas": 1 }, "tikv": { "replicas": 3 }, "tidb": { "replicas": 1 } },
        "status": {
            "pd": { "leader": pod("db-pd-0"), "members": { "db-pd-0": pod("db-pd-0") }, "statefulSet": sized(1) },
            "tikv": {
                "statefulSet": sized(5),
                "stores": {
                    "1": store(0, "Up"), "4": store(1, "Up"), "5": store(2, "Up"), "10": store(10, "Offline"), "9": store(4, "Offline"),
                },
            },
            "tidb": { "members": { "db-tidb-0": { "health": false } }, "statefulSet": { "replicas": 1 } },
            "conditions": [
                condition("Ready", "True", "Ready", "all components are as they should be"),
                condition("Progressing", "True", "Working", "store 9 (db-tikv-4) gives its regions to others"),
            ],
        },
    });
    let book = json!({
        "metadata": { "name": "tc-db" },
        "spec": {
            "clusterUid": "u1",
            "claim": claim(),
            "plan": { "running": [
                { "step": "store 9 (db-tikv-4) gives away 16 regions", "since": "2026-11-16T00:59:30Z", "percent": 75 },
                { "step": "store 10 (db-tikv-10) gives away 16 regions", "since": "2026-11-16T00:59:30Z", "percent": 0 },
            ] },
        },
    });
    let logbook = Logbook::read(&serde_json::from_value(book).unwrap(), "u1");
    Cluster { kind: &SERVED[2], object: Arc::new(serde_json::from_value(object).unwrap()), logbook }
}
