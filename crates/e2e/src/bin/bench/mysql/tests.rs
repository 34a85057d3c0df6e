//! The operator's own client against the bench's servers: what it does to a cluster, from nothing to a failover.

use std::net::Ipv4Addr;
use std::time::Duration;

use windlass_clients::mysql::Servers;
use windlass_kinds::mysql::deeds::{Deed, Place, Source, Task};
use windlass_kinds::mysql::facts::{End, News, Silence};
use windlass_kinds::mysql::instance::Known;

use super::cluster::{Cluster, Reaction};
use super::fleet::Fleet;
use super::statement::Statement;
use super::wire::Answer;
use super::{client, server};
use crate::way::{Serving, bind};

const SET: &str = "moco-a";

/// Three servers at addresses of this machine, and the client.
struct World {
    fleet: Fleet,
    servers: Servers,
    port: u16,
    _serving: Serving,
}

impl World {
    fn start() -> Self {
        let fleet = Fleet::new(3);
        let socket = bind(0).unwrap();
        let port = socket.local_addr().unwrap().port();
        let serving = server::start(fleet.clone(), socket).unwrap();
        for number in 0..3 {
            fleet.start("bench", &place(number).pod, address(number));
        }
        Self { fleet, servers: client::servers(port), port, _serving: serving }
    }

    async fn see(&self, number: u16) -> Known {
        let fact = self.servers.look(&place(number)).await;
        let News::Seen(known) = fact.news else { panic!("{fact}") };
        *known
    }

    async fn end(&self, number: u16, task: Task) -> End {
        let (fact, rest) = self.servers.carry_out(Deed { place: place(number), task }).await;
        assert!(rest.is_none());
        let News::Ended { end, .. } = fact.news else { panic!("{fact}") };
        end
    }

    async fn done(&self, number: u16, task: Task) {
        let text = format!("{task:?}");
        assert_eq!(self.end(number, task).await, End::Done, "{text}");
    }

    /// The first of three as the primary, as the operator makes it one.
    async fn with_primary() -> Self {
        let world = Self::start();
        for number in 1..3 {
            world.done(number, follow(0)).await;
        }
        world.done(0, Task::AwaitAcknowledgements { count: 1 }).await;
        world.done(0, Task::OpenToWrites).await;
        world
    }

    fn nothing_to_complain_of(&self) {
        assert_eq!((self.fleet.complaints(), self.fleet.unknown_statements()), (Vec::new(), Vec::new()));
    }
}

fn address(number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 11).to_bits() + u32::from(number))
}

fn place(number: u16) -> Place {
    client::place(SET, number, address(number))
}

fn follow(number: u16) -> Task {
    let host = format!("{SET}-{number}.{SET}.bench.svc");
    Task::Follow { source: Source { host, port: 3306 }, acknowledges: true }
}

