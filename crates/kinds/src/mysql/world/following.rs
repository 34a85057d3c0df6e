//! A cluster that follows a server elsewhere, which is written to all the while.
//!
//! Nobody acknowledges what comes from there, so what is promised is this: no server is opened to writes while the source is named; what
//! more than half of the volumes have when the office changes hands, the new primary has; nothing that was received is thrown away before
//! it is applied; the first that is opened has all that any reachable one has; and in the end everybody has all that there is elsewhere.

use windlass_api::mysql::conditions::State;

use super::super::deeds::{Place, Task};
use super::super::facts::{End, SourceAt, SourceRead, Unreadable};
use super::super::simulation::OUTSIDE;
use super::*;

const SECRET: &str = "source";

impl World {
    /// A cluster that is to be a copy of a server with some data.
    fn following(size: u16, seed: u64) -> Self {
        let mut world = Self::new(size, seed);
        world.resource.spec.replication_source_secret_name = Some(SECRET.into());
        (world.servers.outside.linked, world.servers.outside.followed) = (true, true);
        for _ in 0..5 {
            world.servers.write_elsewhere();
        }
        world
    }

    /// Somebody takes the source away.
    fn cut_loose(&mut self) {
        self.resource.spec.replication_source_secret_name = None;
        self.servers.outside.followed = false;
    }

    /// What the Secret says, as the operator's client would tell it.
    pub(super) fn source(&self, place: Place, secret: String) -> Fact {
        let read = match self.source_version {
            Some(version) => Ok(SourceAt { version: version.to_string(), host: ELSEWHERE.into() }),
            None => Err(Unreadable::Missing(format!("Secret {secret} does not exist"))),
        };
        Fact { place, news: News::Source(SourceRead { secret, read, authority: None }) }
    }

    /// Who gets the office has all that most volumes have.
    pub(super) fn check_office(&mut self, to: usize) {
        if !self.servers.outside.followed {
            return;
        }
        let lacks = self.servers.of_most(self.size()).without(&self.servers.all[to].has());
        if !lacks.is_empty() {
            self.servers.complaints.push(format!("instance {to} gets the office without {lacks}, which most have"));
        }
    }

    fn waits_for(&self, reason: &str) -> Option<(String, bool)> {
        let plan = self.watched(MySql::plan);
        plan.waiting.iter().find(|it| it.reason.as_str() == reason).map(|it| (it.message.clone(), it.stalled))
    }

    fn has_all(&self) -> bool {
        self.servers.all.iter().all(|it| self.servers.outside.executed.is_within(&it.executed))
    }
}

#[test]
fn the_data_is_copied_then_followed_and_nobody_takes_writes() {
    for size in [1, 3, 5] {
        let mut world = World::following(size, 1);
        assert_eq!(world.state(), State::Cloning, "{size}");
        world.settle();
        world.servers.write_elsewhere();
        world.settle();
        assert_eq!(world.state(), State::Healthy, "{}", world.told());
        assert!(world.has_all() && world.servers.all.iter().all(|it| it.read_only), "{}", world.told());
        assert!(world.servers.all.iter().all(|it| !it.acknowledges && it.awaits.is_none()));
        assert_eq!(world.servers.all[0].source, Some(OUTSIDE));
        let remembered = entries(&world.logbook);
        assert!(remembered.cloned && !remembered.opened && remembered.councils.is_empty());
        let role = world.children.pods[pod_name(0).as_str()].meta.labels.get(keys::ROLE);
        assert_eq!(role, Some(keys::ROLE_PRIMARY));
        let plan = world.watched(MySql::plan);
        // There are no Secrets in this world.
        let waits = plan.waiting.iter().filter(|it| it.reason.as_str() != "CredentialsLost").count();
        assert_eq!((plan.steps.len(), waits), (0, 0), "{}", world.told());
    }
}

#[test]
fn without_its_secret_nothing_is_copied_and_that_is_told() {
    let mut world = World::following(3, 2);
    world.source_version = None;
    world.settle();
    assert_eq!(world.waits_for("ReplicationSourceMissing"), Some((format!("Secret {SECRET} does not exist"), true)));
    assert!(world.servers.all.iter().all(|it| it.executed.is_empty() && it.source.is_none()));
    world.source_version = Some(1);
    world.settle();
    assert_eq!(world.state(), State::Healthy, "{}", world.told());
}

#[test]
fn a_copy_that_fails_is_tried_again() {
    let mut world = World::following(3, 3);
    world.servers.outside.linked = false;
    world.settle();
    assert_eq!(world.state(), State::Cloning);
    assert!(world.waits_for("ExternalCloneFailed").is_some_and(|(message, _)| message.contains("donor")));
    world.servers.outside.linked = true;
    world.settle();
    assert_eq!(world.state(), State::Healthy, "{}", world.told());
    assert_eq!(world.waits_for("ExternalCloneFailed"), None);
}

