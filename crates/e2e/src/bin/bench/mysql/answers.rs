//! What servers say of themselves, in the columns of MySQL 9.7: as many of them as there, since who reads an answer reads all of it.

use std::time::{Duration, Instant};

use super::cluster::{Cluster, FIRST_SERVER_ID};
use super::wire::{Answer, Rows};

/// The server's codes.
pub(super) mod code {
    pub(in crate::mysql) const UNKNOWN_COMMAND: u16 = 1047;
    pub(in crate::mysql) const SHUTS_DOWN: u16 = 1053;
    pub(in crate::mysql) const UNREADABLE: u16 = 1064;
    pub(in crate::mysql) const EMPTY: u16 = 1065;
    pub(in crate::mysql) const NO_SUCH_THREAD: u16 = 1094;
    pub(in crate::mysql) const UNKNOWN_VARIABLE: u16 = 1193;
    pub(in crate::mysql) const NOT_A_REPLICA: u16 = 1200;
}

/// How often a source gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The columns of `SHOW REPLICA STATUS`, and what a replica that is well says in those that nobody here has an opinion on.
const REPLICATION: [(&str, &str); 60] = [
    ("Replica_IO_State", "Waiting for source to send event"),
    ("Source_Host", ""),
    ("Source_User", ""),
    ("Source_Port", ""),
    ("Connect_Retry", "1"),
    ("Source_Log_File", "binlog.000003"),
    ("Read_Source_Log_Pos", "4711"),
    ("Relay_Log_File", "relay-bin.000005"),
    ("Relay_Log_Pos", "4926"),
    ("Relay_Source_Log_File", "binlog.000003"),
    ("Replica_IO_Running", ""),
    ("Replica_SQL_Running", ""),
    ("Replicate_Do_DB", ""),
    ("Replicate_Ignore_DB", ""),
    ("Replicate_Do_Table", ""),
    ("Replicate_Ignore_Table", ""),
    ("Replicate_Wild_Do_Table", ""),
    ("Replicate_Wild_Ignore_Table", ""),
    ("Last_Errno", "0"),
    ("Last_Error", ""),
    ("Skip_Counter", "0"),
    ("Exec_Source_Log_Pos", "4711"),
    ("Relay_Log_Space", "5300"),
    ("Until_Condition", "None"),
    ("Until_Log_File", ""),
    ("Until_Log_Pos", "0"),
    ("Source_SSL_Allowed", "No"),
    ("Source_SSL_CA_File", ""),
    ("Source_SSL_CA_Path", ""),
    ("Source_SSL_Cert", ""),
    ("Source_SSL_Cipher", ""),
    ("Source_SSL_Key", ""),
    ("Seconds_Behind_Source", "0"),
    ("Source_SSL_Verify_Server_Cert", "No"),
    ("Last_IO_Errno", "0"),
    ("Last_IO_Error", ""),
    ("Last_SQL_Errno", "0"),
    ("Last_SQL_Error", ""),
    ("Replicate_Ignore_Server_Ids", ""),
    ("Source_Server_Id", ""),
    ("Source_UUID", ""),
    ("Source_Info_File", "mysql.slave_master_info"),
    ("SQL_Delay", "0"),
    ("SQL_Remaining_Delay", ""),
    ("Replica_SQL_Running_State", "Replica has read all relay log; waiting for more updates"),
    ("Source_Retry_Count", "4294967295"),
    ("Source_Bind", ""),
    ("Last_IO_Error_Timestamp", ""),
    ("Last_SQL_Error_Timestamp", ""),
    ("Source_SSL_Crl", ""),
    ("Source_SSL_Crlpath", ""),
    ("Retrieved_Gtid_Set", ""),
    ("Executed_Gtid_Set", ""),
    ("Auto_Position", ""),
    ("Replicate_Rewrite_DB", ""),
    ("Channel_Name", ""),
    ("Source_TLS_Version", ""),
    ("Source_public_key_path", ""),
    ("Get_Source_public_key", "1"),
    ("Network_Namespace", ""),
];

/// One value.
pub(super) fn one(name: &str, value: String) -> Answer {
    Answer::Rows(Rows::new(&[name], vec![vec![Some(value)]]))
}

/// Numbers of sessions.
pub(super) fn ids<'a>(ids: impl Iterator<Item = &'a u32>) -> Answer {
    Answer::Rows(Rows::new(&["ID"], ids.map(|id| vec![Some(id.to_string())]).collect()))
}

/// Everybody who is connected: nobody but the operator ever is.
pub(super) fn connections<'a>(ids: impl Iterator<Item = &'a u32>) -> Answer {
    let row = |id: &u32| vec![Some(id.to_string()), Some("moco-admin".to_owned()), Some("127.0.0.1:40000".to_owned())];
    Answer::Rows(Rows::new(&["ID", "USER", "HOST"], ids.map(row).collect()))
}

