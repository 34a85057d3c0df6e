//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Whether the operator can do its work yet.
#[derive(Clone)]
pub struct Health {
    ready: watch::Sender<bool>,
}

impl Default for Health {
    fn default() -> Self {
        Self { ready: watch::channel(false).0 }
    }
}

impl Health {
    /// The caches are complete.
    pub fn set_ready(&self) {
        self.ready.send_replace(true);
    }

    fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }
}

/// Serves until told to stop.
pub async fn serve(
    listener: TcpListener,
    health: Health,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    axum::serve(listener, routes(health, metrics)).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn routes(health: Health, metrics: Arc<Metrics>) -> Router {
    let readyz = move || {
        let ready = health.is_ready();
        async move {
            if ready {
                (StatusCode::OK, "ok\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "the caches are not complete yet\n")
            }
        }
    };
    let text = move || {
        let text = metrics.text();
        async move { ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response() }
    };
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(readyz)).route("/metrics", get(text))
}
