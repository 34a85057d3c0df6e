//! What looks see, and what they say when there is nothing to see.

use std::time::{Duration, Instant};

use windlass_clients::mysql::Servers;
use windlass_kinds::mysql::deeds::{Deed, Place, Task};
use windlass_kinds::mysql::facts::{End, News};

use crate::server::{Server, quote};
use crate::world::{ADMIN_PASSWORD, World, end_of, place};

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_fresh_server_is_seen_and_looked_at_through_one_connection() {
    let (world, server) = (World::new(), Server::start(0).await);
    let known = world.see(&server).await;
    assert_eq!(known.server.to_string(), server.ask("SELECT @@server_uuid").await);
    assert!(known.executed.is_empty() && known.purged.is_empty());
    assert!(known.read_only && known.super_read_only);
    assert_eq!((known.replication, known.awaits, known.waiting_commits, known.acknowledges), (None, None, 0, false));
    assert!(known.followers.is_empty());
    let began = Instant::now();
    for _ in 0..20 {
        world.see(&server).await;
    }
    eprintln!("a look takes {} us", began.elapsed().as_micros() / 20);
    let admins = "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'moco-admin'";
    assert_eq!(server.ask(admins).await, "1");
    assert_eq!(world.api.secret_reads(), 1);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn what_was_executed_and_what_was_purged_are_told_apart() {
    let (world, server) = (World::new(), Server::start(0).await);
    world.done(&server, Task::OpenToWrites).await;
    server.tell("CREATE DATABASE d").await;
    server.tell("FLUSH BINARY LOGS").await;
    server.tell("CREATE TABLE d.t (id INT PRIMARY KEY)").await;
    let last = server.ask("SELECT LOCAL->>'$.binary_log_file' FROM performance_schema.log_status").await;
    server.tell(&format!("PURGE BINARY LOGS TO '{last}'")).await;
    let known = world.see(&server).await;
    assert_eq!((known.executed.count(), known.purged.count()), (2, 1));
    assert!(!known.read_only && !known.super_read_only);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_that_hangs_is_silent_in_time_and_answers_when_it_goes_on() {
    let (world, server) = (World::new(), Server::start(0).await);
    world.see(&server).await;
    server.signal("-STOP");
    // The kept connection first, then a new one.
    for limit in [3, 2] {
        let began = Instant::now();
        let why = world.look(&server).await.unwrap_err();
        let took = began.elapsed();
        eprintln!("{took:?}: {why}");
        // And then it is listened for whether the server greets anybody.
        assert!(took < Duration::from_secs(limit) + Duration::from_secs(10), "{took:?}");
        assert!(why.contains("moco-a-0") && why.contains(&format!("within {limit} s")), "{why}");
    }
    let (end, rest) = world.carry_out(&server, Task::StopReceiving).await;
    assert!(matches!(end, End::Failed { .. }) && rest.is_none(), "{end:?}");
    server.signal("-CONT");
    world.see(&server).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_server_that_is_gone_is_silent_and_its_successor_is_not() {
    let (world, mut server) = (World::new(), Server::start(0).await);
    world.see(&server).await;
    server.signal("-KILL");
    server.wait_until_gone();
    for _ in 0..2 {
        let why = world.look(&server).await.unwrap_err();
        eprintln!("{why}");
        assert!(why.contains("moco-a-0"), "{why}");
    }
    server.start_again().await;
    world.see(&server).await;
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_password_that_changed_is_read_again() {
    let (world, server) = (World::new(), Server::start(0).await);
    world.see(&server).await;
    server.tell("SET GLOBAL super_read_only = 0").await;
    server.tell(&format!("ALTER USER 'moco-admin' IDENTIFIED BY {}", quote("new"))).await;
    let kept = server.ask("SELECT ID FROM performance_schema.processlist WHERE USER = 'moco-admin'").await;
    server.tell(&format!("KILL {kept}")).await;
    let why = world.look(&server).await.unwrap_err();
    eprintln!("{why}");
    assert!(why.contains("1045") && why.contains("\"credentials\"") && !why.contains(ADMIN_PASSWORD), "{why}");
    assert_eq!(world.api.secret_reads(), 2);
    world.api.set_admin_password("new");
    world.see(&server).await;
    assert_eq!(world.api.secret_reads(), 3);
    world.done(&server, Task::StopReceiving).await;
    assert_eq!(world.api.secret_reads(), 3);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn nothing_is_done_to_a_process_that_was_replaced() {
    let (world, server) = (World::new(), Server::start(0).await);
    let there = place(&server);
    let others = [Place { pod_uid: "other".into(), ..there.clone() }, Place { process: "other".into(), ..there.clone() }];
    for place in others {
        let (fact, rest) = world.servers.carry_out(Deed { place, task: Task::OpenToWrites }).await;
        let end = end_of(fact, &Task::OpenToWrites);
        assert!(matches!(&end, End::Failed { why } if why.contains("replaced")) && rest.is_none(), "{end:?}");
    }
    assert!(world.see(&server).await.super_read_only);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn many_looks_at_once_do_not_mix_up_answers() {
    let (world, one, other) = (World::new(), Server::start(0).await, Server::start(1).await);
    let ask = |servers: Servers, place: Place| async move { (servers.look(&place).await, place) };
    let looks = (0..60).map(|number| ask(world.servers.clone(), place(if number % 2 == 0 { &one } else { &other })));
    let (first, second) = (world.see(&one).await.server, world.see(&other).await.server);
    for (fact, place) in futures::future::join_all(looks).await {
        let News::Seen(known) = fact.news else { panic!("{fact}") };
        assert_eq!(known.server, if place.pod == "moco-a-0" { first } else { second });
    }
}
