//! What a run needs around the thing that it measures, and its removal.
//!
//! Set-up and removal are done as the lab's administrator; everything that is timed or counted is not.

mod deployment;
mod rights;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::json;
use windlass_api::mysql::MySQLCluster;
use windlass_lab::Lab;

use crate::scheduler::VOLUMES_OF;
use crate::{say, within};
use deployment::Deployed;

/// On everything that a run makes: which run.
pub(crate) const RUN: &str = "bench.windlass.dev/run";
/// On the node that does not exist: it takes the pods of this run.
pub(crate) const FAKE: &str = "bench.windlass.dev/fake";
/// The user of the operator under test.
pub(crate) const OPERATOR: &str = "bench-operator";
/// The user of the bare writer, and of whoever creates and changes clusters.
const WRITER: &str = "bench-writer";
/// The user of the fake kubelet.
const KUBELET: &str = "bench-kubelet";
/// Where the leases of nodes are.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";
/// A namespace of a thousand clusters takes minutes to go on a busy machine.
const REMOVAL: Duration = Duration::from_mins(20);
const SETTING_UP: Duration = Duration::from_mins(2);
/// How many requests of clearing up are under way at once.
const AT_ONCE: usize = 16;

/// What a run needs.
pub(crate) struct Stage {
    /// The name of the run.
    pub(crate) run: String,
    /// The client of the bare writer.
    pub(crate) writer: Client,
    /// The client of the fake kubelet.
    pub(crate) kubelet: Client,
    /// The kubeconfig of the operator under test.
    pub(crate) operator: PathBuf,
    /// The namespace of the operator under test: of its Lease, and of its authority.
    pub(crate) release: String,
    /// The API server's audit log.
    pub(crate) audit_log: PathBuf,
    admin: Client,
    deployed: Option<Deployed>,
}

impl Stage {
    /// Clears what an earlier run left, and sets up for this one.
    pub(crate) async fn prepare(lab: &Lab) -> Result<Self> {
        let run = format!("r{}", jiff::Timestamp::now().as_second());
        let admin = client(&lab.kubeconfig()).await?;
        remove(&admin, RUN).await.context("what an earlier run left cannot be removed")?;
        let deployed = deployment::stop(&admin).await?;
        define(&admin).await?;
        rights::grant(&admin, &run).await?;
        let stage = Self {
            writer: client(&lab.user_kubeconfig(WRITER, &[])?).await?,
            kubelet: client(&lab.user_kubeconfig(KUBELET, &[])?).await?,
            operator: lab.user_kubeconfig(OPERATOR, &[])?,
            release: format!("bench-{run}-release"),
            audit_log: lab.audit_log(),
            run,
            admin,
            deployed,
        };
        stage.namespace("release").await?;
        Ok(stage)
    }

    /// The label by which the operator under test knows its clusters.
    pub(crate) fn selector(&self) -> String {
        format!("{RUN}={}", self.run)
    }

    /// The name of the node that does not exist.
    pub(crate) fn node(&self) -> String {
        format!("bench-{}", self.run)
    }

    /// Makes a namespace in which pods can be made.
    pub(crate) async fn namespace(&self, purpose: &str) -> Result<String> {
        let name = format!("bench-{}-{purpose}", self.run);
        let namespace: Namespace = from_json(json!({ "metadata": { "name": name, "labels": { RUN: self.run } } }))?;
        Api::all(self.admin.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .with_context(|| format!("namespace {name} cannot be made"))?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), &name);
        let there = Box::pin(await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some()));
        within(SETTING_UP, "the service account of a new namespace", async { Ok(there.await.map(drop)?) }).await?;
        Ok(name)
    }

    /// Removes a namespace and waits until nothing of it is left.
    pub(crate) async fn remove_namespace(&self, name: &str) -> Result<()> {
        remove_namespace(&self.admin, name).await
    }

    /// Removes all namespaces with clusters of this run.
    pub(crate) async fn remove_namespaces(&self) -> Result<()> {
        remove_namespaces(&self.admin, &self.selector(), &[&self.release]).await
    }

    /// Removes everything of this run, and puts back what was stopped for it.
    pub(crate) async fn clear(&self) -> Result<()> {
        say("clearing up");
        let removed = remove(&self.admin, &self.selector()).await;
        let restored = match &self.deployed {
            Some(deployed) => deployment::restore(&self.admin, deployed).await,
            None => Ok(()),
        };
        removed.and(restored)
    }
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    // The lab is on this machine: a proxy of the environment has no part in it.
    config.proxy_url = None;
    config.default_retry = false;
    Client::try_from(config).with_context(|| format!("cannot make a client from {}", kubeconfig.display()))
}

