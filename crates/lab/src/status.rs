//! What a lab says about itself.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::layout::Layout;
use crate::startup::{self, Facts};
use crate::{kubeconfig, process};

/// The state of a lab.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabStatus {
    /// The lab's name.
    pub name: String,
    /// Whether everything runs and the node is Ready.
    pub healthy: bool,
    /// Whether the API server says that it is ready.
    pub api_ready: bool,
    /// Whether the node is Ready.
    pub node_ready: bool,
    /// When the lab was last brought up; nothing when it is down.
    pub since: Option<Timestamp>,
    /// The node's address, on which the API server listens too.
    pub address: Option<std::net::Ipv4Addr>,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The parts that were started.
    pub processes: Vec<ProcessStatus>,
}

/// The state of one part.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    /// The part's name, which is also that of its log.
    pub name: String,
    /// Its process id.
    pub pid: i32,
    /// Whether it still runs.
    pub running: bool,
    /// When it was started.
    pub since: Timestamp,
}

pub(crate) async fn of(layout: &Layout) -> LabStatus {
    let processes: Vec<ProcessStatus> = process::records(layout)
        .into_iter()
        .map(|record| ProcessStatus {
            running: record.identity.alive(),
            pid: record.identity.pid,
            name: record.name,
            since: record.since,
        })
        .collect();
    let facts = Facts::read(layout);
    let path = layout.kubeconfig("admin");
    let all_run = !processes.is_empty() && processes.iter().all(|process| process.running);
    let (mut api_ready, mut node_ready) = (false, false);
    // Asked only when something could answer: otherwise a lab that is down takes long to say so.
    if processes.iter().any(|process| process.running)
        && let Ok(client) = kubeconfig::client(&path).await
    {
        let limit = std::time::Duration::from_secs(5);
        api_ready = tokio::time::timeout(limit, startup::api_ready(&client)).await.unwrap_or(false);
        node_ready = api_ready && tokio::time::timeout(limit, startup::node_ready(&client, layout)).await.unwrap_or(false);
    }
    LabStatus {
        name: layout.name.clone(),
        healthy: facts.is_some() && all_run && api_ready && node_ready,
        api_ready,
        node_ready,
        since: facts.as_ref().map(|facts| facts.since),
        address: facts.as_ref().map(|facts| facts.link.node),
        kubeconfig: path,
        processes,
    }
}
