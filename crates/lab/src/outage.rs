//! A part of the lab that is away for a while, on purpose.

use anyhow::{Context as _, Result};

use crate::Lab;
use crate::process::{self, Program};
use crate::startup;

const API_SERVER: &str = "kube-apiserver";

impl Lab {
    /// Plays while there is no API server: it is killed before, and started again afterwards as it was, whatever the play came to.
    pub async fn without_api_server(&self, play: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let running = process::records(&self.layout).into_iter().find(|it| it.name == API_SERVER && it.identity.alive());
        let identity = running.with_context(|| format!("the lab {} has no API server", self.name()))?.identity;
        let executable = process::executable(identity.pid).context("the program of the API server cannot be found out")?;
        let arguments = process::arguments(identity.pid).into_iter().skip(1).collect();
        identity.kill();
        let played = play().await;
        process::start(&self.layout, &Program { name: API_SERVER, executable, arguments })?;
        let served = startup::wait_for_api(&self.layout).await.context("the API server did not come back");
        played.and(served)
    }
}