#[test]
fn a_server_that_lets_nobody_in_after_the_copy_is_brought_to_the_end_of_it() {
    let mut world = World::following(3, 4);
    let refuse = |world: &mut World| {
        let place = world.place(0);
        let news = News::Silent { how: Silence::Refused, why: "access denied".into() };
        world.facts.learn(Fact { place, news }, world.now);
    };
    world.show_pods();
    let place = world.place(0);
    world.facts.learn(world.source(place, SECRET.into()), world.now);
    assert_eq!(world.watched(MySql::plan).steps.iter().filter(|it| matches!(it.act, Act::Member(_))).count(), 0);
    refuse(&mut world);
    let plan = world.watched(MySql::plan);
    let asks = |act: &Act<Deed>| matches!(act, Act::Member(deed) if matches!(deed.task, Task::CloneFromOutside { .. }));
    assert!(plan.steps.iter().any(|step| asks(&step.act)), "{}", world.told());
}

#[test]
fn a_source_that_is_taken_away_before_the_copy_leaves_a_cluster_that_is_never_opened() {
    let mut world = World::following(3, 5);
    world.servers.outside.linked = false;
    world.settle();
    world.cut_loose();
    world.settle();
    assert!(world.waits_for("CopyAbandoned").is_some_and(|(_, stalled)| stalled), "{}", world.told());
    assert!(world.servers.all.iter().all(|it| it.read_only));
    // Named again, it goes on.
    (world.servers.outside.linked, world.servers.outside.followed) = (true, true);
    world.resource.spec.replication_source_secret_name = Some(SECRET.into());
    world.settle();
    assert_eq!(world.state(), State::Healthy, "{}", world.told());
    world.check(5);
}

#[test]
fn a_copy_that_is_done_when_its_source_is_taken_away_is_a_copy() {
    let mut world = World::following(3, 6);
    world.pass(0);
    assert!(!world.servers.all[0].executed.is_empty(), "{}", world.told());
    assert!(!entries(&world.logbook).cloned);
    world.cut_loose();
    world.settle();
    assert_eq!(world.state(), State::Healthy, "{}", world.told());
    assert!(!world.servers.all[0].read_only);
}

#[test]
fn without_its_source_the_cluster_takes_writes_with_all_that_it_received() {
    for size in [1, 3, 5] {
        let mut world = World::following(size, 7);
        world.settle();
        world.servers.write_elsewhere();
        world.servers.deliver(0, false);
        let received = world.servers.outside.executed.clone();
        world.cut_loose();
        world.settle();
        assert_eq!(world.state(), State::Healthy, "{}", world.told());
        assert!(!world.servers.all[0].read_only && received.is_within(&world.servers.all[0].executed));
        assert_eq!(world.servers.all[0].awaits.unwrap_or(0), size / 2);
        assert_eq!(world.servers.all[0].source, None);
        world.check(7);
        // It has a history of its own now, and follows nobody any more.
        world.resource.spec.replication_source_secret_name = Some(SECRET.into());
        world.settle();
        assert!(!world.servers.all[0].read_only);
        assert!(world.waits_for("ReplicationSourceRefused").is_some_and(|(_, stalled)| stalled));
    }
}

#[test]
fn an_intermediate_primary_is_replaced_by_the_one_that_has_most_and_that_follows_the_source() {
    let mut world = World::following(3, 8);
    world.settle();
    world.servers.write_elsewhere();
    world.servers.deliver(0, true);
    world.servers.deliver(2, false);
    world.servers.all[0].crash();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 2, "{}", world.told());
    world.settle();
    assert_eq!((world.state(), world.servers.all[2].source), (State::Healthy, Some(OUTSIDE)), "{}", world.told());
    assert!(world.has_all());
    world.check(8);
}

#[test]
fn an_intermediate_primary_is_not_replaced_without_a_majority() {
    let mut world = World::following(3, 9);
    world.settle();
    world.servers.all[0].crash();
    world.servers.all[1].crash();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 0);
    assert!(world.waits_for("PrimaryLost").is_some_and(|(message, _)| message.contains("1 of 3")), "{}", world.told());
    // One that answers without data is none either.
    world.servers.all[1].wipe(99);
    world.servers.all[1].start();
    for _ in 0..20 {
        world.pass(0);
    }
    assert_eq!(world.primary(), 0, "{}", world.told());
}

