//! The lab's volume provisioner as a process; `windlass_lab::provisioner` says what it does.

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
#[command(about = "Makes a directory of this node for each volume claim of a lab")]
struct Arguments {
    /// How to reach the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Where the volumes are kept.
    #[arg(long)]
    directory: PathBuf,
    /// The name of the node that this machine is.
    #[arg(long)]
    node: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { kubeconfig, directory, node } = Arguments::parse();
    windlass_lab::provisioner::run(&kubeconfig, directory, node).await
}
