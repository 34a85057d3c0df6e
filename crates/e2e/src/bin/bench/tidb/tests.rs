//! The operator's own client against the bench's servers of TiDB clusters.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use windlass_api::tidb::Component;
use windlass_clients::tidb::Servers;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::tidb::answers::{PdSeen, Said, Store, StoreState, Stores};
use windlass_kinds::tidb::build::Names;
use windlass_kinds::tidb::deeds::{At, Deed, Pd, Probe, Server, Task};
use windlass_kinds::tidb::facts::{End, Fact};

use super::{COMPONENTS, Fleet, answers, server};
use crate::way::{Serving, bind};

const NAMES: Names<'static> = Names::new("bench-000001", "bench", None);

/// One cluster at addresses of this machine, and the client.
struct World {
    fleet: Fleet,
    servers: Servers,
    _serving: Serving,
}

impl World {
    fn start(pd: u16, tikv: u16, tidb: u16) -> Self {
        let fleet = Fleet::default();
        let sockets: Vec<_> = COMPONENTS.iter().map(|_| bind(0).unwrap()).collect();
        let ports = sockets.iter().map(|socket| socket.local_addr().unwrap().port());
        let ports: BTreeMap<Component, u16> = COMPONENTS.into_iter().zip(ports).collect();
        let serving = server::start(fleet.clone(), sockets).unwrap();
        for (component, count) in [(Component::Pd, pd), (Component::Tikv, tikv), (Component::Tidb, tidb)] {
            for number in 0..count {
                let place = place(component, number);
                fleet.start(&place.namespace, &place.pod, place.address.parse().unwrap());
            }
        }
        // Nothing here needs Kubernetes.
        let service = tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        let servers = Servers::new(Client::new(service, "bench")).with_ports(move |server| ports[&server.component]);
        Self { fleet, servers, _serving: serving }
    }

    async fn round(&self, pd: &Pd) -> Result<PdSeen, String> {
        let Fact::Pd { answer, .. } = self.servers.ask(Probe::Pd { pd: pd.clone(), asked: Timestamp::now() }).await else {
            panic!("another fact")
        };
        answer.map(|told| told.1)
    }

    async fn look(&self, component: Component, number: u16) -> Result<Said, String> {
        let probe = Probe::Look { server: place(component, number), asked: Timestamp::now() };
        let Fact::Server { answer, .. } = self.servers.ask(probe).await else { panic!("another fact") };
        answer
    }

    async fn done(&self, cluster: u64, task: Task) {
        let pd = Pd { cluster: Some(cluster), ..pd(1) };
        let deed = Deed { at: At::Pd(pd), task, about: "anybody".to_owned(), identity: "any".to_owned() };
        let Fact::Ended { end, deed } = self.servers.carry_out(deed).await else { panic!("another fact") };
        assert_eq!(end, End::Done, "{deed}");
    }

    fn nothing_to_complain_of(&self) {
        assert_eq!((self.fleet.complaints(), self.fleet.unknown_requests()), (Vec::new(), Vec::new()));
    }
}

fn place(component: Component, number: u16) -> Server {
    let ordinal = Ordinal::new(number);
    let first = u16::try_from(component as usize).unwrap() * 16 + 11;
    let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 1, 0).to_bits() + u32::from(first + number));
    Server {
        component,
        namespace: "bench".to_owned(),
        certificate: None,
        pod: NAMES.pod(component, ordinal),
        pod_uid: "uid".to_owned(),
        process: "process".to_owned(),
        host: NAMES.host(component, ordinal),
        address: address.to_string(),
    }
}

fn pd(members: u16) -> Pd {
    Pd { servers: (0..members).map(|number| place(Component::Pd, number)).collect(), cluster: None }
}

