//! `cargo xtask up`: from nothing to a healthy example cluster.

use anyhow::Result;
use clap::Args;
use windlass_lab::{DEFAULT_NAME, Lab, Progress};

use crate::cluster::Cluster;
use crate::example::Example;
use crate::{LabName, install, plugin};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Which example cluster to start.
    #[arg(long, value_enum, default_value = "mysql")]
    example: Example,

    #[command(flatten)]
    lab: LabName,

    /// Use this context of your kubeconfig instead of the lab.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    context: Option<String>,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let progress = Progress::new();
    match &options.context {
        Some(context) => on_context(context, options.example, &progress).await,
        None => on_lab(&Lab::named(&options.lab.name)?, options.example, &progress).await,
    }
}

pub(crate) async fn on_lab(lab: &Lab, example: Example, progress: &Progress) -> Result<()> {
    progress.note(&format!("lab {}", lab.name()));
    lab.up(progress).await?;
    let cluster = Cluster::of_lab(lab);
    plugin::build(progress).await?;
    let image = install::build_image(progress).await?;
    install::load(lab, &image, progress).await?;
    install::install(&cluster, &image, progress).await?;
    example.load_image(lab, progress).await?;
    start(&cluster, example, progress).await?;
    let name = if lab.name() == DEFAULT_NAME { String::new() } else { format!(" --name {}", lab.name()) };
    println!("\n{}", example.next_steps(&format!("cargo xtask lab exec{name} -- kubectl"), ""));
    println!("  cargo xtask down{name}");
    Ok(())
}

async fn on_context(context: &str, example: Example, progress: &Progress) -> Result<()> {
    let cluster = Cluster::of_context(context)?;
    let plugins = plugin::build(progress).await?;
    let image = install::build_image(progress).await?;
    progress.note(&format!(
        "This is not the lab, so images are not loaded. The nodes of {context} must have, or be able to pull:\n  \
         {}  (an archive to import is {})\n  \
         {}",
        install::IMAGE,
        image.archive.display(),
        example.where_its_image_comes_from()?,
    ));
    install::install(&cluster, &image, progress).await?;
    start(&cluster, example, progress).await?;
    println!("\n{}", example.next_steps("kubectl", &format!(" --context {context}")));
    println!("  export PATH={}:$PATH    # where kubectl finds `kubectl windlass`", plugins.display());
    Ok(())
}

async fn start(cluster: &Cluster, example: Example, progress: &Progress) -> Result<()> {
    example.apply(cluster, progress).await?;
    example.wait_until_ready(cluster, progress).await
}
