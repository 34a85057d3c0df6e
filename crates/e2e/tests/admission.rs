//! Bad input is refused at the door with a clear word, or told in the status; and all pods are admitted under `restricted`.

#![cfg(feature = "lab")]

use anyhow::{Context as _, Result, ensure};
use http::Method;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use windlass_e2e::{Cluster, LONG, Place, Stage, condition, dummy, wait_for};

const JSON: &str = "application/json";

/// What is wrong, and the words that the answer must have.
type Mistake = (&'static str, fn(&mut Value), &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    ("a negative size", |it| it["spec"]["replicas"] = json!(-1), &["spec.replicas", "0"]),
    ("a size that is no number", |it| it["spec"]["replicas"] = json!("three"), &["spec.replicas", "integer"]),
    ("a size beyond reason", |it| it["spec"]["replicas"] = json!(100), &["spec.replicas", "99"]),
    ("more primaries than members", |it| it["spec"]["primaries"] = json!(4), &["primaries must not be larger than replicas"]),
    ("no primaries", |it| it["spec"]["primaries"] = json!(0), &["spec.primaries", "1"]),
    ("no pod", |it| it["spec"]["pod"] = Value::Null, &["spec.pod"]),
    ("no spec", |it| it["spec"] = Value::Null, &["spec"]),
    ("no containers", |it| it["spec"]["pod"]["containers"] = json!([]), &["spec.pod.containers", "1"]),
    (
        "a container without an image",
        |it| it["spec"]["pod"]["containers"][0]["image"] = Value::Null,
        &["every container needs an image"],
    ),
    (
        "a container with an empty image",
        |it| it["spec"]["pod"]["containers"][0]["image"] = json!(""),
        &["every container needs an image"],
    ),
    (
        "a container without a name",
        |it| it["spec"]["pod"]["containers"][0]["name"] = Value::Null,
        &["spec.pod.containers", "name"],
    ),
    (
        "an empty command",
        |it| it["spec"]["pod"]["commands"]["stop"]["command"] = json!([]),
        &["spec.pod.commands.stop.command", "1"],
    ),
    ("no status hook", |it| it["spec"]["pod"]["commands"]["status"] = Value::Null, &["spec.pod.commands.status"]),
    ("no sequence hook", |it| it["spec"]["pod"]["commands"]["sequence"] = Value::Null, &["spec.pod.commands.sequence"]),
    (
        "a timeout that is no duration",
        |it| it["spec"]["pod"]["commands"]["stop"]["timeout"] = json!("soon"),
        &["spec.pod.commands.stop.timeout"],
    ),
    ("an interval that is no duration", |it| it["spec"]["reconcileInterval"] = json!("5 minutes"), &["spec.reconcileInterval"]),
    ("chaos without end", |it| it["spec"]["chaosLevel"] = json!(20), &["spec.chaosLevel", "19"]),
    (
        "a claim that says to be something else",
        |it| it["spec"]["pod"]["volumeClaimTemplates"] = json!([{ "kind": "Rope", "metadata": { "name": "data" } }]),
        &["spec.pod.volumeClaimTemplates[0].kind", "PersistentVolumeClaim"],
    ),
    ("a name that is too long", |it| it["metadata"]["name"] = json!("n".repeat(49)), &["metadata.name", "48"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_a_word_that_helps() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("refused", true, async |place| {
            let path = format!("/apis/clusterlabs.org/v1alpha1/namespaces/{}/replicatedstatefulsets", place.namespace());
            stage
                .send(Method::POST, &format!("{path}?dryRun=All"), JSON, &dummy::manifest("good", 3))
                .await?
                .map_err(|it| unexpected(&it))?;
            let mut unclear = Vec::new();
            for (what, spoil, words) in MISTAKES {
                let mut manifest = dummy::manifest("bad", 3);
                spoil(&mut manifest);
                let Err(refusal) = stage.send(Method::POST, &path, JSON, &manifest).await? else {
                    unclear.push(format!("{what} was accepted"));
                    continue;
                };
                println!("    {what}: {}", refusal.message);
                if refusal.code != 422 || !words.iter().all(|word| refusal.message.contains(word)) {
                    unclear.push(format!("{what}: expected 422 with {words:?}, got {refusal:?}"));
                }
            }
            ensure!(unclear.is_empty(), "{}", unclear.join("\n"));
            stage.say(&format!("{} sorts of bad input refused", MISTAKES.len()));
            Ok(())
        })
        .await
}

fn unexpected(refusal: &windlass_e2e::Refusal) -> anyhow::Error {
    anyhow::anyhow!("a good manifest was refused: {refusal:?}")
}

/// What the schema lets through, the field that the status must name, and the cure as a merge patch.
type Flaw = (&'static str, fn(&mut Value), &'static str, fn() -> Value);

const FLAWS: &[Flaw] = &[
    ("twins", |it| it["spec"]["secrets"] = json!(["a", "a"]), "spec.secrets", || json!({ "spec": { "secrets": null } })),
    (
        "leader",
        |it| it["spec"]["primaries"] = json!(1),
        "spec.pod.commands.secondary",
        || json!({ "spec": { "primaries": null } }),
    ),
    (
        "nameless",
        |it| it["spec"]["servicePorts"] = json!([{ "port": 1, "protocol": "TCP" }, { "port": 2, "protocol": "TCP" }]),
        "spec.servicePorts",
        || json!({ "spec": { "servicePorts": [{ "name": "main", "port": 1 }] } }),
    ),
    (
        "hasty",
        |it| it["spec"]["pod"]["commands"]["stop"]["timeout"] = json!("0s"),
        "spec.pod.commands.stop.timeout",
        || json!({ "spec": { "pod": { "commands": { "stop": { "timeout": null } } } } }),
    ),
    (
        "eternal",
        |it| it["spec"]["reconcileInterval"] = json!("99999999999999999999d"),
        "spec.reconcileInterval",
        || json!({ "spec": { "reconcileInterval": "10s" } }),
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_the_schema_and_is_wrong_is_told_and_heals_when_corrected() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("invalid", true, async |place| {
            for (name, spoil, _, _) in FLAWS {
                let mut manifest = dummy::manifest(name, 1);
                manifest["spec"]["replicas"] = json!(2);
                spoil(&mut manifest);
                place.apply(&[manifest]).await.with_context(|| (*name).to_owned())?;
            }
            for (name, _, field, cure) in FLAWS {
                let cluster = place.cluster(name)?;
                let stalled = cluster.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
                ensure!(stalled.message.starts_with(field), "{name}: {field} is not named: {}", stalled.message);
                ensure!(stalled.observed_generation == Some(1), "{name}: of generation {:?}", stalled.observed_generation);
                let ready = condition(&cluster.status().await?, "Ready")?.clone();
                ensure!(
                    ready.status == "False" && ready.reason == "InvalidSpec",
                    "{name}: Ready {} ({})",
                    ready.status,
                    ready.reason
                );
                ensure!(!place.has::<StatefulSet>(&cluster.names.stateful_set()).await?, "{name} was made nevertheless");
                warned(place, name).await?;
                println!("    {name}: {}", stalled.message);
                cluster.patch(&cure()).await?;
            }
            for (name, _, _, _) in FLAWS {
                let cluster = place.cluster(name)?;
                cluster.wait_for_condition("Stalled", "False", "NothingBlocked").await?;
                cluster.wait_until_ready(2).await?;
            }
            Ok(())
        })
        .await
}

/// An Event says it, too.
async fn warned(place: &Place, name: &str) -> Result<()> {
    wait_for("an Event warns", LONG, async || {
        let events = place.api::<Event>().list(&ListParams::default()).await?;
        let found = events
            .iter()
            .any(|event| event.involved_object.name.as_deref() == Some(name) && event.reason.as_deref() == Some("InvalidSpec"));
        ensure!(found, "no Event about {name}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_service_can_have_is_told() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("names", true, async |place| {
            for name in ["a.dot", "1st"] {
                place.apply(&[dummy::manifest(name, 3)]).await?;
                wait_for("the name is refused in the status", LONG, async || {
                    let cluster = place.api::<windlass_api::ReplicatedStatefulSet>().get(name).await?;
                    let status = cluster.status.context("no status")?;
                    let stalled = condition(&status, "Stalled")?;
                    ensure!(stalled.reason == "InvalidSpec" && stalled.message.starts_with("metadata.name"), "{stalled:?}");
                    Ok(())
                })
                .await?;
            }
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_cluster_whose_spec_became_invalid_keeps_its_objects_and_its_members() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("spoilt", true, async |place| {
            let cluster = place.dummy("spoilt", 3).await?;
            let generation = cluster.stateful_set().await?.metadata.generation;
            cluster.patch(&json!({ "spec": { "replicas": 5, "secrets": ["a", "a"] } })).await?;
            cluster.wait_for_condition("Stalled", "True", "InvalidSpec").await?;
            cluster.crash(1).await?;
            cluster.wait_until_runs(1).await?;
            ensure!(cluster.stateful_set().await?.metadata.generation == generation, "the StatefulSet was changed");
            heal_spoilt(&cluster).await
        })
        .await
}

async fn heal_spoilt(cluster: &Cluster) -> Result<()> {
    cluster.patch(&json!({ "spec": { "replicas": 3, "secrets": null } })).await?;
    cluster.wait_until_ready(3).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_was_admitted_under_restricted() -> Result<()> {
    let stage = Stage::get().await?;
    if !stage.operator_is_installed() {
        println!("the operator runs outside the lab: nothing was admitted");
        return Ok(());
    }
    let namespace = Api::<Namespace>::all(stage.client()).get(stage.operator_namespace()).await?;
    let level = namespace.labels().get("pod-security.kubernetes.io/enforce").map(String::as_str);
    ensure!(level == Some("restricted"), "namespace {} enforces {level:?}", namespace.name_any());
    let pods = stage.operator_pods().await?;
    ensure!(!pods.is_empty(), "no pod of the operator");
    stage.audit().check_restricted(stage.operator_namespace(), stage.audit().beginning())
}
