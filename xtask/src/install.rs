//! Putting Windlass into a cluster: the image, then both charts, by helm.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use windlass_lab::image::{BinaryImage, from_binary};
use windlass_lab::{Lab, Progress};

use crate::cargo;
use crate::cluster::Cluster;
use crate::report::seconds;

/// Where the operator runs.
pub(crate) const NAMESPACE: &str = "windlass-system";
/// The operator's Deployment, and the release that it is of.
pub(crate) const DEPLOYMENT: &str = "windlass";
/// The release of the custom resource definitions.
const DEFINITIONS: &str = "windlass-crds";
/// The image that the chart names.
pub(crate) const IMAGE: &str = concat!("localhost/windlass:", env!("CARGO_PKG_VERSION"));
/// The same as a later version; see [`build_rehearsal`].
const REHEARSAL: &str = concat!("localhost/windlass:", env!("CARGO_PKG_VERSION"), "-rehearsal");
/// The user that runs it.
pub(crate) const USER: u32 = 65532;
/// On the pod template: the program that the image held when it was applied.
const PROGRAM: &str = "windlass.dev/program";
/// How long helm waits until a release is ready, in its own words.
const LIMIT: &str = "3m";

/// Windlass as an image archive.
pub(crate) struct Image {
    /// Its name.
    reference: &'static str,
    /// The archive.
    pub(crate) archive: PathBuf,
    /// Changes when the program does.
    digest: String,
}

/// Builds the program and its image. Cargo tells its progress itself.
pub(crate) async fn build_image(progress: &Progress) -> Result<Image> {
    progress.note("building windlass as a static program (some minutes when it was never built here)");
    image_of(IMAGE, &[], progress).await
}

/// The image of a later version that renders pod templates in another way, for tests of upgrades.
pub(crate) async fn build_rehearsal(progress: &Progress) -> Result<Image> {
    image_of(REHEARSAL, &["rehearsal"], progress).await
}

async fn image_of(reference: &'static str, features: &[&str], progress: &Progress) -> Result<Image> {
    let began = Instant::now();
    let binary = cargo::build_static_operator(features).await?;
    progress.note(&format!("  ok  static {reference} ({})", seconds(began.elapsed())));
    let image = BinaryImage { reference, binary: &binary, path: "/windlass", user: USER, arguments: &[] };
    let archive = from_binary(&image).context("cannot make the image of windlass")?;
    let digest = archive.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Image { reference, archive, digest })
}

/// Loads an image into the lab.
pub(crate) async fn load(lab: &Lab, image: &Image, progress: &Progress) -> Result<()> {
    progress.step(format!("loading {}", image.reference), lab.load_image(&image.archive)).await
}

/// Installs both charts and waits until the operator runs. The operator is restarted when its program changed.
pub(crate) async fn install(cluster: &Cluster, image: &Image, progress: &Progress) -> Result<()> {
    let helm = windlass_lab::helm(progress).await?;
    progress
        .step("custom resource definitions", async {
            cluster.apply(&namespace().to_string(), None).await?;
            // Whatever applied them before: they are the same for all, and this one is the newest.
            upgrade(cluster, &helm, DEFINITIONS, &["--take-ownership", "--force-conflicts"], &json!({})).await
        })
        .await?;
    progress
        .step("windlass", async {
            let installed = upgrade(cluster, &helm, DEPLOYMENT, &[], &values(&image.digest)).await;
            if installed.is_err() {
                cluster.explain(NAMESPACE, DEPLOYMENT).await;
            }
            installed
        })
        .await
}

/// The operator's namespace, under the strictest Pod Security level.
fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    })
}

/// Installs or upgrades a release from the chart of the same name, and waits until it is ready.
async fn upgrade(cluster: &Cluster, helm: &Path, release: &str, more: &[&str], values: &Value) -> Result<()> {
    let chart = cargo::root().join("charts").join(release);
    let chart = chart.to_str().with_context(|| format!("the path {} is no text", chart.display()))?;
    let arguments = ["upgrade", release, chart, "--install", "--namespace", NAMESPACE, "--wait", "--timeout", LIMIT];
    cluster.helm(helm, &[&arguments, more].concat(), values).await.map(drop)
}

/// The chart's values, with the program's digest on the pods: the image's name stays the same when its content changes.
fn values(digest: &str) -> Value {
    json!({ "podAnnotations": { PROGRAM: digest } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_another_pod_template() {
        assert_eq!(values("one"), values("one"));
        assert_ne!(values("one")["podAnnotations"], values("two")["podAnnotations"]);
    }
}
