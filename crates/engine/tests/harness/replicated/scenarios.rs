//! What happens to clusters.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::kit::{NAMESPACE, Scenario, Scene, Step, Wish, World as _};
use super::harbour::Harbour;

type Sight<'a> = Scene<'a, Harbour>;

const SET: &str = "rss-harbour";
const CLIENT_SERVICE: &str = "harbour-client";

fn pod(ordinal: u16) -> String {
    format!("{SET}-{ordinal}")
}

/// A cluster of this size.
fn cluster(replicas: u16) -> Value {
    let command = json!({ "command": ["true"] });
    json!({
        "apiVersion": "clusterlabs.org/v1alpha1",
        "kind": "ReplicatedStatefulSet",
        "metadata": { "name": Harbour::CLUSTER, "namespace": NAMESPACE, "labels": { "team": "harbour" } },
        "spec": {
            "replicas": replicas,
            "reconcileInterval": "10s",
            "servicePorts": [{ "name": "main", "port": 3306 }],
            "pod": {
                "containers": [{ "name": "app", "image": "app:1" }],
                "commands": { "sequence": command, "status": command, "stop": command, "primary": command, "seed": command, "promote": command },
                "volumeClaimTemplates": [{
                    "metadata": { "name": "data" },
                    "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
                }],
            },
        },
    })
}

fn at_once(_: &Sight<'_>) -> bool {
    true
}

fn now(act: fn(&Sight<'_>) -> Vec<Wish>) -> Step<Harbour> {
    Step { when: at_once, act }
}

fn create_3() -> Step<Harbour> {
    now(|scene| {
        scene.world.write_rows(10);
        vec![Wish::Create(cluster(3))]
    })
}

fn create_5() -> Step<Harbour> {
    now(|scene| {
        scene.world.write_rows(10);
        vec![Wish::Create(cluster(5))]
    })
}

fn serves(scene: &Sight<'_>, count: usize) -> bool {
    scene.world.serving() == count && scene.is("Ready") && scene.server.store().list("pods").len() == count
}

fn three_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 3)
}

fn five_serve(scene: &Sight<'_>) -> bool {
    serves(scene, 5)
}

fn has_image(scene: &Sight<'_>, image: &str) -> bool {
    scene.server.store().list("pods").iter().all(|pod| pod["spec"]["containers"][0]["image"] == image)
}

fn is_paused(scene: &Sight<'_>) -> bool {
    scene.resource().is_some_and(|it| it["status"]["controlPaused"] == true)
}

/// The pause is acknowledged, and all that it holds back is known: an object, the template, the size, a member.
fn holds_all(scene: &Sight<'_>) -> bool {
    let held = scene.logbook().map(|logbook| logbook["plan"]["held"].clone()).unwrap_or_default().to_string();
    is_paused(scene) && ["apply Service", "apply StatefulSet", "from 3 to 5", &pod(1)].iter().all(|part| held.contains(*part))
}

fn pause() -> Vec<Step<Harbour>> {
    let ask = Step::<Harbour> {
        when: three_serve,
        act: |scene| {
            scene.world.write_rows(10);
            let reason = json!({ "annotations": { "windlass.dev/pause-reason": "maintenance" } });
            vec![Wish::Patch(json!({ "metadata": reason, "spec": { "paused": true } }))]
        },
    };
    let change = Step::<Harbour> {
        when: is_paused,
        act: |scene| {
            scene.world.kill(&[1]);
            let pod = json!({ "containers": [{ "name": "app", "image": "app:2" }] });
            vec![
                Wish::DeleteObject("services", CLIENT_SERVICE.into()),
                Wish::Patch(json!({ "spec": { "replicas": 5, "pod": pod } })),
            ]
        },
    };
    vec![ask, change]
}

