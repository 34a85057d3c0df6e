//! The TiDB example, and its PD as anybody may ask it.

mod by_hand;
pub mod drains;
mod pauses;
pub mod scaling;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, ensure};
use http::{Method, Request, header};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::{Component, TidbCluster, TidbClusterStatus, keys};

use crate::galera::read_repository;
use crate::place::{Place, is_ready};
use crate::wait::{LONG, LONGEST, wait_for};

/// The cluster's name in the example.
pub const NAME: &str = "tidb";
const MANIFEST: &str = "examples/tidb/cluster.yaml";

/// A running TiDB example.
#[derive(Clone)]
pub struct Tidb {
    /// Where it is.
    pub place: Place,
}

/// A store, as PD tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its id.
    pub id: u64,
    /// Its pod, by its address.
    pub pod: String,
    /// `Up`, `Offline`, `Tombstone` and others.
    pub state: String,
    /// How many regions it holds.
    pub regions: u64,
    /// How many regions it leads.
    pub leaders: u64,
}

impl Store {
    /// Whether it was not asked to leave. It need not be Up: a new leader of PD calls every store disconnected until it hears from it.
    pub fn stays(&self) -> bool {
        self.state != "Offline" && self.state != "Tombstone"
    }
}

/// By which the objects of a component are found.
fn of(component: Component) -> ListParams {
    ListParams::default().labels(&format!("{}={NAME},{}={component}", keys::INSTANCE, keys::COMPONENT))
}

impl Place {
    /// Applies the TiDB example, changed as asked, and waits until it is Ready. Its volumes go with its claims, since a lab's disk is small.
    pub async fn tidb(&self, change: impl FnOnce(&mut Value)) -> Result<Tidb> {
        let mut cluster: Value = serde_saphyr::from_str(&read_repository(MANIFEST)?).context("the example cannot be read")?;
        cluster["spec"]["pvReclaimPolicy"] = "Delete".into();
        change(&mut cluster);
        self.apply(&[cluster]).await?;
        let tidb = Tidb { place: self.clone() };
        tidb.wait_until_ready().await?;
        Ok(tidb)
    }
}

impl Tidb {
    /// The custom resource.
    pub async fn get(&self) -> Result<TidbCluster> {
        Ok(self.place.api::<TidbCluster>().get(NAME).await?)
    }

    /// Its status.
    pub async fn status(&self) -> Result<TidbClusterStatus> {
        self.get().await?.status.context("no status yet")
    }

    /// One of its conditions.
    pub async fn condition(&self, type_: &str) -> Result<Condition> {
        let conditions = self.status().await?.conditions;
        conditions.into_iter().find(|it| it.type_ == type_).with_context(|| format!("no condition {type_}"))
    }

