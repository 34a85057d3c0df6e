//! Kubeconfig files with everything inside, so that they can be copied.

use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use crate::certificates::{self, Authority, Signed};
use crate::layout::Layout;
use crate::network::Link;

/// Writes a kubeconfig for the holder of `signed`. JSON is YAML, so every reader takes it.
pub(crate) fn write(
    path: &Path,
    layout: &Layout,
    link: Link,
    authority: &Authority,
    user: &str,
    signed: &Signed,
) -> Result<()> {
    let base64 = |text: &str| ByteString(text.as_bytes().to_vec());
    let name = layout.group();
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": format!("https://{}:6443", link.node),
            "certificate-authority-data": base64(&authority.certificate),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": base64(&signed.certificate),
            "client-key-data": base64(&signed.key),
        }}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    });
    certificates::write(path, &serde_json::to_string_pretty(&document)?)
}

/// A client that acts as the user of a kubeconfig.
pub(crate) async fn client(path: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{} is no usable kubeconfig", path.display()))?;
    // The lab is on this machine: a proxy of the environment has no part in it.
    config.proxy_url = None;
    Client::try_from(config).with_context(|| format!("cannot make a client from {}", path.display()))
}
