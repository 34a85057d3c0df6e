//! The words that servers from 8.0.26 to 9.7 understand, and which of them differ.
//!
//! Statements have had their names of today since 8.0.23. Only the plugins of semi-synchronous replication have two: a server of 8.0
//! may run the older ones, and then its variables have other names. Which ones there are is read from the server, not from its version.

use windlass_kinds::mysql::deeds::Source;

use super::rows::Variables;

/// How long a session may be quiet, whatever the user set: ours are kept from one look to the next.
pub(super) const QUIET_SECONDS: usize = 28_800;

/// How commits are waited for under one name of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceSide {
    pub(super) enabled: &'static str,
    pub(super) count: &'static str,
    pub(super) timeout: &'static str,
    pub(super) alone: &'static str,
    pub(super) waiting: &'static str,
}

const SOURCES: [SourceSide; 2] = [
    SourceSide {
        enabled: "rpl_semi_sync_source_enabled",
        count: "rpl_semi_sync_source_wait_for_replica_count",
        timeout: "rpl_semi_sync_source_timeout",
        alone: "rpl_semi_sync_source_wait_no_replica",
        waiting: "Rpl_semi_sync_source_wait_sessions",
    },
    SourceSide {
        enabled: "rpl_semi_sync_master_enabled",
        count: "rpl_semi_sync_master_wait_for_slave_count",
        timeout: "rpl_semi_sync_master_timeout",
        alone: "rpl_semi_sync_master_wait_no_slave",
        waiting: "Rpl_semi_sync_master_wait_sessions",
    },
];

const REPLICAS: [&str; 2] = ["rpl_semi_sync_replica_enabled", "rpl_semi_sync_slave_enabled"];

/// The names that a server has for what we need of semi-synchronous replication; none when the plugin is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SemiSync {
    pub(super) source: Option<SourceSide>,
    pub(super) replica: Option<&'static str>,
}

impl SemiSync {
    /// By the variables that the server has.
    pub(super) fn of(variables: &Variables) -> Self {
        Self {
            source: SOURCES.into_iter().find(|side| variables.get(side.enabled).is_some()),
            replica: REPLICAS.into_iter().find(|name| variables.get(name).is_some()),
        }
    }
}

macro_rules! semi_sync {
    () => {
        "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME IN \
         ('rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_wait_for_replica_count', 'rpl_semi_sync_replica_enabled', \
         'rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_wait_for_slave_count', 'rpl_semi_sync_slave_enabled') \
         UNION ALL SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME IN \
         ('Rpl_semi_sync_source_wait_sessions', 'Rpl_semi_sync_master_wait_sessions')"
    };
}

macro_rules! server {
    () => {
        "SELECT @@GLOBAL.server_uuid AS server_uuid, @@GLOBAL.gtid_executed AS gtid_executed, \
         @@GLOBAL.gtid_purged AS gtid_purged, @@GLOBAL.read_only AS read_only, @@GLOBAL.super_read_only AS super_read_only"
    };
}

// Signs of life are heartbeats and transactions, whole or on their way.
macro_rules! quiet {
    () => {
        "SELECT TIMESTAMPDIFF(MICROSECOND, GREATEST(LAST_HEARTBEAT_TIMESTAMP, LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP, \
         QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP), NOW(6)) AS quiet FROM performance_schema.replication_connection_status \
         WHERE CHANNEL_NAME = ''"
    };
}

/// Who it is and what it has.
pub(super) const SERVER: &str = server!();
/// How it waits and acknowledges.
pub(super) const SEMI_SYNC: &str = semi_sync!();
/// From whom it replicates.
pub(super) const REPLICATION: &str = "SHOW REPLICA STATUS";
/// Who is connected.
pub(super) const CONNECTIONS: &str = "SELECT ID, USER, HOST FROM performance_schema.processlist";

/// Where the value of `sync_relay_log` comes from.
pub(super) const RELAY_LOG_SYNC: &str =
    "SELECT VARIABLE_SOURCE AS source FROM performance_schema.variables_info WHERE VARIABLE_NAME = 'sync_relay_log'";
/// That of an option which nobody gave.
pub(super) const SET_BY_NOBODY: &str = "COMPILED";

/// All that a look reads, in one go. What it has executed is read before what it has received: what it executes in between was
/// received before. The last one fails on a server without the plugin, which ends the whole.
pub(super) const LOOK: &str = concat!(
    server!(),
    "; ",
    semi_sync!(),
    "; SHOW REPLICAS; SHOW REPLICA STATUS; ",
    quiet!(),
    "; SELECT STATE FROM performance_schema.clone_status"
);

