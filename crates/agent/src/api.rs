//! What the controller asks of the agent: HTTPS with a certificate on both sides, JSON in and out.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::certificates::{Certificates, admit};
use crate::clone::{Clones, Refused, Request};

/// How long the other side may take to introduce itself, and to send a request.
const INTRODUCTION: Duration = Duration::from_secs(10);
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

/// Serves until told to stop.
pub(crate) async fn serve(listener: TcpListener, certificates: Certificates, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: give others time to close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let configuration = match certificates.current() {
            Ok(configuration) => configuration,
            Err(why) => {
                tracing::warn!(%why, "nobody can be let in without certificates");
                continue;
            }
        };
        let router = router.clone();
        tokio::spawn(async move {
            let _place = place;
            if let Err(why) = talk(stream, TlsAcceptor::from(configuration), router).await {
                tracing::info!(%why, "a connection to the agent ended early");
            }
        });
    }
}

async fn talk(stream: TcpStream, acceptor: TlsAcceptor, router: Router) -> Result<(), String> {
    let stream = tokio::time::timeout(INTRODUCTION, acceptor.accept(stream))
        .await
        .map_err(|_| format!("no introduction within {} s", INTRODUCTION.as_secs()))?
        .map_err(|error| format!("the introduction failed: {error}"))?;
    let router = match admit(stream.get_ref().1) {
        Ok(()) => router,
        Err(why) => {
            tracing::warn!(%why, "a client is refused");
            Router::new().fallback(async move || complain(StatusCode::FORBIDDEN, why))
        }
    };
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(INTRODUCTION)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    served.await.map_err(|error| error.to_string())
}
