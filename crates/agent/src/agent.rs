//! The agent: probes, metrics and the controller's interface from the start, and the first initialisation as soon as mysqld answers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accounts::Passwords;
use crate::api;
use crate::certificates::Certificates;
use crate::clone::Clones;
use crate::farewell;
use crate::initialise::{Found, initialise};
use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::probes::{self, facts};
use crate::readiness::Limits;
use crate::rotation::Rotation;
use crate::schedule::Schedule;
use crate::session::Socket;

/// Between two attempts to initialise.
const RETRY: Duration = Duration::from_secs(1);
/// How many attempts pass between two lines of log about the same trouble.
const TELL_EVERY: u32 = 30;

/// What the agent is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cluster, for metrics.
    pub cluster: String,
    /// The instance, for metrics.
    pub ordinal: u16,
    /// The passwords of all accounts.
    pub passwords: Passwords,
    /// The socket of mysqld.
    pub socket: PathBuf,
    /// Where whoever runs mysqld is met.
    pub meeting: PathBuf,
    /// Where the controller's interface listens.
    pub address: SocketAddr,
    /// Where probes are answered.
    pub probe_address: SocketAddr,
    /// Where metrics are shown.
    pub metrics_address: SocketAddr,
    /// `tls.crt`, `tls.key` and `ca.crt` are in it.
    pub certificates: PathBuf,
    /// A replica that is further behind is not ready; zero is no limit.
    pub max_delay: Duration,
    /// How long after its start a replica is given to hear of a transaction.
    pub queueing_wait: Duration,
    /// The slow log.
    pub slow_log: PathBuf,
    /// When it is rotated.
    pub rotation_schedule: Schedule,
    /// From which size on it is rotated; 0 is no limit.
    pub rotation_size: u64,
}

/// Why the agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum Start {
    /// An address is taken, or not ours.
    #[error("cannot listen on {address} for {purpose}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What it is for.
        purpose: &'static str,
        /// Why.
        source: std::io::Error,
    },
}

async fn listen(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, Start> {
    TcpListener::bind(address).await.map_err(|source| Start::Listen { address, purpose, source })
}

/// Runs until told to stop. Whoever tells it waits for the end of mysqld first: see [`crate::guard::until_no_server_runs`].
pub async fn run(settings: Settings, stop: CancellationToken) -> Result<(), Start> {
    let for_probes = listen(settings.probe_address, "probes").await?;
    let for_metrics = listen(settings.metrics_address, "metrics").await?;
    let for_controller = listen(settings.address, "the controller").await?;

    let socket = Socket::new(&settings.socket);
    let metrics = Arc::new(Metrics::new(&settings.cluster, settings.ordinal));
    let keeper = Arc::new(Keeper::new(socket.clone(), settings.passwords.clone()));
    let clones = Arc::new(Clones::new(socket.clone(), settings.passwords.clone(), Arc::clone(&metrics)));
    let limits = Limits { max_delay: settings.max_delay, queueing_wait: settings.queueing_wait };

    let served_probes = serve(for_probes, probes::routes(&keeper, limits), &stop);
    let served_metrics = serve(for_metrics, metrics_routes(&keeper, &metrics), &stop);
    let certificates = Certificates::new(&settings.certificates);
    let served_controller = api::serve(for_controller, certificates, api::routes(clones), stop.clone());
    let rotation = Rotation {
        log: settings.slow_log,
        schedule: settings.rotation_schedule,
        limit: settings.rotation_size,
        keeper,
        metrics,
    };
    let work = async {
        until_initialised(&socket, &settings.passwords).await;
        rotation.run().await;
    };
    let farewells = farewell::serve(&settings.meeting, &socket, &settings.passwords);
    tokio::select! {
        () = stop.cancelled() => {}
        ((), (), (), (), ()) = async { tokio::join!(served_probes, served_metrics, served_controller, work, farewells) } => {}
    }
    Ok(())
}

async fn serve(listener: TcpListener, router: Router, stop: &CancellationToken) {
    // It fails only where accepting does, and it goes on after that.
    let _never = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned()).await;
}

fn metrics_routes(keeper: &Arc<Keeper>, metrics: &Arc<Metrics>) -> Router {
    let (keeper, metrics) = (Arc::clone(keeper), Arc::clone(metrics));
    let text = move || {
        let (keeper, metrics) = (Arc::clone(&keeper), Arc::clone(&metrics));
        async move {
            let delay = facts(&keeper).await.ok().filter(crate::readiness::Facts::is_replica).map(|facts| facts.delay());
            metrics.show_delay(delay);
            ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], metrics.text())
        }
    };
    Router::new().route("/metrics", get(text))
}

/// Tries until it is done: whatever stands in the way, a server that recovers for an hour for one, is no reason to give up.
async fn until_initialised(socket: &Socket, passwords: &Passwords) {
    let mut attempt: u32 = 0;
    loop {
        match initialise(socket, passwords).await {
            Ok(Found::Foreign) => {
                tracing::warn!(
                    "mysqld refuses moco-admin: either the Secret's passwords are not those of the data, or the data were cloned from \
                     elsewhere and the clone's end is missing (ask for the clone again)"
                );
                return;
            }
            Ok(found) => {
                tracing::info!(?found, "mysqld is initialised");
                return;
            }
            Err(why) if attempt.is_multiple_of(TELL_EVERY) => {
                tracing::warn!(%why, "mysqld is not initialised yet; trying again");
            }
            Err(_) => {}
        }
        attempt = attempt.wrapping_add(1);
        tokio::time::sleep(RETRY).await;
    }
}