pub(super) fn variables(cluster: &Cluster, at: usize, wanted: &[(String, String)]) -> Answer {
    let Some(known) = cluster.servers.look(at, |number| cluster.host(number), FIRST_SERVER_ID) else { return gone() };
    let mut row = Vec::new();
    for (name, _) in wanted {
        row.push(Some(match name.as_str() {
            "server_uuid" => known.server.to_string(),
            "gtid_executed" => known.executed.to_string(),
            "gtid_purged" => known.purged.to_string(),
            "read_only" => number(known.read_only),
            "super_read_only" => number(known.super_read_only),
            other => {
                return Answer::Refused { code: code::UNKNOWN_VARIABLE, why: format!("Unknown system variable '{other}'") };
            }
        }));
    }
    let columns: Vec<&str> = wanted.iter().map(|(_, alias)| alias.as_str()).collect();
    Answer::Rows(Rows::new(&columns, vec![row]))
}

pub(super) fn semi_sync(cluster: &Cluster, at: usize, wanted: &[String]) -> Answer {
    let server = &cluster.servers.all[at];
    let all = [
        ("rpl_semi_sync_source_enabled", switch(server.awaits.is_some())),
        ("rpl_semi_sync_source_wait_for_replica_count", server.awaits.unwrap_or(1).to_string()),
        ("rpl_semi_sync_replica_enabled", switch(server.acknowledges)),
        ("Rpl_semi_sync_source_wait_sessions", server.waiting.len().to_string()),
    ];
    let asked = all.into_iter().filter(|(name, _)| wanted.iter().any(|it| it == name));
    let rows = asked.map(|(name, value)| vec![Some(name.to_owned()), Some(value)]).collect();
    Answer::Rows(Rows::new(&["VARIABLE_NAME", "VARIABLE_VALUE"], rows))
}

pub(super) fn replicas(cluster: &Cluster, at: usize) -> Answer {
    let Some(known) = cluster.servers.look(at, |number| cluster.host(number), FIRST_SERVER_ID) else { return gone() };
    let row = |id: &u32| {
        let uuid = known.server.to_string();
        [id.to_string(), String::new(), "3306".to_owned(), FIRST_SERVER_ID.to_string(), uuid].map(Some).to_vec()
    };
    let columns = ["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"];
    Answer::Rows(Rows::new(&columns, known.followers.iter().map(row).collect()))
}

pub(super) fn replication(cluster: &Cluster, at: usize) -> Answer {
    let columns: Vec<&str> = REPLICATION.iter().map(|(name, _)| *name).collect();
    let Some(known) = cluster.servers.look(at, |number| cluster.host(number), FIRST_SERVER_ID) else { return gone() };
    let (Some(it), Some(source)) = (&known.replication, &cluster.members[at].source) else {
        return Answer::Rows(Rows::new(&columns, Vec::new()));
    };
    let running = |runs: bool| if runs { "Yes" } else { "No" }.to_owned();
    let value = |(name, usual): &(&str, &str)| match *name {
        "Source_Host" => it.source_host.clone(),
        "Source_User" => source.user.clone(),
        "Source_Port" => source.port.to_string(),
        "Replica_IO_Running" if it.connects && !it.receives => "Connecting".to_owned(),
        "Replica_IO_Running" => running(it.receives),
        "Replica_SQL_Running" => running(it.applies),
        "Retrieved_Gtid_Set" => it.received.to_string(),
        "Executed_Gtid_Set" => known.executed.to_string(),
        "Auto_Position" => number(source.by_position),
        _ => (*usual).to_owned(),
    };
    Answer::Rows(Rows::new(&columns, vec![REPLICATION.iter().map(value).map(Some).collect()]))
}

/// The time since the last sign of life of the source. One that says nothing gives none.
pub(super) fn quiet(cluster: &Cluster, at: usize) -> Answer {
    let server = &cluster.servers.all[at];
    let row = server.source.map(|from| {
        let mute = cluster.members.get(from).and_then(|source| source.mute_since);
        let quiet = mute.map_or(HEARTBEAT / 2, |since| Instant::now().saturating_duration_since(since) + HEARTBEAT / 2);
        vec![Some(quiet.as_micros().to_string())]
    });
    Answer::Rows(Rows::new(&["quiet"], row.into_iter().collect()))
}

/// Nobody ever copied anything.
pub(super) fn clone_status() -> Answer {
    Answer::Rows(Rows::new(&["STATE"], Vec::new()))
}

/// Nobody gave the option.
pub(super) fn relay_log_sync() -> Answer {
    one("source", "COMPILED".to_owned())
}

fn number(on: bool) -> String {
    if on { "1" } else { "0" }.to_owned()
}

fn switch(on: bool) -> String {
    if on { "ON" } else { "OFF" }.to_owned()
}

/// The session of a server that ended is about to be closed.
fn gone() -> Answer {
    Answer::Refused { code: code::SHUTS_DOWN, why: "Server shutdown in progress".to_owned() }
}
