//! Starts the controller, leads while the Lease is held, and stops when told to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_clients::hooks::Hooks;
use windlass_clients::{mysql as mysql_servers, tidb as tidb_servers};
use windlass_core::claim::Identity;
use windlass_core::likeness::short_hash;
use windlass_engine::{Authority, Calls, Clock, Controller, Election, Fence, Health, Metrics, Settings, serve};
use windlass_kinds::mysql::{self, MySql};
use windlass_kinds::replicated::Replicated;
use windlass_kinds::tidb::{self, Tidb};

use crate::arguments::ControllerOptions;
use crate::{descriptors, telemetry};

/// The version of this program.
const VERSION: &str =
    if cfg!(feature = "rehearsal") { concat!(env!("CARGO_PKG_VERSION"), "+rehearsal") } else { env!("CARGO_PKG_VERSION") };
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A little more than the longest watch: a connection that is silent for longer is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(295);

pub(crate) fn run(options: ControllerOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log)?;
    let runtime = start_runtime()?;
    let result = runtime.block_on(serve_until_stopped(options));
    // Nothing may hold up the end: the Lease is given up, and what still runs is cut.
    runtime.shutdown_background();
    result
}

/// The runtime and the cryptography of a component that talks.
pub(crate) fn start_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("a crypto provider is installed already");
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime cannot be started")
}

async fn serve_until_stopped(options: ControllerOptions) -> anyhow::Result<()> {
    let mut config = kube::Config::infer().await.context("no way to the API server: run in a cluster, or set KUBECONFIG")?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // Retries are ours to decide: a write must not be sent twice behind our back.
    config.default_retry = false;
    let fence = Fence::closed(Clock::Wall);
    let builder = kube::client::ClientBuilder::try_from(config.clone()).context("the client cannot be made")?;
    let fenced = builder.with_layer(&fence).build();
    let free = kube::Client::try_from(config).context("the client cannot be made")?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| format!("cannot listen on {}", options.listen))?;

    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    let metrics = Arc::new(Metrics::default());
    let health = Health::default();
    let server = tokio::spawn(serve(listener, health.clone(), Arc::clone(&metrics), stop.clone()));
    let process = process_name();
    let name = options.identity.unwrap_or_else(|| process.clone());
    let election = Election::new(free, &options.release_namespace, &options.release, &name, fence.clone(), Clock::Wall);
    let identity = Identity {
        release: format!("{}/{}", options.release_namespace, options.release),
        version: VERSION.to_owned(),
        holder: if name == process { name } else { format!("{name}/{process}") },
    };
    let descriptors = descriptors::raise_limit();
    let kinds = KindSettings {
        tidb: tidb::Settings {
            discovery_image: options.agent_image.clone(),
            manages_volumes: options.namespace.is_none(),
            auto_failover: options.failover.auto_failover,
            failover_period: options.failover.failover_period,
            failover_periods: options.failover.of_components(),
        },
        mysql: mysql::Settings { agent_image: options.agent_image, signs_certificates: true },
    };
    let authority = Arc::new(Authority::new(fenced.clone(), &options.release_namespace, &options.release, Clock::Wall));
    let settings = Settings {
        namespace: options.namespace,
        selector: options.selector,
        clock: Clock::Wall,
        identity,
        overlaps: election.overlaps(),
        authority: Some(authority),
    };
    tracing::info!(
        version = settings.identity.version, release = settings.identity.release, holder = settings.identity.holder,
        selector = %settings.selector, namespace = ?settings.namespace, ?descriptors,
        "windlass controller starts"
    );
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => break,
            // Whoever stands by is ready to take over: a roll-out of the operator must not wait for the one that it replaces.
            () = election.win(|| health.set_ready()) => {}
        }
        metrics.set_leader(true);
        // It holds the work of every kind, and is large.
        Box::pin(lead(&election, (&fenced, &fence), &metrics, &health, (&settings, &kinds), &stop)).await;
        metrics.set_leader(false);
    }
    server.await.context("the server of metrics panicked")?.context("the server of metrics failed")?;
    Ok(())
}

/// What single kinds are told at the start.
struct KindSettings {
    mysql: mysql::Settings,
    tidb: tidb::Settings,
}

/// Runs the controller until the Lease is lost or the process is told to stop.
async fn lead(
    election: &Election,
    (client, fence): (&kube::Client, &Fence),
    metrics: &Arc<Metrics>,
    health: &Health,
    (settings, kinds): (&Settings, &KindSettings),
    stop: &CancellationToken,
) {
    let term = CancellationToken::new();
    let guard = |fence: Fence| move || fence.check().map_err(|fenced| fenced.to_string());
    let mysql = mysql_servers::Servers::new(client.clone()).guarded(guard(fence.clone()));
    let mysql = match settings.authority.clone() {
        Some(authority) => mysql.with_registry(authority),
        None => mysql,
    };
    let tidb = tidb_servers::Servers::new(client.clone()).guarded(guard(fence.clone()));
    let mut controller = Controller::start(Calls::new(client.clone()), Arc::clone(metrics), settings.clone(), term.clone());
    let work = async {
        controller.wait_until_synced(health).await;
        tokio::join!(
            controller.run::<Replicated, Hooks>(Hooks::new(client.clone()), ()),
            controller.run::<MySql, _>(mysql, kinds.mysql.clone()),
            controller.run::<Tidb, _>(tidb, kinds.tidb.clone()),
        );
    };
    tokio::select! {
        () = election.hold(stop) => {}
        () = work => {}
    }
    term.cancel();
    if stop.is_cancelled() {
        election.release().await;
    }
}

pub(crate) fn stop_on_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    let stop = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop");
        stop.cancel();
    });
    Ok(())
}

/// A name that no other process has.
fn process_name() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".to_owned());
    format!("{host}-{}", short_hash(&format!("{} {} {host}", std::process::id(), jiff::Timestamp::now())))
}
