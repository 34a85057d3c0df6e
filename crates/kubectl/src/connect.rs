//! The way to the API server, and single reads and writes. Watching is another module's.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use windlass_api::Logbook as LogbookResource;

use crate::arguments::{DryRun, Global};
use crate::cluster::{Cluster, Logbook};
use crate::error::{Error, code, explain};
use crate::kinds::{Kind, SERVED, Target};

/// Who writes, in `managedFields`.
const FIELD_MANAGER: &str = "kubectl-windlass";
/// How long one request may take. A person waits for it.
const PATIENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);

/// A connection, and where one is in it.
pub(crate) struct Session {
    client: Client,
    /// The namespace that is meant.
    pub(crate) namespace: String,
}

/// Where logbooks are served.
pub(crate) fn logbooks() -> ApiResource {
    ApiResource::erase::<LogbookResource>(&())
}

impl Session {
    /// Connects as the command line and the environment say.
    pub(crate) async fn open(global: &Global) -> Result<Self, Error> {
        let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
        let wrong = |error: &dyn std::error::Error| Error::Configure(error.to_string());
        let mut config = match (&global.kubeconfig, &global.context) {
            (Some(path), _) => {
                let file = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(|error| wrong(&error))?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|error| wrong(&error))?,
            (None, None) => Config::infer().await.map_err(|error| wrong(&error))?,
        };
        config.connect_timeout = Some(CONNECT);
        let namespace = global.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| Error::Configure(explain(&error)))?;
        Ok(Self { client, namespace })
    }

    /// Objects of a resource, in one namespace or in all.
    pub(crate) fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    fn clusters(&self, kind: &Kind) -> Api<DynamicObject> {
        self.api(&(kind.resource)(), Some(&self.namespace))
    }

    /// One cluster.
    pub(crate) async fn get(&self, target: &Target) -> Result<Cluster, Error> {
        let act = format!("read {} in namespace {:?}", target.handle(), self.namespace);
        let object = match call(self.clusters(target.kind).get(&target.name)).await {
            Ok(object) => object,
            Err(error) if code(&error) == Some(404) => return Err(self.no_such(target).await),
            Err(error) => return Err(Error::call(act, &error)),
        };
        let logbook = self.logbook(target.kind, &object).await;
        Ok(Cluster { kind: target.kind, object: Arc::new(object), logbook })
    }

    async fn logbook(&self, kind: &Kind, object: &DynamicObject) -> Logbook {
        let api = self.api(&logbooks(), Some(&self.namespace));
        match call(api.get(&kind.logbook(&object.name_any()))).await {
            Ok(found) => Logbook::read(&found, &object.uid().unwrap_or_default()),
            Err(error) if code(&error) == Some(404) => Logbook::Absent,
            Err(error) => Logbook::Unknown(format!("the logbook cannot be read: {}", explain(&error))),
        }
    }

    /// That there is no such cluster; and where it is, if it can be found.
    pub(crate) async fn no_such(&self, target: &Target) -> Error {
        let everywhere = self.api(&(target.kind.resource)(), None);
        let same_name = ListParams::default().fields(&format!("metadata.name={}", target.name));
        let found = call(everywhere.list(&same_name)).await.map(|list| list.items).unwrap_or_default();
        let places: Vec<String> = found.iter().filter_map(|object| Some(format!("-n {}", object.namespace()?))).collect();
        let hint = match places.as_slice() {
            [] => "; `kubectl windlass list -A` shows what there is".to_owned(),
            places => format!("; there is one with {}", places.join(" or ")),
        };
        Error::NoSuchCluster { handle: target.handle(), namespace: self.namespace.clone(), hint }
    }

    /// All clusters, by namespace, kind and name.
    pub(crate) async fn list(&self, namespace: Option<&str>, selector: &str) -> Result<Vec<Cluster>, Error> {
        let mut clusters = Vec::new();
        let mut absent = 0;
        let books = call(self.api(&logbooks(), namespace).list(&ListParams::default())).await;
        for kind in &SERVED {
            let resource = (kind.resource)();
            let listed = call(self.api(&resource, namespace).list(&ListParams::default().labels(selector))).await;
            let list = match listed {
                Ok(list) => list.items,
                Err(error) if code(&error) == Some(404) => {
                    absent += 1;
                    continue;
                }
                Err(error) => return Err(Error::call(format!("list {}", resource.plural), &error)),
            };
            clusters.extend(list.into_iter().map(|object| {
                let found = match &books {
                    Ok(books) => find_logbook(kind, &object, books.items.iter()),
                    Err(error) => Logbook::Unknown(format!("logbooks cannot be read: {}", explain(error))),
                };
                Cluster { kind, object: Arc::new(object), logbook: found }
            }));
        }
        if absent == SERVED.len() {
            return Err(not_installed());
        }
        sort(&mut clusters);
        Ok(clusters)
    }

    /// Changes a cluster by a merge patch that carries only what changes. Returns the object as it is then.
    pub(crate) async fn patch(&self, target: &Target, change: &Value, dry_run: DryRun) -> Result<DynamicObject, kube::Error> {
        call(self.clusters(target.kind).patch(&target.name, &parameters(dry_run), &Patch::Merge(change))).await
    }

    /// Changes the size, through the subresource `scale` where there is one.
    pub(crate) async fn scale(&self, target: &Target, replicas: u16, dry_run: DryRun) -> Result<(), kube::Error> {
        let change = json!({ "spec": { "replicas": replicas } });
        if !target.kind.has_scale {
            return self.patch(target, &change, dry_run).await.map(drop);
        }
        let api = self.clusters(target.kind);
        call(api.patch_scale(&target.name, &parameters(dry_run), &Patch::Merge(&change))).await.map(drop)
    }

    /// One value of a Secret.
    pub(crate) async fn secret(&self, name: &str, key: &str) -> Result<String, Error> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let act = format!("read Secret {name} in namespace {:?}", self.namespace);
        let secret = call(api.get(name)).await.map_err(|error| Error::call(act.clone(), &error))?;
        let value = secret.data.and_then(|mut data| data.remove(key));
        let value = value.ok_or_else(|| Error::Call { act, why: format!("it has no key {key}") })?;
        Ok(String::from_utf8_lossy(&value.0).into_owned())
    }

    /// Sets one annotation of a pod.
    pub(crate) async fn annotate_pod(&self, name: &str, key: &str, value: &str, dry_run: DryRun) -> Result<(), Error> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let change = json!({ "metadata": { "annotations": { key: value } } });
        let act = format!("annotate pod {name} in namespace {:?}", self.namespace);
        let patched = call(api.patch_metadata(name, &parameters(dry_run), &Patch::Merge(&change))).await;
        patched.map(drop).map_err(|error| Error::call(act, &error))
    }

    /// The names of all namespaces, for completion.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, kube::Error> {
        let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.client.clone());
        Ok(call(api.list_metadata(&ListParams::default())).await?.iter().map(kube::ResourceExt::name_any).collect())
    }
}