#[tokio::test]
async fn a_new_server_has_nothing_and_takes_no_writes() {
    let world = World::start();
    let known = world.see(0).await;
    assert!(known.read_only && known.super_read_only && known.executed.is_empty());
    assert_eq!((known.replication, known.awaits, known.clone, known.followers.len()), (None, None, None, 0));
    assert_ne!(known.server, world.see(1).await.server);
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn the_operators_own_statements_make_a_cluster() {
    let world = World::with_primary().await;
    let (primary, replica) = (world.see(0).await, world.see(1).await);
    assert!(!primary.read_only && primary.awaits == Some(1));
    assert_eq!(primary.followers, [1001, 1002]);
    let replication = replica.replication.unwrap();
    assert_eq!(replication.source_host, "moco-a-0.moco-a.bench.svc");
    assert!(replication.receives && replication.applies && replica.acknowledges && replica.super_read_only);
    assert!(replication.quiet.unwrap() < Duration::from_secs(1));
    // What the operator does again changes nothing.
    world.done(1, follow(0)).await;
    assert!(matches!(world.end(0, follow(1)).await, End::Failed { why } if why.contains("open to writes")));
    assert!(world.fleet.is_whole("bench", SET));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn a_primary_hands_over_and_who_is_told_so_acknowledges_nothing() {
    let world = World::with_primary().await;
    world.done(0, Task::CloseToWrites { patience: Duration::from_secs(1) }).await;
    assert!(world.see(0).await.super_read_only);
    for number in 1..3 {
        world.done(number, Task::StopReceiving).await;
    }
    world.done(2, Task::StopAcknowledging).await;
    let replica = world.see(2).await;
    assert!(!replica.acknowledges && !replica.replication.unwrap().connects);
    world.done(1, Task::AwaitAcknowledgements { count: 1 }).await;
    world.done(1, Task::OpenToWrites).await;
    assert!(world.see(1).await.replication.is_none());
    for number in [0, 2] {
        world.done(number, follow(1)).await;
    }
    assert!(world.fleet.is_whole("bench", SET));
    world.nothing_to_complain_of();
}

#[test]
fn who_forgets_its_source_with_what_it_did_not_apply_is_complained_of() {
    let mut cluster = Cluster::new("bench", SET, 3);
    cluster.servers.all[1].received = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().unwrap();
    assert!(matches!(cluster.execute(1, 1, &Statement::ForgetSource), Reaction::Now(Answer::Done)));
    assert_eq!(cluster.servers.complaints.len(), 1);
}

#[tokio::test]
async fn what_clients_write_is_everywhere_at_once() {
    let world = World::with_primary().await;
    world.fleet.let_clients_write(true);
    world.fleet.write_everywhere().await;
    let (primary, replica) = (world.see(0).await, world.see(2).await);
    assert!(!primary.executed.is_empty() && primary.executed.is_within(&replica.executed));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn the_end_of_a_server_is_heard_of_at_once_and_another_one_takes_its_place() {
    let world = World::with_primary().await;
    world.fleet.let_clients_write(true);
    world.fleet.write_everywhere().await;
    let lost = place(0);
    let watched = world.servers.watch(&lost);
    let killed = async {
        // The watch has begun: its session was set up, and sleeps.
        let before = world.fleet.traffic().commands;
        while world.fleet.traffic().commands < before + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(world.fleet.kill_primary("bench", SET), Some(0));
    };
    let (fact, ()) = tokio::join!(watched, killed);
    assert!(matches!(fact.news, News::Gone { how: Silence::Closed, .. }), "{fact}");
    let silent = world.servers.look(&place(0)).await;
    assert!(matches!(silent.news, News::Silent { how: Silence::Closed, .. }), "{silent}");
    for number in 1..3 {
        assert!(!world.see(number).await.replication.unwrap().receives);
        world.done(number, Task::StopReceiving).await;
    }
    assert!(world.fleet.loss("bench", SET).unwrap().until_stopped().is_some());
    let set = world.see(1).await.executed.to_string();
    world.done(1, Task::CatchUp { set, within: Duration::from_secs(1) }).await;
    world.done(2, follow(1)).await;
    world.done(1, Task::AwaitAcknowledgements { count: 1 }).await;
    assert!(world.fleet.loss("bench", SET).unwrap().until_opened().is_none());
    world.done(1, Task::OpenToWrites).await;
    assert!(world.fleet.loss("bench", SET).unwrap().until_opened().is_some());
    // The lost one comes back with its data, and with nothing else.
    world.fleet.start("bench", &place(0).pod, address(0));
    let back = world.see(0).await;
    assert!(back.super_read_only && back.replication.is_none() && !back.executed.is_empty());
    world.done(0, follow(1)).await;
    assert!(world.fleet.is_whole("bench", SET));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn a_server_that_hangs_is_told_from_one_that_is_gone() {
    let world = World::with_primary().await;
    world.see(0).await;
    assert_eq!(world.fleet.silence_primary("bench", SET), Some(0));
    let fact = world.servers.look(&place(0)).await;
    assert!(matches!(fact.news, News::Silent { how: Silence::Hangs, .. }), "{fact}");
    let replication = world.see(1).await.replication.unwrap();
    assert!(replication.receives && replication.quiet.unwrap() > Duration::from_secs(3));
    world.fleet.start("bench", &place(0).pod, address(0));
    assert!(world.see(0).await.super_read_only);
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn a_statement_that_nobody_knows_is_refused_and_told_of() {
    let world = World::start();
    let clone = Task::Clone { donor: Source { host: "127.0.0.12".into(), port: 33062 } };
    assert!(matches!(world.end(0, clone).await, End::Failed { .. }));
    assert_eq!(world.fleet.unknown_statements().len(), 1);
    assert!(world.servers.look(&place(0)).await.named().1 == "answered");
}

#[tokio::test]
async fn whoever_leads_next_ends_the_sessions_of_those_before() {
    let world = World::with_primary().await;
    let next = client::servers(world.port);
    let watched = place(0);
    let takes_over = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let deed = Deed { place: place(0), task: Task::AwaitAcknowledgements { count: 1 } };
        assert!(matches!(next.carry_out(deed).await.0.news, News::Ended { end: End::Done, .. }));
    };
    let (fact, ()) = tokio::join!(world.servers.watch(&watched), takes_over);
    assert!(matches!(fact.news, News::Gone { how: Silence::Closed, .. }), "{fact}");
}
