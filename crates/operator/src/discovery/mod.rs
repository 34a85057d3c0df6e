//! `windlass discovery`: tells members of PD of one cluster how to begin. What it answers is decided in `windlass_kinds::tidb::discovery`.
//!
//! It changes nothing anywhere, and remembers nothing that matters after a restart.

mod desk;
mod server;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::LogOptions;
use crate::controller::{start_runtime, stop_on_signals};
use crate::telemetry;
use desk::Desk;

/// Where members of PD ask.
const PORT: u16 = 10261;

#[derive(Debug, Args)]
pub(crate) struct DiscoveryOptions {
    /// The TidbCluster whose members of PD are told how to begin.
    #[arg(long, env = "TC_NAME")]
    pub(crate) cluster: String,

    /// Its namespace, which is that of this pod.
    #[arg(long, env = "MY_POD_NAMESPACE")]
    pub(crate) namespace: String,

    /// Where members of PD are answered; port 10261 of every address of the pod when absent.
    #[arg(long, env = "WINDLASS_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

pub(crate) fn run(options: DiscoveryOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log)?;
    let runtime = start_runtime()?;
    let result = runtime.block_on(serve_until_stopped(options));
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(options: DiscoveryOptions) -> anyhow::Result<()> {
    let client = kube::Client::try_default().await.context("no way to the API server: run in a cluster, or set KUBECONFIG")?;
    let listener = listen(options.listen).await?;
    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    tracing::info!(cluster = options.cluster, namespace = options.namespace, "windlass discovery starts");
    let desk = Arc::new(Desk::new(client, &options.namespace, &options.cluster));
    server::serve(listener, desk, stop).await;
    Ok(())
}

/// Every address that the pod has: one without IPv6 has only those of IPv4.
async fn listen(given: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(address) = given {
        return TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"));
    }
    let (both, four) = (SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)), SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)));
    match TcpListener::bind(both).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(four).await.with_context(|| format!("cannot listen on {four}")),
    }
}
