//! Answers members of PD, and those who look for PD, over HTTP. Every answer that is not the one that was asked for is an error with a
//! status, so that a start script asks again and takes nothing else for an argument.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_kinds::tidb::discovery::{Asker, verify};
use windlass_serve::{Manner, Porter};

use super::desk::Desk;

const CONNECTIONS: usize = 128;
/// How long it counts how connections are spoken with.
const FRESH: Duration = Duration::from_secs(10);

/// What is served.
struct House {
    desk: Arc<Desk>,
    /// What each member was told last, so that each answer is logged once.
    told: Mutex<HashMap<String, String>>,
}

fn decode(encoded: &str) -> Result<String, Box<Response>> {
    let text = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Box::new((StatusCode::BAD_REQUEST, format!("{encoded:?} is no text in base64\n")).into_response()))
}

async fn begin(State(house): State<Arc<House>>, Path(encoded): Path<String>) -> Response {
    let text = match decode(&encoded) {
        Ok(text) => text,
        Err(response) => return *response,
    };
    let (namespace, name) = house.desk.name();
    let asker = match Asker::parse(&text, name, namespace) {
        Ok(asker) => asker,
        Err(error) => {
            tracing::warn!(%error, "somebody else asked");
            return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
        }
    };
    let answer = house.desk.answer(&asker).await;
    let said = format!("{answer:?}");
    let before = house.told.lock().unwrap_or_else(PoisonError::into_inner).insert(asker.pod.clone(), said.clone());
    if before.as_ref() != Some(&said) {
        tracing::info!(pod = asker.pod, answer = said, "a member of PD asks how to begin");
    }
    match answer.argument() {
        Some(argument) => (StatusCode::OK, argument).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, format!("{said}\n")).into_response(),
    }
}

async fn find(State(house): State<Arc<House>>, Path(encoded): Path<String>) -> Response {
    let url = match decode(&encoded) {
        Ok(url) => url,
        Err(response) => return *response,
    };
    match house.desk.cluster().await {
        Ok(cluster) => (StatusCode::OK, verify(&url, &cluster)).into_response(),
        // Whoever asks knows one PD already, and that is most likely enough.
        Err(why) => {
            tracing::warn!(%why, url, "whether there are other members of PD is not known");
            (StatusCode::OK, url.trim_end().to_owned()).into_response()
        }
    }
}

/// Whether connections are spoken with TLS is looked up in the cluster, now and then.
struct Gate {
    desk: Arc<Desk>,
    known: Mutex<Option<(Instant, Manner)>>,
}

impl Gate {
    async fn look_up(&self) -> Result<Manner, String> {
        if !self.desk.cluster().await?.tls.at_discovery() {
            return Ok(Manner::Plain);
        }
        Ok(Manner::Tls(Arc::new(self.desk.papers("discovery").await?.server_configuration()?)))
    }
}

impl Porter for Gate {
    async fn manner(&self) -> Result<Manner, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((since, manner)) = &known
            && since.elapsed() < FRESH
        {
            return Ok(manner.clone());
        }
        match (self.look_up().await, known) {
            (Ok(manner), _) => {
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), manner.clone()));
                Ok(manner)
            }
            // As it was: what cannot be read now has hardly changed.
            (Err(_), Some((_, manner))) => Ok(manner),
            (Err(why), None) => Err(why),
        }
    }
}

fn routes(desk: Arc<Desk>) -> Router {
    let well = async || "ok\n";
    let house = Arc::new(House { desk, told: Mutex::default() });
    Router::new()
        .route("/new/{encoded}", get(begin))
        .route("/verify/{encoded}", get(find))
        .route("/healthz", get(well))
        .route("/readyz", get(well))
        .with_state(house)
}

/// Serves until told to stop.
pub(super) async fn serve(listener: TcpListener, desk: Arc<Desk>, stop: CancellationToken) {
    let router = routes(Arc::clone(&desk));
    windlass_serve::serve(listener, CONNECTIONS, Gate { desk, known: Mutex::default() }, router, stop).await;
}