/// What each session of ours starts with.
///
/// Texts are quoted for a session without any mode. Nothing that we do may become a transaction of this server's. And no limit that the
/// user set for her own statements may end ours: catching up waits as long as it is told to. By the mark, whoever leads next knows the
/// sessions of those before it.
pub(super) fn set_up(mark: &str) -> String {
    let mark = quote(mark);
    format!(
        "SET SESSION sql_mode = '', sql_log_bin = 0, wait_timeout = {QUIET_SECONDS}, max_execution_time = 0, @windlass = {mark}"
    )
}

/// The sessions of an account that have another mark. Those without any are somebody else's.
pub(super) fn sessions_of_others(account: &str, mark: &str) -> String {
    format!(
        "SELECT PROCESSLIST_ID AS ID FROM performance_schema.threads JOIN performance_schema.user_variables_by_thread USING (THREAD_ID) \
         WHERE VARIABLE_NAME = 'windlass' AND CAST(VARIABLE_VALUE AS CHAR) <> {} AND PROCESSLIST_USER = {}",
        quote(mark),
        quote(account)
    )
}

/// A text as SQL writes it. The session must not have `NO_BACKSLASH_ESCAPES`; ours have no mode at all.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Names the source, from where the server is.
pub(super) fn change_source(source: &Source, user: &str, password: &str) -> String {
    format!("{}, SOURCE_AUTO_POSITION = 1", change_receiver(source, user, password))
}

/// The same while the server applies what it has, if it was told before to know by itself where it is.
pub(super) fn change_receiver(source: &Source, user: &str, password: &str) -> String {
    // It tries again each second for a hundred years: a source that is away for a day is not forgotten. One that lives says so each
    // second.
    format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {}, SOURCE_USER = {}, SOURCE_PASSWORD = {}, \
         GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 4294967295, \
         SOURCE_HEARTBEAT_PERIOD = 1",
        quote(&source.host),
        source.port,
        quote(user),
        quote(password)
    )
}

/// Lets the server copy from this donor only.
pub(super) fn name_donor(donor: &Source) -> String {
    format!("SET GLOBAL clone_valid_donor_list = {}", quote(&format!("{}:{}", donor.host, donor.port)))
}

/// Copies the donor's data.
pub(super) fn clone(donor: &Source, user: &str, password: &str) -> String {
    format!("CLONE INSTANCE FROM {}@{}:{} IDENTIFIED BY {}", quote(user), quote(&donor.host), donor.port, quote(password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_so_that_none_of_them_ends_early() {
        assert_eq!(quote(""), "''");
        assert_eq!(quote("plain"), "'plain'");
        assert_eq!(quote("it's"), "'it''s'");
        assert_eq!(quote("back\\slash"), "'back\\\\slash'");
        assert_eq!(quote("\\'; DROP TABLE t; -- "), "'\\\\''; DROP TABLE t; -- '");
        assert_eq!(quote("\u{fc}\n\"`"), "'\u{fc}\n\"`'");
    }

    #[test]
    fn a_source_is_named_with_everything_quoted() {
        let source = Source { host: "moco-a-0.moco-a".into(), port: 3306 };
        let statement = change_source(&source, "moco-repl", "it's");
        let expected = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'moco-a-0.moco-a', SOURCE_PORT = 3306, \
                        SOURCE_USER = 'moco-repl', SOURCE_PASSWORD = 'it''s', ";
        assert!(statement.starts_with(expected), "{statement}");
        assert_eq!(name_donor(&source), "SET GLOBAL clone_valid_donor_list = 'moco-a-0.moco-a:3306'");
        let expected = "CLONE INSTANCE FROM 'moco-clone-donor'@'moco-a-0.moco-a':3306 IDENTIFIED BY 'x'";
        assert_eq!(clone(&source, "moco-clone-donor", "x"), expected);
    }

    #[test]
    fn each_name_that_is_used_is_asked_for() {
        for side in SOURCES {
            for name in [side.enabled, side.count, side.waiting] {
                assert!(SEMI_SYNC.contains(&quote(name)), "{name}");
            }
        }
        assert!(REPLICAS.iter().all(|name| SEMI_SYNC.contains(&quote(name))));
        assert!(LOOK.contains(SEMI_SYNC) && LOOK.contains(SERVER) && LOOK.contains(REPLICATION));
    }
}
