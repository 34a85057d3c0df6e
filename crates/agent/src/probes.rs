//! `/healthz` and `/readyz`: asks the server and gives the answer that the rules decide.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use futures::FutureExt as _;
use mysql_async::Row;

use crate::keeper::Keeper;
use crate::readiness::{Answer, Facts, Limits, Replication, decide};
use crate::session::{Failure, Session, code};

pub(crate) fn routes(keeper: &Arc<Keeper>, limits: Limits) -> Router {
    let (for_health, for_readiness) = (Arc::clone(keeper), Arc::clone(keeper));
    let healthz = move || {
        let keeper = Arc::clone(&for_health);
        async move { reply(&health(&keeper).await) }
    };
    let readyz = move || {
        let keeper = Arc::clone(&for_readiness);
        async move { reply(&readiness(&keeper, limits).await) }
    };
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

fn reply(answer: &Answer) -> (StatusCode, String) {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, format!("{}\n", answer.text))
}

async fn health(keeper: &Keeper) -> Answer {
    let act = "asking the server for its version";
    let asked = keeper.ask(act, |session| session.first::<String>(act, "SELECT VERSION()").boxed());
    match asked.await {
        Ok(version) => Answer { status: 200, text: format!("ok: {}", version.unwrap_or_default()) },
        // A server that clients use up is alive: killing it would take it from them as well.
        Err(failure) if failure.code() == Some(code::TOO_MANY_CONNECTIONS) => {
            Answer { status: 200, text: format!("ok: {failure}") }
        }
        Err(failure) => Answer { status: 503, text: failure.to_string() },
    }
}

async fn readiness(keeper: &Keeper, limits: Limits) -> Answer {
    match facts(keeper).await {
        Ok(facts) => decide(&facts, limits),
        Err(failure) => Answer { status: 503, text: failure.to_string() },
    }
}

/// What the server tells of itself.
pub(crate) async fn facts(keeper: &Keeper) -> Result<Facts, Failure> {
    keeper.ask("asking the server for its state", |session| read(session).boxed()).await
}

async fn read(session: &mut Session) -> Result<Facts, Failure> {
    let clone_state = read_clone_state(session).await?.map(|clone| clone.state);
    let read_only: Option<bool> = session.first("reading read_only", "SELECT @@GLOBAL.read_only").await?;
    let replication = match session.first::<Row>("reading the state of replication", "SHOW REPLICA STATUS").await {
        Ok(row) => Ok(row.map(|row| replication(&row))),
        // The connection is broken: nothing is known, not even that.
        Err(failure) if failure.code().is_none() => return Err(failure),
        Err(failure) => Err(failure.to_string()),
    };
    let query = "SELECT COALESCE(UNIX_TIMESTAMP(MAX(LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP)), 0) \
                 FROM performance_schema.replication_connection_status";
    let queued: Option<f64> = session.first("reading what was received", query).await?;
    let query = "SELECT COALESCE(SUM(COUNT_RECEIVED_HEARTBEATS), 0) FROM performance_schema.replication_connection_status";
    let heartbeats: Option<u64> = session.first("reading signs of the source", query).await?;
    let query = "SELECT COALESCE(UNIX_TIMESTAMP(MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP)), 0) \
                 FROM performance_schema.replication_applier_status_by_worker";
    let applied: Option<f64> = session.first("reading what was applied", query).await?;
    let query = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'";
    let uptime: Option<u64> = session.first("reading the time since the start", query).await?;
    Ok(Facts {
        clone_state,
        // Unknown is not writable.
        read_only: read_only.unwrap_or(true),
        replication,
        queued: queued.unwrap_or_default(),
        applied: applied.unwrap_or_default(),
        heartbeats: heartbeats.unwrap_or_default(),
        uptime: Duration::from_secs(uptime.unwrap_or_default()),
    })
}

/// Columns are found by name: their number grows with the versions.
fn replication(row: &Row) -> Replication {
    let text = |column: &str| row.get_opt::<String, _>(column).and_then(Result::ok).unwrap_or_default();
    // An error that cannot be read is one.
    let number = |column: &str| row.get_opt::<u64, _>(column).and_then(Result::ok).unwrap_or(u64::MAX);
    Replication {
        receiver: text("Replica_IO_Running"),
        applier: text("Replica_SQL_Running"),
        receiver_error: number("Last_IO_Errno"),
        applier_error: number("Last_SQL_Errno"),
    }
}

/// The last clone on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloneState {
    pub(crate) state: String,
    pub(crate) code: u16,
    pub(crate) said: String,
}

pub(crate) async fn read_clone_state(session: &mut Session) -> Result<Option<CloneState>, Failure> {
    let query = "SELECT STATE, ERROR_NO, ERROR_MESSAGE FROM performance_schema.clone_status";
    match session.first::<(String, u16, String)>("reading the state of the last clone", query).await {
        Ok(row) => Ok(row.map(|(state, code, said)| CloneState { state, code, said })),
        // The table comes with the plugin.
        Err(failure) if failure.code() == Some(code::NO_TABLE) => Ok(None),
        Err(failure) => Err(failure),
    }
}
