//! What waits until an instance was asked: what it said before something was done to it does not count any more.

use super::super::deeds::Task;
use super::super::facts::End;
use super::super::gtid::{GtidSet, Uuid};
use super::super::office::{Change, Office, office};
use super::*;

#[test]
fn nothing_is_done_to_an_instance_that_was_not_asked_since_the_last_task() {
    let mut world = World::new(3, 13);
    world.settle();
    world.servers.write(0);
    world.settle();
    let stray = GtidSet::of_range(Uuid::new(77).into(), 1..=1);
    world.servers.all[2].executed = world.servers.all[2].executed.joined_with(&stray);
    for _ in 0..10 {
        world.pass(0);
        let plan = world.watched(MySql::plan);
        let unasked =
            |deed: &Deed| world.facts.of(&world.children.pods[deed.place.pod.as_str()]).is_none_or(|it| it.known.is_none());
        let blind = plan.steps.iter().find(|step| matches!(&step.act, Act::Member(deed) if unasked(deed)));
        assert!(blind.is_none(), "{}", blind.unwrap());
    }
    assert!(!world.servers.all[2].connects && !world.servers.all[2].acknowledges, "{}", world.told());
}

#[test]
fn a_switchover_waits_for_the_answer_of_the_lowest_that_follows() {
    let mut world = World::new(3, 14);
    world.settle();
    world.servers.all[0].read_only = true;
    world.children.pods.get_mut(&pod_name(0)).unwrap().meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    for number in 0..3 {
        let known = world.servers.look(number.into(), host, 10).unwrap();
        let fact = Fact { place: world.place(number), news: News::Seen(Box::new(known)) };
        world.facts.learn(fact, world.now);
    }
    let next = |world: &World| world.watched(|observed| office(&Scene::of(observed, entries(&world.logbook))));
    assert_eq!(next(&world), Office::Hand { to: Ordinal::new(1), by: Change::Switchover });
    // Something was done to it: what it said before does not count any more.
    let news = News::Ended { task: Task::StopReceiving, end: End::Done };
    world.facts.learn(Fact { place: world.place(1), news }, world.now);
    assert_eq!(next(&world), Office::Prepare(Vec::new()));
    // Who is silent is not waited for.
    let news = News::Silent { how: Silence::Closed, why: "it ended".into() };
    world.facts.learn(Fact { place: world.place(1), news }, world.now);
    assert_eq!(next(&world), Office::Hand { to: Ordinal::new(2), by: Change::Switchover });
}

#[test]
fn nobody_is_touched_while_it_is_not_known_who_the_primary_is() {
    let mut world = World::new(3, 15);
    world.settle();
    world.children.pods.get_mut(&pod_name(0)).unwrap().meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    let mut old = world.logbook.clone();
    world.settle();
    assert_eq!((world.primary(), entries(&old).primary), (1, 0));
    old.unproven = vec![windlass_api::logbook::Unproven { entry: "counts".into(), why: "the logbook is old".into() }];
    let (memory, settings, none) = (Memory::Doubted(Box::new(old)), Settings::default(), BTreeMap::new());
    let plan = MySql::plan(&world.observed(&memory, &settings, &none));
    let touches = |act: &Act<Deed>| matches!(act, Act::Member(_) | Act::Label { .. });
    assert!(!plan.steps.iter().any(|step| touches(&step.act)), "{:?}", plan.steps);
    assert!(plan.waiting.iter().any(|it| it.stalled && it.reason.as_str() == "LogbookLost"));
}
