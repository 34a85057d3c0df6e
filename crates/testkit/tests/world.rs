//! The world behind the fake server.

#![expect(clippy::unwrap_used, reason = "what tests share fails like a test")]

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_testkit::{FakeApiServer, world::StatefulSetController};

fn set(replicas: u32, policy: &str) -> StatefulSet {
    serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "db", "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "podManagementPolicy": policy,
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db", "role": "member" } },
                "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            }],
        },
    }))
    .unwrap()
}

struct Stage {
    server: FakeApiServer,
    world: StatefulSetController,
    client: Client,
}

impl Stage {
    async fn with(replicas: u32, policy: &str) -> Self {
        let server = FakeApiServer::new();
        let client = server.client();
        let mut world = StatefulSetController::new(&server);
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "default");
        sets.create(&PostParams::default(), &set(replicas, policy)).await.unwrap();
        world.settle().await;
        Self { server, world, client }
    }

    async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        pods.list(&ListParams::default().labels("app=db")).await.unwrap().items
    }

    async fn names(&self) -> Vec<String> {
        self.pods().await.into_iter().filter_map(|pod| pod.metadata.name).collect()
    }

    async fn set(&self) -> StatefulSet {
        Api::namespaced(self.client.clone(), "default").get("db").await.unwrap()
    }

    async fn patch(&mut self, patch: Value) {
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), "default");
        sets.patch("db", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn pods_come_up_ready_with_their_labels_owner_address_and_claim() {
    let stage = Stage::with(3, "OrderedReady").await;
    let pods = stage.pods().await;
    assert_eq!(stage.names().await, ["db-0", "db-1", "db-2"]);
    let set = stage.set().await;
    let mut addresses = std::collections::BTreeSet::new();
    for (index, pod) in pods.iter().enumerate() {
        let labels = pod.metadata.labels.as_ref().unwrap();
        assert_eq!(labels["apps.kubernetes.io/pod-index"], index.to_string());
        assert_eq!(labels["role"], "member");
        assert_eq!(pod.metadata.owner_references.as_ref().unwrap()[0].uid, set.metadata.uid.clone().unwrap());
        let status = pod.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert!(status.conditions.as_ref().unwrap().iter().any(|c| c.type_ == "Ready" && c.status == "True"));
        assert!(addresses.insert(status.pod_ip.clone().unwrap()));
    }
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(stage.client.clone(), "default");
    let claims = claims.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(claims.len(), 3);
    assert_eq!(claims[2].metadata.name.as_deref(), Some("data-db-2"));
    assert_eq!(claims[2].status.as_ref().unwrap().phase.as_deref(), Some("Bound"));
    let status = set.status.unwrap();
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (3, Some(3), Some(3)));
    assert_eq!(status.observed_generation, set.metadata.generation);
    assert_eq!(status.current_revision, status.update_revision);
}

#[tokio::test(start_paused = true)]
async fn an_ordered_set_waits_for_an_unready_pod_and_a_parallel_one_does_not() {
    for (policy, wanted) in [("OrderedReady", 2), ("Parallel", 4)] {
        let server = FakeApiServer::new();
        let mut world = StatefulSetController::new(&server);
        world.keep_unready("default", "db-1");
        let sets: Api<StatefulSet> = Api::namespaced(server.client(), "default");
        sets.create(&PostParams::default(), &set(4, policy)).await.unwrap();
        world.settle().await;
        assert_eq!(server.store().list("pods").len(), wanted, "{policy}");
        world.let_run("default", "db-1").settle().await;
        assert_eq!(sets.get("db").await.unwrap().status.unwrap().ready_replicas, Some(4), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_stays_until_no_pod_uses_it_and_no_pod_starts_with_it() {
    let mut stage = Stage::with(1, "Parallel").await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(stage.client.clone(), "default");
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), "default");
    let uid = async || claims.get("data-db-0").await.unwrap().metadata.uid;
    let before = uid().await;
    claims.delete("data-db-0", &DeleteParams::default()).await.unwrap();
    stage.world.settle().await;
    assert_eq!(uid().await, before, "it is in use");
    pods.delete("db-0", &DeleteParams::default()).await.unwrap();
    stage.world.settle().await;
    assert_ne!(uid().await, before, "a new pod has a new volume");
    assert_eq!(stage.names().await, ["db-0"]);
}

#[tokio::test(start_paused = true)]
async fn scaling_in_takes_pods_from_the_top_and_leaves_their_claims() {
    let mut stage = Stage::with(5, "OrderedReady").await;
    stage.patch(json!({ "spec": { "replicas": 2 } })).await;
    stage.world.settle().await;
    assert_eq!(stage.names().await, ["db-0", "db-1"]);
    assert_eq!(stage.server.store().list("persistentvolumeclaims").len(), 5);
    assert_eq!(stage.set().await.status.unwrap().replicas, 2);
}

#[tokio::test(start_paused = true)]
async fn a_template_change_replaces_pods_down_to_the_partition() {
    let mut stage = Stage::with(3, "OrderedReady").await;
    let before: Vec<Option<String>> = stage.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
    stage
        .patch(json!({ "spec": {
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 1 } },
        "template": { "metadata": { "annotations": { "turn": "2" } } },
    } }))
        .await;
    stage.world.settle().await;
    let after: Vec<Option<String>> = stage.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
    assert_ne!(before[2], after[2]);
    let status = stage.set().await.status.unwrap();
    assert_ne!(status.current_revision, status.update_revision);
    assert_eq!(status.updated_replicas, Some(2));

    stage.patch(json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } })).await;
    stage.world.settle().await;
    let status = stage.set().await.status.unwrap();
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!(stage.server.store().list("controllerrevisions").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_terminates_first_and_comes_back_with_another_uid() {
    let mut stage = Stage::with(2, "OrderedReady").await;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), "default");
    let before = pods.get("db-1").await.unwrap();
    stage.world.let_go(false);
    pods.delete("db-1", &DeleteParams::default()).await.unwrap();
    stage.world.settle().await;
    let terminating = pods.get("db-1").await.unwrap();
    assert!(terminating.metadata.deletion_timestamp.is_some());
    assert_eq!(terminating.metadata.deletion_grace_period_seconds, Some(30));
    stage.world.let_go(true).settle().await;
    let after = pods.get("db-1").await.unwrap();
    assert_ne!(before.metadata.uid, after.metadata.uid);
    assert_ne!(before.status.unwrap().pod_ip, after.status.unwrap().pod_ip);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_set_takes_its_pods_with_it_unless_they_are_orphaned() {
    let mut stage = Stage::with(2, "OrderedReady").await;
    let sets: Api<StatefulSet> = Api::namespaced(stage.client.clone(), "default");
    sets.delete("db", &DeleteParams::orphan()).await.unwrap();
    stage.world.settle().await;
    assert!(sets.get_opt("db").await.unwrap().is_none());
    assert_eq!(stage.names().await, ["db-0", "db-1"]);

    let mut stage = Stage::with(2, "OrderedReady").await;
    let sets: Api<StatefulSet> = Api::namespaced(stage.client.clone(), "default");
    sets.delete("db", &DeleteParams::background()).await.unwrap();
    stage.world.settle().await;
    assert!(stage.names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_settled_world_writes_nothing_and_records_no_calls() {
    let mut stage = Stage::with(3, "Parallel").await;
    let calls = stage.server.calls().len();
    let revision = stage.server.revision();
    assert_eq!(stage.world.settle().await, 0);
    assert_eq!(stage.server.revision(), revision);
    assert_eq!(stage.server.calls().len(), calls);
}
