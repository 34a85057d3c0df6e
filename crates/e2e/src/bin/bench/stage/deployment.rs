//! An operator that is installed in the lab stands still while the bench runs.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{say, within};

const NAMESPACE: &str = "windlass-system";
const NAME: &str = "windlass";
/// How many replicas it had: a run that was killed leaves it, and the next one puts them back.
const REPLICAS: &str = "bench.windlass.dev/replicas";
const STOPPING: Duration = Duration::from_mins(3);

/// What was stopped.
pub(crate) struct Deployed {
    replicas: i32,
}

/// Stops the installed operator, if there is one.
pub(super) async fn stop(admin: &Client) -> Result<Option<Deployed>> {
    let api: Api<Deployment> = Api::namespaced(admin.clone(), NAMESPACE);
    let Some(found) = api.get_opt(NAME).await? else {
        return Ok(None);
    };
    let before = found.metadata.annotations.as_ref().and_then(|all| all.get(REPLICAS)?.parse().ok());
    let replicas = before.or(found.spec.as_ref().and_then(|spec| spec.replicas)).unwrap_or(1);
    say(format!("the installed operator is stopped for the run ({replicas} replicas)"));
    patch(&api, json!({ "metadata": { "annotations": { REPLICAS: replicas.to_string() } }, "spec": { "replicas": 0 } }))
        .await?;
    let stopped = Box::pin(await_condition(api, NAME, |it: Option<&Deployment>| {
        it.and_then(|it| it.status.as_ref())
            .is_none_or(|status| status.replicas.unwrap_or(0) == 0 && status.terminating_replicas.unwrap_or(0) == 0)
    }));
    within(STOPPING, "the installed operator to stop", async { Ok(stopped.await.map(drop)?) }).await?;
    Ok(Some(Deployed { replicas }))
}

/// Starts it again as it was.
pub(super) async fn restore(admin: &Client, deployed: &Deployed) -> Result<()> {
    say("the installed operator is started again");
    let api: Api<Deployment> = Api::namespaced(admin.clone(), NAMESPACE);
    patch(&api, json!({ "metadata": { "annotations": { REPLICAS: null } }, "spec": { "replicas": deployed.replicas } })).await
}

async fn patch(api: &Api<Deployment>, body: Value) -> Result<()> {
    let patched = api.patch(NAME, &PatchParams::default(), &Patch::Merge(body)).await;
    patched.map(drop).with_context(|| format!("deployment {NAME} in namespace {NAMESPACE} cannot be changed"))
}
