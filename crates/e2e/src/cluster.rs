//! One `ReplicatedStatefulSet` of a test.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use windlass_api::replicated::ReplicatedStatefulSetStatus;
use windlass_api::{Logbook, ReplicatedStatefulSet};
use windlass_core::names::ReplicatedNames;
use windlass_core::ordinals::Ordinal;

use crate::audit::{Entry, Mark};
use crate::place::Place;
use crate::wait::{LONG, LONGEST, wait_for};

/// A cluster.
#[derive(Clone)]
pub struct Cluster {
    /// Where it is.
    pub place: Place,
    /// The names of its objects.
    pub names: ReplicatedNames,
}

/// One condition of a status.
pub fn condition<'a>(status: &'a ReplicatedStatefulSetStatus, type_: &str) -> Result<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_).with_context(|| format!("no condition {type_}"))
}

/// Changes the size of all these clusters, and waits until they are Ready.
pub async fn scale_all(clusters: &[Cluster], replicas: u16) -> Result<()> {
    for cluster in clusters {
        cluster.scale(replicas).await?;
    }
    all_ready(clusters, replicas).await
}

/// Waits until all these clusters are Ready.
pub async fn all_ready(clusters: &[Cluster], replicas: u16) -> Result<()> {
    for cluster in clusters {
        cluster.wait_until_ready(replicas).await?;
    }
    Ok(())
}

impl Cluster {
    pub(crate) fn new(place: Place, name: &str) -> Result<Self> {
        Ok(Self { place, names: ReplicatedNames::new(name)? })
    }

    /// The custom resources.
    pub fn api(&self) -> Api<ReplicatedStatefulSet> {
        self.place.api()
    }

    /// The path of the custom resource.
    pub fn path(&self) -> String {
        let (namespace, name) = (self.place.namespace(), self.names.cluster());
        format!("/apis/clusterlabs.org/v1alpha1/namespaces/{namespace}/replicatedstatefulsets/{name}")
    }

    /// The custom resource.
    pub async fn get(&self) -> Result<ReplicatedStatefulSet> {
        Ok(self.api().get(self.names.cluster()).await?)
    }

    /// The custom resource as it is stored.
    pub async fn get_raw(&self) -> Result<Value> {
        let request = http::Request::get(self.path()).body(Vec::new())?;
        Ok(self.place.stage().client().request(request).await?)
    }

    /// Its status.
    pub async fn status(&self) -> Result<ReplicatedStatefulSetStatus> {
        self.get().await?.status.context("no status yet")
    }

    /// Its logbook.
    pub async fn logbook(&self) -> Result<Logbook> {
        Ok(self.place.api::<Logbook>().get(&self.names.stateful_set()).await?)
    }

    /// Its `StatefulSet`.
    pub async fn stateful_set(&self) -> Result<StatefulSet> {
        Ok(self.place.api::<StatefulSet>().get(&self.names.stateful_set()).await?)
    }

    /// The name of a member's pod.
    pub fn pod(&self, ordinal: u16) -> String {
        self.names.pod(Ordinal::new(ordinal))
    }

    /// The pods of the first members.
    pub fn pods(&self, count: u16) -> Vec<String> {
        (0..count).map(|ordinal| self.pod(ordinal)).collect()
    }

    /// A pod of a member.
    pub async fn get_pod(&self, ordinal: u16) -> Result<Pod> {
        Ok(self.place.api::<Pod>().get(&self.pod(ordinal)).await?)
    }

    /// Changes the custom resource by a merge patch.
    pub async fn patch(&self, change: &Value) -> Result<ReplicatedStatefulSet> {
        Ok(self.api().patch(self.names.cluster(), &PatchParams::default(), &Patch::Merge(change)).await?)
    }

    /// Sets an annotation, or takes it away.
    pub async fn annotate(&self, key: &str, value: Option<&str>) -> Result<()> {
        self.patch(&json!({ "metadata": { "annotations": { key: value } } })).await.map(drop)
    }

