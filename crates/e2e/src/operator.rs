//! The operator under test: who it is in the audit log, and how it is restarted.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};

use crate::stage::Stage;
use crate::wait::{LONG, wait_for};

/// Where Windlass is installed.
pub(crate) const NAMESPACE: &str = "windlass-system";
const SERVICE_ACCOUNT_USER: &str = "system:serviceaccount:windlass-system:windlass";

/// The name of an operator that runs outside the lab; for whoever works on it.
const USER_VARIABLE: &str = "WINDLASS_OPERATOR_USER";
/// A shell command that restarts an operator that runs outside the lab, and returns when it is ready.
const RESTART_VARIABLE: &str = "WINDLASS_OPERATOR_RESTART";

impl Stage {
    /// The operator's user name in the audit log.
    pub fn operator_user(&self) -> String {
        std::env::var(USER_VARIABLE).unwrap_or_else(|_| SERVICE_ACCOUNT_USER.to_owned())
    }

    /// Whether the operator runs in the lab, as it is installed.
    pub fn operator_is_installed(&self) -> bool {
        std::env::var(USER_VARIABLE).is_err()
    }

    /// Where Windlass is installed.
    pub fn operator_namespace(&self) -> &'static str {
        NAMESPACE
    }

    /// The operator's pods.
    pub async fn operator_pods(&self) -> Result<Vec<Pod>> {
        self.main_release().pods(self).await
    }

    /// The metrics of the operator that leads.
    pub async fn operator_metrics(&self) -> Result<String> {
        for pod in self.operator_pods().await? {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}:8080/proxy/metrics", pod.name_any());
            let text = self.client().request_text(http::Request::get(path).body(Vec::new())?).await?;
            if text.lines().any(|line| line == "windlass_leader 1") {
                return Ok(text);
            }
        }
        anyhow::bail!("no operator leads")
    }

    /// Ends the operator and waits until another one is ready.
    pub async fn restart_operator(&self) -> Result<()> {
        if let Ok(command) = std::env::var(RESTART_VARIABLE) {
            let status = tokio::process::Command::new("sh").args(["-c", &command]).status().await?;
            ensure!(status.success(), "{RESTART_VARIABLE} failed: {status}");
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
        let old = self.operator_pods().await?;
        ensure!(!old.is_empty(), "there is no operator in namespace {NAMESPACE}: install it with `cargo xtask up`");
        for pod in &old {
            pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        }
        wait_for("another operator is ready", LONG, async || {
            let now = self.operator_pods().await?;
            for pod in &old {
                ensure!(!now.iter().any(|other| other.uid() == pod.uid()), "{} is still there", pod.name_any());
            }
            let pod = now.first().context("no pod")?;
            ensure!(crate::place::is_ready(pod), "{} is not ready", pod.name_any());
            Ok(())
        })
        .await
    }
}
