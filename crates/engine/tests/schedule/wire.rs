//! The way from one process to the server: it says who calls, takes its time, and can be cut as by SIGKILL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, header};
use kube::client::Body;
use tower::{BoxError, Service};
use windlass_dice::Dice;
use windlass_testkit::FakeApiServer;

/// How long a request is under way at most, in each direction.
const LONGEST: u16 = 40;

#[derive(Clone)]
pub struct Wire {
    server: FakeApiServer,
    caller: HeaderValue,
    dice: Arc<Mutex<Dice>>,
    cut: Arc<AtomicBool>,
}

/// Cuts a wire.
#[derive(Clone)]
pub struct Scissors(Arc<AtomicBool>);

impl Scissors {
    /// The process is dead: what it has sent arrives, what it would send does not.
    pub fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Wire {
    pub fn new(server: &FakeApiServer, caller: &str, seed: u64) -> (Self, Scissors) {
        let cut = Arc::new(AtomicBool::new(false));
        let dice = Arc::new(Mutex::new(Dice::new(seed)));
        let caller = HeaderValue::from_str(caller).unwrap();
        (Self { server: server.clone(), caller, dice, cut: Arc::clone(&cut) }, Scissors(cut))
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(u64::from(self.dice.lock().unwrap().below(LONGEST)))
    }
}

impl Service<Request<Body>> for Wire {
    type Response = <FakeApiServer as Service<Request<Body>>>::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if self.cut.load(Ordering::SeqCst) {
            return std::future::pending().boxed();
        }
        request.headers_mut().insert(header::USER_AGENT, self.caller.clone());
        let (mut server, there, back) = (self.server.clone(), self.delay(), self.delay());
        // What was sent arrives, even when the caller does not wait for it any more.
        let sent = tokio::spawn(async move {
            tokio::time::sleep(there).await;
            let answer = server.call(request).await;
            tokio::time::sleep(back).await;
            answer
        });
        async move { sent.await.map_err(BoxError::from)? }.boxed()
    }
}
