//! Finds the binary logs with transactions that only one server has, and lets its agent put them beside the data directory.
//!
//! The server says which logs these are; the agent, in the same pod, links the files. It is the one thing that SQL cannot do.

use std::time::Duration;

use windlass_kinds::mysql::deeds::Place;
use windlass_kinds::mysql::gtid::GtidSet;
use windlass_kinds::replicated::hooks::{Exec, ExecEnd};

use super::Servers;
use super::dialect;
use super::session::{Failure, Session};
use crate::hooks::Hooks;

/// The container of the agent, and the program in it.
const CONTAINER: &str = "agent";
const PROGRAM: &str = "/windlass";
/// How long the agent may take to link some files.
const LINKING: Duration = Duration::from_secs(10);

/// Saves these transactions.
pub(super) async fn save(servers: &Servers, place: &Place, set: &str) -> Result<(), Failure> {
    let strange = |why: &str| Failure::Untried(format!("what pod {:?} has of {set:?} cannot be saved: {why}", place.pod));
    let wanted: GtidSet = set.parse().map_err(|error| strange(&format!("{error}")))?;
    let (mut session, _) = servers.log_in(place).await?;
    // A log that is written to is closed by this, so that what is saved does not change.
    session.run("closing the binary log", "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS").await?;
    let logs = if wanted.is_empty() { Vec::new() } else { logs_with(&mut session, &wanted).await? };
    let name = wanted.ranges().last().map_or_else(
        || "nothing".to_owned(),
        |(source, numbers)| format!("{}-{}-{}", source.uuid, numbers.start(), numbers.end()),
    );
    let mut command: Vec<String> = [PROGRAM, "mysql-save", "--name"].map(str::to_owned).to_vec();
    command.extend([name, "--note".to_owned(), set.replace('\n', "")]);
    command.extend(logs);
    let exec = Exec {
        namespace: place.namespace.clone(),
        pod: place.pod.clone(),
        pod_uid: place.pod_uid.clone(),
        process: place.process.clone(),
        turn: 0,
        ordinal: place.ordinal,
        container: CONTAINER.to_owned(),
        command,
        timeout: LINKING,
    };
    match Hooks::new(servers.client.clone()).run(&exec, None).await.0 {
        ExecEnd::Exited { code: 0, .. } => Ok(()),
        ExecEnd::Exited { code, errors, .. } => Err(strange(&format!("the agent says, with code {code}: {errors}"))),
        ExecEnd::Unknown { why } => Err(strange(&why)),
        ExecEnd::Unanswered { after } => Err(strange(&format!("nobody answered within {} s", after.as_secs()))),
        ExecEnd::StillRunning { after } => Err(strange(&format!("the agent still runs after {} s", after.as_secs()))),
    }
}

/// The logs that together have all of these, from the last one backwards: each log says at its beginning what those before it have.
async fn logs_with(session: &mut Session, wanted: &GtidSet) -> Result<Vec<String>, Failure> {
    let strange = |why: String| Failure::Untried(format!("the server's binary logs cannot be understood: {why}"));
    let rows = session.all("listing the binary logs", "SHOW BINARY LOGS").await?;
    let mut names = Vec::new();
    for row in &rows {
        names.push(row.text("Log_name").map_err(strange)?.to_owned());
    }
    let (mut missing, mut logs) = (wanted.clone(), Vec::new());
    // What all logs before the one at hand have; of the last one nothing follows.
    let mut before_next: Option<GtidSet> = None;
    for name in names.iter().rev() {
        let query = format!("SHOW BINLOG EVENTS IN {} LIMIT 3", dialect::quote(name));
        let events = session.all("reading the head of a binary log", &query).await?;
        let head = events.iter().find(|row| row.text("Event_type").is_ok_and(|sort| sort == "Previous_gtids"));
        let head = head.ok_or_else(|| strange(format!("{name:?} does not say what was before it")))?;
        let before = head.set("Info").map_err(strange)?;
        if let Some(has) = before_next.replace(before.clone()).map(|next| next.without(&before))
            && !has.shared_with(&missing).is_empty()
        {
            missing = missing.without(&has);
            logs.push(name.clone());
        }
        if missing.is_empty() {
            logs.reverse();
            return Ok(logs);
        }
    }
    Err(Failure::Untried(format!(
        "{} is not in the server's binary logs any more; if nobody needs it, delete the instance's claim and pod",
        missing.to_string().replace('\n', "")
    )))
}
