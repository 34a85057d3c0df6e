//! The MySQL example, and a client of its database.

mod by_hand;
pub mod faults;
pub mod load;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_api::mysql::conditions::State;
use windlass_api::mysql::{MySQLCluster, MySQLClusterStatus, keys};

use crate::galera::read_repository;
use crate::place::{Place, Ran};
use crate::wait::{LONG, LONGEST, wait_for};

/// The cluster's name in the example.
pub const NAME: &str = "mysql";
const MANIFEST: &str = "examples/mysql/cluster.yaml";

/// What can be stopped apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stoppable {
    /// What is done to servers.
    Clustering,
    /// What is done to objects.
    Reconciliation,
}

impl Stoppable {
    fn annotation(self) -> &'static str {
        match self {
            Self::Clustering => keys::CLUSTERING_STOPPED,
            Self::Reconciliation => keys::RECONCILIATION_STOPPED,
        }
    }

    fn condition(self) -> &'static str {
        match self {
            Self::Clustering => "ClusteringActive",
            Self::Reconciliation => "ReconciliationActive",
        }
    }
}

/// A running MySQL example.
#[derive(Clone)]
pub struct Mysql {
    /// Where it is.
    pub place: Place,
}

impl Place {
    /// Applies the MySQL example, changed as asked, and waits until it is Healthy.
    pub async fn mysql(&self, change: impl FnOnce(&mut Value)) -> Result<Mysql> {
        self.mysql_with(&[], change).await
    }

    /// The same, with settings of the servers.
    pub async fn mysql_with(&self, settings: &[(&str, &str)], change: impl FnOnce(&mut Value)) -> Result<Mysql> {
        let mut objects: Vec<Value> =
            serde_saphyr::from_multiple(&read_repository(MANIFEST)?).context("the example cannot be read")?;
        let map = objects.iter_mut().find(|object| object["kind"] == "ConfigMap").context("the example has no settings")?;
        for (name, value) in settings {
            map["data"][name] = (*value).into();
        }
        change(objects.iter_mut().find(|object| object["kind"] == "MySQLCluster").context("the example has no cluster")?);
        self.apply(&objects).await?;
        let mysql = Mysql { place: self.clone() };
        mysql.wait_until_healthy().await?;
        Ok(mysql)
    }
}

impl Mysql {
    /// The custom resource.
    pub async fn get(&self) -> Result<MySQLCluster> {
        Ok(self.place.api::<MySQLCluster>().get(NAME).await?)
    }

    /// Its status.
    pub async fn status(&self) -> Result<MySQLClusterStatus> {
        self.get().await?.status.context("no status yet")
    }

    /// One of its conditions.
    pub async fn condition(&self, type_: &str) -> Result<Condition> {
        let conditions = self.status().await?.conditions;
        conditions.into_iter().find(|it| it.type_ == type_).with_context(|| format!("no condition {type_}"))
    }