/// None of the kinds is known to the server.
pub(crate) fn not_installed() -> Error {
    Error::Call {
        act: "list clusters".to_owned(),
        why: "this Kubernetes serves none of Windlass's kinds; the chart windlass-crds installs them".to_owned(),
    }
}

fn parameters(dry_run: DryRun) -> PatchParams {
    PatchParams { dry_run: dry_run == DryRun::Server, field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// The logbook of a cluster, among all of them.
pub(crate) fn find_logbook<'a>(
    kind: &Kind,
    object: &DynamicObject,
    mut books: impl Iterator<Item = &'a DynamicObject>,
) -> Logbook {
    let name = kind.logbook(&object.name_any());
    let found = books.find(|book| book.namespace() == object.namespace() && book.name_any() == name);
    found.map_or(Logbook::Absent, |book| Logbook::read(book, &object.uid().unwrap_or_default()))
}

/// By namespace, kind and name.
pub(crate) fn sort(clusters: &mut [Cluster]) {
    clusters.sort_by_key(|cluster| (cluster.namespace(), cluster.kind.short, cluster.name()));
}

/// One request, within the patience of a person.
async fn call<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    tokio::time::timeout(PATIENCE, request).await.unwrap_or_else(|_| {
        let late = std::io::Error::new(std::io::ErrorKind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs()));
        Err(kube::Error::Service(Box::new(late)))
    })
}
