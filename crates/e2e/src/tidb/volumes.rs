//! The PersistentVolumes of a TiDB cluster, and what becomes of them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use windlass_api::tidb::keys;

use super::{NAME, Tidb};
use crate::audit::Mark;
use crate::wait::{LONG, wait_for};

/// What becomes of a volume, and in which phase it is.
pub fn state(volume: &PersistentVolume) -> (&str, &str) {
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    (policy.unwrap_or_default(), phase.unwrap_or_default())
}

impl Tidb {
    fn all_volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.place.stage().client())
    }

    /// The volumes of its claims, by name.
    pub async fn volumes(&self) -> Result<BTreeMap<String, PersistentVolume>> {
        let labels = ListParams::default().labels(&format!("{}={NAME}", keys::INSTANCE));
        let claims = self.place.api::<PersistentVolumeClaim>().list(&labels).await?;
        let mut volumes = BTreeMap::new();
        for name in claims.into_iter().filter_map(|claim| claim.spec?.volume_name) {
            let volume = self.all_volumes().get(&name).await?;
            volumes.insert(name, volume);
        }
        ensure!(!volumes.is_empty(), "no claim has a volume");
        Ok(volumes)
    }

    /// Waits until all of them have this policy.
    pub async fn wait_for_policy(&self, policy: &str) -> Result<()> {
        wait_for(&format!("every volume has the policy {policy}"), LONG, async || self.check_policy(policy).await).await
    }

    /// Fails unless all of them have this policy.
    pub async fn check_policy(&self, policy: &str) -> Result<()> {
        for (name, volume) in self.volumes().await? {
            ensure!(state(&volume).0 == policy, "{name} is {:?}", state(&volume));
        }
        Ok(())
    }

    /// Asks for a policy, and waits until all volumes have it.
    pub async fn set_policy(&self, policy: &str) -> Result<()> {
        self.patch(&json!({ "spec": { "pvReclaimPolicy": policy } })).await?;
        self.wait_for_policy(policy).await
    }

    /// Fails when the operator wrote to one of them since a moment. They are in no namespace.
    pub async fn check_volumes_untouched(&self, since: Mark) -> Result<()> {
        let (stage, volumes) = (self.place.stage(), self.volumes().await?);
        let requests = stage.audit().requests_of(&stage.operator_user(), since)?;
        let written = requests
            .iter()
            .find(|entry| entry.is_write() && entry.resource() == "persistentvolumes" && volumes.contains_key(entry.name()));
        ensure!(written.is_none(), "written while paused: {:?}", written.map(crate::audit::Entry::describe));
        Ok(())
    }

    /// Volumes whose claims are gone are kept, with their data. Then they are let go: the lab's disk is small.
    pub async fn check_kept_and_let_go(&self, volumes: impl IntoIterator<Item = String>) -> Result<()> {
        let delete = json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } });
        for name in volumes {
            wait_for(&format!("{name} is kept"), LONG, async || {
                let volume = self.all_volumes().get(&name).await?;
                ensure!(state(&volume) == ("Retain", "Released"), "it is {:?}", state(&volume));
                Ok(())
            })
            .await?;
            self.all_volumes().patch(&name, &PatchParams::default(), &Patch::Merge(&delete)).await?;
        }
        Ok(())
    }
}
