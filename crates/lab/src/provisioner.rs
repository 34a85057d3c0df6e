//! The lab's volume provisioner: a directory of the node for each claim.
//!
//! Volumes are writable for every user, since non-root pods cannot be given ownership of a host
//! path; they are pinned to the node, deleted when their claim's policy says so, and grow at once
//! when a claim asks for more.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use windlass_core::quantity;

use crate::kubeconfig;

/// The name under which storage classes ask for this provisioner.
pub const PROVISIONER: &str = "lab.windlass.dev/directory";

const WANTED_BY: &str = "volume.kubernetes.io/storage-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const RETRY: Duration = Duration::from_secs(2);

struct Provisioner {
    client: Client,
    directory: PathBuf,
    node: String,
}

/// An error of one claim or volume, for the log.
#[derive(Debug)]
struct Failure(anyhow::Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", self.0)
    }
}

impl std::error::Error for Failure {}

/// Serves claims until the process is ended.
pub async fn run(kubeconfig: &Path, directory: PathBuf, node: String) -> Result<()> {
    let client = kubeconfig::client(kubeconfig).await?;
    let context = Arc::new(Provisioner { client: client.clone(), directory, node });
    let claims = Controller::new(Api::<PersistentVolumeClaim>::all(client.clone()), watcher::Config::default())
        .run(
            |claim, context| async move { context.claim(&claim).await.map_err(Failure) },
            |claim, error, _| retry(&claim.name_any(), error),
            Arc::clone(&context),
        )
        .for_each(|_| std::future::ready(()));
    let volumes = Controller::new(Api::<PersistentVolume>::all(client), watcher::Config::default())
        .run(
            |volume, context| async move { context.volume(&volume).await.map_err(Failure) },
            |volume, error, _| retry(&volume.name_any(), error),
            context,
        )
        .for_each(|_| std::future::ready(()));
    futures::join!(claims, volumes);
    Ok(())
}

fn retry(name: &str, error: &Failure) -> Action {
    eprintln!("{name}: {error}");
    Action::requeue(RETRY)
}

impl Provisioner {
    async fn claim(&self, claim: &PersistentVolumeClaim) -> Result<Action> {
        if claim.metadata.deletion_timestamp.is_some()
            || claim.annotations().get(WANTED_BY).map(String::as_str) != Some(PROVISIONER)
        {
            return Ok(Action::await_change());
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        match phase {
            Some("Bound") => self.grow(claim).await?,
            _ if claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()).is_none() => self.provision(claim).await?,
            _ => {}
        }
        Ok(Action::await_change())
    }

    async fn provision(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let spec = claim.spec.as_ref().context("the claim has no spec")?;
        let class_name = spec.storage_class_name.as_deref().context("the claim names no storage class")?;
        let class = Api::<StorageClass>::all(self.client.clone())
            .get(class_name)
            .await
            .with_context(|| format!("cannot read the storage class {class_name}"))?;
        let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
        if waits && !claim.annotations().contains_key(SELECTED_NODE) {
            return Ok(());
        }
        let uid = claim.uid().context("the claim has no UID")?;
        let name = format!("pvc-{uid}");
        let path = self.directory.join(&name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))
            .with_context(|| format!("cannot open {} to all users", path.display()))?;
        let volume: PersistentVolume = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": spec.access_modes,
                "capacity": {"storage": requested(claim)},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.namespace(),
                    "name": claim.name_any(),
                    "uid": uid,
                },
                "hostPath": {"path": path, "type": "Directory"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.node]},
                ]}]}},
                "persistentVolumeReclaimPolicy": class.reclaim_policy.unwrap_or_else(|| "Delete".to_owned()),
                "storageClassName": class_name,
                "volumeMode": "Filesystem",
            },
        }))?;
        match Api::<PersistentVolume>::all(self.client.clone()).create(&PostParams::default(), &volume).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            outcome => outcome.map(drop).with_context(|| format!("cannot create the volume {name}")),
        }
    }

    async fn grow(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let capacity = claim
            .status
            .as_ref()
            .and_then(|status| status.capacity.as_ref()?.get("storage"))
            .and_then(|capacity| quantity::bytes(&capacity.0));
        let Some(wanted) = requested(claim) else { return Ok(()) };
        let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) else {
            return Ok(());
        };
        if quantity::bytes(&wanted) <= capacity {
            return Ok(());
        }
        Api::<PersistentVolume>::all(self.client.clone())
            .patch(volume, &PatchParams::default(), &Patch::Merge(json!({"spec": {"capacity": {"storage": wanted}}})))
            .await
            .with_context(|| format!("cannot grow the volume {volume} to {wanted}"))?;
        let namespace = claim.namespace().context("the claim has no namespace")?;
        Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &namespace)
            .patch_status(
                &claim.name_any(),
                &PatchParams::default(),
                &Patch::Merge(json!({"status": {"capacity": {"storage": wanted}, "conditions": null}})),
            )
            .await
            .with_context(|| format!("cannot report the new size of the claim {}", claim.name_any()))?;
        Ok(())
    }

    async fn volume(&self, volume: &PersistentVolume) -> Result<Action> {
        let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
        let spec = volume.spec.as_ref();
        let delete = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()) == Some("Delete");
        let ours = volume.annotations().get(PROVISIONED_BY).map(String::as_str) == Some(PROVISIONER);
        if !(released && delete && ours) || volume.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        // Only a directory of ours: the path in the object could have been made by anybody.
        let path = self.directory.join(volume.name_any());
        let recorded = spec.and_then(|spec| spec.host_path.as_ref()).map(|host| Path::new(&host.path));
        if recorded == Some(path.as_path()) {
            crate::cache::remove(&path)?;
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: volume.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match Api::<PersistentVolume>::all(self.client.clone()).delete(&volume.name_any(), &parameters).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            outcome => {
                outcome.with_context(|| format!("cannot delete the volume {}", volume.name_any()))?;
            }
        }
        Ok(Action::await_change())
    }
}

fn requested(claim: &PersistentVolumeClaim) -> Option<String> {
    Some(claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")?.0.clone())
}