fn stores(seen: &PdSeen) -> &BTreeMap<u64, Store> {
    match &seen.stores {
        Ok(Stores::Listed(stores)) => stores,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_operators_own_client_finds_a_whole_cluster() {
    let world = World::start(3, 3, 2);
    let seen = world.round(&pd(3)).await.unwrap();
    let names: Vec<&str> = seen.members.as_ref().unwrap().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    assert!((0..3).all(|it| names.contains(&NAMES.pd_member(Ordinal::new(it)).as_str())), "{names:?}");
    assert!(seen.health.as_ref().unwrap().values().all(|healthy| *healthy));
    assert!(seen.leader.as_ref().unwrap().is_some());
    assert_eq!((seen.config.as_ref().unwrap().max_replicas, &seen.tiflash_copies), (3, &Ok(0)));
    assert_eq!(seen.evicting, Ok([].into()));
    let addresses: Vec<&str> = stores(&seen).values().map(|it| it.address.as_str()).collect();
    let address = |number| format!("{}:20160", NAMES.host(Component::Tikv, Ordinal::new(number)));
    assert!((0..3).all(|it| addresses.contains(&address(it).as_str())), "{addresses:?}");
    assert!(stores(&seen).values().all(|it| it.state == StoreState::Up && it.heard.is_some() && it.started.is_some()));
    assert_eq!(world.look(Component::Tidb, 1).await, Ok(Said::Tidb));
    assert_eq!(world.look(Component::Pd, 0).await, Ok(Said::Pd { ready: true }));
    assert!(matches!(world.look(Component::Tikv, 0).await, Ok(Said::Tikv { .. })));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn before_the_first_store_pd_says_so() {
    let world = World::start(1, 0, 0);
    let seen = world.round(&pd(1)).await.unwrap();
    assert_eq!((seen.stores, seen.tiflash_copies), (Ok(Stores::NotBootstrapped), Ok(0)));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn stores_that_start_before_pd_join_when_it_serves() {
    let world = World::start(0, 1, 0);
    let place = place(Component::Pd, 0);
    world.fleet.start(&place.namespace, &place.pod, place.address.parse().unwrap());
    assert_eq!(stores(&world.round(&pd(1)).await.unwrap()).len(), 1);
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn counts_that_jitter_change_and_nothing_else_does() {
    let world = World::start(1, 3, 0);
    world.fleet.let_counts_jitter(true);
    let (first, second) = (world.round(&pd(1)).await.unwrap(), world.round(&pd(1)).await.unwrap());
    let counts = |seen: &PdSeen| stores(seen).values().map(|it| (it.leaders, it.regions)).collect::<Vec<_>>();
    assert_ne!(counts(&first), counts(&second));
    let without = |mut seen: PdSeen| {
        if let Ok(Stores::Listed(all)) = &mut seen.stores {
            for it in all.values_mut() {
                (it.leaders, it.regions, it.heard) = (0, 0, None);
            }
        }
        seen
    };
    assert_eq!(without(first), without(second));
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn what_the_operator_asks_of_pd_is_done() {
    let world = World::start(3, 4, 0);
    let seen = world.round(&pd(1)).await.unwrap();
    let (id, address) = stores(&seen).iter().next().map(|(id, it)| (*id, it.address.clone())).unwrap();
    world.done(seen.cluster, Task::EvictLeaders { store: id }).await;
    assert_eq!(world.round(&pd(1)).await.unwrap().evicting, Ok([id].into()));
    world.done(seen.cluster, Task::StopEvicting { store: id }).await;
    assert_eq!(world.round(&pd(1)).await.unwrap().evicting, Ok([].into()));
    world.done(seen.cluster, Task::DeleteStore { store: id, address: address.clone() }).await;
    assert_ne!(stores(&world.round(&pd(1)).await.unwrap())[&id].state, StoreState::Up);
    let members = seen.members.unwrap();
    let follower = members.iter().find(|it| Some(it.id) != *seen.leader.as_ref().unwrap()).unwrap();
    world.done(seen.cluster, Task::TransferPdLeader { to: follower.name.clone() }).await;
    assert_eq!(world.round(&pd(1)).await.unwrap().leader, Ok(Some(follower.id)));
    let gone = members.iter().find(|it| it.id != follower.id).unwrap();
    world.done(seen.cluster, Task::DeletePdMember { id: gone.id, name: gone.name.clone() }).await;
    assert_eq!(world.round(&pd(1)).await.unwrap().members.unwrap().len(), 2);
    world.nothing_to_complain_of();
}

#[tokio::test]
async fn a_black_hole_takes_questions_and_answers_none_until_it_speaks_again() {
    let world = World::start(1, 1, 1);
    world.round(&pd(1)).await.unwrap();
    assert!(world.fleet.silence_pd("bench", "bench-000001", true));
    let why = world.round(&pd(1)).await.unwrap_err();
    assert!(why.contains("did not answer: nothing came within"), "{why}");
    assert_eq!(world.look(Component::Tidb, 0).await, Ok(Said::Tidb));
    assert!(world.fleet.silence_pd("bench", "bench-000001", false));
    world.round(&pd(1)).await.unwrap();
    assert!(!world.fleet.silence_pd("bench", "another", true));
}

#[tokio::test]
async fn where_no_server_runs_nobody_answers() {
    let world = World::start(1, 0, 1);
    let place = place(Component::Tidb, 0);
    world.fleet.remove(&place.namespace, &place.pod, place.address.parse().unwrap());
    assert!(world.look(Component::Tidb, 0).await.is_err());
    assert!(world.look(Component::Tidb, 1).await.is_err());
}

#[tokio::test]
async fn a_request_that_nobody_knows_is_refused_and_told_of() {
    let world = World::start(1, 0, 0);
    let berth = world.fleet.at(place(Component::Pd, 0).address.parse().unwrap()).unwrap();
    let request = answers::Request { method: "GET", path: "/pd/api/v1/regions", body: b"" };
    assert_eq!(world.fleet.answer(&berth, request).status, 404);
    assert_eq!(world.fleet.unknown_requests(), ["1 times: pd GET /pd/api/v1/regions"]);
}
