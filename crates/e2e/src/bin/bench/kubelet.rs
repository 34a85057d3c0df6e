//! A kubelet that runs nothing: it answers for a node that does not exist, and says of each pod that it runs.
//!
//! The pods themselves are real objects, made and bound by the real controllers. Commands cannot be run in them: the node's
//! address leads nowhere, and an exec ends at once with an error.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::cluster::CONTAINER;
use crate::stage::{FAKE, NODE_LEASES, RUN, Stage, from_json};

/// How long a started pod takes to be ready.
const READY_AFTER: Duration = Duration::from_millis(500);
/// How often the node shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// An address for documentation: the lab has no route to it, so a connection fails at once.
const NOWHERE: &str = "192.0.2.1";
/// How many requests are under way at once.
const AT_ONCE: usize = 16;

/// The running kubelet; it ends when this is dropped.
pub(crate) struct Kubelet {
    tasks: JoinSet<Result<()>>,
}

impl Kubelet {
    /// Whether it did its work to the end.
    pub(crate) fn check(mut self) -> Result<()> {
        match self.tasks.try_join_next() {
            None => Ok(()),
            Some(Ok(Err(error))) => Err(error.context("the fake kubelet ended")),
            Some(ended) => bail!("the fake kubelet ended: {ended:?}"),
        }
    }
}

/// Registers the node and starts answering for it. `processes`: whether its pods name a process that hooks could run beside.
pub(crate) async fn start(stage: &Stage, processes: bool) -> Result<Kubelet> {
    register(stage).await.context("the fake node cannot be made")?;
    let mut tasks = JoinSet::new();
    let leases: Api<Lease> = Api::namespaced(stage.kubelet.clone(), NODE_LEASES);
    tasks.spawn(beat(leases, stage.node()));
    let pods =
        Pods { api: Api::all(stage.kubelet.clone()), node: stage.node(), processes, places: Arc::new(Semaphore::new(AT_ONCE)) };
    tasks.spawn(pods.serve());
    Ok(Kubelet { tasks })
}

async fn register(stage: &Stage) -> Result<()> {
    let name = stage.node();
    let node: Node = from_json(json!({
        "metadata": { "name": name, "labels": { RUN: stage.run, FAKE: stage.run, "kubernetes.io/hostname": name } },
        "spec": { "taints": [{ "key": FAKE, "value": "true", "effect": "NoSchedule" }] },
    }))?;
    let nodes: Api<Node> = Api::all(stage.kubelet.clone());
    nodes.create(&PostParams::default(), &node).await?;
    let room = json!({ "cpu": "1000000", "memory": "1000Ti", "pods": "1000000" });
    let status = json!({ "status": {
        "capacity": room,
        "allocatable": room,
        "conditions": [condition("Ready", true)],
        "addresses": [{ "type": "InternalIP", "address": NOWHERE }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
    }});
    nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let lease: Lease = from_json(json!({
        "metadata": { "name": name, "namespace": NODE_LEASES, "labels": { RUN: stage.run } },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now_in_microseconds() },
    }))?;
    Api::namespaced(stage.kubelet.clone(), NODE_LEASES).create(&PostParams::default(), &lease).await?;
    Ok(())
}

async fn beat(leases: Api<Lease>, node: String) -> Result<()> {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let renewal = json!({ "spec": { "renewTime": now_in_microseconds() } });
        // One missed beat is no harm, and the next one comes.
        if let Err(error) = leases.patch(&node, &PatchParams::default(), &Patch::Merge(renewal)).await {
            crate::say(format!("the lease of the fake node was not renewed: {error}"));
        }
    }
}

#[derive(Clone)]
struct Pods {
    api: Api<Pod>,
    node: String,
    processes: bool,
    places: Arc<Semaphore>,
}

impl Pods {
    async fn serve(self) -> Result<()> {
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node));
        let mut pods =
            watcher(Api::<PartialObjectMeta<Pod>>::all(self.api.clone().into_client()), config).default_backoff().boxed();
        let mut started = HashSet::new();
        let mut number = 0_u32;
        let mut tasks = JoinSet::new();
        // The watch starts itself again after an error.
        loop {
            while tasks.try_join_next().is_some() {}
            let pod = match pods.try_next().await {
                Ok(Some(Event::Apply(pod) | Event::InitApply(pod))) => pod,
                Ok(Some(Event::Delete(pod))) => {
                    started.remove(&pod.metadata.uid);
                    continue;
                }
                Ok(Some(Event::Init | Event::InitDone)) => continue,
                Ok(None) => bail!("the watch of pods ended"),
                Err(error) => {
                    crate::say(format!("the fake kubelet's watch of pods failed and is started again: {error}"));
                    continue;
                }
            };
            if pod.metadata.deletion_timestamp.is_some() {
                let pods = self.clone();
                tasks.spawn(async move { pods.end(&pod).await });
            } else if started.insert(pod.metadata.uid.clone()) {
                number += 1;
                let pods = self.clone();
                tasks.spawn(async move { pods.run(&pod, number).await });
            }
        }
    }

    async fn run(&self, pod: &PartialObjectMeta<Pod>, number: u32) {
        self.patch(pod, &self.status(pod, number, false)).await;
        tokio::time::sleep(READY_AFTER).await;
        self.patch(pod, &self.status(pod, number, true)).await;
    }

    fn status(&self, pod: &PartialObjectMeta<Pod>, number: u32, ready: bool) -> Value {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let address = format!("198.{}.{}.{}", 18 + (number >> 16) % 2, (number >> 8) % 256, number % 256);
        let mut container = json!({
            "name": CONTAINER,
            "image": "localhost/bench:none",
            "imageID": "",
            "ready": ready,
            "started": true,
            "restartCount": 0,
            "state": { "running": { "startedAt": now() } },
        });
        if self.processes {
            container["containerID"] = format!("bench://{uid}").into();
        }
        json!({
            "metadata": { "uid": uid },
            "status": {
                "phase": "Running",
                "podIP": address,
                "podIPs": [{ "ip": address }],
                "hostIP": NOWHERE,
                "startTime": now(),
                "conditions": [
                    condition("PodScheduled", true),
                    condition("Initialized", true),
                    condition("ContainersReady", ready),
                    condition("Ready", ready),
                ],
                "containerStatuses": [container],
            },
        })
    }

    async fn patch(&self, pod: &PartialObjectMeta<Pod>, status: &Value) {
        let Ok(_place) = self.places.acquire().await else { return };
        let api = self.api_of(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        // Whoever waits for the pod will say that it never became ready; a pod that is gone meanwhile is none's loss.
        if let Err(error) = api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await
            && !is_gone(&error)
        {
            crate::say(format!("the fake kubelet could not report on pod {name}: {error}"));
        }
    }

    async fn end(&self, pod: &PartialObjectMeta<Pod>) {
        let Ok(_place) = self.places.acquire().await else { return };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let parameters = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        if let Err(error) = self.api_of(pod).delete(name, &parameters).await
            && !is_gone(&error)
        {
            crate::say(format!("the fake kubelet could not end pod {name}: {error}"));
        }
    }

    fn api_of(&self, pod: &PartialObjectMeta<Pod>) -> Api<Pod> {
        Api::namespaced(self.api.clone().into_client(), pod.metadata.namespace.as_deref().unwrap_or_default())
    }
}

fn is_gone(error: &kube::Error) -> bool {
    // A pod of the same name may have taken its place: then its uid is refused.
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 422))
}

fn condition(type_: &str, holds: bool) -> Value {
    json!({ "type": type_, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now(), "reason": "Bench" })
}

fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

fn now_in_microseconds() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}
