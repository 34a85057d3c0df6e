use super::*;

fn row(columns: &[(&str, &str)]) -> Fields {
    columns.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect()
}

fn with(row: &Fields, name: &str, value: Option<&str>) -> Fields {
    let change = |(column, old): &(String, Option<String>)| {
        let new = if column == name { value.map(str::to_owned) } else { old.clone() };
        (column.clone(), new)
    };
    row.0.iter().map(change).collect()
}

fn variable(name: &str, value: &str) -> Fields {
    row(&[("VARIABLE_NAME", name), ("VARIABLE_VALUE", value)])
}

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn server() -> Fields {
    row(&[
        ("server_uuid", UUID),
        ("gtid_executed", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1-2"),
        ("gtid_purged", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3"),
        ("read_only", "1"),
        ("super_read_only", "0"),
    ])
}

fn source_status() -> Fields {
    row(&[
        ("Channel_Name", ""),
        ("Source_Host", "moco-a-0.moco-a"),
        ("Retrieved_Gtid_Set", "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-9"),
        ("Replica_IO_Running", "Yes"),
        ("Replica_SQL_Running", "No"),
        ("Seconds_Behind_Source", "12"),
        ("Last_IO_Error", ""),
        ("Last_SQL_Error", ""),
    ])
}

fn replication_of(status: Fields) -> Replication {
    let answers = Answers { server: server(), replication: vec![status], ..Answers::default() };
    answers.known().unwrap().replication.unwrap()
}

#[test]
fn a_primary_is_read() {
    let answers = Answers {
        server: with(&with(&server(), "read_only", Some("0")), "super_read_only", Some("OFF")),
        variables: vec![
            variable("rpl_semi_sync_source_enabled", "ON"),
            variable("rpl_semi_sync_source_wait_for_replica_count", "2"),
            variable("rpl_semi_sync_replica_enabled", "OFF"),
            variable("Rpl_semi_sync_source_wait_sessions", "3"),
        ],
        followers: vec![row(&[("Server_Id", "101"), ("Host", "")]), row(&[("Server_Id", "4294967295")])],
        ..Answers::default()
    };
    let known = answers.known().unwrap();
    assert_eq!(known.server.to_string(), UUID);
    assert_eq!(known.executed.count(), 9);
    assert_eq!(known.purged.count(), 3);
    assert!(!known.read_only && !known.super_read_only && !known.acknowledges);
    assert_eq!((known.awaits, known.waiting_commits), (Some(2), 3));
    assert_eq!(known.followers, [101, u32::MAX]);
    assert_eq!((known.replication, known.clone), (None, None));
}

#[test]
fn a_replica_is_read() {
    let answers = Answers {
        server: server(),
        variables: vec![
            variable("rpl_semi_sync_source_enabled", "OFF"),
            variable("rpl_semi_sync_source_wait_for_replica_count", "2"),
            variable("rpl_semi_sync_replica_enabled", "ON"),
        ],
        replication: vec![source_status()],
        clone: vec![row(&[("STATE", "Completed")])],
        ..Answers::default()
    };
    let known = answers.known().unwrap();
    assert!(known.read_only && !known.super_read_only && known.acknowledges);
    assert_eq!((known.awaits, known.waiting_commits), (None, 0));
    assert_eq!(known.clone, Some(CloneState::Completed));
    let replication = known.replication.unwrap();
    assert_eq!(replication.source_host, "moco-a-0.moco-a");
    assert_eq!(replication.received.count(), 6);
    assert!(replication.receives && !replication.applies);
    assert_eq!((replication.behind, replication.error), (Some(12), None));
}

#[test]
fn a_server_that_is_about_to_close_is_not_closed() {
    let server = with(&with(&server(), "read_only", Some("0")), "super_read_only", Some("1"));
    let known = Answers { server, ..Answers::default() }.known().unwrap();
    assert!(!known.read_only && !known.super_read_only);
}

#[test]
fn the_older_plugins_of_8_0_have_other_names() {
    let answers = Answers {
        server: server(),
        variables: vec![
            variable("rpl_semi_sync_master_enabled", "ON"),
            variable("rpl_semi_sync_master_wait_for_slave_count", "1"),
            variable("rpl_semi_sync_slave_enabled", "ON"),
            variable("Rpl_semi_sync_master_wait_sessions", "4"),
        ],
        ..Answers::default()
    };
    let known = answers.known().unwrap();
    assert_eq!((known.awaits, known.waiting_commits, known.acknowledges), (Some(1), 4, true));
}

#[test]
fn without_the_plugins_nobody_waits_and_nobody_acknowledges() {
    let known = Answers { server: server(), ..Answers::default() }.known().unwrap();
    assert_eq!((known.awaits, known.waiting_commits, known.acknowledges), (None, 0, false));
}

#[test]
fn a_thread_that_tries_to_connect_does_not_receive() {
    assert!(!replication_of(with(&source_status(), "Replica_IO_Running", Some("Connecting"))).receives);
}

#[test]
fn errors_of_both_threads_are_told_and_a_delay_that_nobody_knows_is_none() {
    let status = with(&source_status(), "Last_IO_Error", Some("no route"));
    let status = with(&with(&status, "Last_SQL_Error", Some("no table")), "Seconds_Behind_Source", None);
    let replication = replication_of(status);
    assert_eq!(replication.error.as_deref(), Some("no route; no table"));
    assert_eq!(replication.behind, None);
}

#[test]
fn our_channel_counts_before_others_and_others_before_none() {
    let other = with(&with(&source_status(), "Channel_Name", Some("x")), "Source_Host", Some("elsewhere"));
    for rows in [vec![other.clone(), source_status()], vec![source_status(), other.clone()]] {
        let answers = Answers { server: server(), replication: rows, ..Answers::default() };
        assert_eq!(answers.known().unwrap().replication.unwrap().source_host, "moco-a-0.moco-a");
    }
    assert_eq!(replication_of(other).source_host, "elsewhere");
}

#[test]
fn states_of_a_clone() {
    let state = |state: &str| Answers { server: server(), clone: vec![row(&[("STATE", state)])], ..Answers::default() }.known();
    assert_eq!(state("In Progress").unwrap().clone, Some(CloneState::Unfinished));
    assert_eq!(state("Not Started").unwrap().clone, Some(CloneState::Unfinished));
    assert_eq!(state("Failed").unwrap().clone, Some(CloneState::Failed));
    assert!(state("Perhaps").is_err());
}

#[test]
fn what_cannot_be_read_is_not_taken_for_nothing() {
    let read = |server: Fields| Answers { server, ..Answers::default() }.known();
    assert!(read(Fields::default()).unwrap_err().contains("server_uuid"));
    assert!(read(with(&server(), "gtid_executed", Some("nonsense"))).unwrap_err().contains("gtid_executed"));
    assert!(read(with(&server(), "gtid_purged", None)).unwrap_err().contains("NULL"));
    assert!(read(with(&server(), "read_only", Some("maybe"))).unwrap_err().contains("maybe"));
    let variables =
        vec![variable("rpl_semi_sync_source_enabled", "ON"), variable("rpl_semi_sync_source_wait_for_replica_count", "many")];
    assert!(Answers { server: server(), variables, ..Answers::default() }.known().is_err());
}
