//! A namespace of its own for a test.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{AttachParams, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::cluster::Cluster;
use crate::stage::Stage;
use crate::trouble;

/// Keeps the namespaces of failed tests when it is set.
const KEEP_VARIABLE: &str = "WINDLASS_KEEP";
const FIELD_MANAGER: &str = "windlass-e2e";
const LEVEL: &str = "pod-security.kubernetes.io";

/// A namespace on the stage.
#[derive(Clone)]
pub struct Place {
    stage: Stage,
    namespace: String,
}

/// What a command in a container came to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed.
    pub output: String,
    /// What it complained about.
    pub errors: String,
}

impl Stage {
    /// Plays in a fresh namespace, under Pod Security `restricted` when asked, and deletes it afterwards. When the play fails,
    /// what can be seen there is printed first.
    pub async fn with_namespace(
        &self,
        prefix: &str,
        restricted: bool,
        play: impl AsyncFnOnce(&Place) -> Result<()>,
    ) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let levels = ["enforce", "audit", "warn"].map(|mode| (format!("{LEVEL}/{mode}"), "restricted".to_owned()));
        let metadata = ObjectMeta {
            generate_name: Some(format!("{prefix}-")),
            labels: restricted.then(|| BTreeMap::from(levels)),
            ..ObjectMeta::default()
        };
        let made = namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
        let place = Place { stage: self.clone(), namespace: made.name_any() };
        self.say(&format!("namespace {}", place.namespace));
        // A failed assertion must not leave the namespace behind either.
        let result = AssertUnwindSafe(play(&place)).catch_unwind().await;
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(anyhow!(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()))
        });
        if let Err(error) = &result {
            println!("\n==> failed: {error:#}");
            trouble::tell(&place).await;
            if std::env::var_os(KEEP_VARIABLE).is_some() {
                println!("==> namespace {} is kept", place.namespace);
                return result;
            }
        }
        namespaces.delete(&place.namespace, &DeleteParams::default()).await?;
        result
    }
}

impl Place {
    /// The stage.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a kind.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.stage.client(), &self.namespace)
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Result<Cluster> {
        Cluster::new(self.clone(), name)
    }

    /// Whether there is such an object, and not on its way out.
    pub async fn has<K>(&self, name: &str) -> Result<bool>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
        K::DynamicType: Default,
    {
        Ok(self.api::<K>().get_opt(name).await?.is_some_and(|object| object.meta().deletion_timestamp.is_none()))
    }

    /// Applies every object of a manifest, here.
    pub async fn apply(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            let dynamic: DynamicObject =
                serde_json::from_value(object.clone()).context("an object of the manifest has no type")?;
            let types = dynamic.types.clone().context("an object of the manifest has no type")?;
            let kind = GroupVersionKind::try_from(&types)?;
            let (resource, _) = kube::discovery::pinned_kind(&self.stage.client(), &kind).await?;
            let api: Api<DynamicObject> = Api::namespaced_with(self.stage.client(), &self.namespace, &resource);
            let name = dynamic.name_any();
            api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object))
                .await
                .with_context(|| format!("cannot apply {} {name}", types.kind))?;
        }
        Ok(())
    }

    /// Runs a command in the only container of a pod.
    pub async fn run(&self, pod: &str, command: &[&str]) -> Result<Ran> {
        self.exec(pod, AttachParams::default(), command).await
    }

    /// Runs a command in a container of a pod.
    pub async fn run_in(&self, pod: &str, container: &str, command: &[&str]) -> Result<Ran> {
        self.exec(pod, AttachParams::default().container(container), command).await
    }

    async fn exec(&self, pod: &str, parameters: AttachParams, command: &[&str]) -> Result<Ran> {
        let parameters = parameters.stdin(false).stdout(true).stderr(true);
        let mut process = self.api::<Pod>().exec(pod, command.iter().copied(), &parameters).await?;
        let (mut stdout, mut stderr) = (process.stdout().context("no output")?, process.stderr().context("no errors")?);
        let status = process.take_status().context("no status")?;
        let (mut output, mut errors) = (String::new(), String::new());
        let (read, complained, status) =
            tokio::join!(stdout.read_to_string(&mut output), stderr.read_to_string(&mut errors), status);
        read?;
        complained?;
        let status = status.with_context(|| format!("the connection to {pod} ended before {command:?} did"))?;
        let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
        let code = causes.into_iter().find(|cause| cause.reason.as_deref() == Some("ExitCode")).and_then(|cause| cause.message);
        let code = match (status.status.as_deref(), code) {
            (Some("Success"), _) => 0,
            (_, Some(code)) => code.parse()?,
            _ => return Err(anyhow!("{command:?} could not be run in {pod}: {}", status.message.unwrap_or_default())),
        };
        Ok(Ran { code, output, errors })
    }

    /// Runs a shell script in a pod that must succeed, and returns what it printed.
    pub async fn shell(&self, pod: &str, script: &str) -> Result<String> {
        let ran = self.run(pod, &["/bin/bash", "-c", script]).await?;
        ensure!(ran.code == 0, "{script:?} in {pod} ended with code {}: {}{}", ran.code, ran.output, ran.errors);
        Ok(ran.output)
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    pod.metadata.deletion_timestamp.is_none()
        && conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}
