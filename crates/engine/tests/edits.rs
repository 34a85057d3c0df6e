//! Users edit while the operator reports: no byte of theirs is ever lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod stage;

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stage::{CLUSTER, NAMESPACE, Stage, cluster};
use windlass_dice::Dice;
use windlass_testkit::{CallMatch, Effect};

/// What the user has asked for so far.
fn wishes(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({ "spec": object["spec"], "labels": metadata["labels"], "annotations": metadata["annotations"] })
}

fn api(stage: &Stage) -> Api<DynamicObject> {
    use kube::CustomResourceExt as _;
    let resource = windlass_api::ReplicatedStatefulSet::api_resource();
    Api::namespaced_with(stage.server.client(), NAMESPACE, &resource)
}

/// One edit, by one of the ways that people and tools use. Returns what the server accepted.
async fn edit(stage: &Stage, dice: &mut Dice, round: usize) -> Value {
    let api = api(stage);
    let parameters = PatchParams { field_manager: Some("user".into()), ..PatchParams::default() };
    let merge = |patch: Value| {
        let (api, parameters) = (api.clone(), parameters.clone());
        async move { api.patch(CLUSTER, &parameters, &Patch::Merge(patch)).await.unwrap() }
    };
    let accepted = match dice.below(5) {
        0 => merge(json!({ "spec": { "reconcileInterval": format!("{}s", 60 + round) } })).await,
        1 => merge(json!({ "metadata": { "labels": { "round": round.to_string() } } })).await,
        2 => merge(
            json!({ "metadata": { "annotations": { "note": format!("round {round}"), format!("k{}", dice.below(5)): "v" } } }),
        )
        .await,
        3 => merge(json!({ "spec": { "pod": { "containers": [{ "name": "app", "image": format!("app:{round}") }] } } })).await,
        _ => loop {
            let mut object = api.get(CLUSTER).await.unwrap();
            object.data["spec"]["chaosLevel"] = json!(round % 20);
            // An old status rides along, as with every editor; it must not matter.
            object.data["status"] = json!({ "phase": "Failed", "replicas": 99 });
            tokio::time::sleep(Duration::from_millis(u64::from(dice.below(20)))).await;
            match api.replace(CLUSTER, &PostParams::default(), &object).await {
                Ok(accepted) => break accepted,
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("{error}"),
            }
        },
    };
    wishes(&serde_json::to_value(accepted).unwrap())
}

/// Makes the operator want to write status at the same time.
fn disturb(stage: &Stage, dice: &mut Dice, round: usize) {
    let name = format!("rss-{CLUSTER}-{}", dice.below(3));
    if stage.get("pods", &name).is_some() {
        stage.server.store().remove("pods", NAMESPACE, &name);
    } else {
        stage.server.store().put_raw(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": {
                "app.kubernetes.io/managed-by": "windlass", "app.kubernetes.io/instance": CLUSTER, "windlass.dev/kind": "rss",
            } },
            "spec": { "containers": [{ "name": "app" }] },
            "status": { "phase": "Pending", "round": round },
        }));
    }
}

#[tokio::test(start_paused = true)]
async fn no_byte_of_the_user_is_lost() {
    let rounds: usize = std::env::var("WINDLASS_INTERLEAVINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let stage = Stage::new();
    stage.create(cluster(3)).await;
    stage.until("the first status is written", |stage| stage.status()["conditions"].is_array()).await;
    let mut dice = Dice::new(2026);
    // Slow status writes: the user gets in between reading and writing.
    stage.server.faults().on(CallMatch::writes().subresource("status").always(), Effect::Delay(Duration::from_millis(10)));
    stage.server.clear_calls();
    let mut last = Value::Null;
    for round in 0..rounds {
        disturb(&stage, &mut dice, round);
        tokio::time::sleep(Duration::from_millis(u64::from(dice.below(25)))).await;
        last = edit(&stage, &mut dice, round).await;
        assert_eq!(wishes(&stage.cluster()), last, "round {round}");
    }
    let calls = stage.server.mutations();
    let settled = |stage: &Stage| stage.status()["observedGeneration"] == stage.cluster()["metadata"]["generation"];
    stage.until("the last edit is reported", settled).await;
    assert_eq!(wishes(&stage.cluster()), last);
    let status = calls.iter().filter(|call| call.subresource.as_deref() == Some("status"));
    let (written, refused): (Vec<_>, Vec<_>) = status.partition(|call| call.succeeded());
    println!(
        "{rounds} interleavings, {} status writes, {} refused and computed again, 0 bytes lost",
        written.len(),
        refused.len()
    );
    assert!(written.len() > rounds / 4 && refused.len() > rounds / 100, "the operator and the user hardly met");
    let ours = |call: &&windlass_testkit::Call| call.resource == "replicatedstatefulsets" && call.subresource.is_none();
    let main: Vec<_> = calls
        .iter()
        .filter(ours)
        .filter(|call| call.field_manager.as_deref().is_some_and(|it| it.starts_with("windlass")))
        .collect();
    assert!(main.is_empty(), "the operator never writes the main resource: {main:?}");
}

#[tokio::test(start_paused = true)]
async fn junk_in_status_is_healed_in_one_pass_and_never_obeyed() {
    let stage = Stage::with_cluster(3).await;
    let deeds = stage.crew.deeds();
    stage.let_pass(Duration::from_secs(10)).await;
    let good = stage.status();
    let set = stage.get("statefulsets", &format!("rss-{CLUSTER}")).unwrap();
    let junk = [
        json!({}),
        json!({ "phase": "Failed", "reason": "because", "controlPaused": true }),
        json!({ "replicas": 99, "restoreReplicas": 99, "observedGeneration": 99 }),
        json!({ "phase": 7, "conditions": "none", "members": [1, 2], "replicas": "many", "reason": {} }),
        json!({ "conditions": [{ "type": "Ready", "status": "True" }, { "type": 5 }, null] }),
        Value::Null,
    ];
    for junk in junk {
        stage.server.store().edit("replicatedstatefulsets", NAMESPACE, CLUSTER, |object| object["status"] = junk.clone());
        stage.server.clear_calls();
        stage
            .until(&format!("{junk} is healed"), |stage| windlass_core::conditions::same_but_for_times(&stage.status(), &good))
            .await;
        assert_eq!(stage.writes(), [format!("update replicatedstatefulsets/status {CLUSTER}")], "{junk}");
        assert_eq!(stage.get("statefulsets", &format!("rss-{CLUSTER}")).unwrap()["spec"], set["spec"], "{junk} was obeyed");
        assert_eq!(stage.crew.deeds(), deeds, "{junk} was obeyed");
    }
}
