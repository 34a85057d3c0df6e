//! Sees when clusters have converged: all children are there, and every status says so of the newest spec. Seen by watches, at the
//! moment in which it becomes so.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::core::{DynamicObject, NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use windlass_api::Logbook;

use crate::kind::{Child, Kind};
use crate::stage::Stage;

/// `410 Gone`
const GONE: u16 = 410;

/// What a watch shows.
enum Seen {
    /// Its first list is complete.
    Listed,
    /// This child is there.
    Child(Child, String),
    /// This one is gone.
    ChildGone(Child, String),
    /// The state of a custom resource: whether it has converged, by its status.
    Told(String, bool),
    /// Nothing of interest.
    Nothing,
}

/// The watches of one namespace.
pub(crate) struct Watches {
    kind: Kind,
    streams: SelectAll<BoxStream<'static, Result<Seen>>>,
    children: HashSet<(Child, String)>,
    told: HashSet<String>,
}

impl Watches {
    /// Starts all watches, and waits until they are.
    pub(crate) async fn start(stage: &Stage, kind: Kind, namespace: &str) -> Result<Self> {
        let selector = kind.selector();
        let children = kind.children().iter().map(|(child, _)| children((stage, namespace, &selector), *child));
        let streams = select_all(children.chain([resources(stage, kind, namespace)]));
        let mut watches = Self { kind, streams, children: HashSet::new(), told: HashSet::new() };
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

    /// Waits until so many clusters have been converged for a while; tells since when.
    pub(crate) async fn stay_converged(&mut self, clusters: usize, time: Duration, limit: Duration) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        loop {
            let since = self.all_converged(clusters, deadline.saturating_duration_since(Instant::now())).await?;
            let until = tokio::time::Instant::from_std(since + time);
            loop {
                match tokio::time::timeout_at(until, self.take()).await {
                    Err(_) => return Ok(since),
                    Ok(taken) => drop(taken?),
                }
                if !self.complete(clusters) {
                    break;
                }
            }
        }
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
        self.told.len() == clusters && self.children.len() == clusters * self.kind.objects()
    }

    fn described(&self, clusters: usize) -> String {
        let count = |wanted| self.children.iter().filter(|(child, _)| *child == wanted).count();
        let children: Vec<String> = self
            .kind
            .children()
            .iter()
            .map(|(child, each)| format!("{} of {} {child:?}", count(*child), clusters * each))
            .collect();
        format!("{} of {clusters} statuses say so; {}", self.told.len(), children.join(", "))
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

/// Where objects are watched: in which namespace, with which labels.
type Where<'a> = (&'a Stage, &'a str, &'a str);

fn children(place: Where<'_>, child: Child) -> BoxStream<'static, Result<Seen>> {
    match child {
        Child::Service => objects::<Service>(place, child),
        Child::DisruptionBudget => objects::<PodDisruptionBudget>(place, child),
        Child::StatefulSet => objects::<StatefulSet>(place, child),
        Child::Logbook => objects::<Logbook>(place, child),
        Child::Secret => objects::<Secret>(place, child),
        Child::ConfigMap => objects::<ConfigMap>(place, child),
        Child::ServiceAccount => objects::<ServiceAccount>(place, child),
        Child::Role => objects::<Role>(place, child),
        Child::RoleBinding => objects::<RoleBinding>(place, child),
        Child::Deployment => objects::<Deployment>(place, child),
    }
}

fn objects<K>((stage, namespace, selector): Where<'_>, child: Child) -> BoxStream<'static, Result<Seen>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api = Api::<PartialObjectMeta<K>>::namespaced(stage.writer.clone(), namespace);
    let config = watcher::Config::default().labels(selector);
    let name = |object: PartialObjectMeta<K>| object.metadata.name.unwrap_or_default();
    let stream = watcher(api, config).map(move |event| match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => Ok(Seen::Child(child, name(object))),
        Ok(Event::Delete(object)) => Ok(Seen::ChildGone(child, name(object))),
        Ok(Event::InitDone) => Ok(Seen::Listed),
        Ok(Event::Init) => Ok(Seen::Nothing),
        Err(error) => heals(error),
    });
    stream.boxed()
}

/// A watch that was too slow for the API server's memory begins anew by itself.
fn heals(error: watcher::Error) -> Result<Seen> {
    match error {
        watcher::Error::WatchError(status) if status.code == GONE => Ok(Seen::Nothing),
        error => Err(error).context("a watch of the bench failed"),
    }
}

fn resources(stage: &Stage, kind: Kind, namespace: &str) -> BoxStream<'static, Result<Seen>> {
    let api = Api::<DynamicObject>::namespaced_with(stage.writer.clone(), namespace, &kind.api());
    let stream = watcher(api, watcher::Config::default()).map(move |event| match event {
        Ok(Event::Apply(resource) | Event::InitApply(resource)) => {
            let converged = kind.is_converged(&resource);
            Ok(Seen::Told(resource.metadata.name.unwrap_or_default(), converged))
        }
        Ok(Event::Delete(resource)) => Ok(Seen::Told(resource.metadata.name.unwrap_or_default(), false)),
        Ok(Event::InitDone) => Ok(Seen::Listed),
        Ok(Event::Init) => Ok(Seen::Nothing),
        Err(error) => heals(error),
    });
    stream.boxed()
}
