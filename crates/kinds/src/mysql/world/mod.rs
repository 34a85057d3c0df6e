//! A world of servers, an operator that passes by, and chance. Whatever happens in whatever order: no commit that a client was told of
//! is lost, nobody tells of a commit after another one has taken over, and when the trouble is over the cluster becomes healthy.

mod asking;
mod following;
mod losing;
mod purging;
mod stopping;
mod telling;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_api::logbook::LogbookSpec;
use windlass_api::mysql::MySQLCluster;
use windlass_api::mysql::conditions::State;
use windlass_api::mysql::keys;
use windlass_core::kind::{Kind as _, Observed, Options};
use windlass_core::memory::Memory;
use windlass_core::ordinals::Ordinal;
use windlass_core::plan::Plan;
use windlass_core::step::Act;
use windlass_core::views::{Children, Meta, PodView, StatefulSetView};
use windlass_dice::Dice;

use super::build::with_agent;
use super::deeds::{Deed, Place, Probe};
use super::facts::{Fact, Facts, News, Silence};
use super::remember::entries;
use super::scene::Scene;
use super::simulation::{Server, Servers};
use super::{MySql, Settings};

const NAME: &str = "harbour";
const NAMESPACE: &str = "bay";
const ELSEWHERE: &str = "db.elsewhere";
const BEGINNING: i64 = 1_800_000_000;

struct World {
    resource: MySQLCluster,
    children: Children,
    facts: Facts,
    logbook: LogbookSpec,
    servers: Servers,
    now: Timestamp,
    dice: Dice,
    /// How many of a hundred answers take until the next pass.
    slow: u16,
    /// What happened, for a person who looks at a play that went wrong.
    story: Vec<String>,
    /// What was told to people, and what the process that tells has in mind.
    news: Vec<windlass_core::kind::News>,
    memory_of_telling: super::news::Told,
    /// The version of the Secret of the server elsewhere; none when it is not there.
    source_version: Option<u32>,
}

fn pod_name(number: usize) -> String {
    format!("moco-{NAME}-{number}")
}

fn host(number: usize) -> String {
    if number == super::simulation::OUTSIDE {
        return ELSEWHERE.to_owned();
    }
    format!("{}.moco-{NAME}.{NAMESPACE}.svc", pod_name(number))
}

/// By host name, or by address.
fn number_of(host: &str) -> Option<usize> {
    let name = host.split('.').next()?;
    name.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).or_else(|| host.strip_prefix("10.0.0.")?.parse().ok())
}

