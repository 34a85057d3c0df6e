//! What happens to clusters.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::mysql::keys;

use super::super::kit::{NAMESPACE, Scenario, Scene, Step, Wish, World as _, logbook_name};
use super::docks::{Docks, FIRST_ID};
use super::pods::{SET, pod_name};

type Sight<'a> = Scene<'a, Docks>;

const CLIENT_SERVICE: &str = "moco-harbour-primary";

fn cluster(replicas: u16) -> Value {
    json!({
        "apiVersion": "moco.cybozu.com/v1beta2",
        "kind": "MySQLCluster",
        "metadata": { "name": Docks::CLUSTER, "namespace": NAMESPACE, "labels": { "team": "harbour" } },
        "spec": {
            "replicas": replicas,
            "serverIDBase": FIRST_ID,
            "podTemplate": template("mysql:1"),
            "volumeClaimTemplates": [{
                "metadata": { "name": "mysql-data" },
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            }],
        },
    })
}

fn template(image: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "mysqld", "image": image }] } })
}

fn at_once(_: &Sight<'_>) -> bool {
    true
}

fn now(act: fn(&Sight<'_>) -> Vec<Wish>) -> Step<Docks> {
    Step { when: at_once, act }
}

fn then(when: fn(&Sight<'_>) -> bool, act: fn(&Sight<'_>) -> Vec<Wish>) -> Step<Docks> {
    Step { when, act }
}

/// Ten rows more, and this.
fn under_load(scene: &Sight<'_>, wishes: Vec<Wish>) -> Vec<Wish> {
    scene.world.write_rows(10);
    wishes
}

fn create_1() -> Step<Docks> {
    now(|scene| under_load(scene, vec![Wish::Create(cluster(1))]))
}

fn create_3() -> Step<Docks> {
    now(|scene| under_load(scene, vec![Wish::Create(cluster(3))]))
}

fn pods(scene: &Sight<'_>) -> Vec<Value> {
    scene.server.store().list("pods")
}

fn primary(scene: &Sight<'_>) -> Option<u64> {
    scene.logbook()?["mysql"]["primary"].as_u64()
}

/// So many instances are there and in their roles, and clients were told of all that they wrote.
fn serves(scene: &Sight<'_>, count: usize) -> bool {
    scene.world.is_quiet() && scene.is("Ready") && scene.is("Healthy") && pods(scene).len() == count
}

fn one_serves(scene: &Sight<'_>) -> bool {
    serves(scene, 1)
}

fn three_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 3)
}

fn five_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 5)
}

/// Another instance has the office, and serves.
fn is_handed_over(scene: &Sight<'_>) -> bool {
    let primary = primary(scene).and_then(|it| usize::try_from(it).ok()).filter(|it| *it > 0);
    primary.is_some_and(|primary| scene.world.is_open(primary)) && scene.world.is_written()
}

fn has_image(scene: &Sight<'_>, image: &str) -> bool {
    pods(scene).iter().all(|pod| pod["spec"]["containers"][0]["image"] == image)
}

fn annotate(key: &str, value: &Value) -> Wish {
    Wish::Patch(json!({ "metadata": { "annotations": { key: value } } }))
}

/// Whether a lane is closed, and all of these are held back.
fn holds(scene: &Sight<'_>, condition: &str, parts: &[&str]) -> bool {
    let held = scene.logbook().map(|logbook| logbook["plan"]["held"].clone()).unwrap_or_default().to_string();
    scene.is_false(condition) && parts.iter().all(|part| held.contains(part))
}

/// Clustering is stopped, and a person works on the servers: one ends, the thread that applies is stopped in another one.
fn pause_clustering() -> Vec<Step<Docks>> {
    let ask = then(three_serve, |scene| under_load(scene, vec![annotate(keys::CLUSTERING_STOPPED, &json!("true"))]));
    let work = then(
        |scene| scene.is_false("ClusteringActive") && scene.world.is_quiet(),
        |scene| {
            scene.world.restart(0);
            scene.world.stop_applying(2);
            vec![Wish::DeleteObject("services", CLIENT_SERVICE.into())]
        },
    );
    // While something is held back, a newer spec does not count as acted upon: whether something was must not be a matter of chance.
    let grow = then(
        |scene| holds(scene, "ClusteringActive", &[&pod_name(2)]),
        |_| vec![Wish::Patch(json!({ "spec": { "replicas": 5 } }))],
    );
    vec![ask, work, grow]
}

/// What waits while clustering is stopped: the servers. Objects do not.
fn clustering_waits(scene: &Sight<'_>) -> bool {
    let objects = scene.get("services", CLIENT_SERVICE).is_some() && pods(scene).len() == 5;
    let untouched = primary(scene) == Some(0) && !scene.world.is_open(0) && !scene.world.is_applying(2);
    objects && untouched && holds(scene, "ClusteringActive", &[&pod_name(2), &pod_name(3), &pod_name(4)])
}

