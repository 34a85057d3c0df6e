//! What happens to clusters.

use serde_json::{Value, json};
use windlass_api::tidb::Component::{Pd, Tiflash, Tikv};
use windlass_api::tidb::keys;
use windlass_kinds::tidb::answers::StoreState;

use super::super::kit::{NAMESPACE, Scenario, Scene, Step, Wish, World as _, logbook_name};
use super::places::{NAMES, pod_name};
use super::quay::Quay;

type Sight<'a> = Scene<'a, Quay>;

fn cluster(tikv: u16) -> Value {
    json!({
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": { "name": Quay::CLUSTER, "namespace": NAMESPACE, "labels": { "team": "harbour" } },
        "spec": {
            "version": "v8.5.0",
            "pd": { "replicas": 3, "requests": { "storage": "1Gi" } },
            "tikv": {
                "replicas": tikv,
                "requests": { "storage": "1Gi" },
                "scalePolicy": { "scaleInParallelism": 2, "scaleOutParallelism": 2 },
            },
            "tidb": { "replicas": 1 },
        },
    })
}

fn with_columns() -> Value {
    let mut cluster = cluster(3);
    let claim = json!({ "resources": { "requests": { "storage": "1Gi" } } });
    cluster["spec"]["tiflash"] = json!({ "replicas": 2, "storageClaims": [claim] });
    cluster
}

fn at_once(_: &Sight<'_>) -> bool {
    true
}

fn now(act: fn(&Sight<'_>) -> Vec<Wish>) -> Step<Quay> {
    Step { when: at_once, act }
}

fn then(when: fn(&Sight<'_>) -> bool, act: fn(&Sight<'_>) -> Vec<Wish>) -> Step<Quay> {
    Step { when, act }
}

fn create_3() -> Step<Quay> {
    now(|_| vec![Wish::Create(cluster(3))])
}

fn create_5() -> Step<Quay> {
    now(|_| vec![Wish::Create(cluster(5))])
}

fn spec(spec: &Value) -> Wish {
    Wish::Patch(json!({ "spec": spec }))
}

fn tikv(replicas: u16) -> Wish {
    spec(&json!({ "tikv": { "replicas": replicas } }))
}

fn pods(scene: &Sight<'_>, set: &str) -> Vec<Value> {
    let is_member = |pod: &Value| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&format!("{set}-")));
    scene.server.store().list("pods").into_iter().filter(is_member).collect()
}

/// All is as the spec says, with so many stores.
fn is_complete(scene: &Sight<'_>, stores: usize) -> bool {
    let tikv = pods(scene, &NAMES.set(Tikv)).len();
    scene.is("Ready") && tikv == stores && scene.world.counts() == (stores, 3)
}

/// And nobody's leaders are evicted.
fn serves(scene: &Sight<'_>, stores: usize) -> bool {
    is_complete(scene, stores) && scene.world.evictions() == 0
}

fn three_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 3)
}

fn five_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 5)
}

fn has_version(scene: &Sight<'_>, version: &str) -> bool {
    let all = [Pd, Tikv].into_iter().flat_map(|component| pods(scene, &NAMES.set(component)));
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().is_some_and(|image| image.ends_with(version));
    all.collect::<Vec<_>>().iter().all(image)
}

/// Whether the cluster is paused, and all of these are held back.
fn holds(scene: &Sight<'_>, parts: &[&str]) -> bool {
    let held = scene.logbook().map(|logbook| logbook["plan"]["held"].clone()).unwrap_or_default().to_string();
    let closed = scene.is_false("ReconciliationActive") && scene.is_false("ClusteringActive");
    closed && parts.iter().all(|part| held.contains(part))
}

/// A pause; then changes of every sort, a Service that is deleted, and discovery, which is made again all the same.
fn pause() -> Vec<Step<Quay>> {
    let ask = then(three_serve, |_| vec![spec(&json!({ "paused": true }))]);
    let change = then(
        |scene| holds(scene, &[]),
        |_| {
            vec![
                Wish::DeleteObject("services", NAMES.client_service(Pd)),
                Wish::DeleteObject("services", NAMES.discovery()),
                spec(&json!({ "version": "v8.5.1", "tikv": { "replicas": 5 } })),
            ]
        },
    );
    vec![ask, change]
}

fn everything_waits(scene: &Sight<'_>) -> bool {
    let pd = scene.get("services", &NAMES.client_service(Pd)).is_none();
    let discovery = scene.get("services", &NAMES.discovery()).is_some();
    let untouched = pods(scene, &NAMES.set(Tikv)).len() == 3 && has_version(scene, "v8.5.0");
    pd && discovery && untouched && holds(scene, &["apply Service", "apply StatefulSet", "from 3 to 5"])
}

