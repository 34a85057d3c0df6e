//! The statements that the operator sends to servers, read back into what they ask for. It knows the ones that the bench's clusters
//! need and no others: what it does not know is told at the end of the run, for then a figure rests on an answer that nobody gave.

use std::time::Duration;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// Settings of the session; with the mark of who leads, where it gives one.
    SetSession { mark: Option<String> },
    /// Sets a global variable.
    SetGlobal { name: String, value: String },
    /// Global variables, by the names under which they are asked for.
    Variables(Vec<(String, String)>),
    /// Those of these names that there are.
    SemiSync(Vec<String>),
    /// Who follows.
    Replicas,
    /// Whom it follows.
    Replication,
    /// When its source gave a sign of life.
    Quiet,
    /// How a clone went.
    CloneStatus,
    /// Who is connected.
    Connections,
    /// The sessions with another mark than this.
    SessionsOfOthers { mark: String },
    /// Who set `sync_relay_log`.
    RelayLogSync,
    /// Nothing for a while.
    Sleep(Duration),
    /// Ends a session.
    Kill(u32),
    /// Stops threads of replication.
    Stop(Threads),
    /// Starts them.
    Start(Threads),
    /// Forgets whom it follows.
    ForgetSource,
    /// Names whom it follows.
    NameSource { host: String, port: u16, user: String, by_position: bool },
    /// Waits until these transactions are executed.
    WaitFor { set: String, within: Duration },
    /// Which of these are not.
    Missing { set: String },
}

/// Threads of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threads {
    pub(super) receives: bool,
    pub(super) applies: bool,
}

const BOTH: Threads = Threads { receives: true, applies: true };
const RECEIVER: Threads = Threads { receives: true, applies: false };
const APPLIER: Threads = Threads { receives: false, applies: true };