/// Reconciliation is stopped, the spec changes, a Service is deleted, and the primary ends.
fn pause_reconciliation() -> Vec<Step<Docks>> {
    let ask = then(three_serve, |scene| under_load(scene, vec![annotate(keys::RECONCILIATION_STOPPED, &json!("true"))]));
    let change = then(
        |scene| scene.is_false("ReconciliationActive") && scene.world.is_quiet(),
        |scene| {
            scene.world.kill(0);
            let spec = json!({ "replicas": 5, "podTemplate": template("mysql:2") });
            under_load(scene, vec![Wish::DeleteObject("services", CLIENT_SERVICE.into()), Wish::Patch(json!({ "spec": spec }))])
        },
    );
    vec![ask, change, let_first_start()]
}

/// What waits while reconciliation is stopped: the objects. Another instance got the office.
fn reconciliation_waits(scene: &Sight<'_>) -> bool {
    let objects = scene.get("services", CLIENT_SERVICE).is_none() && pods(scene).len() == 3 && has_image(scene, "mysql:1");
    let held = holds(scene, "ReconciliationActive", &["apply Service", "apply StatefulSet", "from 3 to 5"]);
    objects && held && is_handed_over(scene) && scene.world.is_quiet() && scene.says("Healthy", "True")
}

fn let_first_start() -> Step<Docks> {
    then(is_handed_over, |scene| {
        scene.world.let_start(0);
        Vec::new()
    })
}

/// The primary ends with a commit that nobody else has: no client is told of it.
fn kill_primary(scene: &Sight<'_>) -> Vec<Wish> {
    scene.world.commit(0);
    scene.world.kill(0);
    under_load(scene, Vec::new())
}

/// Two nodes lose their power at once. Of the last two commits the first was acknowledged, and clients were told of it; the second was
/// only received: it goes with the relay log's tail.
fn lose_power(scene: &Sight<'_>) -> Vec<Wish> {
    scene.world.commit(0);
    scene.world.receive(1);
    scene.world.acknowledge(1);
    scene.world.commit(0);
    scene.world.receive(1);
    scene.world.lose_power(1);
    scene.world.lose_power(0);
    scene.world.hold_down(0);
    under_load(scene, Vec::new())
}

/// All end at once, and the primary stays away: the others have to apply what they received before.
fn lose_all(scene: &Sight<'_>) -> Vec<Wish> {
    scene.world.lose_power(2);
    lose_power(scene)
}

fn is_replaced_and_saved(scene: &Sight<'_>) -> bool {
    three_serve(scene) && primary(scene) != Some(0) && scene.world.has_saved(0)
}

fn is_offline(scene: &Sight<'_>) -> bool {
    pods(scene).is_empty()
}

fn logbook(scene: &Sight<'_>) -> Option<Value> {
    scene.get("logbooks", &logbook_name::<Docks>())
}

/// The logbook is there, and nothing in it is doubted.
fn is_remembered(scene: &Sight<'_>) -> bool {
    scene.logbook().is_some_and(|logbook| logbook["unproven"].as_array().is_none_or(Vec::is_empty)) && three_serve(scene)
}

/// Somebody keeps a copy of the logbook, and then the office changes hands.
fn grow_old() -> Vec<Step<Docks>> {
    let keep = then(three_serve, |scene| {
        scene.world.keep(logbook(scene));
        vec![demote()]
    });
    vec![create_3(), keep]
}

fn demote() -> Wish {
    Wish::PatchObject("pods", pod_name(0), json!({ "metadata": { "annotations": { keys::DEMOTE: "true" } } }))
}

fn scenario(
    name: &'static str,
    setup: Vec<Step<Docks>>,
    ready: fn(&Sight<'_>) -> bool,
    script: Vec<Step<Docks>>,
    goal: fn(&Sight<'_>) -> bool,
) -> Scenario<Docks> {
    Scenario { name, setup, ready, script, goal, or_like: None, long: false }
}

/// With three instances that serve.
fn with_three(name: &'static str, script: Vec<Step<Docks>>, goal: fn(&Sight<'_>) -> bool) -> Scenario<Docks> {
    scenario(name, vec![create_3()], three_serve, script, goal)
}

pub(super) fn all() -> Vec<Scenario<Docks>> {
    let all = vec![create(), scale(), change(), failover(), pause(), memory()];
    all.into_iter().flatten().collect()
}

fn create() -> Vec<Scenario<Docks>> {
    let gone = |scene: &Sight<'_>| {
        let left = ["statefulsets", "pods", "logbooks"].iter().all(|it| scene.server.store().list(it).is_empty());
        scene.resource().is_none() && left
    };
    vec![
        scenario("mysql-create", Vec::new(), at_once, vec![create_3()], three_serve),
        with_three("mysql-delete", vec![now(|_| vec![Wish::Delete])], gone),
    ]
}

