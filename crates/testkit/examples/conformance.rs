//! Runs the conformance cases against the server of the current kubeconfig and prints how many there are.
//!
//! `KUBECONFIG=… cargo run -p windlass-testkit --example conformance [PREFIX] [PART-OF-A-NAME]`

use anyhow::{Result, bail};
use kube::Client;
use windlass_testkit::conformance;

#[tokio::main]
async fn main() -> Result<()> {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        bail!("a TLS provider was installed before this program could install its own");
    }
    let client = Client::try_default().await?;
    let prefix = std::env::args().nth(1).unwrap_or_else(|| format!("conformance-{}", std::process::id()));
    let report = match std::env::args().nth(2) {
        Some(part) => conformance::run_some(&client, &prefix, &part).await,
        None => conformance::run_all(&client, &prefix).await,
    };
    for (name, why) in &report.failed {
        println!("FAILED {name}\n       {why}");
    }
    println!("{} cases, {} passed, {} failed", report.total(), report.passed.len(), report.failed.len());
    if !report.failed.is_empty() {
        bail!("{} cases differ", report.failed.len());
    }
    Ok(())
}