/// The statements of one command, cut where they end.
pub(super) fn cut(text: &str) -> Vec<&str> {
    let (mut all, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'\'' => quoted = !quoted,
            b';' if !quoted => {
                all.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    all.push(text[start..].trim());
    all.retain(|statement| !statement.is_empty());
    all
}

impl Statement {
    /// Reads a statement; none when it is not known.
    pub(super) fn read(text: &str) -> Option<Self> {
        Some(match text {
            "SHOW REPLICAS" => Self::Replicas,
            "SHOW REPLICA STATUS" => Self::Replication,
            "SELECT STATE FROM performance_schema.clone_status" => Self::CloneStatus,
            "SELECT ID, USER, HOST FROM performance_schema.processlist" => Self::Connections,
            "STOP REPLICA" => Self::Stop(BOTH),
            "STOP REPLICA IO_THREAD" => Self::Stop(RECEIVER),
            "START REPLICA" => Self::Start(BOTH),
            "START REPLICA SQL_THREAD" => Self::Start(APPLIER),
            "RESET REPLICA ALL" => Self::ForgetSource,
            _ => return Self::read_longer(text),
        })
    }

    fn read_longer(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("SET SESSION ") {
            return Some(Self::SetSession { mark: quoted_after(rest, "@windlass = ") });
        }
        if let Some(rest) = text.strip_prefix("SET GLOBAL ") {
            let (name, value) = rest.split_once('=')?;
            return Some(Self::SetGlobal { name: name.trim().to_owned(), value: value.trim().to_owned() });
        }
        if text.starts_with("SELECT @@GLOBAL.") {
            return text.strip_prefix("SELECT ")?.split(',').map(variable).collect::<Option<_>>().map(Self::Variables);
        }
        if text.starts_with("SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_variables ") {
            return Some(Self::SemiSync(text.split('\'').skip(1).step_by(2).map(str::to_owned).collect()));
        }
        if text.contains(" AS quiet FROM performance_schema.replication_connection_status ") {
            return Some(Self::Quiet);
        }
        if text.starts_with("SELECT PROCESSLIST_ID AS ID FROM performance_schema.threads ") {
            return Some(Self::SessionsOfOthers { mark: quoted_after(text, "<> ")? });
        }
        if text.starts_with("SELECT VARIABLE_SOURCE AS source FROM performance_schema.variables_info ") {
            return Some(Self::RelayLogSync);
        }
        if let Some(seconds) = text.strip_prefix("DO SLEEP(") {
            return Some(Self::Sleep(Duration::from_secs(seconds.strip_suffix(')')?.parse().ok()?)));
        }
        if let Some(id) = text.strip_prefix("KILL ") {
            return id.parse().ok().map(Self::Kill);
        }
        if text.starts_with("CHANGE REPLICATION SOURCE TO ") {
            let port = text.split_once("SOURCE_PORT = ")?.1.split(',').next()?.parse().ok()?;
            return Some(Self::NameSource {
                host: quoted_after(text, "SOURCE_HOST = ")?,
                port,
                user: quoted_after(text, "SOURCE_USER = ")?,
                by_position: text.contains("SOURCE_AUTO_POSITION = 1"),
            });
        }
        if let Some(rest) = text.strip_prefix("SELECT WAIT_FOR_EXECUTED_GTID_SET(") {
            let seconds = rest.rsplit_once(',')?.1.split(')').next()?.trim().parse().ok()?;
            let within = Duration::try_from_secs_f64(seconds).ok()?;
            return Some(Self::WaitFor { set: quoted_after(rest, "")?, within });
        }
        let rest = text.strip_prefix("SELECT GTID_SUBTRACT(").filter(|_| text.ends_with(" AS missing"))?;
        Some(Self::Missing { set: quoted_after(rest, "")? })
    }
}

/// `@@GLOBAL.name AS alias`
fn variable(text: &str) -> Option<(String, String)> {
    let (variable, alias) = text.trim().strip_prefix("@@GLOBAL.")?.split_once(" AS ")?;
    Some((variable.to_owned(), alias.to_owned()))
}

/// The quoted text that follows these words at once.
fn quoted_after(text: &str, words: &str) -> Option<String> {
    let mut rest = text.split_once(words)?.1.strip_prefix('\'')?.chars().peekable();
    let mut found = String::new();
    while let Some(next) = rest.next() {
        match next {
            '\\' => found.push(rest.next()?),
            '\'' if rest.peek() == Some(&'\'') => found.extend(rest.next()),
            '\'' => return Some(found),
            other => found.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_where_no_text_does() {
        assert_eq!(cut("SHOW REPLICAS; SELECT 'a;''b\\';c' ;"), ["SHOW REPLICAS", "SELECT 'a;''b\\';c'"]);
        assert!(cut("").is_empty());
    }

    #[test]
    fn a_source_is_read_with_its_quotes() {
        let text = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'moco-a-0.moco-a', SOURCE_PORT = 3306, SOURCE_USER = 'moco-repl', \
                    SOURCE_PASSWORD = 'it''s, SOURCE_PORT = 1', SOURCE_AUTO_POSITION = 1";
        let read = Statement::read(text);
        let Some(Statement::NameSource { host, port, user, by_position }) = read else { panic!("{read:?}") };
        assert_eq!((host.as_str(), port, user.as_str(), by_position), ("moco-a-0.moco-a", 3306, "moco-repl", true));
    }

    #[test]
    fn sets_waits_and_marks_are_read() {
        let waits = Statement::read("SELECT WAIT_FOR_EXECUTED_GTID_SET('a:1-2,\nb:3', 10.000) AS late");
        assert_eq!(waits, Some(Statement::WaitFor { set: "a:1-2,\nb:3".into(), within: Duration::from_secs(10) }));
        let marked = Statement::read("SET SESSION sql_mode = '', sql_log_bin = 0, @windlass = '00ff'");
        assert_eq!(marked, Some(Statement::SetSession { mark: Some("00ff".into()) }));
        let plain = Statement::read("SET SESSION lock_wait_timeout = 30");
        assert_eq!(plain, Some(Statement::SetSession { mark: None }));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for text in ["SHOW MASTER STATUS", "CLONE INSTANCE FROM 'a'@'b':1 IDENTIFIED BY 'c'", "KILL x", "DO SLEEP(", "SELECT 1"]
        {
            assert_eq!(Statement::read(text), None, "{text}");
        }
    }
}