/// One store has left and that is noted, and another one above it is on its way and does not get far: so the pod of the first is there.
fn one_left_of_two(scene: &Sight<'_>) -> bool {
    let claim = scene.get("persistentvolumeclaims", &format!("tikv-{}", pod_name(Tikv, 3))).unwrap_or_default();
    let marked = claim["metadata"]["annotations"][keys::PVC_DEFER_DELETING].is_string();
    marked && scene.world.store(Tikv, 4) == Some(StoreState::Offline) && scene.world.evictions() == 1
}

fn shrink_unevenly(scene: &Sight<'_>) -> Vec<Wish> {
    scene.world.pace(Tikv, 3, 12);
    scene.world.pace(Tikv, 4, 0);
    vec![tikv(3)]
}

/// Whether there are so many claims, and this becomes of all volumes. There may be more of these: whoever is shown the past replaces a
/// store, and the volume of the one before is kept.
fn has_volumes(scene: &Sight<'_>, count: usize, policy: &str) -> bool {
    let volumes = scene.server.store().list("persistentvolumes");
    let claims = scene.server.store().list("persistentvolumeclaims").len();
    claims == count && volumes.iter().all(|it| it["spec"]["persistentVolumeReclaimPolicy"] == policy)
}

/// One failed, and another one is there in its place.
fn is_replaced(scene: &Sight<'_>) -> bool {
    let failures = |scene: &Sight<'_>| {
        let status = scene.resource().map(|it| it["status"]["tikv"]["failureStores"].clone()).unwrap_or_default();
        status.as_object().map_or(0, serde_json::Map::len)
    };
    failures(scene) == 1 && scene.world.counts().0 == 3 && pods(scene, &NAMES.set(Tikv)).len() == 4
}

fn lose_store(scene: &Sight<'_>) -> Vec<Wish> {
    scene.world.kill(Tikv, 1);
    Vec::new()
}

fn suspend() -> Wish {
    spec(&json!({ "suspendAction": { "suspendStatefulSet": true } }))
}

fn is_stopped(scene: &Sight<'_>) -> bool {
    let store = scene.server.store();
    store.list("statefulsets").is_empty() && store.list("pods").is_empty()
}

fn scenario(
    name: &'static str,
    setup: Vec<Step<Quay>>,
    ready: fn(&Sight<'_>) -> bool,
    script: Vec<Step<Quay>>,
    goal: fn(&Sight<'_>) -> bool,
) -> Scenario<Quay> {
    Scenario { name, setup, ready, script, goal, or_like: None, long: false }
}

/// With three stores that serve.
fn with_three(name: &'static str, script: Vec<Step<Quay>>, goal: fn(&Sight<'_>) -> bool) -> Scenario<Quay> {
    scenario(name, vec![create_3()], three_serve, script, goal)
}

/// With five.
fn with_five(name: &'static str, script: Vec<Step<Quay>>, goal: fn(&Sight<'_>) -> bool) -> Scenario<Quay> {
    scenario(name, vec![create_5()], five_serve, script, goal)
}

fn long(scenario: Scenario<Quay>) -> Scenario<Quay> {
    Scenario { long: true, ..scenario }
}

pub(super) fn all() -> Vec<Scenario<Quay>> {
    let all = [ends(), scale(), change(), failover(), pauses()];
    all.into_iter().flatten().collect()
}

/// How clusters begin and end.
fn ends() -> Vec<Scenario<Quay>> {
    let gone = |scene: &Sight<'_>| {
        let left = ["statefulsets", "pods", "logbooks", "deployments"];
        scene.resource().is_none() && left.iter().all(|it| scene.server.store().list(it).is_empty())
    };
    vec![
        scenario("tidb-create", Vec::new(), at_once, vec![create_3()], three_serve),
        with_three("tidb-delete", vec![now(|_| vec![Wish::Delete])], gone),
        with_three("tidb-suspend", vec![now(|_| vec![suspend()])], is_stopped),
        long(scenario(
            "tidb-awake",
            vec![create_3(), then(three_serve, |_| vec![suspend()])],
            is_stopped,
            vec![now(|_| vec![spec(&json!({ "suspendAction": null }))])],
            three_serve,
        )),
    ]
}

