//! `windlass webhook`: judges MySQLClusters, BackupPolicies and TidbClusters before they are stored, by the controller's own rules.
//!
//! Nothing needs it to be safe. It tells earlier what the controller would tell later.

mod certificates;
mod keeper;
mod registrations;
mod review;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_core::selector::Selector;

use crate::arguments::LogOptions;
use crate::controller::{start_runtime, stop_on_signals};
use crate::telemetry;
use keeper::Keeper;
use registrations::Registration;
use server::Desk;

#[derive(Debug, Args)]
pub(crate) struct WebhookOptions {
    /// Judge only objects with these labels, in kubectl's grammar; others are allowed untouched. The same as the controller's.
    #[arg(long, env = "WINDLASS_SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) selector: Selector,

    /// Judge only objects of this namespace; of all of them when absent.
    #[arg(long, env = "WINDLASS_NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// The namespace of this release, in which its Service and the Secret with its certificates are.
    #[arg(long, env = "WINDLASS_RELEASE_NAMESPACE", default_value = "default")]
    pub(crate) release_namespace: String,

    /// The name of the Service by which the API server finds this process, and of the Secret with its certificates.
    #[arg(long, env = "WINDLASS_WEBHOOK_SERVICE", default_value = "windlass-webhook")]
    pub(crate) service: String,

    /// The name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration. They have to be there; what they say is
    /// written by this process.
    #[arg(long, env = "WINDLASS_WEBHOOK_REGISTRATION", default_value = "windlass")]
    pub(crate) registration: String,

    /// Where the API server is answered, over TLS; also /healthz and /readyz.
    #[arg(long, env = "WINDLASS_LISTEN", default_value = "0.0.0.0:9443")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

pub(crate) fn run(options: WebhookOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log)?;
    let runtime = start_runtime()?;
    let result = runtime.block_on(serve_until_stopped(options));
    runtime.shutdown_background();
    result
}

async fn serve_until_stopped(options: WebhookOptions) -> anyhow::Result<()> {
    let client = kube::Client::try_default().await.context("no way to the API server: run in a cluster, or set KUBECONFIG")?;
    let listener = TcpListener::bind(options.listen).await.with_context(|| format!("cannot listen on {}", options.listen))?;
    let stop = CancellationToken::new();
    stop_on_signals(&stop)?;
    tracing::info!(selector = %options.selector, namespace = ?options.namespace, "windlass webhook starts");
    let desk = Arc::new(Desk::new(options.selector.clone(), client.clone()));
    let registration = Registration {
        name: options.registration,
        service: options.service.clone(),
        service_namespace: options.release_namespace,
        namespace: options.namespace,
        selector: options.selector,
    };
    let keeper = Keeper { client, desk: Arc::clone(&desk), secret: options.service, registration };
    tokio::join!(keeper.run(stop.clone()), server::serve(listener, desk, stop));
    Ok(())
}
