//! One connection to a server's administrative port, and what can go wrong with it.
//!
//! Errors say what was tried, on which pod, and what the server said. They never show a password, and neither does anything else here:
//! a connection knows the password it was opened with, so it has no `Debug`.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, DriverError, OptsBuilder, Row, Value};
use windlass_kinds::mysql::deeds::Place;
use windlass_kinds::mysql::facts::{End, Silence};

use super::rows::{Answers, Fields};
use super::term::Term;
use super::{dialect, watch};

/// How long a log-in may take.
const LOG_IN: Duration = Duration::from_secs(2);
/// How long a connection may be quiet before it is tried whether the other end still lives: a clone is quiet for hours.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// More than we ever send or ask for. Without it each log-in asks the server for its own.
const LARGEST_PACKET: usize = 64 << 20;
/// How much of what a server says is told: it goes into status and Events.
const TOLD: usize = 512;

/// The super user, which the controller works with.
pub(super) const ADMIN: &str = "moco-admin";

/// What the server's codes mean to us.
pub(super) mod code {
    /// Wrong password, or no such account.
    pub(crate) const ACCESS_DENIED: u16 = 1045;
    /// There is no such connection.
    pub(crate) const NO_SUCH_THREAD: u16 = 1094;
    /// Others held a lock for too long.
    pub(crate) const LOCK_WAIT_TIMEOUT: u16 = 1205;
    /// There is no such table.
    pub(crate) const NO_TABLE: u16 = 1146;
    /// The server cannot start itself again, and stops.
    pub(crate) const NO_SUPERVISOR: u16 = 3707;
}

/// Why something was not done, or is not known to be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The server said no.
    #[error("{act} failed on pod {pod:?}: the server says error {code}: {said}")]
    Said { act: &'static str, pod: String, code: u16, said: String },
    /// The server said nothing.
    #[error("{act} on pod {pod:?} was not answered: {said}")]
    Lost { act: &'static str, pod: String, how: Silence, said: String },
    /// It could not be asked.
    #[error("{why}")]
    Shut { how: Silence, why: String },
    /// It let nobody in in time.
    #[error("{0}")]
    Late(String),
    /// It was not even tried.
    #[error("{0}")]
    Untried(String),
}

impl Failure {
    /// The server's code.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Said { code, .. } => Some(*code),
            Self::Lost { .. } | Self::Shut { .. } | Self::Late(_) | Self::Untried(_) => None,
        }
    }

    /// What it means for a task.
    pub(super) fn into_end(self) -> End {
        let why = self.to_string();
        match self {
            Self::Said { .. } | Self::Shut { .. } | Self::Late(_) | Self::Untried(_) => End::Failed { why },
            Self::Lost { .. } => End::Unknown { why },
        }
    }

    /// What it means for who was asked. Nothing when it was only late: then a knock tells.
    pub(super) fn silence(&self) -> Option<Silence> {
        match self {
            Self::Lost { how, .. } | Self::Shut { how, .. } => Some(*how),
            Self::Said { .. } | Self::Untried(_) => Some(Silence::Refused),
            Self::Late(_) => None,
        }
    }

    /// The same without this text, which the server may have cited.
    pub(super) fn without(self, secret: &str) -> Self {
        let hide = |said: &str| said.replace(&dialect::quote(secret), "'…'").replace(secret, "…");
        match self {
            Self::Said { act, pod, code, said } if !secret.is_empty() => Self::Said { act, pod, code, said: hide(&said) },
            Self::Untried(said) if !secret.is_empty() => Self::Untried(hide(&said)),
            other => other,
        }
    }
}

/// Why there is no connection.
pub(super) enum Shut {
    /// The account or its password is not what the server has.
    Refused(String),
    /// The server let nobody in in time.
    Late(String),
    /// Anything else.
    Otherwise { how: Silence, why: String },
}

