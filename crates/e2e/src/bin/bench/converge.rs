//! Sees when clusters have converged: all children are there, and every status speaks of the newest spec. Seen by watches, at
//! the moment in which it becomes so.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use windlass_api::{Logbook, ReplicatedStatefulSet};
use windlass_core::labels;

use crate::model::Counts;
use crate::stage::Stage;

/// What a watch shows.
enum Seen {
    /// Its first list is complete.
    Listed,
    /// This child is there.
    Child(Kind, String),
    /// This one is gone.
    ChildGone(Kind, String),
    /// The state of a custom resource: whether its status speaks of its newest spec.
    Told(String, bool),
    /// Nothing of interest.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Service,
    DisruptionBudget,
    StatefulSet,
    Logbook,
}

/// The watches of one namespace.
pub(crate) struct Watches {
    streams: SelectAll<BoxStream<'static, Result<Seen>>>,
    children: HashSet<(Kind, String)>,
    told: HashSet<String>,
}

impl Watches {
    /// Starts all watches, and waits until they are.
    pub(crate) async fn start(stage: &Stage, namespace: &str) -> Result<Self> {
        let streams = select_all([
            child::<Service>(stage, namespace, Kind::Service),
            child::<PodDisruptionBudget>(stage, namespace, Kind::DisruptionBudget),
            child::<StatefulSet>(stage, namespace, Kind::StatefulSet),
            child::<Logbook>(stage, namespace, Kind::Logbook),
            resources(stage, namespace),
        ]);
        let mut watches = Self { streams, children: HashSet::new(), told: HashSet::new() };
        let mut missing = watches.streams.len();
        while missing > 0 {
            missing -= usize::from(watches.take().await?);
        }
        Ok(watches)
    }

    /// Waits until this many clusters have converged; tells when that was.
    pub(crate) async fn all_converged(&mut self, clusters: usize, limit: Duration) -> Result<Instant> {
        let deadline = tokio::time::Instant::now() + limit;
        while !self.complete(clusters) {
            match tokio::time::timeout_at(deadline, self.take()).await {
                Ok(taken) => taken?,
                Err(_) => bail!("not converged after {} s: {}", limit.as_secs(), self.described(clusters)),
            };
        }
        Ok(Instant::now())
    }

    /// Waits until nothing is left.
    pub(crate) async fn all_gone(&mut self, limit: Duration) -> Result<()> {
        let gone = async {
            while !self.children.is_empty() {
                self.take().await?;
            }
            self.told.clear();
            Ok(())
        };
        crate::within(limit, "the children of a deleted cluster to be gone", gone).await
    }

    fn complete(&self, clusters: usize) -> bool {
        self.told.len() == clusters && self.children.len() == clusters * Counts::EXPECTED.all()
    }

    fn described(&self, clusters: usize) -> String {
        let count = |wanted| self.children.iter().filter(|(kind, _)| *kind == wanted).count();
        format!(
            "of {clusters} clusters there are {} Services, {} budgets, {} StatefulSets, {} logbooks; {} statuses speak of the newest spec",
            count(Kind::Service),
            count(Kind::DisruptionBudget),
            count(Kind::StatefulSet),
            count(Kind::Logbook),
            self.told.len()
        )
    }

    /// Takes one event in. True when it was the end of a first list.
    async fn take(&mut self) -> Result<bool> {
        match self.streams.try_next().await?.context("a watch of the bench ended")? {
            Seen::Listed => return Ok(true),
            Seen::Child(kind, name) => {
                self.children.insert((kind, name));
            }
            Seen::ChildGone(kind, name) => {
                self.children.remove(&(kind, name));
            }
            Seen::Told(name, true) => {
                self.told.insert(name);
            }
            Seen::Told(name, false) => {
                self.told.remove(&name);
            }
            Seen::Nothing => {}
        }
        Ok(false)
    }
}

fn child<K>(stage: &Stage, namespace: &str, kind: Kind) -> BoxStream<'static, Result<Seen>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api = Api::<PartialObjectMeta<K>>::namespaced(stage.writer.clone(), namespace);
    let config = watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_WINDLASS));
    let name = |object: PartialObjectMeta<K>| object.metadata.name.unwrap_or_default();
    let stream = watcher(api, config).map(move |event| match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => Ok(Seen::Child(kind, name(object))),
        Ok(Event::Delete(object)) => Ok(Seen::ChildGone(kind, name(object))),
        Ok(Event::InitDone) => Ok(Seen::Listed),
        Ok(Event::Init) => Ok(Seen::Nothing),
        Err(error) => Err(error).context("a watch of the bench failed"),
    });
    stream.boxed()
}

fn resources(stage: &Stage, namespace: &str) -> BoxStream<'static, Result<Seen>> {
    let api = Api::<ReplicatedStatefulSet>::namespaced(stage.writer.clone(), namespace);
    let stream = watcher(api, watcher::Config::default()).map(|event| match event {
        Ok(Event::Apply(resource) | Event::InitApply(resource)) => {
            let observed = resource.status.and_then(|status| status.observed_generation);
            let current = observed.is_some() && observed == resource.metadata.generation;
            Ok(Seen::Told(resource.metadata.name.unwrap_or_default(), current))
        }
        Ok(Event::Delete(resource)) => Ok(Seen::Told(resource.metadata.name.unwrap_or_default(), false)),
        Ok(Event::InitDone) => Ok(Seen::Listed),
        Ok(Event::Init) => Ok(Seen::Nothing),
        Err(error) => Err(error).context("a watch of the bench failed"),
    });
    stream.boxed()
}
