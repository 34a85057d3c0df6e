//! Copies of a server's data.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use windlass_kinds::mysql::deeds::Task;
use windlass_kinds::mysql::facts::End;
use windlass_kinds::mysql::instance::CloneState;

use crate::server::Server;
use crate::world::{World, source};

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn an_empty_server_takes_the_data_of_a_replica_and_follows_as_that_does() {
    let world = World::new();
    let (first, second, mut third) = (Server::start(0).await, Server::start(1).await, Server::start(2).await);
    world.done(&first, Task::OpenToWrites).await;
    let follow = || Task::Follow { source: source(&first), acknowledges: true };
    world.done(&second, follow()).await;
    let mut app = first.app().await;
    app.query_drop("CREATE DATABASE d").await.unwrap();
    app.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").await.unwrap();
    app.query_drop("INSERT INTO d.t VALUES (1)").await.unwrap();
    let executed = world.see(&first).await.executed;
    let caught_up = |set: String| Task::CatchUp { set, within: Duration::from_secs(20) };
    world.done(&second, caught_up(executed.to_string())).await;

    let why = world.failed(&second, Task::Clone { donor: source(&first) }).await;
    eprintln!("{why}");
    assert!(why.contains(&executed.to_string()), "{why}");
    assert!(world.see(&third).await.super_read_only);
    let (end, rest) = world.carry_out(&third, Task::Clone { donor: source(&second) }).await;
    let end = match rest {
        Some(rest) => crate::world::end_of(rest.await, &Task::Clone { donor: source(&second) }),
        None => end,
    };
    assert_eq!(end, End::Done);
    third.wait_until_gone();
    third.start_again().await;
    let known = world.until(&third, "it is back", |_| true).await;
    eprintln!("{known:?}");
    assert_eq!(known.executed, executed);
    assert_eq!(known.clone, Some(CloneState::Completed));
    assert!(known.super_read_only);
    assert_ne!(known.server, world.see(&second).await.server);

    app.query_drop("INSERT INTO d.t VALUES (2)").await.unwrap();
    world.done(&third, follow()).await;
    let executed = world.see(&first).await.executed;
    world.done(&third, caught_up(executed.to_string())).await;
    let known = world.see(&third).await;
    assert_eq!(known.executed, executed);
    assert!(known.acknowledges);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_donor_that_is_not_there_is_told_of() {
    let (world, server) = (World::new(), Server::start(0).await);
    let donor = windlass_kinds::mysql::deeds::Source { host: "127.0.0.1".into(), port: 1 };
    let why = world.failed(&server, Task::Clone { donor }).await;
    eprintln!("{why}");
    assert!(why.contains("moco-a-0") && why.contains("error 38"), "{why}");
    world.see(&server).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_without_a_plugin_of_its_donor_gets_it_with_the_copy() {
    let (world, donor, mut server) = (World::new(), Server::start(1).await, Server::start(0).await);
    world.done(&donor, Task::OpenToWrites).await;
    donor.tell("CREATE DATABASE d").await;
    server.tell("SET GLOBAL super_read_only = 0").await;
    server.tell("UNINSTALL PLUGIN rpl_semi_sync_replica").await;
    server.tell("SET GLOBAL super_read_only = 1").await;
    let follow = || Task::Follow { source: source(&donor), acknowledges: true };
    let why = world.failed(&server, follow()).await;
    assert!(why.contains("rpl_semi_sync_replica"), "{why}");
    world.done(&server, Task::Clone { donor: source(&donor) }).await;
    server.wait_until_gone();
    server.start_again().await;
    let known = world.until(&server, "it is back", |_| true).await;
    assert_eq!(known.executed, world.see(&donor).await.executed);
    assert!(known.super_read_only && known.replication.is_none());
    world.done(&server, follow()).await;
    world.until(&server, "it receives", |known| known.replication.as_ref().is_some_and(|it| it.receives)).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn data_is_replaced_only_as_far_as_it_was_judged() {
    let world = World::new();
    let (first, mut second) = (Server::start(0).await, Server::start(1).await);
    for (server, table) in [(&first, "kept"), (&second, "surplus")] {
        world.done(server, Task::OpenToWrites).await;
        let mut app = server.app().await;
        app.query_drop("CREATE DATABASE d").await.unwrap();
        app.query_drop(format!("CREATE TABLE d.{table} (id INT PRIMARY KEY)")).await.unwrap();
    }
    let replace = |over: String| Task::Replace { donor: source(&first), over };
    let judged = world.see(&second).await.executed.to_string();
    let why = world.failed(&second, replace(judged.clone())).await;
    assert!(why.contains("open to writes"), "{why}");
    second.app().await.query_drop("INSERT INTO d.surplus VALUES (1)").await.unwrap();
    world.done(&second, Task::Depose).await;
    let why = world.failed(&second, replace(judged)).await;
    assert!(why.contains("would throw these transactions away"), "{why}");
    let known = world.see(&second).await;
    let task = replace(known.executed.to_string());
    let (end, rest) = world.carry_out(&second, task.clone()).await;
    let end = match rest {
        Some(rest) => crate::world::end_of(rest.await, &task),
        None => end,
    };
    assert_eq!(end, End::Done);
    second.wait_until_gone();
    second.start_again().await;
    let after = world.until(&second, "it is back", |_| true).await;
    assert_eq!(after.executed, world.see(&first).await.executed);
    assert!(after.super_read_only);
    assert_eq!(
        second.ask("SELECT GROUP_CONCAT(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'").await,
        "kept"
    );
}
