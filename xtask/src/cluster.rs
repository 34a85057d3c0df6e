//! A Kubernetes that can be spoken to through kubectl and helm: the lab, or one of the user's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use windlass_lab::Lab;

/// The field manager of what xtask applies.
const FIELD_MANAGER: &str = "windlass-xtask";
/// How much of the operator's log is worth showing.
const SHOWN_LOG_LINES: &str = "--tail=60";

/// Where kubectl is, and which cluster it and helm are to talk to.
pub(crate) struct Cluster {
    kubectl: PathBuf,
    target: [OsString; 2],
    /// The same in the words of helm.
    helm_target: [OsString; 2],
}

impl Cluster {
    /// The lab, as its administrator.
    pub(crate) fn of_lab(lab: &Lab) -> Self {
        let target = ["--kubeconfig".into(), lab.kubeconfig().into()];
        Self { kubectl: lab.bin_dir().join("kubectl"), helm_target: target.clone(), target }
    }

    /// A cluster of the user's kubeconfig.
    pub(crate) fn of_context(name: &str) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let kubectl = std::env::split_paths(&path)
            .map(|directory| directory.join("kubectl"))
            .find(|candidate| candidate.is_file())
            .context("there is no kubectl on PATH: install it, or leave --context away and let the lab bring its own")?;
        Ok(Self { kubectl, target: ["--context".into(), name.into()], helm_target: ["--kube-context".into(), name.into()] })
    }

    /// Runs kubectl and returns what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with(arguments, None).await
    }

    /// Applies a manifest by server-side apply.
    pub(crate) async fn apply(&self, manifest: &str, namespace: Option<&str>) -> Result<()> {
        let mut arguments = vec!["apply", "--server-side", "--force-conflicts", "--field-manager", FIELD_MANAGER];
        if let Some(namespace) = namespace {
            arguments.extend(["--namespace", namespace]);
        }
        arguments.extend(["--filename", "-"]);
        self.kubectl_with(&arguments, Some(manifest)).await.map(drop)
    }

    /// Reads one object.
    pub(crate) async fn get(&self, namespace: &str, resource: &str, name: &str) -> Result<Value> {
        let text = self.kubectl(&["get", resource, name, "--namespace", namespace, "--output", "json"]).await?;
        serde_json::from_str(&text).with_context(|| format!("{resource} {name} cannot be read"))
    }

    /// Prints what somebody needs who looks at a Deployment that does not start.
    pub(crate) async fn explain(&self, namespace: &str, deployment: &str) {
        let pods = self.kubectl(&["get", "pods,events", "--namespace", namespace]).await;
        eprintln!("{}", pods.unwrap_or_default());
        eprintln!("{}", self.log_tail(namespace, deployment).await);
    }

    /// The end of a Deployment's log, or why it cannot be had.
    pub(crate) async fn log_tail(&self, namespace: &str, deployment: &str) -> String {
        let pods = format!("deployment/{deployment}");
        let arguments = ["logs", &pods, "--namespace", namespace, SHOWN_LOG_LINES, "--timestamps"];
        self.kubectl(&arguments).await.unwrap_or_else(|error| format!("the log of {deployment} cannot be read: {error:#}"))
    }

    /// As [`Cluster::kubectl`], with something to read from standard input.
    async fn kubectl_with(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        run(&self.kubectl, &self.target, arguments, input).await
    }

    /// Runs helm with values to read from standard input.
    pub(crate) async fn helm(&self, helm: &Path, arguments: &[&str], values: &Value) -> Result<String> {
        let arguments = [arguments, &["--values", "-"]].concat();
        run(helm, &self.helm_target, &arguments, Some(&values.to_string())).await
    }
}

async fn run(program: &Path, target: &[OsString], arguments: &[&str], input: Option<&str>) -> Result<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut child = Command::new(program)
        .args(target)
        .args(arguments)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // When it ended early, what it says about it is worth more than the broken pipe.
        let _ended = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        bail!("`{name} {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
