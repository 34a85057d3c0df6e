//! The last check before a request that changes something leaves: is our Lease still ours?
//!
//! The time is that of the machine since its start, sleep included: a process that was stopped, or a machine that slept, finds its
//! Lease over when it wakes. A layer of the client, so that nothing which uses the client can forget it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request};
use tower::{BoxError, Layer, Service};

use crate::clock::Clock;

/// The request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("not sent: this process does not hold its Lease any more")]
pub struct Fenced;

/// Lets changes through while the Lease is held.
#[derive(Clone)]
pub struct Fence {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    /// Uptime in milliseconds until which changes may be sent.
    deadline: AtomicU64,
    under_way: AtomicUsize,
}

impl Fence {
    /// Closed until a Lease is held.
    pub fn closed(clock: Clock) -> Self {
        Self { inner: Arc::new(Inner { clock, deadline: AtomicU64::new(0), under_way: AtomicUsize::new(0) }) }
    }

    /// Without a Lease: for programs that are alone by construction.
    pub fn unguarded(clock: Clock) -> Self {
        let fence = Self::closed(clock);
        fence.inner.deadline.store(u64::MAX, Ordering::SeqCst);
        fence
    }

    pub(crate) fn open_until(&self, uptime: Duration) {
        self.inner.deadline.store(milliseconds(uptime), Ordering::SeqCst);
    }

    pub(crate) fn close(&self) {
        self.inner.deadline.store(0, Ordering::SeqCst);
    }

    /// How long changes may still be sent.
    pub(crate) fn remaining(&self) -> Duration {
        let now = milliseconds(self.inner.clock.uptime());
        Duration::from_millis(self.inner.deadline.load(Ordering::SeqCst).saturating_sub(now))
    }

    /// Whether a change may be sent now.
    pub fn check(&self) -> Result<(), Fenced> {
        if self.remaining().is_zero() { Err(Fenced) } else { Ok(()) }
    }

    /// Waits until nothing is under way any more, this long at most.
    pub(crate) async fn drained(&self, at_most: Duration) {
        let end = tokio::time::Instant::now() + at_most;
        while self.inner.under_way.load(Ordering::SeqCst) > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Commands in pods change things as well, although the request only reads.
fn changes<B>(request: &Request<B>) -> bool {
    *request.method() != Method::GET || request.uri().path().ends_with("/exec")
}

impl<S> Layer<S> for Fence {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, fence: self.clone() }
    }
}

/// A service behind a fence.
#[derive(Clone)]
pub struct Guarded<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !changes(&request) {
            let answer = self.inner.call(request);
            return Box::pin(async { answer.await.map_err(Into::into) });
        }
        if let Err(fenced) = self.fence.check() {
            return Box::pin(async { Err(fenced.into()) });
        }
        let counted = UnderWay::new(&self.fence);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(counted);
            answer.map_err(Into::into)
        })
    }
}

/// Counts a request until it is answered or given up.
struct UnderWay(Arc<Inner>);

impl UnderWay {
    fn new(fence: &Fence) -> Self {
        fence.inner.under_way.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&fence.inner))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}