impl From<Shut> for Failure {
    fn from(shut: Shut) -> Self {
        match shut {
            Shut::Refused(why) => Self::Untried(why),
            Shut::Late(why) => Self::Late(why),
            Shut::Otherwise { how, why } => Self::Shut { how, why },
        }
    }
}

/// A connection.
pub(super) struct Session {
    connection: Conn,
    pod: String,
    term: Term,
}

impl Session {
    /// Logs in.
    pub(super) async fn open(place: &Place, port: u16, password: &str, term: &Term) -> Result<Self, Shut> {
        let options = OptsBuilder::default()
            .ip_or_hostname(place.address.as_str())
            .tcp_port(port)
            // A server on the same machine would be asked for its socket, and be reached through that.
            .prefer_socket(false)
            .user(Some(ADMIN))
            .pass(Some(password))
            .tcp_keepalive(Some(KEEP_ALIVE))
            .max_allowed_packet(Some(LARGEST_PACKET))
            .wait_timeout(Some(dialect::QUIET_SECONDS))
            .setup(vec![dialect::set_up(term.mark())]);
        let whom = format!("the server of pod {:?} at {}:{port}", place.pod, place.address);
        let error = match tokio::time::timeout(LOG_IN, Conn::new(options)).await {
            Ok(Ok(connection)) => return Ok(Self { connection, pod: place.pod.clone(), term: term.clone() }),
            Ok(Err(error)) => error,
            Err(_) => {
                return Err(Shut::Late(format!(
                    "{whom} let nobody in within {} s: it hangs, or a network policy or its node keeps the operator from it",
                    LOG_IN.as_secs()
                )));
            }
        };
        Err(match error {
            mysql_async::Error::Server(said) if said.code == code::ACCESS_DENIED => Shut::Refused(format!(
                "{whom} refuses the account {ADMIN} with the password of Secret {:?}: error {}: {}",
                place.credentials, said.code, said.message
            )),
            // An account that does not exist is asked for by any plugin, so that nobody learns which ones exist.
            mysql_async::Error::Driver(DriverError::UnknownAuthPlugin { name }) => Shut::Refused(format!(
                "{whom} has no account {ADMIN} that logs in by a password: it asks for the plugin {name:?}; is it initialised yet?"
            )),
            mysql_async::Error::Server(said) => Shut::Otherwise {
                how: Silence::Refused,
                why: format!("{whom} does not let {ADMIN} in: error {}: {}", said.code, shorten(&said.message)),
            },
            other => {
                Shut::Otherwise { how: silence(&other), why: format!("{whom} cannot be reached: {}", shorten(&plain(&other))) }
            }
        })
    }

    /// Runs a statement that changes something, if that may still be done. `act` is what it is for, as it would be told to somebody.
    pub(super) async fn run(&mut self, act: &'static str, statement: &str) -> Result<(), Failure> {
        self.term.check()?;
        let end = self.connection.query_drop(statement).await;
        end.map_err(|error| self.fail(act, error))
    }

    /// Runs a statement with a password in it.
    pub(super) async fn run_secretly(&mut self, act: &'static str, statement: &str, secret: &str) -> Result<(), Failure> {
        self.run(act, statement).await.map_err(|failure| failure.without(secret))
    }

    /// All rows.
    pub(super) async fn all(&mut self, act: &'static str, query: &str) -> Result<Vec<Fields>, Failure> {
        let rows: Result<Vec<Row>, _> = self.connection.query(query).await;
        rows.map(|rows| rows.iter().map(fields).collect()).map_err(|error| self.fail(act, error))
    }

    /// The first row; it is an error when there is none.
    pub(super) async fn first(&mut self, act: &'static str, query: &str) -> Result<Fields, Failure> {
        let rows = self.all(act, query).await?;
        let none = || Failure::Untried(format!("{act} on pod {:?} gave no row", self.pod));
        rows.into_iter().next().ok_or_else(none)
    }

