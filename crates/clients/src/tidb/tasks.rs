//! Does to PD and to servers what was decided.

use hyper::Method;
use serde::Deserialize;
use serde_json::json;
use windlass_kinds::tidb::deeds::Task;
use windlass_kinds::tidb::facts::End;

use crate::http::{Failure, Http, Peer, segment};
use crate::pd::Pd;

/// What came of a change that needs no words.
fn done(end: Result<(), Failure>) -> End {
    end.map_or_else(|failure| failed(&failure), |()| End::Done)
}

/// What a failure means for a task.
pub(super) fn failed(failure: &Failure) -> End {
    let why = failure.to_string();
    match failure {
        Failure::Lost { .. } => End::Unknown { why },
        Failure::Untried { .. } | Failure::Unreached { .. } | Failure::Said { .. } | Failure::Strange { .. } => {
            End::Failed { why }
        }
    }
}

/// A task that is PD's; nothing when it is not.
pub(super) async fn at_pd(pd: Pd<'_>, task: &Task) -> Option<End> {
    Some(done(match task {
        Task::EvictLeaders { store } => pd.evict_leaders(*store).await,
        Task::StopEvicting { store } => pd.stop_evicting(*store).await,
        Task::DeleteStore { store, address } => pd.delete_store(*store, address).await,
        Task::RestoreStore { store, address } => pd.restore_store(*store, address).await,
        Task::SetStoreLabels { store, address, labels } => pd.label_store(*store, address, labels).await,
        Task::TransferPdLeader { to } => pd.transfer_leader(to).await,
        Task::DeletePdMember { id, name } => pd.delete_member(*id, name).await,
        Task::EnablePlacementRules => pd.enable_placement_rules().await,
        Task::ResignTiCdcOwner | Task::DrainCapture { .. } | Task::PumpOffline { .. } => return None,
    }))
}

/// A task of another server; nothing when it is PD's.
pub(super) async fn at_server(http: &Http, peer: &Peer, task: &Task) -> Option<End> {
    Some(match task {
        Task::ResignTiCdcOwner => done(resign(http, peer).await),
        Task::DrainCapture { capture } => drain(http, peer, capture).await.unwrap_or_else(|failure| failed(&failure)),
        Task::PumpOffline { node } => done(pump_offline(http, peer, node).await),
        Task::EvictLeaders { .. }
        | Task::StopEvicting { .. }
        | Task::DeleteStore { .. }
        | Task::RestoreStore { .. }
        | Task::SetStoreLabels { .. }
        | Task::TransferPdLeader { .. }
        | Task::DeletePdMember { .. }
        | Task::EnablePlacementRules => return None,
    })
}

async fn resign(http: &Http, peer: &Peer) -> Result<(), Failure> {
    let act = "letting another capture own the changefeeds";
    match http.change(act, peer, (Method::POST, "/api/v1/owner/resign"), None).await?.yes() {
        // An older one, which cannot.
        Err(failure) if failure.status() == Some(404) => Ok(()),
        end => end.map(drop),
    }
}

#[derive(Deserialize)]
struct Draining {
    current_table_count: u64,
}

async fn drain(http: &Http, peer: &Peer, capture: &str) -> Result<End, Failure> {
    let act = "letting a capture give away its tables";
    let body = json!({ "capture_id": capture });
    match http.change(act, peer, (Method::PUT, "/api/v1/captures/drain"), Some(&body)).await?.yes() {
        Ok(answer) => Ok(End::Drains { left: answer.json::<Draining>()?.current_table_count }),
        // An older one, which cannot: nothing more can be done.
        Err(failure) if failure.status() == Some(404) => Ok(End::Drains { left: 0 }),
        Err(failure) => Err(failure),
    }
}

/// A pump says in the text of its answer, and not by its status, whether it obeys.
#[derive(Deserialize)]
struct Verdict {
    #[serde(default)]
    message: String,
    code: u16,
}

async fn pump_offline(http: &Http, peer: &Peer, node: &str) -> Result<(), Failure> {
    let act = "letting a pump leave";
    let path = format!("/state/{}/close", segment(node));
    let answer = http.change(act, peer, (Method::PUT, &path), None).await?.yes()?;
    match answer.json()? {
        Verdict { code: 200, .. } => Ok(()),
        Verdict { message, code } => Err(Failure::Said { act, host: answer.host, status: code, said: message }),
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
