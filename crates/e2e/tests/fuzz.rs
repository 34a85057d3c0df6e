//! Random custom resources on the real API server: each is refused at the door, or the operator says what became of it. None is
//! silently stuck.
//!
//! `WINDLASS_FUZZ_DOCUMENTS` says how many; `WINDLASS_SEED` repeats one alone.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, stream};
use http::Method;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use windlass_api::ReplicatedStatefulSet;
use windlass_dice::{Dice, Documents, number};
use windlass_e2e::{LONG, Place, Stage, dummy, wait_for};

const DOCUMENTS: u64 = 60;
const FIRST_SEED: u64 = 0x0073_6572_7665;
/// How many are alive at once.
const AT_ONCE: usize = 20;
/// A size that no node minds: the pods are made, and none is ever scheduled.
const LARGEST: u64 = 2;

fn documents() -> Result<Documents> {
    let definitions = windlass_api::custom_resource_definitions();
    let definition = definitions.iter().find(|it| it.spec.names.kind == "ReplicatedStatefulSet").context("no definition")?;
    let schema = definition.spec.versions.first().and_then(|version| version.schema.as_ref()).context("no schema")?;
    Ok(Documents::new(serde_json::to_value(&schema.open_api_v3_schema)?, dummy::manifest("fuzz", 1)))
}

/// The document of a seed, under a name of its own, and on a node that does not exist.
fn document(documents: &Documents, seed: u64) -> Value {
    let mut document = documents.roll(&mut Dice::new(seed));
    if document["metadata"].is_object() {
        document["metadata"]["name"] = json!(format!("fuzz-{seed:x}"));
        // What only the server or a controller may say would be about other objects.
        for key in ["uid", "finalizers", "ownerReferences"] {
            document["metadata"].as_object_mut().into_iter().for_each(|metadata| drop(metadata.remove(key)));
        }
    }
    if document["spec"].is_object() {
        document["spec"]["nodeSelector"] = json!({ "windlass.dev/nowhere": "true" });
        if document["spec"]["replicas"].as_u64().is_none_or(|size| size > LARGEST && size < 100) {
            document["spec"]["replicas"] = json!(LARGEST);
        }
    }
    document
}

/// What became of a document, in a word.
async fn judge(place: &Place, document: &Value) -> Result<String> {
    let path = format!("/apis/clusterlabs.org/v1alpha1/namespaces/{}/replicatedstatefulsets", place.namespace());
    let made = match place.stage().send(Method::POST, &path, "application/json", document).await? {
        Ok(made) => made,
        Err(refusal) if (400..500).contains(&refusal.code) => return Ok("refused".into()),
        Err(refusal) => bail!("the server fell over it: {refusal:?}"),
    };
    let made: DynamicObject = serde_json::from_value(made)?;
    let name = made.name_any();
    let told = wait_for("the operator says what became of it", LONG, async || {
        let path = format!("{path}/{name}");
        let request = http::Request::get(path).body(Vec::new())?;
        let now: Value = place.stage().client().request(request).await?;
        tell(place, &now).await
    })
    .await;
    place.api::<ReplicatedStatefulSet>().delete(&name, &DeleteParams::default()).await.map(drop).or_else(
        |error| match error {
            // What cannot be read any more is deleted all the same.
            kube::Error::SerdeError(_) => Ok(()),
            error => Err(error),
        },
    )?;
    told
}

/// What the status tells. An error when it tells nothing yet.
async fn tell(place: &Place, now: &Value) -> Result<String> {
    let conditions = now["status"]["conditions"].as_array().context("no conditions")?;
    ensure!(conditions.len() == 7, "conditions are missing: {}", now["status"]);
    for condition in conditions {
        let said = ["reason", "message"].iter().all(|key| condition[key].as_str().is_some_and(|text| !text.is_empty()));
        ensure!(said && condition["observedGeneration"].is_i64(), "{condition} does not say why");
    }
    let of = |type_: &str| conditions.iter().find(|it| it["type"] == type_).cloned().unwrap_or_default();
    let is = |type_: &str, status: &str| of(type_)["status"] == status;
    let reason = |type_: &str| of(type_)["reason"].as_str().unwrap_or_default().to_owned();
    if is("Ready", "True") {
        return Ok("Ready".into());
    }
    if is("Stalled", "True") {
        return Ok(format!("Stalled {}", reason("Stalled")));
    }
    if matches!(reason("Ready").as_str(), "HeldByPause" | "Stopped") {
        return Ok(reason("Ready"));
    }
    // Work is in hand for ever where nothing can be made: that would be silence.
    let name = now["metadata"]["name"].as_str().unwrap_or_default();
    ensure!(place.has::<StatefulSet>(&format!("rss-{name}")).await?, "there is no StatefulSet: {}", now["status"]);
    ensure!(is("Progressing", "True"), "nothing is in hand: {}", now["status"]);
    Ok(format!("Progressing {}", reason("Ready")))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_document_is_refused_or_told_about() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("fuzz", false, async |place| {
            let documents = documents()?;
            let (first, count) = match number("WINDLASS_SEED") {
                Some(seed) => (seed, 1),
                None => (FIRST_SEED, number("WINDLASS_FUZZ_DOCUMENTS").unwrap_or(DOCUMENTS)),
            };
            let documents = &documents;
            let judged = stream::iter(first..first + count)
                .map(|seed| async move { (seed, judge(place, &document(documents, seed)).await) })
                .buffer_unordered(AT_ONCE);
            tokio::pin!(judged);
            let (mut fates, mut stuck) = (BTreeMap::<String, u64>::new(), Vec::new());
            while let Some((seed, fate)) = judged.next().await {
                match fate {
                    Ok(fate) => *fates.entry(fate).or_default() += 1,
                    Err(error) => {
                        println!(
                            "WINDLASS_SEED={seed:#x} repeats this document alone: {error:#}\n{}",
                            document(documents, seed)
                        );
                        stuck.push(format!("{seed:#x}"));
                    }
                }
            }
            let told: Vec<String> = fates.iter().map(|(fate, count)| format!("{count} {fate}")).collect();
            println!(
                "{count} documents on the server from seed {first:#x}: {}, {} silently stuck",
                told.join(", "),
                stuck.len()
            );
            ensure!(stuck.is_empty(), "documents of the seeds {} are stuck", stuck.join(", "));
            ensure!(count < DOCUMENTS || fates.len() > 2, "the documents show nothing");
            Ok(())
        })
        .await
}
