//! One client's own line to the server. A guard stands on it: it sees each call before and after the server does it, and each watch
//! event before it is shown, and may stand in the way. Only this client's lists and watches can be held in the past.
//!
//! What the guard decides is its own affair; the line only does what it says.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Response;
use kube::{Client, client::Body};
use tower::{BoxError, Service};

use crate::{
    calls::Call,
    dispatch::{Done, Request},
    faults::{Effect, EventEffect},
    server::{FakeApiServer, ResponseBody, Shared},
};

/// A watch event on its way to a client.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Plural resource.
    pub resource: String,
    /// Object name.
    pub name: String,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: &'static str,
    /// The revision that it tells of.
    pub revision: u64,
}

/// Stands on a line.
pub trait Guard: Send + Sync {
    /// A call arrived and nothing is done yet. What is returned happens to it.
    fn before(&self, _call: &Call) -> Option<Effect> {
        None
    }

    /// A call was carried out, whether or not its answer gets through. `done` says whether the server accepted it.
    fn after(&self, _call: &Call, _done: bool) {}

    /// An event is about to be shown. The server is locked meanwhile: the guard must not look into it.
    fn event(&self, _sighting: &Sighting) -> Option<EventEffect> {
        None
    }
}

/// What the handles of one line share.
pub(crate) struct Way {
    pub(crate) guard: Arc<dyn Guard>,
    held_at: Mutex<Option<u64>>,
    kept: Mutex<Vec<Request>>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way").field("held_at", &self.held_at).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Way {
    /// The revision that lists and watches are held at.
    pub(crate) fn held_at(&self) -> Option<u64> {
        *lock(&self.held_at)
    }

    pub(crate) fn keep(&self, request: Request) {
        lock(&self.kept).push(request);
    }
}

/// One client's own line to the server.
#[derive(Clone)]
pub struct Line {
    shared: Arc<Shared>,
    way: Arc<Way>,
}

impl Line {
    pub(crate) fn new(shared: Arc<Shared>, guard: Arc<dyn Guard>) -> Self {
        let way = Way { guard, held_at: Mutex::new(None), kept: Mutex::new(Vec::new()) };
        Self { shared, way: Arc::new(way) }
    }

    /// The client at the end of this line, with no retries of its own. Must be called inside a tokio runtime.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// From now on lists and watches of this line show nothing newer than `revision`. Gets and writes meet the newest state, as
    /// they do at a server that reads from a cache which lags behind.
    pub fn hold_view_at(&self, revision: u64) -> &Self {
        *lock(&self.way.held_at) = Some(revision);
        self
    }

    /// Ends `hold_view_at`: watches now show what they missed.
    pub fn release_view(&self) -> &Self {
        *lock(&self.way.held_at) = None;
        self.shared.wake();
        self
    }

    /// Carries out, now, the requests that [`Effect::Keep`] stopped; their callers do not learn of it. Returns whether each was
    /// accepted, or why not.
    pub fn deliver_kept(&self) -> Vec<Result<(), String>> {
        let kept = std::mem::take(&mut *lock(&self.way.kept));
        let mut state = self.shared.lock();
        let done = kept
            .iter()
            .map(|request| match state.carry_out(request, None) {
                Ok(Done::Answer(_) | Done::Watch(_)) => Ok(()),
                Err(failure) => Err(format!("{} {}", failure.code, failure.reason)),
            })
            .collect();
        drop(state);
        self.shared.wake();
        done
    }
}

impl Service<http::Request<Body>> for Line {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(FakeApiServer::handle(Arc::clone(&self.shared), Some(Arc::clone(&self.way)), request))
    }
}
