//! Following, acknowledging, catching up, and a change of the primary.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use windlass_kinds::mysql::deeds::Task;
use windlass_kinds::mysql::facts::End;
use windlass_kinds::mysql::instance::Known;

use crate::server::Server;
use crate::world::{World, source};

fn follow(server: &Server, acknowledges: bool) -> Task {
    Task::Follow { source: source(server), acknowledges }
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_cluster_is_put_together_and_its_primary_changes() {
    let world = World::new();
    let (first, second, third) = (Server::start(0).await, Server::start(1).await, Server::start(2).await);
    world.done(&first, Task::OpenToWrites).await;
    world.done(&first, Task::AwaitAcknowledgements { count: 1 }).await;
    assert_eq!(world.see(&first).await.awaits, Some(1));
    assert!(world.failed(&first, follow(&second, true)).await.contains("open to writes"));
    world.done(&second, follow(&first, true)).await;
    world.done(&third, follow(&first, false)).await;
    let receives = |known: &Known| known.replication.as_ref().is_some_and(|it| it.receives);
    let known = world.until(&second, "it receives", receives).await;
    assert!(known.acknowledges);
    assert!(known.replication.as_ref().is_some_and(|it| it.applies && it.source_host == "127.0.0.1" && it.error.is_none()));
    assert!(!world.until(&third, "it receives", receives).await.acknowledges);
    world.until(&first, "both follow", |known| known.followers.len() == 2).await;

    let mut app = first.app().await;
    app.query_drop("CREATE DATABASE d").await.unwrap();
    app.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").await.unwrap();
    app.query_drop("INSERT INTO d.t VALUES (1)").await.unwrap();
    let executed = world.see(&first).await.executed;
    assert_eq!(executed.count(), 3, "nothing of ours is a transaction");
    let set = executed.to_string();
    // As after a restart.
    third.tell("STOP REPLICA SQL_THREAD").await;
    for server in [&second, &third] {
        world.done(server, Task::CatchUp { set: set.clone(), within: Duration::from_secs(20) }).await;
        assert_eq!(world.see(server).await.executed, executed);
    }
    let written_through = "SELECT @@GLOBAL.sync_relay_log = 1";
    assert_eq!((second.ask(written_through).await, third.ask(written_through).await), ("1".into(), "0".into()));

    // Again, and otherwise: what was received stays.
    assert_eq!(world.see(&third).await.replication.unwrap().received, executed);
    for acknowledges in [false, true, true, false] {
        world.done(&third, follow(&first, acknowledges)).await;
        let known = world.until(&third, "it receives", receives).await;
        assert_eq!(known.acknowledges, acknowledges);
        assert_eq!(known.replication.unwrap().received, executed);
        let effective = third.ask(
            "SELECT VARIABLE_VALUE FROM performance_schema.global_status \
                                   WHERE VARIABLE_NAME = 'Rpl_semi_sync_replica_status'",
        );
        assert_eq!(effective.await, if acknowledges { "ON" } else { "OFF" });
    }

    // The primary changes.
    world.done(&first, Task::CloseToWrites { patience: Duration::from_secs(2) }).await;
    assert!(world.see(&first).await.super_read_only);
    world.done(&second, Task::StopReceiving).await;
    let known = world.see(&second).await;
    assert!(known.replication.is_some_and(|it| !it.receives && it.applies));
    world.done(&second, Task::AwaitAcknowledgements { count: 1 }).await;
    world.done(&second, Task::OpenToWrites).await;
    world.done(&second, Task::OpenToWrites).await;
    for (server, acknowledges) in [(&first, true), (&third, true)] {
        world.done(server, follow(&second, acknowledges)).await;
    }
    let known = world.until(&first, "it receives", receives).await;
    assert_eq!(known.awaits, None, "who follows does not wait");
    let known = world.see(&second).await;
    assert!(!known.read_only && known.replication.is_none() && known.awaits == Some(1));
    second.app().await.query_drop("INSERT INTO d.t VALUES (2)").await.unwrap();
    let executed = world.see(&second).await.executed;
    assert_eq!((executed.count(), executed.uuids().count()), (4, 2));
    for server in [&first, &third] {
        world.done(server, Task::CatchUp { set: executed.to_string(), within: Duration::from_secs(20) }).await;
        assert_eq!(world.see(server).await.executed, executed);
    }
}

/// As while somebody copies its data, or while it waits for the other half of a transaction.
#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_new_primary_takes_writes_although_it_cannot_stop_to_apply() {
    let (world, first, second) = (World::new(), Server::start(0).await, Server::start(1).await);
    world.done(&first, Task::OpenToWrites).await;
    let mut app = first.app().await;
    app.query_drop("CREATE DATABASE d").await.unwrap();
    app.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").await.unwrap();
    world.done(&second, follow(&first, false)).await;
    let set = world.see(&first).await.executed.to_string();
    world.done(&second, Task::CatchUp { set, within: Duration::from_secs(20) }).await;
    world.done(&second, Task::StopReceiving).await;
    let mut copies = second.root().await;
    copies.query_drop("LOCK INSTANCE FOR BACKUP").await.unwrap();
    world.done(&second, Task::OpenToWrites).await;
    let known = world.see(&second).await;
    assert!(!known.read_only && known.replication.is_some_and(|it| !it.connects));
    second.app().await.query_drop("INSERT INTO d.t VALUES (1)").await.unwrap();
    copies.query_drop("UNLOCK INSTANCE").await.unwrap();
    world.done(&second, Task::OpenToWrites).await;
    assert!(world.see(&second).await.replication.is_none());
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn who_does_not_catch_up_says_what_is_missing() {
    let (world, server) = (World::new(), Server::start(0).await);
    let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7".to_owned();
    // Longer than the server lets statements of its users run.
    for within in [Duration::ZERO, Duration::from_millis(2500)] {
        let began = Instant::now();
        let why = world.failed(&server, Task::CatchUp { set: set.clone(), within }).await;
        eprintln!("{why}");
        assert!(why.contains(&set) && why.contains("moco-a-0"), "{why}");
        assert!(began.elapsed() >= within && began.elapsed() < within + Duration::from_secs(20));
    }
    let why = world.failed(&server, Task::CatchUp { set: "it's none".into(), within: Duration::ZERO }).await;
    eprintln!("{why}");
    assert!(why.contains("error 1772"), "{why}");
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_source_that_refuses_the_password_is_named_anew() {
    let (world, first, second) = (World::new(), Server::start(0).await, Server::start(1).await);
    world.done(&second, follow(&first, false)).await;
    second.tell("STOP REPLICA").await;
    second.tell("CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'wrong'").await;
    second.tell("START REPLICA").await;
    let refused = |known: &Known| {
        known
            .replication
            .as_ref()
            .is_some_and(|it| !it.receives && it.error.as_ref().is_some_and(|it| it.contains("Access denied")))
    };
    let known = world.until(&second, "the error", refused).await;
    eprintln!("{:?}", known.replication);
    world.done(&second, follow(&first, false)).await;
    world.until(&second, "it receives", |known| known.replication.as_ref().is_some_and(|it| it.receives)).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn nobody_knows_what_came_of_a_task_whose_server_died() {
    let (world, server) = (World::new(), Server::start(0).await);
    let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7".to_owned();
    let death = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.signal("-KILL");
    };
    let task = Task::CatchUp { set, within: Duration::from_secs(20) };
    let ((end, rest), ()) = tokio::join!(world.carry_out(&server, task), death);
    assert!(matches!(&end, End::Unknown { why } if why.contains("moco-a-0")) && rest.is_none(), "{end:?}");
}
