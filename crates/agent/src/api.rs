//! What the controller asks of the agent: HTTPS with a certificate on both sides, JSON in and out.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rustls::ServerConnection;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_serve::{Manner, Porter};

use crate::certificates::{Certificates, admit};
use crate::clone::{Clones, Refused, Request};

/// More than one controller and its predecessor ever need.
const CONNECTIONS: usize = 32;

#[derive(Serialize)]
struct Accepted {
    id: String,
}

#[derive(Serialize)]
struct Complaint {
    error: String,
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_string(body).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{text}\n")).into_response()
}

fn complain(status: StatusCode, error: String) -> Response {
    json(status, &Complaint { error })
}

pub(crate) fn routes(clones: Arc<Clones>) -> Router {
    Router::new().route("/v1/clone", post(start_clone).get(tell_clone)).with_state(clones)
}

async fn start_clone(State(clones): State<Arc<Clones>>, body: Bytes) -> Response {
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return complain(StatusCode::BAD_REQUEST, format!("the request cannot be read: {error}")),
    };
    match clones.start(request).await {
        Ok(id) => json(StatusCode::ACCEPTED, &Accepted { id }),
        Err(why) => {
            let status = match &why {
                Refused::Running => StatusCode::CONFLICT,
                Refused::NotEmpty(_) => StatusCode::PRECONDITION_FAILED,
                Refused::Bad(_) => StatusCode::BAD_REQUEST,
                Refused::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            complain(status, why.to_string())
        }
    }
}

async fn tell_clone(State(clones): State<Arc<Clones>>) -> Response {
    json(StatusCode::OK, &clones.report())
}

/// Lets the controller in, and nobody else.
struct Gate(Certificates);

impl Porter for Gate {
    async fn manner(&self) -> Result<Manner, String> {
        self.0.current().map(Manner::Tls).map_err(|why| why.to_string())
    }

    fn admit(&self, stranger: &ServerConnection) -> Result<(), Router> {
        admit(stranger).map_err(|why| {
            tracing::warn!(%why, "a client is refused");
            Router::new().fallback(async move || complain(StatusCode::FORBIDDEN, why))
        })
    }
}

/// Serves until told to stop.
pub(crate) async fn serve(listener: TcpListener, certificates: Certificates, router: Router, stop: CancellationToken) {
    windlass_serve::serve(listener, CONNECTIONS, Gate(certificates), router, stop).await;
}
