use windlass_kinds::tidb::answers::{Store, StoreState, Stores};
use windlass_kinds::tidb::deeds::Task;

use crate::server::{Server, until};
use crate::world::World;

const FOURTH: &str = "a-tikv-3.a-tikv-peer.shop.svc:20160";

async fn stores() -> Server {
    let mut server = Server::alone("a-pd-0").await;
    let all = [(1, "a-tikv-0:20160"), (4, "a-tikv-1:20160"), (5, "a-tikv-2:20160"), (u64::MAX - 7, FOURTH)];
    server.bootstrap(&all).await;
    server
}

async fn fourth(world: &World, server: &Server) -> Store {
    match world.see(server).await.stores.unwrap() {
        Stores::Listed(mut stores) => stores.remove(&(u64::MAX - 7)).unwrap(),
        Stores::NotBootstrapped => panic!("there are stores"),
    }
}

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn leaders_are_evicted_and_come_back() {
    let (world, server) = (World::new(), stores().await);
    assert_eq!(world.see(&server).await.evicting, Ok([].into()));
    world.done(&server, Task::EvictLeaders { store: 4 }).await;
    world.done(&server, Task::EvictLeaders { store: 5 }).await;
    assert_eq!(world.see(&server).await.evicting, Ok([4, 5].into()));
    world.done(&server, Task::StopEvicting { store: 4 }).await;
    assert_eq!(world.see(&server).await.evicting, Ok([5].into()));
    world.done(&server, Task::StopEvicting { store: 5 }).await;
    assert_eq!(world.see(&server).await.evicting, Ok([].into()));
    let why = world.failed(&server, Task::EvictLeaders { store: 99 }).await;
    assert!(why.contains("letting PD evict leaders: http://localhost:"), "{why}");
}

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn a_store_leaves_is_called_back_and_leaves_for_good() {
    let (world, server) = (World::new(), stores().await);
    let (store, address) = (u64::MAX - 7, FOURTH.to_owned());
    assert_ne!(fourth(&world, &server).await.state, StoreState::Offline);

    let elsewhere = Task::DeleteStore { store, address: "b-tikv-0:20160".into() };
    assert!(world.failed(&server, elsewhere).await.contains("and not at \"b-tikv-0:20160\""));
    let gone = Task::DeleteStore { store: 77, address: "b-tikv-0:20160".into() };
    world.done(&server, gone).await;

    // PD looks every ten seconds whether a store that leaves is empty, which this one is. It may be faster than we are, once.
    let delete = || Task::DeleteStore { store, address: address.clone() };
    let restore = || Task::RestoreStore { store, address: address.clone() };
    world.done(&server, delete()).await;
    assert!(matches!(fourth(&world, &server).await.state, StoreState::Offline | StoreState::Tombstone));
    if fourth(&world, &server).await.state == StoreState::Offline {
        world.done(&server, restore()).await;
        assert!(matches!(fourth(&world, &server).await.state, StoreState::Up | StoreState::Disconnected | StoreState::Down));
        world.done(&server, delete()).await;
    }
    until("it has left", async || {
        let state = fourth(&world, &server).await.state;
        if state == StoreState::Tombstone { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
    assert!(world.failed(&server, restore()).await.contains("has left for good"));
    world.done(&server, delete()).await;

    // PD itself keeps enough of them.
    let third = Task::DeleteStore { store: 5, address: "a-tikv-2:20160".into() };
    let why = world.failed(&server, third).await;
    assert!(why.contains("answers with status 400"), "{why}");
}

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn stores_are_labelled_and_rules_enabled() {
    let (world, server) = (World::new(), stores().await);
    let labels = |zone: &str| [("zone".to_owned(), zone.to_owned())].into();
    for zone in ["east", "west"] {
        let task = Task::SetStoreLabels { store: u64::MAX - 7, address: FOURTH.into(), labels: labels(zone) };
        world.done(&server, task).await;
        assert_eq!(fourth(&world, &server).await.labels, labels(zone));
    }
    world.done(&server, Task::EnablePlacementRules).await;
    let seen = world.see(&server).await;
    assert!(seen.config.unwrap().placement_rules);
    assert_eq!(seen.tiflash_copies, Ok(0));
}
