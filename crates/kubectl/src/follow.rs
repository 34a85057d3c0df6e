//! Following clusters and their logbooks as they change.
//!
//! A refusal that will not change by itself ends it; a lost connection does not, and is told.

use std::time::SystemTime;

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event, watcher};

use crate::cluster::{Cluster, Logbook};
use crate::connect::{Session, find_logbook, logbooks, not_installed, sort};
use crate::error::{Error, code, explain};
use crate::kinds::{Kind, SERVED, Target};

/// Which clusters are followed.
pub(crate) struct Scope<'a> {
    kinds: Vec<&'static Kind>,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    selector: String,
}

impl<'a> Scope<'a> {
    /// One cluster.
    pub(crate) fn one(session: &'a Session, target: &'a Target) -> Self {
        Self {
            kinds: vec![target.kind],
            namespace: Some(&session.namespace),
            name: Some(&target.name),
            selector: String::new(),
        }
    }

    /// All clusters, or those of a namespace.
    pub(crate) fn all(namespace: Option<&'a str>, selector: &str) -> Self {
        Self { kinds: SERVED.iter().collect(), namespace, name: None, selector: selector.to_owned() }
    }
}

/// Where events come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Kind(usize),
    Logbooks,
}

type News = (Source, Result<Event<DynamicObject>, watcher::Error>);

struct Followed {
    kind: &'static Kind,
    store: Store<DynamicObject>,
    listed: bool,
    absent: bool,
}

/// Clusters that are followed.
pub(crate) struct Follow {
    kinds: Vec<Followed>,
    books: Store<DynamicObject>,
    books_listed: bool,
    books_refused: Option<String>,
    trouble: Option<String>,
    events: SelectAll<BoxStream<'static, News>>,
}

impl Follow {
    /// Begins to follow.
    pub(crate) fn start(session: &Session, scope: &Scope<'_>) -> Self {
        let mut events = SelectAll::new();
        let named = |name: Option<String>| name.map(|name| format!("metadata.name={name}")).unwrap_or_default();
        let mut kinds = Vec::new();
        for (index, kind) in scope.kinds.iter().enumerate() {
            let resource = (kind.resource)();
            let config = watcher::Config::default().labels(&scope.selector).fields(&named(scope.name.map(str::to_owned)));
            let writer = reflector::store::Writer::new(resource.clone());
            kinds.push(Followed { kind, store: writer.as_reader(), listed: false, absent: false });
            let stream = watcher(session.api(&resource, scope.namespace), config).default_backoff();
            events.push(reflector::reflector(writer, stream).map(move |event| (Source::Kind(index), event)).boxed());
        }
        let resource = logbooks();
        let book = match (scope.name, scope.kinds.as_slice()) {
            (Some(name), [kind]) => Some(kind.logbook(name)),
            _ => None,
        };
        let writer = reflector::store::Writer::new(resource.clone());
        let books = writer.as_reader();
        let config = watcher::Config::default().fields(&named(book));
        let stream = watcher(session.api(&resource, scope.namespace), config).default_backoff();
        events.push(reflector::reflector(writer, stream).map(|event| (Source::Logbooks, event)).boxed());
        Self { kinds, books, books_listed: false, books_refused: None, trouble: None, events }
    }

    /// Waits for news, and returns the clusters as they are then; nothing while they were not all listed yet.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Cluster>>, Error> {
        let Some((source, event)) = self.events.next().await else {
            return std::future::pending().await;
        };
        self.take(source, event)?;
        // What has come at the same time is told together.
        while let Some(Some((source, event))) = self.events.next().now_or_never() {
            self.take(source, event)?;
        }
        if !self.kinds.is_empty() && self.kinds.iter().all(|followed| followed.absent) {
            return Err(not_installed());
        }
        let complete = self.books_listed && self.kinds.iter().all(|followed| followed.listed);
        Ok(complete.then(|| self.clusters()))
    }

    /// What is wrong with the connection, since the last news.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn take(&mut self, source: Source, event: Result<Event<DynamicObject>, watcher::Error>) -> Result<(), Error> {
        let error = match event {
            Ok(event) => {
                self.trouble = None;
                if matches!(event, Event::InitDone) {
                    self.listed(source);
                }
                return Ok(());
            }
            Err(error) => error,
        };
        let refusal = refusal(&error);
        match (source, refusal) {
            (Source::Logbooks, Some((404, _))) => self.books_listed = true,
            (Source::Logbooks, Some((_, why))) => {
                self.books_refused = Some(format!("logbooks cannot be read: {why}"));
                self.books_listed = true;
            }
            (Source::Kind(index), Some((404, _))) => {
                if let Some(followed) = self.kinds.get_mut(index) {
                    followed.listed = true;
                    followed.absent = true;
                }
            }
            (Source::Kind(_), Some((_, why))) => return Err(Error::Call { act: "watch clusters".to_owned(), why }),
            (_, None) => {
                let now = Timestamp::try_from(SystemTime::now()).map(|now| format!("{now:.0}")).unwrap_or_default();
                self.trouble = Some(format!("the connection failed at {now} and is tried again: {}", cause(&error)));
            }
        }
        Ok(())
    }

    fn listed(&mut self, source: Source) {
        match source {
            Source::Logbooks => {
                self.books_listed = true;
                self.books_refused = None;
            }
            Source::Kind(index) => {
                if let Some(followed) = self.kinds.get_mut(index) {
                    followed.listed = true;
                    followed.absent = false;
                }
            }
        }
    }

    fn clusters(&self) -> Vec<Cluster> {
        let books = self.books.state();
        let mut clusters = Vec::new();
        for followed in &self.kinds {
            for object in followed.store.state() {
                let logbook = match &self.books_refused {
                    Some(why) => Logbook::Unknown(why.clone()),
                    None => find_logbook(followed.kind, &object, books.iter().map(|book| &**book)),
                };
                clusters.push(Cluster { kind: followed.kind, object, logbook });
            }
        }
        sort(&mut clusters);
        clusters
    }
}

fn inner(error: &watcher::Error) -> Option<&kube::Error> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Some(error),
        _ => None,
    }
}

/// An answer that will not change by itself.
fn refusal(error: &watcher::Error) -> Option<(u16, String)> {
    let error = inner(error)?;
    let code = code(error).filter(|code| matches!(code, 401 | 403 | 404))?;
    Some((code, explain(error)))
}

fn cause(error: &watcher::Error) -> String {
    inner(error).map_or_else(|| error.to_string(), explain)
}