impl World {
    fn new(size: u16, seed: u64) -> Self {
        let resource = serde_json::from_value(json!({
            "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
            "metadata": { "name": NAME, "namespace": NAMESPACE, "uid": "u1", "generation": 1 },
            "spec": { "replicas": size, "serverIDBase": 10, "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql" }] } },
                      "volumeClaimTemplates": [{ "metadata": { "name": "mysql-data" }, "spec": { "resources": { "requests": { "storage": "1Gi" } } } }] },
        }));
        let mut world = Self {
            resource: resource.unwrap(),
            children: Children::default(),
            facts: Facts::default(),
            logbook: LogbookSpec { cluster_uid: "u1".into(), ..LogbookSpec::default() },
            servers: Servers::new(size.into()),
            now: Timestamp::from_second(BEGINNING).unwrap(),
            dice: Dice::new(seed),
            slow: 0,
            story: Vec::new(),
            news: Vec::new(),
            memory_of_telling: super::news::Told::default(),
            source_version: Some(1),
        };
        world.resize(size);
        world
    }

    /// As the controller of StatefulSets would.
    fn resize(&mut self, size: u16) {
        let mut set = StatefulSetView { replicas: size, ..StatefulSetView::default() };
        set.object.meta.name = format!("moco-{NAME}");
        self.children.stateful_sets.insert(format!("moco-{NAME}"), set);
        while self.servers.all.len() < usize::from(size) {
            let uuid = self.servers.all.len() as u128 + 1;
            self.servers.all.push(Server::new(uuid));
        }
        for (number, server) in self.servers.all.iter_mut().enumerate() {
            match (number < usize::from(size), server.up) {
                (true, false) => server.start(),
                (false, true) => server.crash(),
                _ => {}
            }
        }
        self.children.pods.retain(|name, _| number_of(name).is_some_and(|number| number < usize::from(size)));
        self.show_pods();
    }

    /// How many instances there are now.
    fn size(&self) -> usize {
        self.children.stateful_sets.values().map(|set| usize::from(set.replicas)).sum()
    }

    /// Pods show what servers are.
    fn show_pods(&mut self) {
        for (number, server) in self.servers.all.iter().enumerate().take(self.size()) {
            let name = pod_name(number);
            let pod = self.children.pods.get_or_insert_with(name.clone(), || PodView {
                meta: Meta { namespace: NAMESPACE.into(), uid: format!("uid-{name}"), name, ..Meta::default() },
                arguments: with_agent(),
                ..PodView::default()
            });
            pod.process = server.up.then(|| format!("process-{}", server.process));
            pod.address = Some(format!("10.0.0.{number}"));
            pod.ready = server.up && (!server.read_only || server.connects);
        }
    }

    fn observed<'a>(
        &'a self,
        memory: &'a Memory,
        settings: &'a Settings,
        answered: &'a BTreeMap<windlass_core::step::ObjectRef, windlass_core::likeness::Answered>,
    ) -> Observed<'a, MySql> {
        Observed {
            resource: &self.resource,
            children: &self.children,
            facts: &self.facts,
            settings,
            options: &Options::None,
            memory,
            answered,
            running: &[],
            settled: false,
            now: self.now,
        }
    }

    /// Where a server is reached.
    fn place(&self, number: u16) -> Place {
        self.watched(|observed| Scene::of(observed, entries(&self.logbook)).place(Ordinal::new(number))).unwrap()
    }

    /// Lets the operator look at what it sees.
    fn watched<T>(&self, look: impl FnOnce(&Observed<'_, MySql>) -> T) -> T {
        let memory = Memory::Known(Box::new(self.logbook.clone()));
        look(&self.observed(&memory, &Settings::default(), &BTreeMap::new()))
    }

    fn state(&self) -> State {
        self.watched(|observed| Scene::of(observed, entries(&self.logbook)).state())
    }

    fn primary(&self) -> usize {
        entries(&self.logbook).primary.into()
    }

    /// One pass: questions that are due are answered, what must be remembered is written, and then tasks are done, of which some get
    /// lost on their way.
    fn pass(&mut self, lost: u16) {
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).unwrap();
        self.show_pods();
        for probe in self.watched(MySql::probes) {
            let place = match probe {
                Probe::Look(place) => place,
                // The end of a watch is found out by the next look.
                Probe::Watch(_) => continue,
                Probe::Source { place, secret } => {
                    self.facts.learn(self.source(place, secret), self.now);
                    continue;
                }
            };
            // An answer may take until the next pass.
            if self.dice.chance(self.slow) {
                continue;
            }
            let number = usize::from(place.ordinal.get());
            let news = match self.servers.look(number, host, 10) {
                Some(known) => News::Seen(Box::new(known)),
                None => News::Silent { how: Silence::Unreachable, why: "no answer".into() },
            };
            self.facts.learn(Fact { place, news }, self.now);
        }
        let mut written = self.logbook.clone();
        self.watched(|observed| MySql::remember(observed, &mut written));
        // A crash between the two is a pass in which nothing is done.
        let plan: Plan<Deed> = self.watched(MySql::plan);
        self.tell(&written);
        if entries(&written).primary != entries(&self.logbook).primary {
            let to = entries(&written).primary;
            self.story.push(format!("instance {to} gets the office"));
            self.check_office(to.into());
        }
        self.logbook = written;
        let steps = self.gated(&plan);
        // One that takes writes already need not be opened.
        let primary = self.primary();
        if self.servers.all.get(primary).is_some_and(|server| server.up && !server.read_only) {
            self.servers.holds(primary);
        }
        for step in steps {
            match step.act {
                Act::Member(deed) => self.carry_out(&deed, lost),
                Act::Label { object, labels, annotations, .. } => {
                    let pod = self.children.pods.get_mut(&object.name).unwrap();
                    for (key, value) in labels {
                        match value {
                            Some(value) => pod.meta.labels.insert(key, value),
                            None => pod.meta.labels.remove(&key),
                        }
                    }
                    for (key, value) in annotations {
                        match value {
                            Some(value) => pod.meta.annotations.insert(key, value),
                            None => pod.meta.annotations.remove(&key),
                        }
                    }
                }
                Act::SetReplicas { to, .. } => self.resize(to),
                _ => {}
            }
        }
    }

    fn carry_out(&mut self, deed: &Deed, lost: u16) {
        if self.dice.chance(lost) {
            self.story.push(format!("lost: {deed}"));
            return;
        }
        self.story.push(deed.to_string());
        let end = self.servers.carry_out(deed.place.ordinal, &deed.task, number_of);
        self.facts.learn(Fact { place: deed.place.clone(), news: News::Ended { task: deed.task.clone(), end } }, self.now);
    }

    /// What goes on by itself.
    fn live(&mut self) {
        let primary = self.primary();
        for number in 0..self.servers.all.len() {
            if self.dice.chance(60) {
                let applies = self.dice.chance(70);
                self.servers.deliver(number, applies);
            }
        }
        // Clients may reach anybody who takes writes.
        for number in 0..self.servers.all.len() {
            if number == primary || self.dice.chance(50) {
                self.servers.write(number);
            }
        }
    }

    /// Something goes wrong, or right again. At most one server at a time is down or cut off, and a volume is lost only while other
    /// ones still have everything that clients were told of: whether the operator knows that is another question.
    fn trouble(&mut self) {
        let number = self.dice.index(self.servers.all.len());
        let others_fine =
            self.servers.all.iter().enumerate().all(|(other, it)| other == number || (it.up && it.reachable && it.linked));
        let told_elsewhere = self.servers.is_told_elsewhere(number);
        let server = &mut self.servers.all[number];
        let kind = self.dice.below(12);
        self.story.push(format!("trouble {kind} with server {number}: {}", server.told()));
        match kind {
            0 if others_fine => server.crash(),
            1 if others_fine => server.lose_power(),
            2 if others_fine => server.reachable = false,
            3 if others_fine => (server.reachable, server.linked) = (false, false),
            4 if told_elsewhere => {
                let uuid = 1000 + u128::from(self.dice.roll());
                self.servers.all[number].wipe(uuid);
            }
            5 => {
                let pod = self.children.pods.get_mut(&pod_name(number)).unwrap();
                pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
            }
            6 if self.resource.metadata.annotations.is_none() => self.stop_clustering(),
            6 | 7 => self.start_clustering(),
            8.. => {
                (server.reachable, server.linked) = (true, true);
                if !server.up {
                    server.start();
                }
            }
            _ => {}
        }
    }

    /// Everything is put right, and the operator gets the time that it needs.
    fn settle(&mut self) {
        self.start_clustering();
        let size = self.size();
        for server in self.servers.all.iter_mut().take(size) {
            (server.reachable, server.linked) = (true, true);
            if !server.up {
                server.start();
            }
        }
        for _ in 0..60 {
            self.pass(0);
            for number in 0..self.servers.all.len() {
                self.servers.deliver(number, true);
            }
        }
    }

    /// What a person would want to see of a play that went wrong.
    fn told(&self) -> String {
        let plan = self.watched(MySql::plan);
        let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
        let servers: Vec<String> = self.servers.all.iter().map(Server::told).collect();
        let wishes: Vec<_> = self.children.pods.values().map(|pod| &pod.meta.annotations).collect();
        format!("{steps:?} {:?}\n{:?}\n{}\n{wishes:?}", plan.waiting, entries(&self.logbook), servers.join("\n"))
    }

    fn check(&self, seed: u64) {
        let complaints = &self.servers.complaints;
        assert!(complaints.is_empty(), "seed {seed}: {complaints:?}\n{}\n{}", self.story.join("\n"), self.told());
        let writers = self.servers.all.iter().filter(|it| it.up && !it.read_only && it.linked && it.reachable).count();
        assert!(writers <= 2, "seed {seed}: {writers} servers take writes");
    }
}

