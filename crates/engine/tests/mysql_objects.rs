//! The objects of a `MySQLCluster` on the fake server: volumes that grow, a set that is made again, and a cluster that another operator
//! made. Servers say nothing here: what is done to objects must not depend on them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_api::mysql::MySQLCluster;
use windlass_clients::members::{Acted, Members};
use windlass_core::gate::Permit;
use windlass_core::lane::Clustering;
use windlass_engine::{Authority, Calls, Clock, Controller, Health, Metrics, Settings};
use windlass_kinds::mysql::deeds::{Deed, Probe};
use windlass_kinds::mysql::facts::{End, Fact, News, Silence};
use windlass_kinds::mysql::{self, MySql};
use windlass_testkit::world::StatefulSetController;
use windlass_testkit::{CallMatch, Effect, FakeApiServer, Verb};

const NAMESPACE: &str = "default";
const CLUSTER: &str = "harbour";
const SET: &str = "moco-harbour";

/// Servers that never answer.
struct Mute;

impl Members<MySql> for Mute {
    async fn probe(&self, probe: Probe) -> Fact {
        let (Probe::Look(place) | Probe::Watch(place) | Probe::Source { place, .. }) = probe;
        Fact { place, news: News::Silent { how: Silence::Closed, why: "no answer".into() } }
    }

    async fn act(&self, _permit: &Permit<Clustering>, deed: Deed) -> Acted<MySql> {
        let end = End::Failed { why: "no answer".into() };
        Acted::all(Fact { place: deed.place, news: News::Ended { task: deed.task, end } })
    }
}

/// A running controller. It ends with this.
struct Quay {
    server: FakeApiServer,
    world: Mutex<StatefulSetController>,
    stop: CancellationToken,
}

impl Drop for Quay {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn cluster() -> Value {
    json!({
        "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE },
        "spec": {
            "replicas": 3,
            "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }] } },
            "volumeClaimTemplates": [claims("1Gi")],
        },
    })
}

fn claims(size: &str) -> Value {
    json!({ "metadata": { "name": "mysql-data" }, "spec": { "resources": { "requests": { "storage": size } } } })
}

impl Quay {
    fn on(server: FakeApiServer) -> Self {
        let mut settings = Settings {
            clock: Clock::Counted { start: Timestamp::now(), since: tokio::time::Instant::now() },
            ..Settings::default()
        };
        settings.authority = Some(Arc::new(Authority::new(server.client(), "ops", "windlass", settings.clock)));
        settings.identity.release = "ops/windlass".into();
        settings.identity.holder = format!("process-{}", server.revision());
        let (stop, client) = (CancellationToken::new(), server.client());
        let token = stop.clone();
        tokio::spawn(async move {
            let mut controller = Controller::start(Calls::new(client), Arc::new(Metrics::default()), settings, token);
            controller.wait_until_synced(&Health::default()).await;
            controller
                .run::<MySql, Mute>(Mute, mysql::Settings { agent_image: "windlass:1".into(), signs_certificates: true })
                .await;
        });
        let world = Mutex::new(StatefulSetController::new(&server));
        Self { server, world, stop }
    }

    fn new() -> Self {
        let server = FakeApiServer::new();
        server.namespace("ops");
        for definition in windlass_api::custom_resource_definitions() {
            server.register_crd(&definition);
        }
        Self::on(server)
    }

    /// A cluster with three pods that run.
    async fn with_cluster() -> Self {
        let quay = Self::new();
        quay.create().await;
        quay.until("all pods run", |quay| quay.pods().len() == 3 && quay.set().is_some()).await;
        quay.let_pass(10).await;
        quay
    }

    fn api(&self) -> Api<MySQLCluster> {
        Api::namespaced(self.server.client(), NAMESPACE)
    }

    async fn create(&self) -> MySQLCluster {
        let parameters = PostParams { field_manager: Some("user".into()), ..PostParams::default() };
        self.api().create(&parameters, &serde_json::from_value(cluster()).unwrap()).await.unwrap()
    }

    async fn patch(&self, patch: Value) {
        let parameters = PatchParams { field_manager: Some("user".into()), ..PatchParams::default() };
        self.api().patch(CLUSTER, &parameters, &Patch::Merge(patch)).await.unwrap();
    }

