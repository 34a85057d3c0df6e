//! Objects that somebody else made under the names of a cluster: they are refused and told, and taken over only when the user says
//! so.

#![cfg(feature = "lab")]

use std::fmt::Debug;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_core::labels::{ADOPT, FIELD_MANAGER, KEEPS};
use windlass_e2e::audit::Mark;
use windlass_e2e::{Cluster, LONG, Place, Stage, condition, dummy, wait_for};

const NAME: &str = "squat";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_others_are_refused_until_the_user_lets_windlass_have_them() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("foreign", true, async |place| {
            let cluster = place.cluster(NAME)?;
            let revision = name_of_the_kept_template(place).await?;
            place.apply(&squatters(&cluster, &revision)).await?;
            let before = squatted(&cluster, &revision).await?;
            let since = stage.audit().mark()?;
            place.apply(&[dummy::manifest(NAME, 2)]).await?;

            let stalled = cluster.wait_for_condition("Stalled", "True", "ForeignObject").await?;
            ensure!(stalled.message.contains(ADOPT) && stalled.message.contains("windlass-e2e"), "{}", stalled.message);
            cluster.wait_for_condition("Managed", "Unknown", "ForeignObject").await?;
            all_were_looked_at(&cluster, &revision, since).await?;
            ensure!(squatted(&cluster, &revision).await? == before, "an object of somebody else was changed");
            ensure!(place.api::<Pod>().list(&ListParams::default()).await?.items.is_empty(), "a pod was made");
            stage.say("refused, told, and left as they were");

            cluster.annotate(ADOPT, Some("true")).await?;
            taken_over(&cluster).await?;
            stage.say("the Service and the budget were taken over");
            // What the server does not let anybody change is told, one after the other, and is the user's to take away.
            refused_by_the_server(&cluster, &format!("ControllerRevision {revision}")).await?;
            place.api::<ControllerRevision>().delete(&revision, &DeleteParams::default()).await?;
            let set = cluster.names.stateful_set();
            refused_by_the_server(&cluster, &format!("StatefulSet {set}")).await?;
            place.api::<StatefulSet>().delete(&set, &DeleteParams::default()).await?;
            cluster.wait_until_ready(2).await?;
            cluster.wait_for_condition("Managed", "True", "Owned").await.map(drop)
        })
        .await
}

/// The name under which the pod template of such a cluster is kept. It rests on the spec alone.
async fn name_of_the_kept_template(place: &Place) -> Result<String> {
    let cluster = place.dummy(NAME, 2).await?;
    let kept = place.api::<ControllerRevision>().list(&ListParams::default().labels(KEEPS)).await?;
    let name = kept.items.first().context("no template is kept")?.name_any();
    cluster.delete().await?;
    wait_for("the cluster and its objects are gone", LONG, async || {
        ensure!(place.api::<StatefulSet>().list(&ListParams::default()).await?.items.is_empty(), "the StatefulSet is there");
        ensure!(place.api::<Pod>().list(&ListParams::default()).await?.items.is_empty(), "a pod is there");
        ensure!(place.api::<Service>().list(&ListParams::default()).await?.items.is_empty(), "a Service is there");
        ensure!(place.api::<ControllerRevision>().list(&ListParams::default()).await?.items.is_empty(), "a template is there");
        ensure!(
            place.api::<PodDisruptionBudget>().list(&ListParams::default()).await?.items.is_empty(),
            "the PodDisruptionBudget is there"
        );
        Ok(())
    })
    .await?;
    Ok(name)
}

fn squatters(cluster: &Cluster, revision: &str) -> [Value; 4] {
    let names = &cluster.names;
    let labels = json!({ "app": "somebody-elses" });
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": names.client_service() },
            "spec": { "selector": labels, "ports": [{ "name": "web", "port": 80 }] },
        }),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": names.disruption_budget() },
            "spec": { "maxUnavailable": 0, "selector": { "matchLabels": labels } },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": names.stateful_set() },
            "spec": {
                "replicas": 0, "serviceName": "somebody-elses", "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "it", "image": "none:1" }] } },
            },
        }),
        json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": { "name": revision }, "revision": 7, "data": {} }),
    ]
}

/// What somebody else wanted of her objects, and who wrote to them.
async fn squatted(cluster: &Cluster, revision: &str) -> Result<Vec<Value>> {
    let (place, names) = (&cluster.place, &cluster.names);
    Ok(vec![
        desired::<Service>(place, &names.client_service()).await?,
        desired::<PodDisruptionBudget>(place, &names.disruption_budget()).await?,
        desired::<StatefulSet>(place, &names.stateful_set()).await?,
        desired::<ControllerRevision>(place, revision).await?,
    ])
}

async fn desired<K>(place: &Place, name: &str) -> Result<Value>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    K::DynamicType: Default,
{
    let object = place.api::<K>().get(name).await?;
    let ours = object.managed_fields().iter().any(|it| it.manager.as_deref() == Some(FIELD_MANAGER));
    ensure!(!ours, "Windlass wrote to {name}");
    let raw = serde_json::to_value(&object)?;
    let metadata = &raw["metadata"];
    Ok(json!({
        "spec": raw["spec"], "data": raw["data"], "labels": metadata["labels"], "annotations": metadata["annotations"],
        "owners": metadata["ownerReferences"], "uid": metadata["uid"],
    }))
}

/// Waits until the operator has read who made each of them.
async fn all_were_looked_at(cluster: &Cluster, revision: &str, since: Mark) -> Result<()> {
    let names = &cluster.names;
    let wanted = [
        ("services", names.client_service()),
        ("poddisruptionbudgets", names.disruption_budget()),
        ("statefulsets", names.stateful_set()),
        ("controllerrevisions", revision.to_owned()),
    ];
    wait_for("the operator has looked at all of them", LONG, async || {
        let requests = cluster.operator_requests(since)?;
        for (resource, name) in &wanted {
            let read = requests.iter().any(|it| it.verb == "get" && it.resource() == *resource && it.name() == name);
            ensure!(read, "it has not read {resource} {name}");
        }
        Ok(())
    })
    .await
}

/// Waits until the Service and the budget are the cluster's.
async fn taken_over(cluster: &Cluster) -> Result<()> {
    let (place, names) = (&cluster.place, &cluster.names);
    let uid = cluster.get().await?.uid().context("no UID")?;
    wait_for("the Service and the budget are taken over", LONG, async || {
        let service = place.api::<Service>().get(&names.client_service()).await?;
        let budget = place.api::<PodDisruptionBudget>().get(&names.disruption_budget()).await?;
        for owners in [service.owner_references(), budget.owner_references()] {
            ensure!(owners.iter().any(|owner| owner.uid == uid), "owned by {owners:?}");
        }
        Ok(())
    })
    .await
}

/// Waits until it is told that the server does not let Windlass have this object.
async fn refused_by_the_server(cluster: &Cluster, object: &str) -> Result<()> {
    wait_for(&format!("the refusal of {object} is told"), LONG, async || {
        let status = cluster.status().await?;
        let stalled = condition(&status, "Stalled")?;
        ensure!(stalled.status == "True", "Stalled {} ({}): {}", stalled.status, stalled.reason, stalled.message);
        let start = format!("apply {object}: ");
        ensure!(
            stalled.message.starts_with(&start) && stalled.message.contains("the API server refused it"),
            "{}",
            stalled.message
        );
        Ok(())
    })
    .await
}