    /// Changes the custom resource by a merge patch.
    pub async fn patch(&self, change: &Value) -> Result<()> {
        self.place.api::<TidbCluster>().patch(NAME, &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Asks for so many stores of TiKV.
    pub async fn scale(&self, replicas: u16) -> Result<()> {
        self.patch(&json!({ "spec": { "tikv": { "replicas": replicas } } })).await
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

    /// Waits until the whole spec was acted upon, nothing is left to do, and all is well.
    pub async fn wait_until_ready(&self) -> Result<()> {
        wait_for("the cluster is Ready", LONGEST, async || {
            let cluster = self.get().await?;
            let status = cluster.status.context("no status yet")?;
            ensure!(status.observed_generation == cluster.metadata.generation, "an older spec was acted upon");
            for (type_, wanted) in [("Ready", "True"), ("Available", "True"), ("Progressing", "False"), ("Stalled", "False")] {
                let found = status.conditions.iter().find(|it| it.type_ == type_).with_context(|| format!("no {type_}"))?;
                ensure!(found.status == wanted, "{type_} is {}: {}: {}", found.status, found.reason, found.message);
            }
            Ok(())
        })
        .await
    }

    /// The pod of a member.
    pub fn pod(&self, component: Component, ordinal: u16) -> String {
        format!("{NAME}-{component}-{ordinal}")
    }

    /// The set of a component.
    pub async fn set(&self, component: Component) -> Result<StatefulSet> {
        Ok(self.place.api::<StatefulSet>().get(&format!("{NAME}-{component}")).await?)
    }

    /// How many pods the set of a component asks for.
    pub async fn size(&self, component: Component) -> Result<i32> {
        self.set(component).await?.spec.and_then(|spec| spec.replicas).context("the set has no size")
    }

    /// All its pods.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        let labels = ListParams::default().labels(&format!("{}={NAME},windlass.dev/kind=tc", keys::INSTANCE));
        Ok(self.place.api::<Pod>().list(&labels).await?.items)
    }

    /// The pods of a component.
    pub async fn pods_of(&self, component: Component) -> Result<Vec<Pod>> {
        Ok(self.place.api::<Pod>().list(&of(component)).await?.items)
    }

    /// The names of the pods of a component that are ready.
    pub async fn ready_pods_of(&self, component: Component) -> Result<BTreeSet<String>> {
        Ok(self.pods_of(component).await?.iter().filter(|pod| is_ready(pod)).map(ResourceExt::name_any).collect())
    }

    /// The claims of a component, by name.
    pub async fn claims(&self, component: Component) -> Result<BTreeMap<String, PersistentVolumeClaim>> {
        let claims = self.place.api::<PersistentVolumeClaim>().list(&of(component)).await?;
        Ok(claims.into_iter().map(|claim| (claim.name_any(), claim)).collect())
    }

    /// Sends a request to a port of a pod, through the API server, and returns what is answered.
    pub async fn call(&self, method: Method, pod: &str, port: u16, path: &str, body: Option<&Value>) -> Result<String> {
        let namespace = self.place.namespace();
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
        let request = Request::builder().method(method).uri(&uri).header(header::CONTENT_TYPE, "application/json");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let answer = self.place.stage().client().request_text(request.body(body)?).await;
        answer.with_context(|| format!("no good answer of {pod} to a request for {path}"))
    }

    /// Asks PD. Only its leader answers, and the others send there whoever asks: by a name that may not be known, or to one that leads no
    /// more. So each of them is asked, until one answers.
    pub async fn pd(&self, path: &str) -> Result<Value> {
        wait_for("PD answers", LONG, async || {
            let mut answer = Err(anyhow!("PD has no pods"));
            for pod in self.pods_of(Component::Pd).await? {
                answer = self.call(Method::GET, &pod.name_any(), 2379, &format!("/pd/api/v1/{path}"), None).await;
                if answer.is_ok() {
                    break;
                }
            }
            let text = answer?;
            serde_json::from_str(&text).with_context(|| format!("PD's answer to {path} is no JSON: {text}"))
        })
        .await
    }

    /// The stores that PD knows, those that have left included.
    pub async fn stores(&self) -> Result<Vec<Store>> {
        let listed = self.pd("stores?state=0&state=1&state=2").await?;
        let stores = listed["stores"].as_array().context("PD lists no stores")?;
        let read = |it: &Value| {
            let number = |value: &Value| value.as_u64().unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let pod = text(&it["store"]["address"]).split('.').next().unwrap_or_default().to_owned();
            Store {
                id: number(&it["store"]["id"]),
                pod,
                state: text(&it["store"]["state_name"]),
                regions: number(&it["status"]["region_count"]),
                leaders: number(&it["status"]["leader_count"]),
            }
        };
        Ok(stores.iter().map(read).collect())
    }

    /// The stores in a state, by id.
    pub async fn stores_that_are(&self, state: &str) -> Result<BTreeMap<u64, Store>> {
        let stores = self.stores().await?.into_iter().filter(|store| store.state == state);
        Ok(stores.map(|store| (store.id, store)).collect())
    }

    /// The stores that were not asked to leave, by id.
    pub async fn stores_that_stay(&self) -> Result<BTreeMap<u64, Store>> {
        Ok(self.stores().await?.into_iter().filter(Store::stays).map(|store| (store.id, store)).collect())
    }

    /// Waits until these are the stores that stay, and all of them are Up.
    pub async fn wait_until_up(&self, count: usize) -> Result<BTreeMap<u64, Store>> {
        wait_for(&format!("{count} stores are up"), LONG, async || {
            let stores = self.stores_that_stay().await?;
            ensure!(stores.len() == count && stores.values().all(|it| it.state == "Up"), "{stores:?}");
            Ok(stores)
        })
        .await
    }

    /// The schedulers of PD that are not there by default.
    pub async fn evictions(&self) -> Result<BTreeSet<String>> {
        let listed = self.pd("schedulers").await?;
        let names = listed.as_array().context("PD lists no schedulers")?.iter().filter_map(Value::as_str);
        Ok(names.filter(|name| name.contains("evict-leader")).map(str::to_owned).collect())
    }

    /// Tells the stand-in of a store something.
    async fn tell_store(&self, ordinal: u16, path: &str, body: &Value) -> Result<()> {
        let pod = self.pod(Component::Tikv, ordinal);
        wait_for("the store is told", LONG, async || self.call(Method::POST, &pod, 20180, path, Some(body)).await.map(drop))
            .await
    }

    /// Tells the stand-in of a store how fast its regions move.
    pub async fn set_speed(&self, ordinal: u16, regions_per_second: f64) -> Result<()> {
        self.tell_store(ordinal, "/standin/speed", &json!({ "regionsPerSecond": regions_per_second })).await
    }

    /// Lets the stand-in of a store keep one region, whatever PD orders; 0 is none.
    pub async fn hold(&self, ordinal: u16, region: u64) -> Result<()> {
        self.tell_store(ordinal, "/standin/hold", &json!({ "region": region })).await
    }

    /// A region that one store has and another one has not.
    pub async fn region_on(&self, store: u64, not_on: u64) -> Result<u64> {
        let listed = self.pd("regions").await?;
        let is_on = |region: &Value, store: u64| {
            region["peers"].as_array().into_iter().flatten().any(|peer| peer["store_id"].as_u64() == Some(store))
        };
        let mut regions = listed["regions"].as_array().context("PD lists no regions")?.iter();
        let found = regions.find(|region| is_on(region, store) && !is_on(region, not_on));
        found.and_then(|region| region["id"].as_u64()).with_context(|| format!("store {store} has none that {not_on} has not"))
    }

    /// Cuts the stand-in of a store off from PD, or lets it be heard again.
    pub async fn silence(&self, ordinal: u16, silent: bool) -> Result<()> {
        self.tell_store(ordinal, "/standin/faults", &json!({ "stopHeartbeats": silent })).await
    }

    /// What is remembered of it.
    pub async fn logbook(&self) -> Result<LogbookSpec> {
        Ok(self.place.api::<Logbook>().get(&format!("tc-{NAME}")).await?.spec)
    }
}
