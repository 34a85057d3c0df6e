//! Bringing the parts up, in the order in which they need each other.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::artifacts::{Artifacts, PAUSE_IMAGE};
use crate::certificates::Authority;
use crate::components::{apiserver, containerd, coredns, etcd, kubelet, managers, provisioner, proxy};
use crate::image::{self, BinaryImage};
use crate::layout::Layout;
use crate::network::{self, Link};
use crate::process::{self, Program};
use crate::progress::Progress;
use crate::{cache, cgroup, command, kubeconfig, manifests};

/// How long one part may take; a busy machine needs much more than the second it mostly takes.
const LIMIT: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(100);

/// What is worth knowing about a lab that is up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) link: Link,
    pub(crate) since: Timestamp,
}

impl Facts {
    pub(crate) fn read(layout: &Layout) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(layout.facts()).ok()?).ok()
    }
}

/// Starts everything on a machine from which all leftovers were removed.
pub(crate) async fn start(layout: &Layout, artifacts: &Artifacts, progress: &Progress) -> Result<()> {
    prepare_directories(layout)?;
    cgroup::create(layout)?;
    let link = progress.step("network namespace", network::create(layout)).await?;
    let authority = write_identities(layout, link)?;

    progress
        .step("etcd, API server and containerd", async {
            launch(layout, &etcd::program(layout, artifacts))?;
            launch(layout, &apiserver::program(layout, artifacts, link, &authority)?)?;
            launch(layout, &containerd::program(layout)?)?;
            futures::try_join!(wait_for_api(layout), start_images(layout, artifacts))?;
            Ok(())
        })
        .await?;

    let client = kubeconfig::client(&layout.kubeconfig("admin")).await?;
    manifests::apply(&client).await?;

    progress
        .step("controllers, scheduler, kubelet, proxy, name server, volumes", async {
            launch(layout, &managers::controller_manager(layout, artifacts))?;
            launch(layout, &managers::scheduler(layout, artifacts))?;
            launch(layout, &kubelet::program(layout, artifacts, link, &authority)?)?;
            launch(layout, &proxy::program(layout, artifacts))?;
            launch(layout, &coredns::program(layout, artifacts, link)?)?;
            launch(layout, &provisioner::program(layout, artifacts))?;
            wait(layout, "the node to be Ready", || node_ready(&client, layout)).await?;
            wait(layout, "the name server", || coredns::ready(link)).await?;
            wait(layout, "the first service account", || default_account(&client)).await
        })
        .await?;

    let facts = Facts { link, since: Timestamp::now() };
    std::fs::write(layout.facts(), serde_json::to_vec(&facts)?).context("cannot write the lab's facts")
}

/// Whether the API server answers that it is ready.
pub(crate) async fn api_ready(client: &Client) -> bool {
    let Ok(request) = http_get("/readyz") else { return false };
    client.request_text(request).await.is_ok()
}

/// Whether the lab's node is Ready.
pub(crate) async fn node_ready(client: &Client, layout: &Layout) -> bool {
    let Ok(node) = Api::<Node>::all(client.clone()).get(layout.node()).await else {
        return false;
    };
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

/// Empties the state of an earlier run; only the lock, which is beside it, stays.
fn prepare_directories(layout: &Layout) -> Result<()> {
    cache::remove(&layout.state)?;
    let directories =
        [layout.keys(), layout.configuration(), layout.records(), layout.pod_logs(), layout.volumes(), layout.run.clone()];
    for directory in directories {
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    Ok(())
}

/// Every part has a user of its own, so that the audit log tells them apart.
fn write_identities(layout: &Layout, link: Link) -> Result<Authority> {
    let authority = Authority::create(layout)?;
    let node = kubelet::user(layout);
    let users: [(&str, &str, &[&str]); 6] = [
        ("admin", "windlass-lab:admin", &["system:masters"]),
        ("controller-manager", managers::CONTROLLER_MANAGER, &[]),
        ("scheduler", managers::SCHEDULER, &[]),
        ("kubelet", &node, &[kubelet::GROUP]),
        ("proxy", proxy::USER, &[]),
        ("coredns", coredns::USER, &[]),
    ];
    for (file, user, groups) in users.into_iter().chain([("provisioner", provisioner::USER, &[] as &[&str])]) {
        let signed = authority.client(user, groups)?;
        kubeconfig::write(&layout.kubeconfig(file), layout, link, &authority, user, &signed)?;
    }
    Ok(authority)
}

fn launch(layout: &Layout, program: &Program) -> Result<()> {
    process::start(layout, program).map(drop)
}

pub(crate) async fn wait_for_api(layout: &Layout) -> Result<()> {
    let client = kubeconfig::client(&layout.kubeconfig("admin")).await?;
    wait(layout, "the API server", || api_ready(&client)).await
}

async fn start_images(layout: &Layout, artifacts: &Artifacts) -> Result<()> {
    wait(layout, "containerd", || containerd::answers(layout)).await?;
    let pause = image::from_binary(&BinaryImage {
        reference: PAUSE_IMAGE,
        binary: &artifacts.pause,
        path: "/pause",
        user: 65535,
        arguments: &[],
    })?;
    containerd::import(layout, &pause).await
}

async fn default_account(client: &Client) -> bool {
    Api::<ServiceAccount>::namespaced(client.clone(), "default").get("default").await.is_ok()
}

/// Waits until `check` says yes, and gives up early when a part of the lab has ended.
async fn wait<F>(layout: &Layout, what: &str, check: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = bool> + Send,
{
    let deadline = Instant::now() + LIMIT;
    while !tokio::time::timeout(Duration::from_secs(5), check()).await.unwrap_or(false) {
        if let Some(dead) = process::records(layout).into_iter().find(|record| !record.identity.alive()) {
            let log = layout.log().join(format!("{}.log", dead.name));
            bail!("{} ended while the lab waited for {what}; the end of {}:\n{}", dead.name, log.display(), last_lines(&log));
        }
        if Instant::now() > deadline {
            bail!("waited {} s for {what} in vain: see the logs in {}", LIMIT.as_secs(), layout.log().display());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn last_lines(log: &Path) -> String {
    command::tail(&std::fs::read_to_string(log).unwrap_or_default(), 15)
}
