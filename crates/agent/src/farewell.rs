//! The last thing that is done to a server before it may stop: everybody whom it could tell anything is disconnected.
//!
//! A server that is told to stop gives up waiting for acknowledgements and tells the clients of all commits that waited that they
//! succeeded. Another instance may have the office by then, without these commits. So nobody may be there who hears it. The commits
//! themselves are left as they are: what becomes of them is decided by others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};

use crate::accounts::{ADMIN, Passwords};
use crate::session::{Failure, Session, Socket, code};

/// What is answered when nobody is left.
pub(crate) const DONE: &str = "done";
/// How long the order to take no more writes may take. It waits for the commits that wait, and keeps new ones from beginning.
const CLOSING: Duration = Duration::from_millis(200);

/// A row of SHOW PROCESSLIST: id, user, host, database, command, time, state, statement. It is there whatever else is switched off.
type Connection = (u64, String, String, Option<String>, String, i64, Option<String>, Option<String>);

/// Whether somebody is at the other end: not one of the server's own threads, and nobody who replicates, who may still acknowledge.
fn is_client((_, user, _, _, command, ..): &Connection) -> bool {
    !["system user", "event_scheduler"].contains(&user.as_str())
        && !["Daemon", "Binlog Dump", "Binlog Dump GTID"].contains(&command.as_str())
}

/// Where whoever runs the server asks for it.
pub(crate) fn socket_in(directory: &Path) -> PathBuf {
    directory.join("windlass-farewell.sock")
}

/// Does it for everybody who connects, one after the other.
pub(crate) async fn serve(directory: &Path, server: &Socket, passwords: &Passwords) {
    let path = socket_in(directory);
    // One of an earlier agent may be left.
    let _absent = std::fs::remove_file(&path);
    let listener = match UnixListener::bind(&path) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "the server's clients cannot be cut off in time; it is killed instead of stopped");
            return;
        }
    };
    loop {
        match listener.accept().await {
            Ok((asked, _)) => answer(asked, server, passwords).await,
            Err(error) => {
                tracing::warn!(%error, "nobody could be heard on {}", path.display());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer(mut asked: UnixStream, server: &Socket, passwords: &Passwords) {
    let said = match cut_off(server, passwords).await {
        Ok(clients) => {
            tracing::info!(clients, "the server may stop: its clients are disconnected");
            DONE.to_owned()
        }
        Err(why) => why.to_string(),
    };
    if let Err(error) = asked.write_all(said.as_bytes()).await {
        tracing::warn!(%error, "whoever runs the server went away");
    }
}

/// Disconnects everybody, and returns how many there were.
async fn cut_off(server: &Socket, passwords: &Passwords) -> Result<usize, Failure> {
    let log_in = async || server.log_in(ADMIN, passwords.of(ADMIN)).await;
    let (mut session, mut closing) = (log_in().await?, log_in().await?);
    let mut gone = BTreeSet::from([id(&mut session).await?, id(&mut closing).await?]);
    let ours = gone.len();
    // Whether it comes to its end or not, it was given, and the server remembers.
    let order = closing.run("letting nobody write any more", "SET GLOBAL super_read_only = 1");
    if let Ok(end) = tokio::time::timeout(CLOSING, order).await {
        end?;
    }
    session.run("keeping clients out", "SET GLOBAL offline_mode = 1").await?;
    loop {
        let connections: Vec<Connection> = session.all("listing the connections", "SHOW PROCESSLIST").await?;
        let clients = connections.iter().filter(|it| is_client(it)).map(|it| it.0);
        let new: Vec<u64> = clients.filter(|client| !gone.contains(client)).collect();
        if new.is_empty() {
            return Ok(gone.len() - ours);
        }
        for client in new {
            match session.run("disconnecting a client", &format!("KILL {client}")).await {
                // It went by itself.
                Err(failure) if failure.code() == Some(code::NO_SUCH_THREAD) => {}
                end => end?,
            }
            gone.insert(client);
        }
    }
}

async fn id(session: &mut Session) -> Result<u64, Failure> {
    let act = "asking for the connection's id";
    let id = session.first(act, "SELECT CONNECTION_ID()").await?;
    id.ok_or_else(|| Failure::Act { act, code: None, said: "the server has none".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("app", "Query", true)]
    #[case("moco-writable", "Sleep", true)]
    #[case("moco-admin", "Query", true)]
    #[case("unauthenticated user", "Connect", true)]
    #[case("system user", "Query", false)]
    #[case("event_scheduler", "Daemon", false)]
    #[case("moco-repl", "Binlog Dump GTID", false)]
    fn those_who_could_be_told_something_are_clients(#[case] user: &str, #[case] command: &str, #[case] client: bool) {
        let row = (1, user.to_owned(), "10.0.0.1:4000".to_owned(), None, command.to_owned(), 0, None, None);
        assert_eq!(is_client(&row), client);
    }
}
