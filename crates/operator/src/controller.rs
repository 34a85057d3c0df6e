//! Starts the controller, and stops it when told to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_clients::hooks::Hooks;
use windlass_engine::{Calls, Controller, Health, Metrics, Settings, serve};
use windlass_kinds::replicated::Replicated;

use crate::arguments::ControllerOptions;
use crate::telemetry;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A little more than the longest watch: a connection that is silent for longer is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(295);

pub(crate) fn run(options: ControllerOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log, options.log_format)?;
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("a crypto provider is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime cannot be started")?;
    runtime.block_on(serve_until_stopped(options))
}

async fn serve_until_stopped(options: ControllerOptions) -> anyhow::Result<()> {
    let mut config = kube::Config::infer().await.context("no way to the API server: run in a cluster, or set KUBECONFIG")?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // Retries are ours to decide: a write must not be sent twice behind our back.
    config.default_retry = false;
    let client = kube::Client::try_from(config).context("the client cannot be made")?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| format!("cannot listen on {}", options.listen))?;

    let stop = CancellationToken::new();
    let metrics = Arc::new(Metrics::default());
    let health = Health::default();
    let server = tokio::spawn(serve(listener, health.clone(), Arc::clone(&metrics), stop.clone()));
    let settings = Settings { namespace: options.namespace, selector: options.selector, ..Settings::default() };
    tracing::info!(selector = %settings.selector, namespace = ?settings.namespace, "windlass controller starts");
    let mut controller = Controller::start(Calls::new(client.clone()), metrics, settings, stop.clone());

    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let work = async {
        controller.wait_until_synced(&health).await;
        controller.run::<Replicated, Hooks>(Hooks::new(client)).await;
    };
    tokio::select! {
        _ = terminate.recv() => tracing::info!("told to stop"),
        result = tokio::signal::ctrl_c() => result.context("SIGINT cannot be watched")?,
        () = work => {}
    }
    stop.cancel();
    server.await.context("the server of metrics panicked")?.context("the server of metrics failed")?;
    Ok(())
}