    /// Everything that a look needs, in one round trip.
    pub(super) async fn look(&mut self) -> Result<Answers, Failure> {
        let act = "reading the server's state";
        let answers = read_all(&mut self.connection).await;
        answers.map_err(|error| self.fail(act, error))
    }

    fn fail(&self, act: &'static str, error: mysql_async::Error) -> Failure {
        let pod = self.pod.clone();
        match error {
            mysql_async::Error::Server(error) => Failure::Said { act, pod, code: error.code, said: shorten(&error.message) },
            other => Failure::Lost { act, pod, how: silence(&other), said: shorten(&plain(&other)) },
        }
    }
}

async fn read_all(connection: &mut Conn) -> Result<Answers, mysql_async::Error> {
    let mut results = connection.query_iter(dialect::LOOK).await?;
    let server = next(&mut results).await?.into_iter().next().unwrap_or_default();
    let variables = next(&mut results).await?;
    let followers = next(&mut results).await?;
    let replication = next(&mut results).await?;
    let quiet = next(&mut results).await?;
    let clone = match next(&mut results).await {
        // The table comes with the plugin.
        Err(mysql_async::Error::Server(error)) if error.code == code::NO_TABLE => Vec::new(),
        other => other?,
    };
    results.drop_result().await?;
    Ok(Answers { server, variables, followers, replication, quiet, clone })
}

type Results<'a> = mysql_async::QueryResult<'a, 'static, mysql_async::TextProtocol>;

async fn next(results: &mut Results<'_>) -> Result<Vec<Fields>, mysql_async::Error> {
    Ok(results.collect::<Row>().await?.iter().map(fields).collect())
}

/// A row as text, by the names of its columns.
fn fields(row: &Row) -> Fields {
    let value = |place: usize| match row.as_ref(place) {
        None | Some(Value::NULL) => None,
        Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Some(other) => Some(other.as_sql(true)),
    };
    row.columns_ref().iter().enumerate().map(|(place, column)| (column.name_str().into_owned(), value(place))).collect()
}

/// What an error of the driver says of the server.
fn silence(error: &mysql_async::Error) -> Silence {
    match error {
        mysql_async::Error::Io(mysql_async::IoError::Io(error)) => watch::of_error(error),
        mysql_async::Error::Driver(DriverError::ConnectionClosed) => Silence::Closed,
        _ => Silence::Refused,
    }
}

/// What the driver says, without its own frame around it.
fn plain(error: &mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Io(mysql_async::IoError::Io(error)) => error.to_string(),
        mysql_async::Error::Driver(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(said: &str) -> Failure {
        Failure::Said { act: "naming the source", pod: "moco-a-1".into(), code: 1064, said: said.into() }
    }

    #[test]
    fn a_person_reads_what_failed_where_and_what_the_server_said() {
        let text = "naming the source failed on pod \"moco-a-1\": the server says error 1064: no";
        assert_eq!(said("no").to_string(), text);
        assert_eq!(said("no").into_end(), End::Failed { why: text.into() });
    }

    #[test]
    fn what_nobody_answered_may_have_been_done() {
        let lost = Failure::Lost { act: "closing", pod: "moco-a-1".into(), how: Silence::Closed, said: "broken pipe".into() };
        assert!(matches!(lost.into_end(), End::Unknown { why } if why.contains("broken pipe")));
        assert!(matches!(Failure::Untried("x".into()).into_end(), End::Failed { .. }));
    }

    #[test]
    fn a_password_that_the_server_cites_is_not_told() {
        let cited = said("near 'pass''word' and pass'word").without("pass'word").to_string();
        assert!(cited.ends_with("near '…' and …"), "{cited}");
        assert!(said("near ''").without("").to_string().ends_with("near ''"));
        let cited = Failure::Untried("the agent says pass'word".into()).without("pass'word").to_string();
        assert_eq!(cited, "the agent says …");
    }
}
