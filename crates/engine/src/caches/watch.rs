//! Feeds the caches from watches. Filters at the server: only what Windlass manages ever reaches this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;

use super::slim::{
    Child, Claim, ConfigMap, Deployment, DisruptionBudget, Pod, Role, RoleBinding, Secret, Service, ServiceAccount,
    StatefulSet, Template,
};
use super::{Caches, LOGBOOKS, name_of, version_of};
use crate::metrics::Metrics;

/// What happens to objects of a watch. A new list is one event: whoever keeps them learns what is gone.
#[derive(Debug)]
pub(crate) enum Watched<T> {
    /// It is there, in this state.
    Put(T),
    /// It is gone.
    Gone(T),
    /// A list is about to be asked for: it will have everything that is known now and is still there.
    Begun,
    /// A list ended: these are all, by namespace and name with their UIDs, and this was the newest version among them.
    Listed { all: BTreeMap<(String, String), String>, newest: u64 },
}

/// Runs a watch for ever, through errors, and tells when the first list is complete.
pub(crate) async fn run<T>(
    api: Api<T>,
    config: watcher::Config,
    metrics: Arc<Metrics>,
    synced: watch::Sender<bool>,
    mut take: impl FnMut(Watched<T>),
) where
    T: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T::DynamicType: Default,
{
    let plural = T::plural(&T::DynamicType::default()).into_owned();
    let stream = watcher(api, config).default_backoff();
    futures::pin_mut!(stream);
    let (mut all, mut newest) = (BTreeMap::new(), 0);
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => {
                (all, newest) = (BTreeMap::new(), 0);
                take(Watched::Begun);
            }
            Ok(Event::InitApply(mut object)) => {
                prune(object.meta_mut());
                newest = newest.max(version_of(object.meta()));
                all.insert(name_of(object.meta()), object.meta().uid.clone().unwrap_or_default());
                take(Watched::Put(object));
            }
            Ok(Event::InitDone) => {
                take(Watched::Listed { all: std::mem::take(&mut all), newest });
                synced.send_replace(true);
            }
            Ok(Event::Apply(mut object)) => {
                prune(object.meta_mut());
                take(Watched::Put(object));
            }
            Ok(Event::Delete(object)) => take(Watched::Gone(object)),
            Err(error) => {
                metrics.watch_failed(&plural);
                tracing::warn!(resource = %plural, %error, "watch failed, it is started again");
            }
        }
    }
}

/// A third of an object's bytes, and nobody here reads them.
fn prune(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// A logbook that cannot be read speaks of no cluster: it is taken for lost, and nobody else suffers.
fn readable(logbook: DeserializeGuard<Logbook>) -> Logbook {
    logbook.0.unwrap_or_else(|invalid| {
        tracing::error!(logbook = ?invalid.metadata.name, error = invalid.error, "logbook cannot be read");
        Logbook { metadata: invalid.metadata, spec: LogbookSpec::default() }
    })
}

/// Starts the watches of everything that clusters consist of. The receivers tell when each is complete.
pub(crate) fn watch_children(
    client: &Client,
    namespace: Option<&str>,
    caches: &Arc<Caches>,
    metrics: &Arc<Metrics>,
    (tasks, stop): (&TaskTracker, &CancellationToken),
) -> Vec<watch::Receiver<bool>> {
    let watches = Watches { client, namespace, caches, metrics, tasks, stop };
    vec![
        watches.child::<Service>(),
        watches.child::<DisruptionBudget>(),
        watches.child::<StatefulSet>(),
        watches.child::<Pod>(),
        watches.child::<Claim>(),
        watches.child::<ConfigMap>(),
        watches.child::<Secret>(),
        watches.child::<ServiceAccount>(),
        watches.child::<Deployment>(),
        watches.child::<Role>(),
        watches.child::<RoleBinding>(),
        watches.selected::<Template>(&format!("{}={}", labels::KEEPS, labels::KEEPS_TEMPLATE)),
        watches.logbooks(),
    ]
}

struct Watches<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    caches: &'a Arc<Caches>,
    metrics: &'a Arc<Metrics>,
    tasks: &'a TaskTracker,
    stop: &'a CancellationToken,
}

impl Watches<'_> {
    fn api<T>(&self) -> Api<T>
    where
        T: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        match self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn config() -> watcher::Config {
        // What other operators made has it as well, once it is taken over; their label for themselves stays.
        watcher::Config::default().labels(KIND_LABEL)
    }

    fn child<C: Child>(&self) -> watch::Receiver<bool> {
        self.selected::<C>("")
    }

    /// Children with more labels than those of all.
    fn selected<C: Child>(&self, more: &str) -> watch::Receiver<bool> {
        let caches = Arc::clone(self.caches);
        let (synced, receiver) = watch::channel(false);
        let mut config = Self::config();
        if let Some(selector) = config.label_selector.as_mut().filter(|_| !more.is_empty()) {
            selector.push(',');
            selector.push_str(more);
        }
        let feed = run(self.api::<C>(), config, Arc::clone(self.metrics), synced, move |event| match event {
            Watched::Put(child) => caches.put(child),
            Watched::Gone(child) => caches.remove(child),
            Watched::Begun => caches.expect_list(&C::plural(&())),
            Watched::Listed { all, newest } => caches.retain::<C>(&all, newest),
        });
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(feed));
        receiver
    }

    fn logbooks(&self) -> watch::Receiver<bool> {
        let caches = Arc::clone(self.caches);
        let (synced, receiver) = watch::channel(false);
        let api = self.api::<DeserializeGuard<Logbook>>();
        let feed = run(api, Self::config(), Arc::clone(self.metrics), synced, move |event| match event {
            Watched::Put(logbook) => caches.put_logbook(readable(logbook)),
            Watched::Gone(logbook) => caches.remove_logbook(&readable(logbook)),
            Watched::Begun => caches.expect_list(LOGBOOKS),
            Watched::Listed { all, newest } => caches.retain_logbooks(&all, newest),
        });
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(feed));
        receiver
    }
}