    async fn ask_for(&self, size: &str) {
        self.patch(json!({ "spec": { "volumeClaimTemplates": [claims(size)] } })).await;
    }

    fn restart(self) -> Self {
        let server = self.server.clone();
        drop(self);
        Self::on(server)
    }

    fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.server.store().get(kind, NAMESPACE, name)
    }

    fn set(&self) -> Option<Value> {
        self.get("statefulsets", SET)
    }

    fn set_uid(&self) -> String {
        self.set().map(|set| set["metadata"]["uid"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    /// The UIDs of the pods by name.
    fn pods(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let pods = self.server.store().list("pods");
        pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]))).collect()
    }

    fn requests(&self) -> Vec<Value> {
        let claims = self.server.store().list("persistentvolumeclaims");
        claims.iter().map(|claim| claim["spec"]["resources"]["requests"]["storage"].clone()).collect()
    }

    fn condition(&self, type_: &str) -> (String, String) {
        let status = self.get("mysqlclusters", CLUSTER).unwrap()["status"].clone();
        let found = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == type_).cloned();
        let found = found.unwrap_or_default();
        (found["status"].as_str().unwrap_or_default().to_owned(), found["message"].as_str().unwrap_or_default().to_owned())
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..1_200 {
            if holds(self) {
                return;
            }
            self.world.lock().unwrap().step();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let calls = self.server.mutations();
        let calls: Vec<String> = calls.iter().map(|it| format!("{:?} {} {:?}", it.verb, it.resource, it.name)).collect();
        panic!("waited in vain until {what}: {:#}\n{calls:#?}", self.get("mysqlclusters", CLUSTER).unwrap()["status"]);
    }

    async fn let_pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.world.lock().unwrap().step();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn made_again(&self, before: &str) -> bool {
        self.set().is_some() && self.set_uid() != before
    }

    /// The pods belong to the set that is there, and no other one was ever made.
    fn assert_same_pods(&self, before: &BTreeMap<String, String>) {
        assert_eq!(self.pods(), *before);
        for pod in self.server.store().list("pods") {
            assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], self.set_uid().as_str(), "{pod}");
        }
    }
}

fn is_gone(quay: &Quay) -> bool {
    quay.set().is_none()
}

/// No set can be made for now.
fn refuse_sets(quay: &Quay) {
    quay.server.faults().on(CallMatch::any().verb(Verb::Patch).resource("statefulsets").always(), Effect::code(500));
}