fn scenario(
    name: &'static str,
    setup: Vec<Step<Harbour>>,
    ready: fn(&Sight<'_>) -> bool,
    script: Vec<Step<Harbour>>,
    goal: fn(&Sight<'_>) -> bool,
) -> Scenario<Harbour> {
    Scenario { name, setup, ready, script, goal, or_like: None, long: false }
}

/// Member 0 ends first and lacks the last rows; then the others end.
fn crash_all(scene: &Sight<'_>) {
    scene.world.kill(&[0]);
    for _ in 0..3 {
        scene.world.commit();
    }
    scene.world.kill(&[1, 2]);
    scene.world.write_rows(10);
}

/// What a person types who reads that a volume is lost.
fn ways_out(scene: &Sight<'_>) -> Option<Value> {
    let message = scene.message("Stalled").filter(|message| message.contains("lost with its volume"))?;
    let (key, value) = message.split_whitespace().find_map(|word| word.split_once('='))?;
    Some(json!({ "metadata": { "annotations": { key: value } } }))
}

/// All members end, and the volume of one of those that have all rows is gone.
fn lose_volume() -> Vec<Step<Harbour>> {
    let lose = now(|scene| {
        crash_all(scene);
        scene.world.lose_volume(2);
        vec![Wish::DeleteObject("persistentvolumeclaims", format!("data-{}", pod(2))), Wish::DeleteObject("pods", pod(2))]
    });
    let accept = Step::<Harbour> {
        when: |scene| ways_out(scene).is_some(),
        act: |scene| {
            scene.world.accept_losses();
            ways_out(scene).into_iter().map(Wish::Patch).collect()
        },
    };
    vec![lose, accept]
}

/// The cluster is stopped, and then wanted again.
fn stop_and_start() -> Vec<Step<Harbour>> {
    let stop = now(|_| vec![Wish::Patch(json!({ "spec": { "replicas": 0 } }))]);
    let start = Step::<Harbour> {
        when: |scene| scene.server.store().list("pods").is_empty() && scene.world.serving() == 0,
        act: |scene| {
            scene.world.write_rows(10);
            vec![Wish::Patch(json!({ "spec": { "replicas": 3 } }))]
        },
    };
    vec![stop, start]
}

pub(super) fn all() -> Vec<Scenario<Harbour>> {
    let ask_for = |act| vec![now(act)];
    vec![
        scenario("create", Vec::new(), at_once, vec![create_3()], three_serve),
        scenario(
            "scale-out",
            vec![create_3()],
            three_serve,
            ask_for(|scene| {
                scene.world.write_rows(20);
                vec![Wish::Patch(json!({ "spec": { "replicas": 5 } }))]
            }),
            five_serve,
        ),
        scenario(
            "scale-in",
            vec![create_5()],
            five_serve,
            ask_for(|scene| {
                scene.world.write_rows(20);
                vec![Wish::Patch(json!({ "spec": { "replicas": 3 } }))]
            }),
            three_serve,
        ),
        scenario(
            "template",
            vec![create_3()],
            three_serve,
            ask_for(|scene| {
                scene.world.write_rows(30);
                vec![Wish::Patch(json!({ "spec": { "pod": { "containers": [{ "name": "app", "image": "app:2" }] } } }))]
            }),
            |scene| three_serve(scene) && has_image(scene, "app:2"),
        ),
        scenario("pause", vec![create_3()], three_serve, pause(), holds_all),
        scenario(
            "resume",
            std::iter::once(create_3()).chain(pause()).collect(),
            holds_all,
            ask_for(|scene| {
                scene.world.write_rows(20);
                vec![Wish::Patch(json!({ "spec": { "paused": false } }))]
            }),
            |scene| five_serve(scene) && has_image(scene, "app:2") && scene.get("services", CLIENT_SERVICE).is_some(),
        ),
        scenario("delete", vec![create_3()], three_serve, ask_for(|_| vec![Wish::Delete]), |scene| {
            scene.resource().is_none()
                && ["statefulsets", "pods", "logbooks"].iter().all(|it| scene.server.store().list(it).is_empty())
        }),
        scenario(
            "server-killed",
            vec![create_3()],
            three_serve,
            ask_for(|scene| {
                scene.world.write_rows(10);
                scene.world.kill(&[1]);
                Vec::new()
            }),
            three_serve,
        ),
        scenario(
            "pod-lost",
            vec![create_3()],
            three_serve,
            ask_for(|scene| {
                scene.world.write_rows(10);
                vec![Wish::DeleteObject("pods", pod(1))]
            }),
            three_serve,
        ),
        scenario(
            "all-crash",
            vec![create_3()],
            three_serve,
            // Of those that have all rows, one is silent for a while and one for longer.
            ask_for(|scene| {
                crash_all(scene);
                scene.world.silence(1, Duration::from_secs(12));
                scene.world.silence(2, Duration::from_secs(20));
                Vec::new()
            }),
            three_serve,
        ),
        scenario(
            "stranded",
            vec![create_3()],
            three_serve,
            // Two end at once: the third runs on, and serves nobody.
            ask_for(|scene| {
                scene.world.kill(&[1, 2]);
                scene.world.write_rows(10);
                Vec::new()
            }),
            three_serve,
        ),
        scenario("volume-lost", vec![create_3()], three_serve, lose_volume(), three_serve),
        Scenario { long: true, ..scenario("stop-and-start", vec![create_3()], three_serve, stop_and_start(), three_serve) },
    ]
}
