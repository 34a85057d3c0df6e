//! Who of those that are connected to a server is a client, and how clients are disconnected.

use super::dialect;
use super::rows::Fields;
use super::session::{Failure, Session, code};

/// The accounts of the system, and the server's own threads. A client whose log-in is not finished has no name of its own yet; it finds
/// out for itself, and it may be one of us.
const OURS: [&str; 9] = [
    "moco-admin",
    "moco-agent",
    "moco-repl",
    "moco-clone-donor",
    "moco-exporter",
    "moco-backup",
    "system user",
    "event_scheduler",
    "unauthenticated user",
];

/// The host of those that come through the socket: the agent, and whoever works in the pod by hand.
const IN_THE_POD: &str = "localhost";

/// Ends the connections of all clients.
pub(super) async fn end_clients(session: &mut Session) -> Result<(), Failure> {
    let rows = session.all("listing the connections", dialect::CONNECTIONS).await?;
    for id in clients(&rows).map_err(Failure::Untried)? {
        match session.run("disconnecting a client", &format!("KILL {id}")).await {
            // It went by itself.
            Err(failure) if failure.code() == Some(code::NO_SUCH_THREAD) => {}
            end => end?,
        }
    }
    Ok(())
}

/// The ids of the connections that are clients'.
fn clients(rows: &[Fields]) -> Result<Vec<u64>, String> {
    let mut ids = Vec::new();
    for row in rows {
        // A thread of the server has no user, or no host.
        let (Some(user), Some(host)) = (row.optional("USER")?, row.optional("HOST")?) else { continue };
        if OURS.contains(&user) || host == IN_THE_POD || host.is_empty() {
            continue;
        }
        let id = row.text("ID")?;
        ids.push(id.parse().map_err(|_| format!("the server lists a connection with the id {id:?}"))?);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, user: Option<&str>, host: Option<&str>) -> Fields {
        let owned = |text: &str| text.to_owned();
        [("ID", Some(id)), ("USER", user), ("HOST", host)]
            .into_iter()
            .map(|(name, value)| (owned(name), value.map(owned)))
            .collect()
    }

    #[test]
    fn clients_are_told_from_us_and_from_the_server_itself() {
        let rows = [
            row("5", Some("event_scheduler"), Some("localhost")),
            row("6", Some("system user"), Some("")),
            row("7", Some("system user"), Some("connecting host")),
            row("8", Some("moco-admin"), Some("10.0.0.1:4000")),
            row("9", Some("moco-repl"), Some("10.0.0.2:4000")),
            row("10", Some("moco-agent"), Some("localhost")),
            row("11", Some("root"), Some("localhost")),
            row("12", Some("unauthenticated user"), Some("10.0.0.3:4000")),
            row("13", None, None),
            row("14", Some("moco-writable"), Some("10.0.0.4:4000")),
            row("15", Some("app"), Some("127.0.0.1:4000")),
            row("16", Some("moco-readonly"), Some("10.0.0.4:4001")),
            row("17", Some("moco-admin2"), Some("10.0.0.4:4001")),
        ];
        assert_eq!(clients(&rows), Ok(vec![14, 15, 16, 17]));
    }

    #[test]
    fn an_answer_that_is_none_kills_nobody() {
        assert!(clients(&[row("x", Some("app"), Some("10.0.0.1:1"))]).is_err());
        assert!(clients(&[Fields::default()]).is_err());
    }
}
