//! A kubelet that runs nothing: it answers for a node that does not exist, and says of each pod that it runs.
//!
//! The pods themselves are real objects, made and bound by the real controllers. Commands cannot be run in them: the node's
//! address leads nowhere, and an exec ends at once with an error. Where the pods are those of MySQL or TiDB, servers that are as fake
//! answer at their addresses.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
use windlass_core::labels::COMPONENT;

use crate::cluster::IMAGE;
use crate::kind::Kind;
use crate::scheduler;
use crate::servers::Servers;
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
const POLL: Duration = Duration::from_millis(10);

/// What pods are like here.
#[derive(Clone)]
pub(crate) struct Lodging {
    /// Of which kind their clusters are.
    pub(crate) kind: Kind,
    /// Whether they name a process, beside which hooks could run.
    pub(crate) processes: bool,
    /// The servers in them, if there are any.
    pub(crate) servers: Option<Servers>,
}

/// The running kubelet; it ends when this is dropped.
pub(crate) struct Kubelet {
    pods: Pods,
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

    /// Starts the containers of a pod again, as after their end.
    pub(crate) async fn restart(&self, namespace: &str, name: &str) -> Result<()> {
        let known = {
            let mut guests = self.pods.guests();
            let guest = guests.values_mut().find(|it| it.is(namespace, name));
            guest.map(|guest| {
                guest.restarts += 1;
                guest.clone()
            })
        };
        let guest = known.with_context(|| format!("there is no pod {name} in namespace {namespace}"))?;
        self.pods.run(&guest).await;
        Ok(())
    }

    /// Waits until so many pods of a namespace are ready; tells when the last of them became so.
    pub(crate) async fn all_ready(&self, namespace: &str, count: usize, limit: Duration) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        loop {
            let ready: Vec<Instant> =
                self.pods.guests().values().filter(|it| it.is_in(namespace)).filter_map(|it| it.ready).collect();
            if ready.len() >= count {
                return Ok(ready.into_iter().max().unwrap_or(deadline));
            }
            if Instant::now() > deadline {
                bail!("{} of {count} pods are ready after {} s", ready.len(), limit.as_secs());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Registers the node and starts answering for it.
pub(crate) async fn start(stage: &Stage, lodging: Lodging) -> Result<Kubelet> {
    register(stage).await.context("the fake node cannot be made")?;
    let mut tasks = JoinSet::new();
    let leases: Api<Lease> = Api::namespaced(stage.kubelet.clone(), NODE_LEASES);
    tasks.spawn(beat(leases, stage.node()));
    // The scheduler has the name of the node.
    tasks.spawn(scheduler::serve(stage.kubelet.clone(), stage.node(), stage.node(), stage.run.clone()));
    let pods = Pods {
        api: Api::all(stage.kubelet.clone()),
        node: stage.node(),
        lodging,
        guests: Arc::default(),
        places: Arc::new(Semaphore::new(AT_ONCE)),
    };
    tasks.spawn(pods.clone().serve());
    Ok(Kubelet { pods, tasks })
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

/// A pod that was started here.
#[derive(Clone)]
struct Guest {
    pod: Arc<PartialObjectMeta<Pod>>,
    number: u32,
    restarts: u32,
    /// When it was reported to be ready.
    ready: Option<Instant>,
}

impl Guest {
    fn is_in(&self, namespace: &str) -> bool {
        self.pod.metadata.namespace.as_deref() == Some(namespace)
    }

    fn is(&self, namespace: &str, name: &str) -> bool {
        self.is_in(namespace) && self.pod.metadata.name.as_deref() == Some(name)
    }

    fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }
}

#[derive(Clone)]
struct Pods {
    api: Api<Pod>,
    node: String,
    lodging: Lodging,
    /// By their UIDs.
    guests: Arc<Mutex<HashMap<String, Guest>>>,
    places: Arc<Semaphore>,
}

impl Pods {
    fn guests(&self) -> MutexGuard<'_, HashMap<String, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self) -> Result<()> {
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node));
        let mut pods =
            watcher(Api::<PartialObjectMeta<Pod>>::all(self.api.clone().into_client()), config).default_backoff().boxed();
        let mut number = 0_u32;
        let mut tasks = JoinSet::new();
        // The watch starts itself again after an error.
        loop {
            while tasks.try_join_next().is_some() {}
            let pod = match pods.try_next().await {
                Ok(Some(Event::Apply(pod) | Event::InitApply(pod))) => pod,
                Ok(Some(Event::Delete(pod))) => {
                    self.forget(&pod);
                    continue;
                }
                Ok(Some(Event::Init | Event::InitDone)) => continue,
                Ok(None) => bail!("the watch of pods ended"),
                Err(error) => {
                    crate::say(format!("the fake kubelet's watch of pods failed and is started again: {error}"));
                    continue;
                }
            };
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if pod.metadata.deletion_timestamp.is_some() {
                let pods = self.clone();
                tasks.spawn(async move { pods.end(&pod).await });
            } else if !self.guests().contains_key(&uid) {
                number += 1;
                let guest = Guest { pod: Arc::new(pod), number, restarts: 0, ready: None };
                self.guests().insert(uid, guest.clone());
                let pods = self.clone();
                tasks.spawn(async move { pods.run(&guest).await });
            }
        }
    }

    fn forget(&self, pod: &PartialObjectMeta<Pod>) {
        let guest = self.guests().remove(pod.metadata.uid.as_deref().unwrap_or_default());
        let (Some(guest), Some(servers)) = (guest, &self.lodging.servers) else { return };
        let metadata = &guest.pod.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        servers.remove(namespace.unwrap_or_default(), name.unwrap_or_default(), self.address(guest.number));
    }

    /// Says that it runs, and after a while that it is ready.
    async fn run(&self, guest: &Guest) {
        if let Some(servers) = &self.lodging.servers {
            let metadata = &guest.pod.metadata;
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            servers.start(namespace.unwrap_or_default(), name.unwrap_or_default(), self.address(guest.number));
        }
        self.patch(&guest.pod, &self.status(guest, false)).await;
        tokio::time::sleep(READY_AFTER).await;
        self.patch(&guest.pod, &self.status(guest, true)).await;
        if let Some(known) = self.guests().get_mut(guest.uid()) {
            known.ready = Some(Instant::now());
        }
    }

    fn address(&self, number: u32) -> Ipv4Addr {
        if let Some(servers) = &self.lodging.servers {
            return servers.address(number);
        }
        let [_, second, third, fourth] = number.to_be_bytes();
        Ipv4Addr::new(198, 18 + second % 2, third, fourth)
    }

    fn status(&self, guest: &Guest, ready: bool) -> Value {
        let (uid, address) = (guest.uid(), self.address(guest.number).to_string());
        let container = |name: &String| {
            let mut container = json!({
                "name": name,
                "image": IMAGE,
                "imageID": "",
                "ready": ready,
                "started": true,
                "restartCount": guest.restarts,
                "state": { "running": { "startedAt": now() } },
            });
            if self.lodging.processes {
                container["containerID"] = format!("bench://{uid}/{name}/{}", guest.restarts).into();
            }
            container
        };
        let component = guest.pod.metadata.labels.as_ref().and_then(|all| all.get(COMPONENT));
        let names = self.lodging.kind.containers(component.map_or("", String::as_str));
        let containers: Vec<Value> = names.iter().map(container).collect();
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
                "containerStatuses": containers,
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
