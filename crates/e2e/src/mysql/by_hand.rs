//! A MySQL cluster that was not made by Windlass: with MOCO's names and labels, live, and with replication that was set up by hand.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::mysql::{MySQLCluster, keys};

use super::{MANIFEST, Mysql, NAME, Stoppable};
use crate::galera::read_repository;
use crate::place::Place;
use crate::wait::{LONG, wait_for};

const OBJECTS: &str = include_str!("by_hand.yaml");
const FIRST_SERVER_ID: u32 = 1000;

impl Place {
    /// Makes the cluster. Its custom resource is there and stopped, as somebody would leave it who is about to change operators; then
    /// its objects, which belong to it; then its servers are told who follows whom.
    pub async fn mysql_by_hand(&self) -> Result<Mysql> {
        let mut objects: Vec<Value> =
            serde_saphyr::from_multiple(&read_repository(MANIFEST)?).context("the example cannot be read")?;
        let cluster = objects.iter_mut().find(|it| it["kind"] == "MySQLCluster").context("the example has no cluster")?;
        cluster["spec"]["serverIDBase"] = FIRST_SERVER_ID.into();
        cluster["metadata"]["annotations"] =
            json!({ Stoppable::Clustering.annotation(): "true", Stoppable::Reconciliation.annotation(): "true" });
        self.apply(&objects).await?;
        let mysql = Mysql { place: self.clone() };
        for lane in [Stoppable::Clustering, Stoppable::Reconciliation] {
            mysql.wait_for_condition(lane.condition(), "False").await?;
        }
        let uid = mysql.get().await?.metadata.uid.context("the cluster has no UID")?;
        let owner = json!([{
            "apiVersion": MySQLCluster::api_version(&()), "kind": "MySQLCluster", "name": NAME, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(OBJECTS).context("the cluster's objects cannot be read")?;
        for object in &mut objects {
            object["metadata"]["ownerReferences"] = owner.clone();
            object["metadata"]["labels"] = json!({
                "app.kubernetes.io/name": "mysql", "app.kubernetes.io/instance": NAME, "app.kubernetes.io/created-by": "moco",
            });
        }
        self.apply(&objects).await?;
        mysql.connect_by_hand().await?;
        Ok(mysql)
    }
}

impl Mysql {
    /// The first server takes writes, and the others follow it.
    async fn connect_by_hand(&self) -> Result<()> {
        for ordinal in 0..3 {
            wait_for(&format!("server {ordinal} runs"), LONG, async || self.administer(ordinal, "DO 1").await.map(drop))
                .await?;
        }
        let open = "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 1; SET GLOBAL rpl_semi_sync_source_timeout = 86400000; \
                    SET GLOBAL rpl_semi_sync_source_enabled = ON; SET GLOBAL read_only = OFF";
        let source = format!("{}.{}.svc", self.host(0), self.place.namespace());
        let follow = format!(
            "SET GLOBAL rpl_semi_sync_replica_enabled = ON; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source}', \
             SOURCE_PORT = 3306, SOURCE_USER = 'moco-repl', SOURCE_PASSWORD = 'hand', SOURCE_AUTO_POSITION = 1, \
             GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
        );
        for ordinal in 1..3 {
            self.administer(ordinal, &follow).await?;
        }
        self.administer(0, open).await?;
        for ordinal in 0..3 {
            let role = if ordinal == 0 { keys::ROLE_PRIMARY } else { keys::ROLE_REPLICA };
            let labels = json!({ "metadata": { "labels": { keys::ROLE: role } } });
            self.place.api::<Pod>().patch(&self.pod(ordinal), &PatchParams::default(), &Patch::Merge(labels)).await?;
        }
        for ordinal in 1..3 {
            wait_for(&format!("server {ordinal} follows"), LONG, async || {
                let state = "SELECT SERVICE_STATE FROM performance_schema.replication_connection_status";
                let state = self.administer(ordinal, state).await?;
                ensure!(state == "ON", "it is {state}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}
