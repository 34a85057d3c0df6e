//! Two processes that both think they lead: the later one ends the sessions of the former before it changes anything.

use std::time::Duration;

use windlass_kinds::mysql::deeds::{Deed, Task};
use windlass_kinds::mysql::facts::{End, News, Silence};

use crate::server::Server;
use crate::world::{World, place};

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn whoever_leads_next_ends_the_sessions_of_those_before() {
    let server = Server::start(0).await;
    let (former, next) = (World::new(), World::new());
    former.done(&server, Task::OpenToWrites).await;
    let there = place(&server);
    let watched = former.servers.watch(&there);
    let takes_over = async {
        // The former leader's session is there before the next one comes.
        tokio::time::sleep(Duration::from_secs(2)).await;
        next.done(&server, Task::CloseToWrites { patience: Duration::from_secs(1) }).await;
    };
    let (fact, ()) = tokio::join!(watched, takes_over);
    let News::Gone { how, .. } = fact.news else { panic!("{fact}") };
    assert_eq!(how, Silence::Closed);
    assert!(next.see(&server).await.super_read_only);
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn a_task_leaves_the_other_sessions_of_its_own_process_alone() {
    let (world, server) = (World::new(), Server::start(0).await);
    let there = place(&server);
    let tasks = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for _ in 0..3 {
            world.done(&server, Task::StopReceiving).await;
        }
    };
    let watched = tokio::time::timeout(Duration::from_secs(4), world.servers.watch(&there));
    let (watched, ()) = tokio::join!(watched, tasks);
    assert!(watched.is_err(), "the watch ended: {watched:?}");
}

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn who_does_not_hold_its_lease_changes_nothing() {
    let (world, server) = (World::new(), Server::start(0).await);
    let fenced = world.servers.clone().guarded(|| Err("not sent: the Lease is gone".into()));
    let (fact, _) = fenced.carry_out(Deed { place: place(&server), task: Task::OpenToWrites }).await;
    let News::Ended { end, .. } = fact.news else { panic!("{fact}") };
    assert_eq!(end, End::Failed { why: "not sent: the Lease is gone".into() });
    assert!(world.see(&server).await.super_read_only);
}