#[test]
fn a_new_cluster_becomes_healthy_and_takes_writes() {
    for size in [1, 3, 5] {
        let mut world = World::new(size, 1);
        world.settle();
        assert_eq!(world.state(), State::Healthy, "{size}");
        assert!(!world.servers.all[0].read_only);
        assert_eq!(world.servers.all[0].awaits.unwrap_or(0), size / 2);
    }
}

#[test]
fn a_lost_primary_is_replaced_and_comes_back_as_a_replica() {
    let mut world = World::new(3, 2);
    world.settle();
    world.live();
    world.servers.all[0].crash();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_ne!(world.primary(), 0);
    world.settle();
    assert_eq!(world.state(), State::Healthy);
    world.check(2);
}

#[test]
fn one_instance_is_never_replaced() {
    let mut world = World::new(1, 3);
    world.settle();
    world.servers.all[0].crash();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 0);
    world.settle();
    assert_eq!(world.state(), State::Healthy);
}

#[test]
fn a_primary_that_only_the_operator_cannot_reach_stays() {
    let mut world = World::new(3, 4);
    world.settle();
    world.servers.all[0].reachable = false;
    for _ in 0..30 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 0);
}

#[test]
fn a_wish_to_hand_over_is_granted_once() {
    let mut world = World::new(3, 5);
    world.settle();
    let pod = world.children.pods.get_mut(&pod_name(0)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    world.settle();
    assert_eq!((world.primary(), world.state()), (1, State::Healthy));
    assert!(world.children.pods.values().all(|pod| pod.meta.annotations.is_empty()));
}

#[test]
fn a_new_primary_that_is_to_hand_over_at_once_applies_what_it_received_first() {
    let mut world = World::new(3, 7);
    world.settle();
    world.servers.write(0);
    world.servers.deliver(1, false);
    world.servers.all[0].crash();
    while world.primary() == 0 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 1, "the only one that has what a client was told of");
    let pod = world.children.pods.get_mut(&pod_name(1)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    for _ in 0..20 {
        world.pass(0);
        world.servers.deliver(2, true);
    }
    assert_eq!(world.primary(), 2);
    world.check(7);
    world.settle();
    assert_eq!(world.state(), State::Healthy);
}

#[test]
fn a_cluster_grows_by_copies_of_its_data() {
    let mut world = World::new(3, 6);
    world.settle();
    world.live();
    world.settle();
    world.resource.spec.replicas = Some(5);
    world.settle();
    assert_eq!(world.state(), State::Healthy);
    assert_eq!(world.servers.all[0].awaits, Some(2));
}

#[test]
fn a_cluster_comes_back_from_offline_with_its_data() {
    for size in [1, 3, 5] {
        let mut world = World::new(size, 7);
        world.settle();
        world.live();
        world.settle();
        let told = world.servers.told.clone();
        assert!(!told.is_empty(), "{size}");
        world.resource.spec.offline = true;
        world.settle();
        assert_eq!((world.state(), world.children.pods.len()), (State::Offline, 0), "{size}");
        world.resource.spec.offline = false;
        world.settle();
        assert_eq!((world.state(), world.children.pods.len()), (State::Healthy, usize::from(size)), "{}", world.told());
        assert!(told.is_within(&world.servers.all[world.primary()].executed), "{}", world.told());
        world.check(7);
    }
}

/// How many histories are played, unless somebody asks for more.
const HISTORIES: u64 = 2_000;

#[test]
fn whatever_happens_nothing_that_was_told_is_lost() {
    let first = windlass_dice::number("WINDLASS_SEED").unwrap_or(0x72_6f70);
    let histories = windlass_dice::number("WINDLASS_HISTORIES").unwrap_or(HISTORIES);
    for seed in first..first + histories {
        let size = if seed % 4 == 0 { 5 } else { 3 };
        let mut world = World::new(size, seed);
        world.settle();
        world.slow = 20;
        for _ in 0..40 {
            world.live();
            if world.dice.chance(30) {
                world.trouble();
            }
            world.pass(10);
            world.check(seed);
        }
        world.slow = 0;
        world.settle();
        world.check(seed);
        let state = world.state();
        // A cluster that lost too many volumes is told of, and waits for a person.
        let plan = world.watched(MySql::plan);
        let told = plan.waiting.iter().any(|it| it.stalled && it.reason.as_str() == "PrimaryLost");
        assert!(state == State::Healthy || told, "seed {seed} ends {state:?}: {}", world.told());
    }
    println!("{histories} histories of MySQL from seed {first}: nothing that was told is lost");
}

#[test]
fn ordinals_are_found_by_host_and_address() {
    assert_eq!((number_of(&host(2)), number_of("10.0.0.4")), (Some(2), Some(4)));
    assert_eq!(Ordinal::new(2).pod_name("moco-harbour"), pod_name(2));
}
