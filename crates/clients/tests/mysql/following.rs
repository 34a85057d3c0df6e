//! Following a server elsewhere, as a Secret says.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use windlass_kinds::mysql::deeds::{Outside, Task};
use windlass_kinds::mysql::instance::Known;

use crate::server::Server;
use crate::world::{REPLICATION_PASSWORD, World, source};

fn follow(version: &str) -> Task {
    Task::FollowOutside { outside: Outside { secret: "elsewhere".into(), version: version.into() } }
}

fn receives(known: &Known) -> bool {
    known.replication.as_ref().is_some_and(|it| it.receives && it.applies)
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_follows_another_one_and_throws_nothing_away_that_it_received() {
    let world = World::new();
    let (elsewhere, server) = (Server::start(0).await, Server::start(1).await);
    world.api.set_elsewhere(source(&elsewhere), REPLICATION_PASSWORD);
    world.done(&elsewhere, Task::OpenToWrites).await;
    assert!(world.failed(&elsewhere, follow("7")).await.contains("takes writes"));
    assert!(world.failed(&server, follow("6")).await.contains("was changed since"));
    let mut app = elsewhere.app().await;
    app.query_drop("CREATE DATABASE d").await.unwrap();
    app.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").await.unwrap();
    world.done(&server, follow("7")).await;
    let known = world.until(&server, "it receives", receives).await;
    assert!(known.super_read_only && !known.acknowledges && known.awaits.is_none());

    // What it received and did not apply is applied before it is told again.
    server.tell("STOP REPLICA SQL_THREAD").await;
    app.query_drop("INSERT INTO d.t VALUES (1)").await.unwrap();
    let executed = world.see(&elsewhere).await.executed;
    let has = |known: &Known| executed.is_within(&known.has());
    world.until(&server, "it has received", has).await;
    let why = world.failed(&server, follow("7")).await;
    assert!(why.contains("received more than it applied"), "{why}");
    let known = world.until(&server, "it has applied", |known| executed.is_within(&known.executed)).await;
    assert!(!known.replication.unwrap().connects);
    world.done(&server, follow("7")).await;
    world.until(&server, "it receives again", receives).await;

    // A password that is wrong is told by the server, and never shown; the right one is taken.
    world.api.set_elsewhere(source(&elsewhere), "not's the \\ word");
    world.done(&server, follow("7")).await;
    let is_refused = |known: &Known| known.replication.as_ref().is_some_and(|it| !it.receives && it.error.is_some());
    let known = world.until(&server, "it is refused", is_refused).await;
    assert!(known.replication.unwrap().connects, "it goes on to try");
    world.api.set_elsewhere(source(&elsewhere), REPLICATION_PASSWORD);
    world.done(&server, follow("7")).await;
    app.query_drop("INSERT INTO d.t VALUES (2)").await.unwrap();
    let set = world.see(&elsewhere).await.executed.to_string();
    world.done(&server, Task::CatchUp { set, within: Duration::from_secs(20) }).await;
}
