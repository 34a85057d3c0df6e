//! Clustering is stopped and started: what is held, what is finished first, and when that is acknowledged.

use windlass_api::logbook::PauseRecord;
use windlass_core::bookkeeping;
use windlass_core::gate::Door;
use windlass_core::lane::Lane;
use windlass_core::step::Step;

use super::*;

impl World {
    pub(super) fn stop_clustering(&mut self) {
        self.story.push("clustering is to stop".into());
        self.resource.metadata.annotations = Some([(keys::CLUSTERING_STOPPED.to_owned(), "true".to_owned())].into());
    }

    pub(super) fn start_clustering(&mut self) {
        self.resource.metadata.annotations = None;
    }

    fn door(&self) -> Door {
        bookkeeping::gate::<MySql>(&self.resource, &[], &self.logbook).door(Lane::Clustering).clone()
    }

    /// The steps that go. What the gate says is recorded, as the engine would.
    pub(super) fn gated(&mut self, plan: &Plan<Deed>) -> Vec<Step<Deed>> {
        let gate = bookkeeping::gate::<MySql>(&self.resource, &[], &self.logbook);
        let was_stopped = self.logbook.pause.clustering.is_some();
        self.logbook.pause.clustering = match gate.door(Lane::Clustering) {
            Door::Closed => Some(PauseRecord::default()),
            Door::Closing { .. } => self.logbook.pause.clustering.take(),
            Door::Open | Door::Opening => None,
        };
        if !was_stopped && self.logbook.pause.clustering.is_some() {
            self.story.push("clustering is stopped".into());
            self.check_rest();
        }
        gate.part(plan).go
    }

    /// Whoever is let alone is not left in the middle of something: the primary that can be reached takes writes if it did before, and
    /// nobody was told to receive nothing.
    fn check_rest(&mut self) {
        let is_at_rest = self.watched(|observed| Scene::of(observed, entries(&self.logbook)).is_at_rest());
        if entries(&self.logbook).changing && !is_at_rest {
            self.servers.complaints.push("clustering is stopped in the middle of a change of the primary".into());
        }
    }

    fn pass_until_stopped(&mut self) {
        for _ in 0..30 {
            if self.door() == Door::Closed && self.logbook.pause.clustering.is_some() {
                return;
            }
            self.pass(0);
        }
        panic!("clustering does not stop: {}", self.told());
    }
}

fn settled() -> World {
    let mut world = World::new(3, 21);
    world.settle();
    world.live();
    world.settle();
    world
}

#[test]
fn while_clustering_is_stopped_nobody_replaces_the_primary() {
    let mut world = settled();
    world.stop_clustering();
    world.pass_until_stopped();
    world.servers.all[0].crash();
    let before: Vec<String> = world.servers.all.iter().map(Server::told).collect();
    for _ in 0..30 {
        world.pass(0);
    }
    let after: Vec<String> = world.servers.all.iter().map(Server::told).collect();
    assert_eq!((world.primary(), after), (0, before), "nothing was done to any server");
    let held = world.watched(MySql::plan).steps;
    assert!(held.iter().any(|step| step.to_string().contains("receive nothing")), "what would happen is shown: {held:?}");
    world.start_clustering();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_ne!(world.primary(), 0);
    world.settle();
    assert_eq!(world.state(), State::Healthy);
    world.check(21);
}

#[test]
fn a_switchover_that_has_begun_is_undone_before_the_stop_is_acknowledged() {
    let mut world = settled();
    let pod = world.children.pods.get_mut(&pod_name(0)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    for _ in 0..20 {
        if world.servers.all[0].read_only {
            break;
        }
        world.pass(0);
    }
    assert!(world.servers.all[0].read_only && world.primary() == 0, "it is closed, and nobody else has the office yet");
    world.stop_clustering();
    world.pass_until_stopped();
    assert!(!world.servers.all[0].read_only && world.primary() == 0, "{}", world.told());
    world.check(21);
}

#[test]
fn a_switchover_of_which_the_record_is_written_is_finished_before_the_stop_is_acknowledged() {
    let mut world = settled();
    let pod = world.children.pods.get_mut(&pod_name(0)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    for _ in 0..20 {
        if world.primary() != 0 {
            break;
        }
        world.pass(0);
        world.servers.deliver(1, true);
    }
    assert_eq!(world.primary(), 1);
    assert!(world.servers.all[1].read_only, "it is on record, and not open yet");
    world.stop_clustering();
    world.pass_until_stopped();
    assert!(!world.servers.all[1].read_only, "{}", world.told());
    assert!(world.servers.all[0].read_only);
    world.check(21);
}

#[test]
fn a_failover_that_has_begun_is_undone_before_the_stop_is_acknowledged() {
    let mut world = settled();
    world.servers.all[0].crash();
    for _ in 0..20 {
        if world.servers.all[1..].iter().any(|server| !server.connects) {
            break;
        }
        world.pass(0);
    }
    assert_eq!(world.primary(), 0, "nobody else has the office yet");
    assert!(world.servers.all[1..].iter().any(|server| !server.connects), "{}", world.told());
    world.stop_clustering();
    world.pass_until_stopped();
    assert_eq!(world.primary(), 0);
    assert!(world.servers.all[1..].iter().all(|server| server.connects), "{}", world.told());
    world.check(21);
}

#[test]
fn what_was_not_asked_since_something_was_done_to_it_is_not_at_rest() {
    let mut world = settled();
    let at_rest = |world: &World| world.watched(|observed| Scene::of(observed, entries(&world.logbook)).is_at_rest());
    assert!(at_rest(&world));
    let place = world.place(0);
    let task = super::super::deeds::Task::CloseToWrites { patience: std::time::Duration::ZERO };
    let deed = Deed { place: place.clone(), task: task.clone() };
    let closing = world.watched(|observed| {
        let running = Observed { running: std::slice::from_ref(&deed), ..*observed };
        Scene::of(&running, entries(&world.logbook)).is_at_rest()
    });
    assert!(!closing, "what it said before it is closed counts for nothing");
    let news = |news| Fact { place: place.clone(), news };
    world.facts.learn(news(News::Ended { task, end: super::super::facts::End::Done }), world.now);
    assert!(!at_rest(&world), "nobody knows how it is now");
    world.facts.learn(news(News::Silent { how: Silence::Closed, why: "it is gone".into() }), world.now);
    assert!(at_rest(&world), "it cannot be asked");
}