/// Applies the definitions of this build, and waits until they are served.
async fn define(admin: &Client) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for definition in windlass_api::custom_resource_definitions() {
        let name = definition.name_any();
        let parameters = PatchParams::apply("windlass-bench").force();
        api.patch(&name, &parameters, &Patch::Apply(&definition))
            .await
            .with_context(|| format!("definition {name} cannot be applied"))?;
        let served = Box::pin(await_condition(api.clone(), &name, conditions::is_crd_established()));
        within(SETTING_UP, &format!("the definition {name}"), async { Ok(served.await.map(drop)?) }).await?;
    }
    Ok(())
}

/// Removes everything that has these labels.
async fn remove(admin: &Client, selector: &str) -> Result<()> {
    remove_namespaces(admin, selector, &[]).await?;
    // Those of a namespace that is gone, of a run that ended before it removed them.
    remove_volumes(admin, selector).await?;
    let list = ListParams::default().labels(selector);
    let all = DeleteParams::default();
    Api::<Lease>::namespaced(admin.clone(), NODE_LEASES).delete_collection(&all, &list).await?;
    Api::<Node>::all(admin.clone()).delete_collection(&all, &list).await?;
    Api::<ClusterRoleBinding>::all(admin.clone()).delete_collection(&all, &list).await?;
    Api::<ClusterRole>::all(admin.clone()).delete_collection(&all, &list).await?;
    Ok(())
}

async fn remove_namespaces(admin: &Client, selector: &str, but: &[&str]) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    for namespace in namespaces.list_metadata(&ListParams::default().labels(selector)).await? {
        let name = namespace.name_any();
        if !but.contains(&name.as_str()) {
            remove_namespace(admin, &name).await?;
        }
    }
    Ok(())
}

/// Takes off what waits for an operator that does not run any more.
async fn let_go(admin: &Client, namespace: &str) -> Result<()> {
    let api: Api<MySQLCluster> = Api::namespaced(admin.clone(), namespace);
    let found = match api.list_metadata(&ListParams::default()).await {
        Ok(found) => found,
        // The first run on a lab finds no such kind.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let held = found.into_iter().filter(|it| it.metadata.finalizers.is_some()).map(Ok);
    let patch = json!({ "metadata": { "finalizers": null } });
    futures::stream::iter(held)
        .try_for_each_concurrent(AT_ONCE, |it| {
            let (api, patch) = (api.clone(), &patch);
            async move {
                match api.patch_metadata(&it.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    end => end.map(drop).with_context(|| format!("the finalizer of {} cannot be taken off", it.name_any())),
                }
            }
        })
        .await
}

async fn remove_namespace(admin: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let Some(known) = namespaces.get_opt(name).await? else {
        return Ok(());
    };
    let began = std::time::Instant::now();
    let_go(admin, name).await?;
    if known.metadata.deletion_timestamp.is_none() {
        namespaces.delete(name, &DeleteParams::default()).await?;
    }
    let uid = known.uid().unwrap_or_default();
    let gone = Box::pin(await_condition(namespaces, name, conditions::is_deleted(&uid)));
    within(REMOVAL, &format!("namespace {name} to be gone"), async { Ok(gone.await.map(drop)?) }).await?;
    remove_volumes(admin, &format!("{VOLUMES_OF}={name}")).await?;
    say(format!("namespace {name} removed in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Removes volumes that the operator said are to stay. Thousands of them are more than one request for a collection can take.
async fn remove_volumes(admin: &Client, selector: &str) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(admin.clone());
    let found = volumes.list_metadata(&ListParams::default().labels(selector)).await?;
    futures::stream::iter(found.into_iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, |it| {
            let volumes = volumes.clone();
            async move {
                match volumes.delete(&it.name_any(), &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    end => end.map(drop).with_context(|| format!("volume {} cannot be removed", it.name_any())),
                }
            }
        })
        .await
}

pub(crate) fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T> {
    serde_json::from_value(value).context("an object of the bench is not what the API expects")
}