#[tokio::test(start_paused = true)]
async fn volumes_grow_and_the_set_is_made_again_around_the_same_pods() {
    let quay = Quay::with_cluster().await;
    let (set, pods) = (quay.set_uid(), quay.pods());
    quay.ask_for("2Gi").await;
    quay.until("the set is made again", |quay| quay.made_again(&set)).await;
    quay.let_pass(30).await;
    assert_eq!(quay.requests(), [json!("2Gi"), json!("2Gi"), json!("2Gi")]);
    let made = quay.set().unwrap();
    assert_eq!(made["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(made["spec"]["replicas"], 3);
    quay.assert_same_pods(&pods);
    let deletes = quay.server.mutations().into_iter().filter(|call| call.verb == Verb::Delete);
    let deletes: Vec<_> = deletes.map(|call| (call.resource, call.body)).collect();
    assert_eq!(deletes.len(), 1, "{deletes:?}");
    assert_eq!((deletes[0].0.as_str(), &deletes[0].1["propagationPolicy"]), ("statefulsets", &json!("Orphan")));
    assert_eq!(deletes[0].1["preconditions"]["uid"], set.as_str());
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_dies_halfway_leaves_the_rest_to_the_next_one() {
    let quay = Quay::with_cluster().await;
    let (set, pods) = (quay.set_uid(), quay.pods());
    refuse_sets(&quay);
    quay.ask_for("2Gi").await;
    quay.until("the set is gone", is_gone).await;
    let quay = quay.restart();
    quay.let_pass(20).await;
    assert_eq!(quay.pods(), pods, "pods that belong to nobody run on");
    quay.server.faults().clear();
    quay.until("the set is made again", |quay| quay.made_again(&set)).await;
    quay.let_pass(30).await;
    quay.assert_same_pods(&pods);
    let intents = quay.get("logbooks", "mysql-harbour").unwrap()["spec"]["intents"].clone();
    assert!(!intents.to_string().contains("RecreateSet"), "{intents}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_halfway_waits_until_the_set_is_there_again() {
    let quay = Quay::with_cluster().await;
    let (set, pods) = (quay.set_uid(), quay.pods());
    refuse_sets(&quay);
    quay.ask_for("2Gi").await;
    quay.until("the set is gone", is_gone).await;
    quay.patch(json!({ "metadata": { "annotations": { "moco.cybozu.com/reconciliation-stopped": "true" } } })).await;
    quay.let_pass(20).await;
    let (active, message) = quay.condition("ReconciliationActive");
    assert_eq!(active, "True", "a pause that leaves a set half made is not acknowledged");
    assert!(message.contains("make StatefulSet moco-harbour again"), "{message}");
    quay.server.faults().clear();
    quay.until("the pause is acknowledged", |quay| quay.condition("ReconciliationActive").0 == "False").await;
    assert!(quay.made_again(&set));
    quay.let_pass(5).await;
    quay.assert_same_pods(&pods);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_grow_is_told_and_nothing_else_is_touched() {
    let quay = Quay::with_cluster().await;
    let set = quay.set_uid();
    quay.server.faults().on(CallMatch::any().verb(Verb::Patch).resource("persistentvolumeclaims").always(), Effect::code(403));
    quay.ask_for("2Gi").await;
    quay.until("it is told", |quay| quay.condition("Stalled").0 == "True").await;
    let (_, message) = quay.condition("Stalled");
    assert!(message.contains("mysql-data-moco-harbour-") && message.contains("allowVolumeExpansion"), "{message}");
    quay.let_pass(30).await;
    assert_eq!(quay.set_uid(), set, "a set with larger volumes than its instances have");
    quay.ask_for("1Gi").await;
    quay.until("it is forgotten", |quay| quay.condition("Stalled").0 == "False").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_its_finalizer_before_its_first_object_and_can_be_deleted() {
    let quay = Quay::with_cluster().await;
    assert_eq!(quay.get("mysqlclusters", CLUSTER).unwrap()["metadata"]["finalizers"], json!(["moco.cybozu.com/mysqlcluster"]));
    let writes: Vec<String> = quay.server.mutations().iter().map(windlass_testkit::Call::rbac_resource).collect();
    let first = |resource: &str| writes.iter().position(|it| it == resource).unwrap();
    // The first write is the user's own.
    let marked = writes.iter().skip(1).position(|it| it == "mysqlclusters").unwrap() + 1;
    assert!(marked > first("logbooks") && marked < first("secrets") && marked < first("statefulsets"), "{writes:?}");
    quay.api().delete(CLUSTER, &kube::api::DeleteParams::default()).await.unwrap();
    quay.until("it is gone", |quay| quay.get("mysqlclusters", CLUSTER).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_protected_pod_is_freed_before_its_cluster_ends_paused_or_not() {
    let quay = Quay::with_cluster().await;
    quay.patch(json!({ "metadata": { "annotations": { "moco.cybozu.com/clustering-stopped": "true" } } })).await;
    quay.until("the pause is acknowledged", |quay| quay.condition("ClusteringActive").0 == "False").await;
    let protect = json!({ "metadata": { "annotations": { "moco.cybozu.com/prevent-delete": "true" } } });
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(quay.server.client(), NAMESPACE);
    let parameters = PatchParams { field_manager: Some("user".into()), ..PatchParams::default() };
    pods.patch(&format!("{SET}-0"), &parameters, &Patch::Merge(protect)).await.unwrap();
    quay.let_pass(5).await;
    let is_protected =
        |quay: &Quay| quay.get("pods", &format!("{SET}-0")).unwrap().to_string().contains("prevent-delete\":\"true");
    assert!(is_protected(&quay), "a pause holds it");
    quay.server.clear_calls();
    quay.api().delete(CLUSTER, &kube::api::DeleteParams::default()).await.unwrap();
    quay.until("it is gone", |quay| quay.get("mysqlclusters", CLUSTER).is_none()).await;
    let writes = quay
        .server
        .mutations()
        .into_iter()
        .filter(|call| call.verb == Verb::Patch && call.field_manager.as_deref() == Some("windlass"));
    let writes: Vec<(String, Value)> =
        writes.map(|call| (call.resource, call.body["metadata"]["annotations"].clone())).collect();
    assert_eq!(writes[0], ("pods".to_owned(), json!({ "moco.cybozu.com/prevent-delete": null })), "{writes:?}");
    assert_eq!(writes.iter().filter(|(resource, _)| resource == "pods").count(), 1, "{writes:?}");
}

/// What another operator made for the custom resource: with its names and its labels, not ours.
async fn made_by_another(quay: &Quay, cluster: &MySQLCluster) {
    let labels = json!({ "app.kubernetes.io/name": "mysql", "app.kubernetes.io/instance": CLUSTER, "app.kubernetes.io/created-by": "moco" });
    let owner = json!([{
        "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster", "name": CLUSTER, "uid": cluster.metadata.uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let metadata = json!({ "name": SET, "namespace": NAMESPACE, "labels": labels, "ownerReferences": owner });
    let mut claim = claims("1Gi");
    claim["metadata"]["labels"] = labels.clone();
    claim["metadata"]["ownerReferences"] = owner.clone();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": { "ADMIN_PASSWORD": "b2xk" } });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
        "spec": {
            "replicas": 3, "serviceName": SET, "podManagementPolicy": "Parallel",
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 3 } },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }, { "name": "agent", "image": "moco-agent:0.16" }] },
            },
            "volumeClaimTemplates": [claim],
        },
    });
    let parameters = PostParams { field_manager: Some("moco-controller".into()), ..PostParams::default() };
    let secrets: Api<Secret> = Api::namespaced(quay.server.client(), NAMESPACE);
    secrets.create(&parameters, &serde_json::from_value(secret).unwrap()).await.unwrap();
    let sets: Api<StatefulSet> = Api::namespaced(quay.server.client(), NAMESPACE);
    sets.create(&parameters, &serde_json::from_value(set).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_another_operator_is_refused_and_then_taken_over_without_a_restart() {
    let quay = Quay::new();
    // Nobody looks after it while the other operator's objects are laid out.
    quay.stop.cancel();
    let cluster = quay.create().await;
    made_by_another(&quay, &cluster).await;
    quay.let_pass(10).await;
    let (set, pods) = (quay.set().unwrap(), quay.pods());
    assert_eq!(pods.len(), 3);

    let quay = quay.restart();
    quay.until("it is refused", |quay| quay.condition("Stalled").1.contains("windlass.dev/adopt")).await;
    quay.let_pass(10).await;
    assert_eq!(quay.set().unwrap()["spec"], set["spec"]);

    quay.patch(json!({ "metadata": { "annotations": { "windlass.dev/adopt": "true" } } })).await;
    let managed = |object: &Value| object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "windlass";
    quay.until("pods and claims are found", |quay| {
        let store = quay.server.store();
        let all: Vec<Value> = ["pods", "persistentvolumeclaims"].into_iter().flat_map(|kind| store.list(kind)).collect();
        all.len() == 6 && all.iter().all(managed)
    })
    .await;
    quay.let_pass(60).await;
    assert_eq!(quay.pods(), pods, "a pod was restarted");
    let adopted = quay.set().unwrap();
    assert_eq!(adopted["metadata"]["uid"], set["metadata"]["uid"]);
    assert_eq!(adopted["spec"]["template"]["spec"], set["spec"]["template"]["spec"]);
    assert_eq!(adopted["spec"]["updateStrategy"], json!({ "type": "OnDelete" }));
    assert_eq!(quay.get("secrets", SET).unwrap()["data"], json!({ "ADMIN_PASSWORD": "b2xk" }), "servers know these passwords");
    let (_, message) = quay.condition("Stalled");
    assert!(message.contains("was taken over from another operator"), "no primary is chosen unseen: {message}");
    let revisions: Vec<String> =
        quay.server.mutations().iter().map(|call| format!("{:?} {}", call.verb, call.resource)).collect();
    assert!(!revisions.iter().any(|call| call == "Delete pods" || call == "Delete statefulsets"), "{revisions:?}");
    quay.server.clear_calls();
    quay.let_pass(120).await;
    let writes = quay.server.mutations().into_iter().filter(|call| call.resource == "statefulsets").count();
    assert_eq!(writes, 0, "it ends");
}

const CERTIFICATE: &str = "moco-harbour-grpc";

/// Days go by at once.
async fn days(number: u64) {
    tokio::time::advance(Duration::from_hours(24 * number)).await;
}

#[tokio::test(start_paused = true)]
async fn the_certificate_of_the_agents_is_made_once_and_renewed_in_time() {
    let quay = Quay::with_cluster().await;
    let first = quay.get("secrets", CERTIFICATE).unwrap();
    let root = quay.server.store().get("secrets", "ops", "windlass-authority").unwrap();
    assert_eq!(first["metadata"]["ownerReferences"][0]["kind"], "MySQLCluster");
    let keys: Vec<&String> = first["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ca.crt", "tls.crt", "tls.key"]);
    // What signs is nowhere else.
    let (key, roots) = root["data"].as_object().unwrap().iter().find(|(key, _)| key.contains(".key")).unwrap();
    assert!(
        quay.server.store().list("secrets").iter().filter(|it| it.to_string().contains(roots.as_str().unwrap())).count() == 1,
        "{key}"
    );
    quay.let_pass(60).await;
    assert_eq!(quay.get("secrets", CERTIFICATE).unwrap()["data"], first["data"]);
    days(59).await;
    quay.let_pass(30).await;
    assert_eq!(quay.get("secrets", CERTIFICATE).unwrap()["data"], first["data"]);
    days(1).await;
    quay.until("it is renewed", |quay| {
        quay.get("secrets", CERTIFICATE).unwrap()["data"]["tls.crt"] != first["data"]["tls.crt"]
    })
    .await;
    assert_eq!(quay.get("secrets", CERTIFICATE).unwrap()["data"]["ca.crt"], first["data"]["ca.crt"]);
    assert_eq!(quay.server.store().get("secrets", "ops", "windlass-authority").unwrap()["data"], root["data"]);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_somebody_else_made_is_copied_and_followed() {
    let quay = Quay::new();
    let made = |text: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "moco-agent-default.harbour", "namespace": "ops" },
            "stringData": {}, "data": { "tls.crt": text, "tls.key": "a2V5", "ca.crt": "cm9vdA==" },
        })
    };
    quay.server.store().put_raw(made("b25l"));
    quay.create().await;
    // As it is, with the end of line that a file has.
    let shows = |text: &'static str| {
        move |quay: &Quay| quay.get("secrets", CERTIFICATE).is_some_and(|it| it["data"]["tls.crt"] == text)
    };
    quay.until("it is copied", shows("b25lCg==")).await;
    let believed = quay.get("secrets", CERTIFICATE).unwrap()["data"]["ca.crt"].as_str().unwrap().to_owned();
    assert!(believed.starts_with("cm9vdA") && believed.len() > 100, "its root, and ours: {believed}");
    quay.server.store().put_raw(made("dHdv"));
    days(1).await;
    quay.until("it is copied again", shows("dHdvCg==")).await;
}

#[tokio::test(start_paused = true)]
async fn a_root_is_followed_by_the_next_one_before_it_ends_and_both_are_believed() {
    let quay = Quay::with_cluster().await;
    let count = |quay: &Quay| {
        quay.server.store().get("secrets", "ops", "windlass-authority").unwrap()["data"].as_object().unwrap().len()
    };
    let believed = |quay: &Quay| quay.get("secrets", CERTIFICATE).unwrap()["data"]["ca.crt"].as_str().unwrap().len();
    let one = believed(&quay);
    assert_eq!(count(&quay), 2);
    days(2500).await;
    quay.until("the next one is made, and shown", |quay| count(quay) == 4 && believed(quay) > one * 3 / 2).await;
    days(200).await;
    quay.until("the first one is forgotten", |quay| count(quay) == 2 && believed(quay) < one * 3 / 2).await;
}
