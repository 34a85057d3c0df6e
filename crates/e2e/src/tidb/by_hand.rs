//! A TiDB cluster that was not made by Windlass: with TiDB Operator's names, labels and field manager, and live.

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use windlass_api::tidb::TidbCluster;

use super::{MANIFEST, NAME, Tidb};
use crate::galera::read_repository;
use crate::place::Place;
use crate::wait::{LONGEST, wait_for};

const OBJECTS: &str = include_str!("by_hand.yaml");
/// Under this name TiDB Operator writes: it makes and replaces whole objects, and applies nothing.
const MANAGER: &str = "tidb-controller-manager";
const DISCOVERY: &str = "tidb-discovery";

impl Place {
    /// Makes the cluster. Discovery comes first, since no pause holds that of Windlass back; then the custom resource, paused, as somebody
    /// would leave it who is about to change operators; then everything else, and all of it belongs to the custom resource.
    pub async fn tidb_by_hand(&self) -> Result<Tidb> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(OBJECTS).context("the cluster's objects cannot be read")?;
        let (discovery, others): (Vec<Value>, Vec<Value>) =
            objects.into_iter().partition(|object| object["metadata"]["name"] == DISCOVERY);
        for object in &discovery {
            self.write(object, None).await?;
        }
        let mut cluster: Value = serde_saphyr::from_str(&read_repository(MANIFEST)?).context("the example cannot be read")?;
        cluster["spec"]["paused"] = true.into();
        self.apply(&[cluster]).await?;
        let tidb = Tidb { place: self.clone() };
        let uid = tidb.get().await?.metadata.uid.context("the cluster has no UID")?;
        let owner = json!([{
            "apiVersion": TidbCluster::api_version(&()), "kind": "TidbCluster", "name": NAME, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        for object in discovery.iter().chain(&others) {
            self.write(object, Some(&owner)).await?;
        }
        wait_for("three stores are up", LONGEST, async || {
            let up = tidb.stores_that_are("Up").await?.len();
            ensure!(up == 3, "{up} are");
            Ok(())
        })
        .await?;
        Ok(tidb)
    }

    /// Makes an object as TiDB Operator would, or says to whom it belongs.
    async fn write(&self, object: &Value, owner: Option<&Value>) -> Result<()> {
        let mut dynamic: DynamicObject = serde_json::from_value(object.clone()).context("an object has no type")?;
        let types = dynamic.types.clone().context("an object has no type")?;
        let kind = GroupVersionKind::try_from(&types)?;
        let (resource, _) = kube::discovery::pinned_kind(&self.stage().client(), &kind).await?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.stage().client(), self.namespace(), &resource);
        let name = dynamic.name_any();
        if let (Some(owner), true) = (owner, api.get_opt(&name).await?.is_some()) {
            let adopted = json!({ "metadata": { "ownerReferences": owner } });
            let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            api.patch(&name, &parameters, &Patch::Merge(adopted)).await?;
            return Ok(());
        }
        dynamic.metadata.owner_references = owner.map(|owner| serde_json::from_value(owner.clone())).transpose()?;
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        api.create(&parameters, &dynamic).await.with_context(|| format!("cannot make {} {name}", types.kind))?;
        Ok(())
    }
}
