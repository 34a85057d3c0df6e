//! Answers the API server over TLS, with the certificate that is in force when a connection comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_api::mysql::MySQLCluster;
use windlass_core::selector::Selector;
use windlass_serve::{Manner, Porter};

use super::review::{Clusters, Request, read};

/// How long clusters are looked up before the answer is given without them. The API server waits for 5 s.
const LOOK_UP: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 256;
/// An object and its former state, each of the size that the API server takes.
const LARGEST: usize = 8 << 20;

/// What answers are made from.
pub(super) struct Desk {
    selector: Selector,
    client: Client,
    configuration: Mutex<Option<Arc<ServerConfig>>>,
}

impl Desk {
    pub(super) fn new(selector: Selector, client: Client) -> Self {
        Self { selector, client, configuration: Mutex::new(None) }
    }

    /// From now on connections are spoken with this.
    pub(super) fn set(&self, configuration: Arc<ServerConfig>) {
        *self.configuration.lock().unwrap_or_else(PoisonError::into_inner) = Some(configuration);
    }

    fn configuration(&self) -> Option<Arc<ServerConfig>> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn clusters(&self, request: &Request) -> Clusters {
        if !request.needs_clusters(&self.selector) {
            return Ok(Vec::new());
        }
        let kind = ApiResource::erase::<MySQLCluster>(&());
        // Untyped: one that cannot be read must not keep the others from being seen.
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &request.namespace, &kind);
        let list = tokio::time::timeout(LOOK_UP, async { api.list(&ListParams::default()).await }).await;
        let list = list.map_err(|_| format!("no answer within {} s", LOOK_UP.as_secs()))?.map_err(|error| error.to_string())?;
        let named = |it: &DynamicObject| it.data["spec"]["backupPolicyName"].as_str().map(str::to_owned);
        Ok(list.items.iter().map(|it| (it.metadata.name.clone().unwrap_or_default(), named(it))).collect())
    }
}

/// A number that nobody can guess, nor two clusters are likely to share.
fn random() -> Option<u32> {
    let mut bytes = [0; 4];
    rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

fn reply(review: Result<Value, String>) -> Response {
    match review {
        Ok(review) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], review.to_string()).into_response(),
        Err(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    }
}

async fn mutate(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let Some(number) = random() else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "there is no chance to be had\n").into_response();
    };
    reply(read(&body).map(|request| request.answer(request.mutate(&desk.selector, number))))
}

async fn validate(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let request = match read(&body) {
        Ok(request) => request,
        Err(why) => return reply(Err(why)),
    };
    let clusters = desk.clusters(&request).await;
    reply(Ok(request.answer(request.validate(&desk.selector, &clusters))))
}

fn routes(desk: Arc<Desk>) -> Router {
    let well = async || "ok\n";
    Router::new()
        .route("/mutate", post(mutate))
        .route("/validate", post(validate))
        .route("/healthz", get(well))
        .route("/readyz", get(well))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(desk)
}

/// Lets anybody in, as soon as there is a certificate.
struct Gate(Arc<Desk>);

impl Porter for Gate {
    async fn manner(&self) -> Result<Manner, String> {
        self.0.configuration().map(Manner::Tls).ok_or_else(|| "the webhook has no certificate yet".to_owned())
    }
}

/// Serves until told to stop.
pub(super) async fn serve(listener: TcpListener, desk: Arc<Desk>, stop: CancellationToken) {
    let router = routes(Arc::clone(&desk));
    windlass_serve::serve(listener, CONNECTIONS, Gate(desk), router, stop).await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