#[test]
fn an_intermediate_primary_hands_over_with_all_that_it_received() {
    let mut world = World::following(3, 10);
    world.settle();
    world.servers.write_elsewhere();
    world.servers.deliver(0, false);
    let pod = world.children.pods.get_mut(&pod_name(0)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    world.servers.outside.linked = false;
    world.settle();
    assert_eq!(world.primary(), 1, "{}", world.told());
    assert!(world.servers.outside.executed.is_within(&world.servers.all[1].executed), "{}", world.told());
    world.servers.outside.linked = true;
    world.settle();
    assert_eq!(world.state(), State::Healthy, "{}", world.told());
}

#[test]
fn another_version_of_the_secret_is_told_to_the_primary_once() {
    let mut world = World::following(3, 11);
    world.settle();
    world.story.clear();
    world.source_version = Some(2);
    world.settle();
    let told = world.story.iter().filter(|it| it.contains("follow the server that Secret source names")).count();
    assert_eq!(told, 1, "{:?}", world.story);
}

#[test]
fn a_primary_that_somebody_opened_by_hand_is_closed_and_the_source_still_followed() {
    let mut world = World::following(3, 12);
    world.settle();
    world.servers.all[0].read_only = false;
    world.settle();
    assert!(world.servers.all[0].read_only && !entries(&world.logbook).opened, "{}", world.told());
    assert_eq!(world.state(), State::Healthy);
}

#[test]
fn a_failure_of_the_copy_outlives_the_process_that_it_was_made_for() {
    let mut world = World::following(1, 13);
    world.show_pods();
    let place = world.place(0);
    world.facts.learn(world.source(place.clone(), SECRET.into()), world.now);
    let outside = super::super::deeds::Outside { secret: SECRET.into(), version: "1".into() };
    let task = Task::CloneFromOutside { outside, boot: std::time::Duration::from_hours(1) };
    let ended = News::Ended { task, end: End::Failed { why: "no such account".into() } };
    world.facts.learn(Fact { place, news: ended }, world.now);
    world.servers.all[0].start();
    world.show_pods();
    assert!(world.facts.outside.failure.as_ref().is_some_and(|it| it.times == 1));
}

#[test]
fn the_copy_is_told_once_and_each_cause_of_a_failure_once() {
    let mut world = World::following(3, 14);
    world.servers.outside.linked = false;
    world.settle();
    assert_eq!(world.events(), ["! InitCloneFailed: Clone from an external mysqld failed: the donor cannot be reached"]);
    world.servers.outside.linked = true;
    world.settle();
    let told = world.events();
    assert_eq!(told.iter().filter(|it| *it == "InitCloned: Clone from an external mysqld succeeded").count(), 1, "{told:?}");
    assert!(!told.iter().any(|it| it.contains("Writable") || it.contains("instance 0")), "{told:?}");
    let gate = windlass_core::gate::Gate::new(windlass_core::gate::Door::Open, windlass_core::gate::Door::Open);
    assert!(world.status(&gate).0.cloned);
    world.restart_operator();
    world.settle();
    assert_eq!(world.events(), Vec::<String>::new(), "what another process told is not told again");
}

#[test]
fn a_lost_memory_is_found_again_in_who_follows_whom() {
    let mut world = World::following(3, 15);
    world.settle();
    let pod = world.children.pods.get_mut(&pod_name(0)).unwrap();
    pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    world.settle();
    assert_eq!(world.primary(), 1);
    let memory = Memory::judge(None, "u1", &world.children);
    assert!(memory.lost().is_some());
    let mut written = memory.entries();
    let (settings, answered) = (Settings::default(), BTreeMap::new());
    let observed = world.observed(&memory, &settings, &answered);
    MySql::remember(&observed, &mut written);
    let found = entries(&written);
    assert_eq!((found.primary, found.cloned, found.opened, found.server.is_some()), (1, true, false, true));
    assert!(!MySql::proves(&observed).is_empty());
    // One that does not answer may be the one that knows better.
    world.servers.all[2].reachable = false;
    for _ in 0..10 {
        world.pass(0);
    }
    let observed = world.observed(&memory, &settings, &answered);
    assert!(MySql::proves(&observed).is_empty());
}

/// How many histories are played, unless somebody asks for more.
const HISTORIES: u64 = 500;

#[test]
fn whatever_happens_what_most_had_stays_and_all_that_is_elsewhere_arrives() {
    let first = windlass_dice::number("WINDLASS_SEED").unwrap_or(0x0075_7073);
    for seed in first..first + windlass_dice::number("WINDLASS_HISTORIES").unwrap_or(HISTORIES) {
        let size = if seed % 4 == 0 { 5 } else { 3 };
        let mut world = World::following(size, seed);
        let cut_at = world.dice.below(80);
        if world.dice.chance(80) {
            world.settle();
        }
        for turn in 0..40 {
            if world.dice.chance(50) {
                world.servers.write_elsewhere();
            }
            if world.dice.chance(10) {
                world.servers.outside.linked = !world.servers.outside.linked;
            }
            world.live();
            if world.dice.chance(30) {
                world.trouble();
            }
            if turn == cut_at && entries(&world.logbook).cloned {
                world.story.push("the source is taken away".to_owned());
                world.cut_loose();
            }
            world.pass(10);
            world.check(seed);
        }
        world.servers.outside.linked = true;
        world.settle();
        world.check(seed);
        let state = world.state();
        let followed = world.servers.outside.followed;
        // A cluster that lost too many volumes is told of, and waits for a person. So does an instance that was away when another one
        // began to take writes, and has more of what came from elsewhere.
        let waits = world.waits_for("PrimaryLost").is_some_and(|(_, stalled)| stalled)
            || (!followed && world.waits_for("ErrantReplica").is_some());
        assert!(state == State::Healthy || waits, "seed {seed} ends {state:?}: {}\n{}", world.told(), world.story.join("\n"));
        assert!(!followed || waits || world.has_all(), "seed {seed}: {}", world.told());
    }
}
