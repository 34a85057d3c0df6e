//! Helm, and releases of Windlass beside the one under test.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::audit::Entry;
use crate::place::Place;
use crate::stage::Stage;

/// The release under test, as `cargo xtask` installs it.
pub const MAIN: &str = "windlass";
/// The release of the custom resource definitions.
pub const DEFINITIONS: &str = "windlass-crds";

/// One release of a chart.
#[derive(Clone, Debug)]
pub struct Release {
    stage_kubeconfig: PathBuf,
    helm: PathBuf,
    /// Its name. Those of the tests contain `windlass`, so that their objects have the same name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// What helm came to.
#[derive(Clone, Debug)]
pub struct Told {
    /// Whether it ended well.
    pub success: bool,
    /// What it printed.
    pub output: String,
    /// What it complained about.
    pub errors: String,
}

impl Told {
    /// What it printed, unless it failed.
    pub fn ok(self) -> Result<String> {
        ensure!(self.success, "helm failed: {}{}", self.output, self.errors);
        Ok(self.output)
    }
}

/// The folder of a chart.
pub fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts").join(name)
}

impl Stage {
    /// A release of this name, whether it is there or not.
    pub fn release(&self, name: &str, namespace: &str) -> Release {
        Release {
            stage_kubeconfig: self.lab().kubeconfig(),
            helm: self.lab().helm(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// The release under test.
    pub fn main_release(&self) -> Release {
        self.release(MAIN, self.operator_namespace())
    }
}

impl Place {
    /// A release in this namespace, whether it is there or not.
    pub fn release(&self, name: &str) -> Release {
        self.stage().release(name, self.namespace())
    }
}

impl Release {
    /// Runs helm with values to read.
    pub async fn helm(&self, arguments: &[&str], values: &Value) -> Result<Told> {
        let mut child = Command::new(&self.helm)
            .arg("--kubeconfig")
            .arg(&self.stage_kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {}: `cargo xtask lab build` makes it", self.helm.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // Not every command reads it, and one that ended early says why.
            let _ended = stdin.write_all(values.to_string().as_bytes()).await;
        }
        let output = child.wait_with_output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Told { success: output.status.success(), output: text(&output.stdout), errors: text(&output.stderr) })
    }

    /// Renders the operator's chart.
    pub async fn render(&self, values: &Value) -> Result<Vec<Value>> {
        let path = chart("windlass");
        let text = self.helm(&["template", &self.name, &path.to_string_lossy(), "--values", "-"], values).await?.ok()?;
        Ok(serde_saphyr::from_multiple::<Value>(&text)
            .context("what helm rendered cannot be read")?
            .into_iter()
            .filter(|object| !object.is_null())
            .collect())
    }

    /// Installs the operator's chart, without waiting for anything.
    pub async fn install(&self, values: &Value) -> Result<Told> {
        let path = chart("windlass");
        self.helm(&["install", &self.name, &path.to_string_lossy(), "--values", "-"], values).await
    }

    /// Installs or changes the operator's chart, and waits until it is ready. What was set before stays.
    pub async fn upgrade(&self, values: &Value) -> Result<()> {
        let path = chart("windlass");
        let path = path.to_string_lossy();
        let arguments =
            ["upgrade", &self.name, &path, "--install", "--reuse-values", "--values", "-", "--wait", "--timeout", "5m"];
        self.helm(&arguments, values).await?.ok().map(drop)
    }

    /// Says which clusters the release looks after.
    pub async fn select(&self, selector: &str) -> Result<()> {
        self.upgrade(&json!({ "spec": { "labelSelector": selector } })).await
    }

    /// Removes the release, and waits until its objects are gone.
    pub async fn uninstall(&self) -> Result<()> {
        self.helm(&["uninstall", &self.name, "--wait", "--timeout", "5m"], &json!({})).await?.ok().map(drop)
    }

    /// Its user in the audit log.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// As it is written in the claim of a logbook.
    pub fn claim(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Its pods.
    pub async fn pods(&self, stage: &Stage) -> Result<Vec<Pod>> {
        let labels = format!("app.kubernetes.io/name=windlass,app.kubernetes.io/instance={}", self.name);
        let pods: Api<Pod> = Api::namespaced(stage.client(), &self.namespace);
        Ok(pods.list(&ListParams::default().labels(&labels)).await?.items)
    }
}

/// The UID and the number of restarts of each of these pods: equal means that nothing was restarted.
pub fn lives(pods: &[Pod]) -> Vec<(String, String, i32)> {
    let restarts = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone()).unwrap_or_default();
        statuses.iter().map(|status| status.restart_count).sum()
    };
    let mut lives: Vec<_> = pods.iter().map(|pod| (pod.name_any(), pod.uid().unwrap_or_default(), restarts(pod))).collect();
    lives.sort();
    lives
}

/// Whether somebody runs Windlass, by the user's name: an account of a release, in whatever namespace.
pub fn is_release(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    account.is_some_and(|(_, account)| account.contains(MAIN))
}

/// The writes and hooks of releases among these requests.
pub fn deeds_of_releases(requests: &[Entry]) -> Vec<&Entry> {
    let acts = |entry: &&Entry| entry.is_write() || entry.command().is_some();
    requests.iter().filter(|entry| is_release(entry.user())).filter(acts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_known_by_their_account() {
        assert!(is_release("system:serviceaccount:windlass-system:windlass"));
        assert!(is_release("system:serviceaccount:helm-x:windlass-canary"));
        assert!(!is_release("system:serviceaccount:windlass-system:default"));
        assert!(!is_release("windlass-e2e"));
    }
}
