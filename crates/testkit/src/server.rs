//! The server itself: a `tower::Service` for `kube::Client`, and the handles with which a test looks inside.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture};
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, CustomResourceExt, client::Body};
use serde_json::Value;
use tokio::sync::watch;
use tower::{BoxError, Service};

use crate::{
    calls::{Call, Outcome, Verb, access_of},
    clock::Clock,
    delete::DeleteOptions,
    discovery,
    dispatch::{Done, Request, verb_of},
    failure::Failure,
    faults::{Effect, Faults},
    inspect::Store,
    line::{Guard, Line, Way},
    path::{Query, Route, parse_path},
    read::View,
    registry::from_definition,
    state::{Answer, State},
    watch as watching,
};

pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// What all handles of one server share.
pub(crate) struct Shared {
    state: Mutex<State>,
    tick: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while holding the lock has failed already; the state is still readable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self) {
        self.tick.send_modify(|tick| *tick += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.tick.subscribe()
    }
}

/// A Kubernetes API server in memory.
#[derive(Clone)]
pub struct FakeApiServer {
    shared: Arc<Shared>,
}

impl Default for FakeApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeApiServer {
    /// An empty server with the namespaces `default` and `kube-system`.
    pub fn new() -> Self {
        let shared = Shared { state: Mutex::new(State::new()), tick: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Serves a custom resource.
    pub fn register<K: CustomResourceExt>(&self) -> &Self {
        self.register_crd(&K::crd())
    }

    /// Serves the resource a definition describes.
    pub fn register_crd(&self, definition: &CustomResourceDefinition) -> &Self {
        let definition = serde_json::to_value(definition).unwrap_or_default();
        let mut state = self.shared.lock();
        for resource in from_definition(&definition) {
            state.registry.add(resource);
        }
        drop(state);
        self
    }

    /// Creates a namespace, if it is not there.
    pub fn namespace(&self, name: &str) -> &Self {
        self.shared.lock().plant_namespace(name);
        self.shared.wake();
        self
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// A client of this server, with no retries of its own. Must be called inside a tokio runtime. To test a stack of
    /// layers, put them around the server itself: it is a `tower::Service`.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// A line of its own for one client, with a guard on it.
    pub fn line(&self, guard: Arc<dyn Guard>) -> Line {
        Line::new(Arc::clone(&self.shared), guard)
    }

    /// A second server that goes on from the same objects and revisions. Calls and faults are not taken over.
    pub fn fork(&self) -> Self {
        let state = self.shared.lock().fork();
        let shared = Shared { state: Mutex::new(state), tick: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Direct sight of the objects.
    pub fn store(&self) -> Store {
        Store { shared: Arc::clone(&self.shared) }
    }

    /// The fault script.
    pub fn faults(&self) -> Faults {
        Faults { shared: Arc::clone(&self.shared) }
    }

    /// Where timestamps come from.
    pub fn set_clock(&self, clock: Clock) -> &Self {
        self.shared.lock().clock = clock;
        self
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.lock().calls.clone()
    }

    /// The calls that asked for a lasting change.
    pub fn mutations(&self) -> Vec<Call> {
        let state = self.shared.lock();
        state.calls.iter().filter(|call| call.is_mutation()).cloned().collect()
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) -> &Self {
        self.shared.lock().calls.clear();
        self
    }

    /// (verb, group, resource) of all calls, to be compared with RBAC rules.
    pub fn access(&self) -> BTreeSet<(String, String, String)> {
        access_of(&self.shared.lock().calls)
    }

    /// The current revision.
    pub fn revision(&self) -> u64 {
        self.shared.lock().history.revision()
    }

    /// From now on watches and pages from before this moment are answered with 410.
    pub fn compact(&self) -> &Self {
        self.shared.lock().history.compact();
        self
    }

    /// Collects garbage until there is none; returns how many objects changed.
    pub fn collect_garbage(&self) -> usize {
        let done = self.shared.lock().collect_garbage();
        self.shared.wake();
        done
    }

    /// Whether garbage is collected after every write.
    pub fn collect_garbage_always(&self, always: bool) -> &Self {
        self.shared.lock().collect_always = always;
        self
    }

    /// Sends a bookmark on every watch that allows them.
    pub fn send_bookmarks(&self) -> &Self {
        self.shared.lock().bookmarks += 1;
        self.shared.wake();
        self
    }

    pub(crate) async fn handle(
        shared: Arc<Shared>,
        way: Option<Arc<Way>>,
        request: http::Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let query = Query::parse(parts.uri.query());
        let target = match parse_path(parts.uri.path()) {
            Some(Route::Resource(target)) => target,
            Some(Route::Discovery(words)) => {
                let answer = discovery::answer(&shared.lock().registry, &words);
                return answer.map_or_else(|failure| refusal(&failure), |answer| plain(&answer));
            }
            None => return refusal(&Failure::no_such_path()),
        };
        let Some(verb) = verb_of(&parts.method, &target, &query) else {
            return refusal(&Failure::method_not_allowed());
        };
        let header_text = |name| {
            let value = parts.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let read = if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&bytes) };
        let body = match read {
            Ok(body) => body,
            Err(error) => return refusal(&Failure::bad_request(format!("the body is not JSON: {error}"))),
        };
        let request = Request {
            verb,
            target,
            view: View::from_accept(&header_text(header::ACCEPT)),
            content_type: header_text(header::CONTENT_TYPE),
            user_agent: header_text(header::USER_AGENT),
            query,
            body,
        };
        let (index, call, scripted) = Self::record(&shared, &request);
        let effect = scripted.or_else(|| way.as_ref()?.guard.before(&call));
        Self::carry_out(shared, way, request, index, effect).await
    }

    fn record(shared: &Shared, request: &Request) -> (usize, Call, Option<Effect>) {
        let mut state = shared.lock();
        let call = Call {
            index: state.calls.len(),
            verb: request.verb,
            group: request.target.group.clone(),
            resource: request.target.plural.clone(),
            subresource: request.target.subresource.clone(),
            namespace: request.target.namespace.clone(),
            name: request.target.name.clone(),
            field_manager: request.query.get("fieldManager").map(str::to_owned),
            dry_run: match request.verb {
                Verb::Delete | Verb::DeleteCollection => DeleteOptions::read(&request.body, &request.query).dry_run,
                _ => request.query.get("dryRun") == Some("All"),
            },
            content_type: request.content_type.clone(),
            query: request.query.clone(),
            body: request.body.clone(),
            caller: request.user_agent.clone(),
            at: tokio::time::Instant::now(),
            outcome: Outcome::Pending,
        };
        let effect = state.script.effect_on(&call);
        state.calls.push(call.clone());
        (state.calls.len() - 1, call, effect)
    }

    async fn carry_out(
        shared: Arc<Shared>,
        way: Option<Arc<Way>>,
        request: Request,
        index: usize,
        effect: Option<Effect>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let conclude = |outcome: Outcome| {
            if let Some(call) = shared.lock().calls.get_mut(index) {
                call.outcome = outcome;
            }
        };
        let mut stale_at = None;
        match &effect {
            Some(Effect::Refuse { code, retry_after }) => {
                let failure = Failure::generic(*code, *retry_after);
                conclude(answered(failure.code, &failure.reason));
                return refusal(&failure);
            }
            Some(Effect::LostBefore) => {
                conclude(Outcome::Lost { done: false });
                return Err(lost());
            }
            Some(Effect::Hang) => {
                conclude(Outcome::Hung);
                return std::future::pending().await;
            }
            Some(Effect::Keep) => {
                conclude(Outcome::Hung);
                if let Some(way) = &way {
                    way.keep(request);
                }
                return std::future::pending().await;
            }
            Some(Effect::Delay(time)) => tokio::time::sleep(*time).await,
            Some(Effect::StaleAt(revision)) => stale_at = Some(*revision),
            _ => {}
        }
        if matches!(request.verb, Verb::List | Verb::Watch) {
            stale_at = stale_at.or_else(|| way.as_ref()?.held_at());
        }
        let done = shared.lock().carry_out(&request, stale_at);
        shared.wake();
        if let Some(way) = &way {
            let call = shared.lock().calls.get(index).cloned();
            if let Some(call) = call {
                way.guard.after(&call, done.is_ok());
            }
        }
        match effect {
            Some(Effect::LostAfter) => {
                conclude(Outcome::Lost { done: done.is_ok() });
                return Err(lost());
            }
            Some(Effect::HangAfter) => {
                conclude(Outcome::Hung);
                return std::future::pending().await;
            }
            Some(Effect::RefuseAfter { code }) => {
                let failure = Failure::generic(code, None);
                conclude(answered(failure.code, &failure.reason));
                return refusal(&failure);
            }
            Some(Effect::DelayAnswer(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        match done {
            Ok(Done::Answer(answer)) => {
                conclude(answered(answer.0, ""));
                plain(&answer)
            }
            Ok(Done::Watch(subscription)) => {
                conclude(answered(200, ""));
                let events = watching::stream(Arc::clone(&shared), subscription.on_line(way))
                    .map(|line| line.map(Frame::data).map_err(BoxError::from));
                let body = StreamBody::new(events).boxed_unsync();
                Ok(Response::builder().header(header::CONTENT_TYPE, "application/json").body(body)?)
            }
            Err(failure) => {
                conclude(answered(failure.code, &failure.reason));
                refusal(&failure)
            }
        }
    }
}

impl Service<http::Request<Body>> for FakeApiServer {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(Self::handle(Arc::clone(&self.shared), None, request))
    }
}

fn answered(code: u16, reason: &str) -> Outcome {
    Outcome::Answered { code, reason: reason.to_owned() }
}

fn lost() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection lost by scripted fault").into()
}

fn plain((code, body): &Answer) -> Result<Response<ResponseBody>, BoxError> {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let response = Response::builder().status(*code);
    Ok(response.header(header::CONTENT_TYPE, "application/json").body(body)?)
}

fn refusal(failure: &Failure) -> Result<Response<ResponseBody>, BoxError> {
    let mut response = plain(&(failure.code, failure.body()))?;
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(response)
}