fn scale() -> Vec<Scenario<Quay>> {
    let shrink = |scene: &Sight<'_>| {
        scene.world.pace(Tikv, 4, 1);
        vec![tikv(3)]
    };
    vec![
        with_five("tidb-in", vec![now(shrink)], three_serve),
        // What is there of those that left is cleared away first.
        scenario(
            "tidb-out",
            vec![create_5(), then(five_serve, |_| vec![tikv(3)])],
            three_serve,
            vec![now(|_| vec![tikv(5)])],
            five_serve,
        ),
        // What was on the volumes of those that left is of no use, and goes with their claims.
        long(scenario(
            "tidb-reclaim",
            vec![create_5(), then(five_serve, |_| vec![spec(&json!({ "enablePVReclaim": true }))])],
            five_serve,
            vec![now(shrink)],
            |scene| three_serve(scene) && has_volumes(scene, 6, "Retain"),
        )),
        long(with_three("tidb-policy", vec![now(|_| vec![spec(&json!({ "pvReclaimPolicy": "Delete" }))])], |scene| {
            three_serve(scene) && has_volumes(scene, 6, "Delete")
        })),
        with_five("tidb-cancel", vec![now(shrink_unevenly), then(one_left_of_two, |_| vec![tikv(5)])], five_serve),
        long(scenario(
            "tidb-columns",
            vec![now(|scene| {
                scene.world.ask_for_columns(1);
                vec![Wish::Create(with_columns())]
            })],
            |scene| three_serve(scene) && scene.world.store(Tiflash, 1) == Some(StoreState::Up),
            vec![now(|_| vec![spec(&json!({ "tiflash": { "replicas": 1 } }))])],
            |scene| three_serve(scene) && pods(scene, &NAMES.set(Tiflash)).len() == 1,
        )),
        long(with_three("tidb-pd", vec![now(|_| vec![spec(&json!({ "pd": { "replicas": 1 } }))])], |scene| {
            scene.is("Ready") && scene.world.counts() == (3, 1) && pods(scene, &NAMES.set(Pd)).len() == 1
        })),
    ]
}

fn change() -> Vec<Scenario<Quay>> {
    let upgrade = |_: &Sight<'_>| vec![spec(&json!({ "version": "v8.5.1" }))];
    let forget = |_: &Sight<'_>| vec![Wish::DeleteObject("logbooks", logbook_name::<Quay>())];
    vec![
        with_three("tidb-upgrade", vec![now(upgrade)], |scene| three_serve(scene) && has_version(scene, "v8.5.1")),
        // The memory goes while a store is on its way. Who evicts the leaders of that one nobody knows any more: so nobody ends it.
        long(with_five("tidb-forgot", vec![now(shrink_unevenly), then(one_left_of_two, forget), recover_pace()], |scene| {
            is_complete(scene, 3) && scene.world.evictions() == 1
        })),
    ]
}

/// The store that did not get far goes on.
fn recover_pace() -> Step<Quay> {
    then(
        |scene| scene.logbook().is_some(),
        |scene| {
            scene.world.pace(Tikv, 4, 3);
            Vec::new()
        },
    )
}

fn failover() -> Vec<Scenario<Quay>> {
    let recover = |scene: &Sight<'_>| {
        scene.world.let_start(Tikv, 1);
        vec![spec(&json!({ "tikv": { "recoverFailover": true } }))]
    };
    vec![
        with_three("tidb-failover", vec![now(lose_store)], is_replaced),
        long(scenario(
            "tidb-recover",
            vec![create_3(), then(three_serve, lose_store)],
            is_replaced,
            vec![now(recover)],
            three_serve,
        )),
        long(with_three(
            "tidb-pd-lost",
            vec![
                now(|scene| {
                    scene.world.kill(Pd, 1);
                    Vec::new()
                }),
                then(
                    |scene| scene.world.counts().1 == 2,
                    |scene| {
                        scene.world.let_start(Pd, 1);
                        Vec::new()
                    },
                ),
            ],
            three_serve,
        )),
    ]
}

fn pauses() -> Vec<Scenario<Quay>> {
    let resume = |_: &Sight<'_>| vec![spec(&json!({ "paused": false }))];
    vec![
        with_three("tidb-pause", pause(), everything_waits),
        scenario(
            "tidb-resume",
            std::iter::once(create_3()).chain(pause()).collect(),
            everything_waits,
            vec![now(resume)],
            |scene| five_serve(scene) && has_version(scene, "v8.5.1"),
        ),
        // PD goes on, and nobody else does.
        long(with_five(
            "tidb-pause-in",
            vec![
                now(shrink_unevenly),
                then(one_left_of_two, |scene| {
                    scene.world.pace(Tikv, 4, 1);
                    vec![spec(&json!({ "paused": true }))]
                }),
            ],
            |scene| {
                let left = |ordinal| scene.world.store(Tikv, ordinal) == Some(StoreState::Tombstone);
                holds(scene, &[]) && left(3) && left(4)
            },
        )),
    ]
}
