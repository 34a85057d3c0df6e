//! The lab that the tests play on.

use std::time::Instant;

use anyhow::{Context as _, Result};
use http::{Method, Request, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use windlass_lab::Lab;

use crate::audit::Audit;

/// Names the lab.
const LAB_VARIABLE: &str = "WINDLASS_LAB";
/// The tests have a name of their own, so that the audit log tells them from everybody else.
const USER: &str = "windlass-e2e";
const ADMINISTRATORS: &str = "system:masters";

/// A lab that is up, and an administrator's client.
#[derive(Clone)]
pub struct Stage {
    lab: Lab,
    client: Client,
    began: Instant,
}

/// An answer of the API server that is no success.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// What it said.
    pub message: String,
}

impl Stage {
    /// The lab that the environment names, or the default one.
    pub async fn get() -> Result<Self> {
        // Another test of the same program may have done it already.
        let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let name = std::env::var(LAB_VARIABLE).unwrap_or_else(|_| windlass_lab::DEFAULT_NAME.to_owned());
        let lab = Lab::named(&name)?;
        let path = lab.user_kubeconfig(USER, &[ADMINISTRATORS]).context("bring the lab up with `cargo xtask lab up`")?;
        let config = kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let namespaces: kube::Api<Namespace> = kube::Api::all(client.clone());
        namespaces.get("default").await.with_context(|| format!("the lab {name} does not answer"))?;
        Ok(Self { lab, client, began: Instant::now() })
    }

    /// The lab.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The administrator's client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(self.lab.audit_log())
    }

    /// Tells something with the time since the test began.
    pub fn say(&self, text: &str) {
        println!("  {:7.1} s  {text}", self.began.elapsed().as_secs_f64());
    }

    /// Sends any request with any body; the answer of the server is the result either way.
    pub async fn send(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Result<Result<Value, Refusal>> {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
        match self.client.request::<Value>(request.body(body.to_string().into_bytes())?).await {
            Ok(answer) => Ok(Ok(answer)),
            Err(kube::Error::Api(status)) => Ok(Err(Refusal { code: status.code, message: status.message.clone() })),
            Err(error) => Err(error).with_context(|| format!("no answer to a request for {path}")),
        }
    }
}
