//! Closing to writes and disconnecting, with clients in the way.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use windlass_kinds::mysql::deeds::Task;
use windlass_kinds::mysql::facts::End;

use crate::server::Server;
use crate::world::{World, end_of};

async fn open_with_table(world: &World, server: &Server) {
    world.done(server, Task::OpenToWrites).await;
    let mut app = server.app().await;
    app.query_drop("CREATE DATABASE d").await.unwrap();
    app.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn clients_are_disconnected_and_nobody_else() {
    let (world, server) = (World::new(), Server::start(0).await);
    let mut app = server.app().await;
    let mut root = server.root().await;
    world.see(&server).await;
    let admins = "SELECT ID FROM performance_schema.processlist WHERE USER = 'moco-admin' ORDER BY ID LIMIT 1";
    let kept = server.ask(admins).await;
    world.done(&server, Task::OpenToWrites).await;
    assert!(app.query_drop("SELECT 1").await.is_err());
    root.query_drop("SELECT 1").await.unwrap();
    world.see(&server).await;
    assert_eq!(server.ask(admins).await, kept);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn who_holds_up_the_closing_is_disconnected_after_a_while() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    let mut holder = server.app().await;
    holder.query_drop("LOCK TABLES d.t WRITE").await.unwrap();
    let began = Instant::now();
    let patience = Duration::from_secs(1);
    world.done(&server, Task::CloseToWrites { patience }).await;
    let took = began.elapsed();
    assert!(took >= patience && took < Duration::from_secs(30), "{took:?}");
    assert!(holder.query_drop("SELECT 1").await.is_err());
    assert!(world.see(&server).await.super_read_only);
    // And who does not finds out as well.
    let mut app = server.app().await;
    world.done(&server, Task::CloseToWrites { patience: Duration::ZERO }).await;
    assert!(app.query_drop("SELECT 1").await.is_err());
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_deposed_server_tells_nobody_of_the_commits_that_waited() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    world.done(&server, Task::AwaitAcknowledgements { count: 2 }).await;
    let insert =
        |mut app: Conn, id: u32| tokio::spawn(async move { app.query_drop(format!("INSERT INTO d.t VALUES ({id})")).await });
    let mut commits = Vec::new();
    for id in 0..5 {
        commits.push(insert(server.app().await, id));
    }
    // The first one waits, and the others wait behind it.
    world.until(&server, "they wait", |known| known.waiting_commits > 0).await;
    let running = "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'app' AND COMMAND = 'Query'";
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.ask(running).await != "5" {
        assert!(Instant::now() < deadline, "not all of them wait");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = world.see(&server).await.executed;
    world.done(&server, Task::Depose).await;
    for commit in commits {
        let end = commit.await.unwrap();
        assert!(end.as_ref().is_err_and(mysql_async::Error::is_fatal), "{end:?}");
    }
    let known = world.see(&server).await;
    assert_eq!((known.super_read_only, known.waiting_commits, known.awaits), (true, 0, None));
    assert!(known.executed.count() > before.count(), "what waited is there, and nobody was told of it");
    server.app().await.query_drop("SELECT 1").await.unwrap();
    world.done(&server, Task::Depose).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_closing_that_takes_too_long_goes_on_and_its_end_is_heard_of() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    // Somebody in the pod is not disconnected.
    let mut root = server.root().await;
    root.query_drop("LOCK TABLES d.t WRITE").await.unwrap();
    let task = Task::CloseToWrites { patience: Duration::from_millis(300) };
    let began = Instant::now();
    let (end, rest) = world.carry_out(&server, task.clone()).await;
    assert_eq!(end, End::StillRunning);
    assert!(began.elapsed() < Duration::from_secs(40));
    assert!(!world.see(&server).await.super_read_only, "looks go on meanwhile");
    let rest = tokio::spawn(rest.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!rest.is_finished());
    root.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(end_of(rest.await.unwrap(), &task), End::Done);
    assert!(world.see(&server).await.super_read_only);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_commit_that_nobody_acknowledges_holds_up_the_closing_without_its_client() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    world.done(&server, Task::AwaitAcknowledgements { count: 2 }).await;
    let mut app = server.app().await;
    let commit = tokio::spawn(async move { app.query_drop("INSERT INTO d.t VALUES (1)").await });
    world.until(&server, "it waits", |known| known.waiting_commits == 1 && known.awaits == Some(2)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!commit.is_finished());
    let before = world.see(&server).await.executed;
    let task = Task::CloseToWrites { patience: Duration::from_millis(500) };
    let (end, rest) = world.carry_out(&server, task.clone()).await;
    assert_eq!(end, End::StillRunning);
    // The client is gone and was told nothing; its commit still waits.
    assert!(commit.await.unwrap().is_err_and(|error| error.is_fatal()));
    let known = world.see(&server).await;
    assert_eq!((known.waiting_commits, known.read_only, known.super_read_only), (1, false, false));
    assert_eq!(known.executed, before);
    // Now that nobody is told of it, it may go on.
    let rest = tokio::spawn(rest.unwrap());
    world.done(&server, Task::AwaitAcknowledgements { count: 0 }).await;
    assert_eq!(end_of(rest.await.unwrap(), &task), End::Done);
    let known = world.see(&server).await;
    assert!(known.super_read_only && known.waiting_commits == 0);
    assert_eq!(known.executed.count(), before.count() + 1);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_closing_that_nothing_helps_ends_and_leaves_the_server_open() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    let mut root = server.root().await;
    root.query_drop("LOCK TABLES d.t WRITE").await.unwrap();
    let task = Task::CloseToWrites { patience: Duration::ZERO };
    let (end, rest) = world.carry_out(&server, task.clone()).await;
    assert_eq!(end, End::StillRunning);
    let end = end_of(rest.unwrap().await, &task);
    assert!(matches!(&end, End::Failed { why } if why.contains("within 30 s")), "{end:?}");
    assert_eq!(server.ask("SELECT @@read_only + @@super_read_only").await, "0");
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn commits_go_on_when_they_need_not_wait_any_more() {
    let (world, server) = (World::new(), Server::start(0).await);
    open_with_table(&world, &server).await;
    world.done(&server, Task::AwaitAcknowledgements { count: 1 }).await;
    let mut app = server.app().await;
    let commit = tokio::spawn(async move { app.query_drop("INSERT INTO d.t VALUES (1)").await });
    world.until(&server, "it waits", |known| known.waiting_commits == 1).await;
    world.done(&server, Task::AwaitAcknowledgements { count: 0 }).await;
    commit.await.unwrap().unwrap();
    let known = world.see(&server).await;
    assert_eq!((known.awaits, known.waiting_commits), (None, 0));
}