    /// Changes the custom resource by a merge patch.
    pub async fn patch(&self, change: &Value) -> Result<()> {
        self.place.api::<MySQLCluster>().patch(NAME, &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Changes the custom resource by single operations.
    pub async fn patch_json(&self, operations: &Value) -> Result<()> {
        let patch: Patch<MySQLCluster> = Patch::Json(serde_json::from_value(operations.clone())?);
        self.place.api::<MySQLCluster>().patch(NAME, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Sets, or takes away, an annotation.
    pub async fn annotate(&self, key: &str, value: Option<&str>) -> Result<()> {
        self.patch(&json!({ "metadata": { "annotations": { key: value } } })).await
    }

    /// Waits for a condition.
    pub async fn wait_for_condition(&self, type_: &str, status: &str) -> Result<Condition> {
        wait_for(&format!("{type_} is {status}"), LONG, async || {
            let condition = self.condition(type_).await?;
            ensure!(condition.status == status, "{type_} is {}: {}", condition.status, condition.message);
            Ok(condition)
        })
        .await
    }

    /// Waits until the whole spec was acted upon and all is well.
    pub async fn wait_until_healthy(&self) -> Result<()> {
        wait_for("the cluster is Healthy", LONGEST, async || {
            let cluster = self.get().await?;
            let status = cluster.status.context("no status yet")?;
            ensure!(status.observed_generation == cluster.metadata.generation, "an older spec was acted upon");
            for type_ in ["Healthy", "Ready"] {
                let found = status.conditions.iter().find(|it| it.type_ == type_).with_context(|| format!("no {type_}"))?;
                ensure!(found.status == "True", "{type_} is {}: {}: {}", found.status, found.reason, found.message);
            }
            Ok(())
        })
        .await
    }

    /// The number of the primary.
    pub async fn primary(&self) -> Result<u16> {
        Ok(self.status().await?.current_primary_index)
    }

    /// Waits until another instance is the primary.
    pub async fn another_primary(&self, than: u16) -> Result<u16> {
        wait_for("another instance is the primary", LONG, async || {
            let primary = self.primary().await?;
            ensure!(primary != than, "instance {primary} is the primary");
            Ok(primary)
        })
        .await
    }

    /// The pod of an instance.
    pub fn pod(&self, ordinal: u16) -> String {
        format!("moco-{NAME}-{ordinal}")
    }

    /// The Service that leads to the primary.
    pub fn primary_service(&self) -> String {
        format!("moco-{NAME}-primary")
    }

    /// The host name of an instance.
    pub fn host(&self, ordinal: u16) -> String {
        format!("{}.moco-{NAME}", self.pod(ordinal))
    }

    /// Runs SQL as an account, over the network, from an instance's container.
    pub async fn try_sql(&self, from: u16, account: &str, host: &str, statements: &str) -> Result<Ran> {
        let (file, host) = (format!("--defaults-extra-file=/mysql-credentials/{account}-my.cnf"), format!("--host={host}"));
        let execute = format!("--execute=SET autocommit=1; {statements}");
        let options = ["--protocol=tcp", "--connect-timeout=5", "--get-server-public-key", "--batch", "--skip-column-names"];
        let command = [&["mysql", file.as_str()][..], &options, &[&host, &execute]].concat();
        self.place.run_in(&self.pod(from), "mysqld", &command).await
    }

    /// The same, where it must succeed.
    pub async fn sql(&self, from: u16, account: &str, host: &str, statements: &str) -> Result<String> {
        let ran = self.try_sql(from, account, host, statements).await?;
        ensure!(ran.code == 0, "{statements:?} at {host} ended with code {}: {}", ran.code, ran.errors.trim());
        Ok(ran.output.trim().to_owned())
    }

    /// Writes a number through the Service of the primary. It may lead nowhere for a moment after the primary changed.
    pub async fn insert(&self, from: u16, table: &str, number: u16) -> Result<()> {
        let statement = format!("INSERT IGNORE INTO {table} VALUES ({number})");
        wait_for(&format!("{number} is written"), LONG, async || {
            self.sql(from, "moco-writable", &self.primary_service(), &statement).await.map(drop)
        })
        .await
    }

    /// Begins a write to the primary, this one, that takes so many seconds, and returns when it runs.
    pub async fn write_slowly(&self, primary: u16, seconds: u16) -> Result<JoinHandle<Result<Ran>>> {
        let slow = format!("CREATE TABLE harbour.slow (a INT PRIMARY KEY); INSERT INTO harbour.slow SELECT SLEEP({seconds})");
        let (asks, service) = (self.clone(), self.primary_service());
        let statement = tokio::spawn(async move { asks.try_sql(primary, "moco-writable", &service, &slow).await });
        wait_for("the slow statement runs", LONG, async || {
            let running = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'INSERT INTO harbour.slow%'";
            let running = self.administer(primary, running).await?;
            ensure!(running == "1", "{running} run");
            Ok(())
        })
        .await?;
        Ok(statement)
    }

    /// What an instance answers to a reader. Asked in its own pod: a name may still lead to the one before.
    pub async fn read_from(&self, ordinal: u16, statement: &str) -> Result<String> {
        self.sql(ordinal, "moco-readonly", "127.0.0.1", statement).await
    }

    /// What an instance answers to the administrator. A server that keeps clients out lets this one in.
    pub async fn administer(&self, ordinal: u16, statements: &str) -> Result<String> {
        self.sql(ordinal, "moco-admin", "127.0.0.1", statements).await
    }

    /// What `kubectl moco` does with the words `stop` and `start`, and the wait for its acknowledgement.
    pub async fn stop(&self, lane: Stoppable) -> Result<()> {
        self.annotate(lane.annotation(), Some("true")).await?;
        self.wait_for_condition(lane.condition(), "False").await.map(drop)
    }

    /// Starts again what was stopped, and waits until that is told.
    pub async fn start(&self, lane: Stoppable) -> Result<()> {
        self.annotate(lane.annotation(), None).await?;
        self.wait_for_condition(lane.condition(), "True").await.map(drop)
    }

    /// What is remembered of it.
    pub async fn logbook(&self) -> Result<LogbookSpec> {
        Ok(self.place.api::<Logbook>().get(&format!("mysql-{NAME}")).await?.spec)
    }

    /// Waits until it is settled who acknowledges commits: then whoever else fails can be replaced.
    pub async fn wait_until_settled(&self) -> Result<()> {
        wait_for("it is settled who acknowledges", LONG, async || {
            let councils = self.logbook().await?.mysql.map(|entries| entries.councils).unwrap_or_default();
            ensure!(councils.len() == 1, "{councils:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a step with these words is held.
    pub async fn wait_until_held(&self, words: &str) -> Result<()> {
        wait_for(&format!("a step is held: {words}"), LONG, async || {
            let held = self.logbook().await?.plan.held;
            ensure!(held.iter().any(|step| step.step.contains(words)), "held: {held:?}");
            Ok(())
        })
        .await
    }

    /// Waits until every instance has exactly these rows.
    pub async fn wait_for_rows(&self, instances: u16, table: &str, rows: &str) -> Result<()> {
        for ordinal in 0..instances {
            wait_for(&format!("instance {ordinal} has the rows"), LONG, async || {
                let read = self.read_from(ordinal, &format!("SELECT * FROM {table} ORDER BY 1")).await?;
                ensure!(read == rows, "it has {read:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// The state, as conditions name it.
    pub async fn state(&self) -> Result<State> {
        let reason = self.condition("Healthy").await?.reason;
        State::ALL.into_iter().find(|state| state.as_str() == reason).with_context(|| format!("{reason} is no state"))
    }
}