fn scale() -> Vec<Scenario<Docks>> {
    let to = |act: fn(&Sight<'_>) -> Vec<Wish>| vec![now(act)];
    vec![
        scenario(
            "mysql-1-to-3",
            vec![create_1()],
            one_serves,
            to(|scene| under_load(scene, vec![Wish::Patch(json!({ "spec": { "replicas": 3 } }))])),
            three_serve,
        ),
        with_three(
            "mysql-3-to-5",
            to(|scene| under_load(scene, vec![Wish::Patch(json!({ "spec": { "replicas": 5 } }))])),
            five_serve,
        ),
        Scenario {
            // Who is not seen to have started within the usual time is replaced, and is a replica when it is seen.
            or_like: Some("mysql-offline/event/drop/pods/12"),
            ..with_three(
                "mysql-offline",
                vec![
                    now(|_| vec![Wish::Patch(json!({ "spec": { "offline": true } }))]),
                    then(is_offline, |scene| under_load(scene, vec![Wish::Patch(json!({ "spec": { "offline": false } }))])),
                ],
                three_serve,
            )
        },
    ]
}

fn change() -> Vec<Scenario<Docks>> {
    vec![
        with_three(
            "mysql-template",
            vec![now(|scene| under_load(scene, vec![Wish::Patch(json!({ "spec": { "podTemplate": template("mysql:2") } }))]))],
            |scene| three_serve(scene) && has_image(scene, "mysql:2"),
        ),
        Scenario {
            long: true,
            ..with_three(
                "mysql-options",
                vec![now(|scene| {
                    let map = json!({
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "options", "namespace": NAMESPACE },
                        "data": { "long_query_time": "5" },
                    });
                    let name = Wish::Patch(json!({ "spec": { "mysqlConfigMapName": "options" } }));
                    under_load(scene, vec![Wish::CreateObject("configmaps", map), name])
                })],
                |scene| three_serve(scene) && primary(scene) == Some(1),
            )
        },
        with_three("mysql-switch", vec![now(|scene| under_load(scene, vec![demote()]))], |scene| {
            three_serve(scene) && primary(scene) == Some(1)
        }),
        with_three(
            "mysql-wiped",
            vec![now(|scene| {
                let claim = Wish::DeleteObject("persistentvolumeclaims", format!("mysql-data-{SET}-2"));
                under_load(scene, vec![claim, Wish::DeleteObject("pods", pod_name(2))])
            })],
            three_serve,
        ),
    ]
}

fn failover() -> Vec<Scenario<Docks>> {
    let fails = |act| vec![then(three_serve, act), let_first_start()];
    let cut_off = |scene: &Sight<'_>| {
        scene.world.cut_off(0, Duration::from_mins(2));
        under_load(scene, Vec::new())
    };
    vec![
        with_three("mysql-killed", fails(kill_primary), is_replaced_and_saved),
        with_three("mysql-power", fails(lose_power), is_replaced_and_saved),
        Scenario { long: true, ..with_three("mysql-dark", fails(lose_all), is_replaced_and_saved) },
        with_three("mysql-cut-off", vec![then(three_serve, cut_off)], is_replaced_and_saved),
        Scenario {
            long: true,
            ..with_three(
                "mysql-errant",
                vec![then(three_serve, |scene| {
                    scene.world.write_by_hand(2);
                    under_load(scene, Vec::new())
                })],
                |scene| scene.resource().is_some_and(|it| it["status"]["errantReplicas"] == 1) && scene.world.is_written(),
            )
        },
    ]
}

fn pause() -> Vec<Scenario<Docks>> {
    let create = || std::iter::once(create_3());
    vec![
        with_three("mysql-pause-c", pause_clustering(), clustering_waits),
        scenario(
            "mysql-resume-c",
            create().chain(pause_clustering()).collect(),
            clustering_waits,
            vec![now(|scene| under_load(scene, vec![annotate(keys::CLUSTERING_STOPPED, &Value::Null)]))],
            |scene| five_serve(scene) && primary(scene) == Some(0),
        ),
        with_three("mysql-pause-r", pause_reconciliation(), reconciliation_waits),
        scenario(
            "mysql-resume-r",
            create().chain(pause_reconciliation()).collect(),
            reconciliation_waits,
            vec![now(|scene| under_load(scene, vec![annotate(keys::RECONCILIATION_STOPPED, &Value::Null)]))],
            |scene| five_serve(scene) && has_image(scene, "mysql:2") && scene.get("services", CLIENT_SERVICE).is_some(),
        ),
    ]
}

fn memory() -> Vec<Scenario<Docks>> {
    let put_back = |scene: &Sight<'_>| {
        let copy = scene.world.kept().unwrap_or_default();
        let store = scene.server.store();
        store.edit("logbooks", NAMESPACE, &logbook_name::<Docks>(), |it| it["spec"] = copy["spec"].clone());
        under_load(scene, Vec::new())
    };
    vec![
        with_three(
            "mysql-forgot",
            vec![now(|scene| under_load(scene, vec![Wish::DeleteObject("logbooks", logbook_name::<Docks>())]))],
            is_remembered,
        ),
        scenario(
            "mysql-stale",
            grow_old(),
            |scene| three_serve(scene) && primary(scene) == Some(1),
            vec![now(put_back)],
            |scene| is_remembered(scene) && primary(scene) == Some(1),
        ),
    ]
}
