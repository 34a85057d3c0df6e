//! From the rows that a server gave to what is known of it. Pure.
//!
//! What cannot be read is an error, never a default: an instance that is taken for empty, closed or without a source by mistake is
//! one whose data somebody throws away.

use std::time::Duration;

use windlass_kinds::mysql::gtid::GtidSet;
use windlass_kinds::mysql::instance::{CloneState, Known, Replication};

use super::dialect::SemiSync;

/// A row as text, by the names of its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, Option<String>)>);

impl FromIterator<(String, Option<String>)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(columns: I) -> Self {
        Self(columns.into_iter().collect())
    }
}

impl Fields {
    /// The value of a column; none for NULL. It is an error when there is no such column.
    pub(super) fn optional(&self, name: &str) -> Result<Option<&str>, String> {
        let column = self.0.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
        column.map(|(_, value)| value.as_deref()).ok_or_else(|| format!("the server's answer has no column {name:?}"))
    }

    /// The value of a column that is never NULL.
    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        self.optional(name)?.ok_or_else(|| format!("the server says NULL for {name:?}"))
    }

    /// A switch, in any of the ways that the server writes one.
    pub(super) fn switch(&self, name: &str) -> Result<bool, String> {
        switch(name, self.text(name)?)
    }

    /// A set of transactions.
    pub(super) fn set(&self, name: &str) -> Result<GtidSet, String> {
        let text = self.text(name)?;
        text.parse().map_err(|error| format!("the server's {name} cannot be read: {error}"))
    }
}

fn switch(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "ON" => Ok(true),
        "0" | "OFF" => Ok(false),
        other => Err(format!("the server says {other:?} for {name:?}, which is neither ON nor OFF")),
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("the server says {text:?} for {name:?}, which is no number that this can have"))
}

/// Global variables and counters of the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    /// From rows of a name and a value each.
    pub(super) fn of(rows: &[Fields]) -> Result<Self, String> {
        let pair = |row: &Fields| {
            // A counter that has no value is none that we ask for.
            Ok((row.text("VARIABLE_NAME")?.to_owned(), row.optional("VARIABLE_VALUE")?.unwrap_or_default().to_owned()))
        };
        Ok(Self(rows.iter().map(pair).collect::<Result<_, String>>()?))
    }

    /// The value of a variable, if there is such a one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether a variable is there and on.
    pub(super) fn is_on(&self, name: &str) -> Result<bool, String> {
        self.get(name).map_or(Ok(false), |text| switch(name, text))
    }

    /// A number, if there is such a variable.
    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        self.get(name).map(|text| number(name, text)).transpose()
    }
}

/// What a look reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// Who it is and what it has; one row.
    pub(super) server: Fields,
    /// How it waits and acknowledges.
    pub(super) variables: Vec<Fields>,
    /// Those that replicate from it.
    pub(super) followers: Vec<Fields>,
    /// From whom it replicates.
    pub(super) replication: Vec<Fields>,
    /// When its source last gave a sign of life.
    pub(super) quiet: Vec<Fields>,
    /// How a clone of its data went.
    pub(super) clone: Vec<Fields>,
}

impl Answers {
    /// What is known by them.
    pub(super) fn known(&self) -> Result<Known, String> {
        let uuid = self.server.text("server_uuid")?;
        let variables = Variables::of(&self.variables)?;
        let semi_sync = SemiSync::of(&variables);
        let awaits = match semi_sync.source {
            Some(source) if variables.is_on(source.enabled)? => variables.number(source.count)?,
            _ => None,
        };
        let waiting = semi_sync.source.map(|source| variables.number(source.waiting)).transpose()?.flatten();
        // While an order to close waits for those who still write, super_read_only is told as on and read_only as off.
        let read_only = self.server.switch("read_only")?;
        let super_read_only = read_only && self.server.switch("super_read_only")?;
        let follower = |row: &Fields| number("Server_Id", row.text("Server_Id")?);
        Ok(Known {
            server: uuid.parse().map_err(|error| format!("the server's server_uuid {uuid:?} cannot be read: {error}"))?,
            executed: self.server.set("gtid_executed")?,
            purged: self.server.set("gtid_purged")?,
            read_only,
            super_read_only,
            replication: of_default_channel(&self.replication)?.map(|row| self.replication(row)).transpose()?,
            followers: self.followers.iter().map(follower).collect::<Result<_, String>>()?,
            clone: self.clone.first().map(clone_state).transpose()?,
            awaits,
            acknowledges: semi_sync.replica.map_or(Ok(false), |enabled| variables.is_on(enabled))?,
            waiting_commits: waiting.unwrap_or_default(),
        })
    }

    fn replication(&self, row: &Fields) -> Result<Replication, String> {
        let errors = [row.text("Last_IO_Error")?, row.text("Last_SQL_Error")?];
        let told: Vec<&str> = errors.into_iter().filter(|error| !error.is_empty()).collect();
        let quiet = self.quiet.first().map(|row| row.optional("quiet")).transpose()?.flatten();
        // A clock that was set back makes the last sign one of the future.
        let quiet: Option<i64> = quiet.map(|text| number("quiet", text)).transpose()?;
        Ok(Replication {
            source_host: row.optional("Source_Host")?.unwrap_or_default().to_owned(),
            received: row.set("Retrieved_Gtid_Set")?,
            // A thread that tries to connect says "Connecting".
            connects: row.text("Replica_IO_Running")? != "No",
            receives: row.text("Replica_IO_Running")? == "Yes",
            quiet: quiet.map(|microseconds| Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))),
            applies: row.text("Replica_SQL_Running")? == "Yes",
            behind: row.optional("Seconds_Behind_Source")?.map(|text| number("Seconds_Behind_Source", text)).transpose()?,
            error: (!told.is_empty()).then(|| told.join("; ")),
        })
    }
}

/// The row of the channel that we use. Another one is somebody's own doing, and still is replication: nobody may think that there is
/// none.
pub(super) fn of_default_channel(rows: &[Fields]) -> Result<Option<&Fields>, String> {
    let mut chosen = None;
    for row in rows.iter().rev() {
        if chosen.is_none() || row.text("Channel_Name")?.is_empty() {
            chosen = Some(row);
        }
    }
    Ok(chosen)
}

fn clone_state(row: &Fields) -> Result<CloneState, String> {
    match row.text("STATE")? {
        "Completed" => Ok(CloneState::Completed),
        "Failed" => Ok(CloneState::Failed),
        "Not Started" | "In Progress" => Ok(CloneState::Unfinished),
        other => Err(format!("the server says {other:?} for the state of its clone")),
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