    /// Changes the size through the subresource `scale`.
    pub async fn scale(&self, replicas: u16) -> Result<()> {
        let change = json!({ "spec": { "replicas": replicas } });
        self.api().patch_scale(self.names.cluster(), &PatchParams::default(), &Patch::Merge(&change)).await?;
        Ok(())
    }

    /// Deletes the custom resource.
    pub async fn delete(&self) -> Result<()> {
        self.api().delete(self.names.cluster(), &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the newest spec is in force and this many members serve.
    pub async fn wait_until_ready(&self, replicas: u16) -> Result<ReplicatedStatefulSetStatus> {
        let what = format!("{} is Ready with {replicas} members", self.names.cluster());
        wait_for(&what, LONGEST, async || {
            let cluster = self.get().await?;
            let status = cluster.status.clone().context("no status yet")?;
            ensure_ready(&cluster, &status, &self.pods(replicas))?;
            Ok(status)
        })
        .await
    }

    /// Waits until the operator has done its part of a change of size; the rest is the kubelet's and the StatefulSet controller's.
    pub async fn acted_upon(&self, replicas: u16) -> Result<()> {
        wait_for(&format!("the StatefulSet of {} has the new size", self.names.cluster()), LONG, async || {
            let size = self.stateful_set().await?.spec.and_then(|spec| spec.replicas);
            ensure!(size == Some(i32::from(replicas)), "it is {size:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a condition has this status and reason.
    pub async fn wait_for_condition(&self, type_: &str, status: &str, reason: &str) -> Result<Condition> {
        wait_for(&format!("{type_} is {status} ({reason})"), LONG, async || {
            let all = self.status().await?;
            let found = condition(&all, type_)?;
            ensure!(found.status == status && found.reason == reason, "{} ({}): {}", found.status, found.reason, found.message);
            Ok(found.clone())
        })
        .await
    }

    /// What the operator asked for in this namespace since a moment.
    pub fn operator_requests(&self, since: Mark) -> Result<Vec<Entry>> {
        let stage = self.place.stage();
        let requests = stage.audit().requests_of(&stage.operator_user(), since)?;
        Ok(requests.into_iter().filter(|entry| entry.namespace() == self.place.namespace()).collect())
    }

    /// The hooks that changed something, or were to, since a moment: whatever command is neither `status` nor `sequence`.
    pub async fn deeds(&self, since: Mark) -> Result<Vec<Entry>> {
        let commands = self.get().await?.spec.pod.commands;
        let questions = [commands.status.command, commands.sequence.command];
        let mut requests = self.operator_requests(since)?;
        requests.retain(|entry| entry.command().is_some_and(|command| !questions.contains(&command)));
        Ok(requests)
    }
}

fn ensure_ready(cluster: &ReplicatedStatefulSet, status: &ReplicatedStatefulSetStatus, pods: &[String]) -> Result<()> {
    let ready = condition(status, "Ready")?;
    let generation = cluster.meta().generation;
    let count = u16::try_from(pods.len())?;
    let seen = || {
        format!(
            "generation {generation:?}, observed {:?}, Ready {} ({}: {}), {} replicas, restore {}, {:?}",
            status.observed_generation,
            ready.status,
            ready.reason,
            ready.message,
            status.replicas,
            status.restore_replicas,
            status.members
        )
    };
    if ready.status != "True" || ready.observed_generation != generation || status.observed_generation != generation {
        bail!("{}", seen());
    }
    let members = &status.members;
    let serving: Vec<&String> = members.primary.iter().chain(&members.secondary).collect();
    ensure!(status.replicas == count && status.restore_replicas == count, "{}", seen());
    ensure!(members.ready == pods && serving.len() == pods.len(), "{}", seen());
    ensure!(pods.iter().all(|pod| serving.contains(&pod)), "{}", seen());
    ensure!(members.unready.is_empty() && members.failed.is_empty(), "{}", seen());
    Ok(())
}
