//! Watching a server: its end, and that it hangs.

use std::time::{Duration, Instant};

use windlass_kinds::mysql::deeds::Task;
use windlass_kinds::mysql::facts::{News, Silence};

use crate::server::Server;
use crate::world::{World, place, source};

/// Watches until the watch ends, and lets something happen a while after it began.
async fn watch(world: &World, server: &Server, happens: impl FnOnce()) -> (Silence, Duration, Duration) {
    let there = place(server);
    let watch = world.servers.watch(&there);
    let happens = async {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        happens();
        Instant::now()
    };
    let (fact, since) = tokio::join!(watch, happens);
    let took = since.elapsed();
    let News::Gone { how, quiet, why } = fact.news else { panic!("{fact}") };
    eprintln!("{how:?} after {took:?}, quiet for {quiet:?}: {why}");
    (how, quiet, took)
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn the_end_of_a_server_is_heard_of_at_once() {
    let (world, server) = (World::new(), Server::start(0).await);
    let (how, _, took) = watch(&world, &server, || server.signal("-KILL")).await;
    assert_eq!(how, Silence::Closed);
    assert!(took < Duration::from_millis(2500), "{took:?}: it was waited for in vain");
    assert_eq!(world.servers.look(&place(&server)).await.named(), ("Look", "unknown"));
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_that_hangs_is_told_from_one_that_ended() {
    let (world, server) = (World::new(), Server::start(0).await);
    let (how, quiet, _) = watch(&world, &server, || server.signal("-STOP")).await;
    assert_eq!(how, Silence::Hangs);
    assert!(quiet >= Duration::from_millis(2400), "{quiet:?}");
    let News::Silent { how, .. } = world.servers.look(&place(&server)).await.news else { panic!("it answered") };
    assert_eq!(how, Silence::Hangs);
    server.signal("-CONT");
    world.until(&server, "it goes on", |_| true).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_replica_knows_how_long_its_source_has_been_quiet() {
    let world = World::new();
    let (first, second) = (Server::start(0).await, Server::start(1).await);
    world.done(&first, Task::OpenToWrites).await;
    world.done(&second, Task::Follow { source: source(&first), acknowledges: true }).await;
    let quiet = |known: &windlass_kinds::mysql::instance::Known| known.replication.as_ref().and_then(|it| it.quiet);
    world.until(&second, "a sign came", |known| quiet(known).is_some_and(|it| it < Duration::from_secs(2))).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let lives = quiet(&world.see(&second).await).unwrap();
    assert!(lives < Duration::from_secs(4), "{lives:?}: an idle source gives a sign each second");
    first.signal("-STOP");
    world.until(&second, "signs stay away", |known| quiet(known).is_some_and(|it| it > Duration::from_secs(5))).await;
    let receives = world.see(&second).await.replication.unwrap().receives;
    first.signal("-CONT");
    assert!(receives, "the connection is still there");
    world.until(&second, "signs come again", |known| quiet(known).is_some_and(|it| it < Duration::from_secs(2))).await;
}
