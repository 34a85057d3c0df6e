//! Putting Windlass into a cluster: the image, the definitions, the manifest of `deploy/`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use windlass_lab::image::{BinaryImage, from_binary};
use windlass_lab::{Lab, Progress};

use crate::cargo;
use crate::cluster::Cluster;
use crate::report::seconds;

/// Where the operator runs.
pub(crate) const NAMESPACE: &str = "windlass-system";
/// The operator's Deployment.
pub(crate) const DEPLOYMENT: &str = "windlass";
/// The image that the manifest names.
pub(crate) const IMAGE: &str = concat!("localhost/windlass:", env!("CARGO_PKG_VERSION"));
/// The user that runs it.
pub(crate) const USER: u32 = 65532;
/// On the pod template: the program that the image held when it was applied.
const PROGRAM: &str = "windlass.dev/program";
const LIMIT: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(200);

/// Windlass as an image archive.
pub(crate) struct Image {
    /// The archive.
    pub(crate) archive: PathBuf,
    /// Changes when the program does.
    digest: String,
}

/// Builds the program and its image. Cargo tells its progress itself.
pub(crate) async fn build_image(progress: &Progress) -> Result<Image> {
    progress.note("building windlass as a static program (some minutes when it was never built here)");
    let began = Instant::now();
    let binary = cargo::build_static_operator().await?;
    progress.note(&format!("  ok  static windlass ({})", seconds(began.elapsed())));
    let image = BinaryImage { reference: IMAGE, binary: &binary, path: "/windlass", user: USER, arguments: &[] };
    let archive = from_binary(&image).context("cannot make the image of windlass")?;
    let digest = archive.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Image { archive, digest })
}

/// Loads an image into the lab.
pub(crate) async fn load(lab: &Lab, image: &Image, progress: &Progress) -> Result<()> {
    progress.step(format!("loading {IMAGE}"), lab.load_image(&image.archive)).await
}

/// Installs what `deploy/` holds and waits until the operator runs. The operator is restarted when its program changed.
pub(crate) async fn install(cluster: &Cluster, image: &Image, progress: &Progress) -> Result<()> {
    let definitions = read("deploy/crds.yaml")?;
    let manifest = with_program(&read("deploy/windlass.yaml")?, &image.digest)?;
    progress
        .step("custom resource definitions", async {
            cluster.apply(&definitions, None).await?;
            wait_until_served(cluster, &definitions).await
        })
        .await?;
    progress
        .step("windlass", async {
            cluster.apply(&manifest, None).await?;
            cluster.wait_for_deployment(NAMESPACE, DEPLOYMENT, LIMIT).await
        })
        .await
}

/// Waits until the API server serves every definition. `kubectl wait` gives up on one that has no conditions yet.
async fn wait_until_served(cluster: &Cluster, definitions: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let text = cluster.kubectl_with(&["get", "--output", "json", "--filename", "-"], Some(definitions)).await?;
        let list: Value = serde_json::from_str(&text).context("the definitions cannot be read")?;
        let waiting: Vec<&str> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| !is_served(it))
            .filter_map(|it| it["metadata"]["name"].as_str())
            .collect();
        if waiting.is_empty() {
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            bail!("the API server does not serve {} after {}", waiting.join(", "), seconds(LIMIT));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn is_served(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == "Established" && it["status"] == "True"))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(cargo::root().join(path))
        .with_context(|| format!("cannot read {path}: `cargo xtask gen` writes it"))
}

/// The manifest, with the program's digest on the pod template: the image's name stays the same when its content changes.
fn with_program(manifest: &str, digest: &str) -> Result<String> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(manifest).context("deploy/windlass.yaml cannot be read")?;
    for object in &mut objects {
        if object["kind"] == "Deployment" {
            object["spec"]["template"]["metadata"]["annotations"][PROGRAM] = digest.into();
        }
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_without_conditions_is_not_served_yet() {
        assert!(!is_served(&json!({"status": {}})));
        assert!(!is_served(&json!({"status": {"conditions": [{"type": "Established", "status": "False"}]}})));
        assert!(is_served(&json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}})));
    }

    #[test]
    fn another_program_is_another_pod_template() {
        let manifest = crate::generate::manifest();
        let template = |digest: &str| {
            let list: Value = serde_json::from_str(&with_program(&manifest, digest).unwrap()).unwrap();
            let items = list["items"].as_array().unwrap().clone();
            items.into_iter().find(|object| object["kind"] == "Deployment").unwrap()["spec"]["template"].clone()
        };
        assert_eq!(template("one"), template("one"));
        assert_ne!(template("one"), template("two"));
        assert_eq!(template("one")["spec"], template("two")["spec"]);
    }
}
