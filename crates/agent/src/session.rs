//! The way into mysqld: its unix socket, and nothing else. Errors tell what was tried; they never show a password.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable as _};
use mysql_async::{Conn, OptsBuilder, Row};

/// How long a log-in may take.
const LOG_IN: Duration = Duration::from_secs(5);

/// What the server's codes mean to us.
pub(crate) mod code {
    /// Too many connections: the server lives.
    pub(crate) const TOO_MANY_CONNECTIONS: u16 = 1040;
    /// Wrong password, or no such account.
    pub(crate) const ACCESS_DENIED: u16 = 1045;
    /// A statement that the server does not know.
    pub(crate) const SYNTAX: u16 = 1064;
    /// No such connection.
    pub(crate) const NO_SUCH_THREAD: u16 = 1094;
    /// The plugin is there.
    pub(crate) const PLUGIN_EXISTS: u16 = 1125;
    /// No such library.
    pub(crate) const NO_LIBRARY: u16 = 1126;
    /// No such table.
    pub(crate) const NO_TABLE: u16 = 1146;
    /// An account whose authentication plugin is not loaded.
    pub(crate) const PLUGIN_NOT_LOADED: u16 = 1524;
    /// The server cannot start itself again, and stops.
    pub(crate) const NO_SUPERVISOR: u16 = 3707;
}

/// Why the server did not do what it was asked to.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("log-in as {user:?} through {socket:?} failed: {said}")]
    LogIn { user: String, socket: PathBuf, code: Option<u16>, said: String },
    #[error("{act} failed: {said}")]
    Act { act: &'static str, code: Option<u16>, said: String },
}

impl Failure {
    /// The server's code; none when the server did not answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::LogIn { code, .. } | Self::Act { code, .. } => *code,
        }
    }

    /// Whether the account or its password is not what the server has.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.code(), Some(code::ACCESS_DENIED | code::PLUGIN_NOT_LOADED))
    }
}

fn code_of(error: &mysql_async::Error) -> Option<u16> {
    match error {
        mysql_async::Error::Server(error) => Some(error.code),
        // An account that does not exist is asked for by any plugin of the server's, so that nobody learns which ones exist. Ours,
        // and root of a fresh server, have one that we know.
        mysql_async::Error::Driver(mysql_async::DriverError::UnknownAuthPlugin { .. }) => Some(code::PLUGIN_NOT_LOADED),
        _ => None,
    }
}

/// The socket of a server.
#[derive(Clone, Debug)]
pub(crate) struct Socket(PathBuf);

impl Socket {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) async fn log_in(&self, user: &str, password: &str) -> Result<Session, Failure> {
        let fail = |code, said| Failure::LogIn { user: user.to_owned(), socket: self.0.clone(), code, said };
        let options = OptsBuilder::default()
            .socket(Some(self.0.to_string_lossy()))
            .user(Some(user))
            .pass((!password.is_empty()).then_some(password))
            // Texts are quoted for a session without any mode, whatever the server's own is.
            .setup(vec!["SET SESSION sql_mode = ''"]);
        match tokio::time::timeout(LOG_IN, Conn::new(options)).await {
            Ok(Ok(connection)) => Ok(Session(connection)),
            Ok(Err(error)) => Err(fail(code_of(&error), error.to_string())),
            Err(_) => Err(fail(None, format!("no answer within {} s", LOG_IN.as_secs()))),
        }
    }
}

/// A connection.
pub(crate) struct Session(Conn);

impl Session {
    /// Runs a statement. `act` is what it is for, as it would be told to somebody.
    pub(crate) async fn run(&mut self, act: &'static str, statement: &str) -> Result<(), Failure> {
        self.0.query_drop(statement).await.map_err(|error| fail(act, &error))
    }

    /// Runs a statement with a password in it: what the server says may cite the statement.
    pub(crate) async fn run_secretly(&mut self, act: &'static str, statement: &str, secret: &str) -> Result<(), Failure> {
        self.run(act, statement).await.map_err(|failure| match failure {
            Failure::Act { act, code, said } if !secret.is_empty() => {
                Failure::Act { act, code, said: said.replace(secret, "…") }
            }
            other => other,
        })
    }

    /// The first row.
    pub(crate) async fn first<T: FromRow + Send + 'static>(
        &mut self,
        act: &'static str,
        query: &str,
    ) -> Result<Option<T>, Failure> {
        let row: Option<Row> = self.0.query_first(query).await.map_err(|error| fail(act, &error))?;
        row.map(|row| convert(act, row)).transpose()
    }

    /// All rows.
    pub(crate) async fn all<T: FromRow + Send + 'static>(&mut self, act: &'static str, query: &str) -> Result<Vec<T>, Failure> {
        let rows: Vec<Row> = self.0.query(query).await.map_err(|error| fail(act, &error))?;
        rows.into_iter().map(|row| convert(act, row)).collect()
    }
}

fn convert<T: FromRow>(act: &'static str, row: Row) -> Result<T, Failure> {
    T::from_row_opt(row).map_err(|error| Failure::Act { act, code: None, said: error.to_string() })
}

fn fail(act: &'static str, error: &mysql_async::Error) -> Failure {
    Failure::Act { act, code: code_of(error), said: error.to_string() }
}
