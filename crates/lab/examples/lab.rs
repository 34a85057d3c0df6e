//! Brings a lab up or down by hand: `cargo run -p windlass-lab --example lab -- up|down|build|status [name]`,
//! or with `image NAME RECIPE_DIRECTORY` to build an image and load it.

use anyhow::{Context as _, Result, bail};
use windlass_lab::{DEFAULT_NAME, Lab, Progress};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let lab = Lab::named(arguments.get(1).map_or(DEFAULT_NAME, String::as_str))?;
    let progress = Progress::new();
    match arguments.first().map(String::as_str) {
        Some("up") => {
            lab.up(&progress).await?;
            println!("export KUBECONFIG={}", lab.kubeconfig().display());
            println!("export PATH={}:$PATH", std::env::join_paths(lab.path())?.display());
        }
        Some("down") => {
            lab.down(&progress).await?;
            for leftover in lab.leftovers()? {
                println!("left: {leftover}");
            }
        }
        Some("build") => lab.build_artifacts(&progress).await?,
        Some("image") => {
            let recipe = arguments.get(2).context("say where the recipe is")?;
            let archive = windlass_lab::image::from_recipe_with(recipe.as_ref(), &progress).await?;
            progress.step(format!("loading {}", archive.display()), lab.load_image(&archive)).await?;
        }
        Some("status") => println!("{}", serde_json::to_string_pretty(&lab.status().await)?),
        _ => bail!("say up, down, build, image or status, and perhaps a name"),
    }
    Ok(())
}
