//! A replica that needs what the primary has purged from its binary logs.

use rstest::rstest;
use windlass_api::logbook::mysql::SavedEntry;

use super::super::deeds::{Source, Task};
use super::super::facts::End;
use super::super::gtid::{GtidSet, Uuid};
use super::super::instance::Known;
use super::*;

/// A world where instance 2 has this many of the primary's ten transactions, of which it purged eight.
fn left_behind(has: u64, connects: bool, saved: bool) -> World {
    let mut world = World::new(3, 31);
    world.settle();
    let made = |count: u64| GtidSet::of_range(Uuid::new(1).into(), 1..=count);
    for number in [0, 2] {
        let place = world.place(number);
        let mut known = world.servers.look(number.into(), host, 10).unwrap();
        (known.executed, known.purged) = if number == 0 { (made(10), made(8)) } else { (made(has), GtidSet::default()) };
        if let Some(replication) = &mut known.replication {
            (replication.received, replication.connects, replication.receives) = (GtidSet::default(), connects, connects);
        }
        world.facts.learn(Fact { place, news: News::Seen(Box::new(known)) }, world.now);
    }
    if saved {
        let server = Uuid::new(3).to_string();
        let mut remembered = entries(&world.logbook);
        remembered.saved.push(SavedEntry { ordinal: 2, server, set: String::new() });
        world.logbook.mysql = Some(remembered);
    }
    world
}

fn steps_for_the_third(world: &World) -> Vec<String> {
    let plan = world.watched(MySql::plan);
    plan.steps.iter().map(ToString::to_string).filter(|it| it.contains(&pod_name(2))).collect()
}

#[rstest]
#[case::it_has_enough(8, true, false, None)]
#[case::it_receives_still(5, true, false, Some("receive nothing"))]
#[case::nothing_arrives_any_more(5, false, false, Some("be another server"))]
#[case::it_will_be_another_server(5, false, true, Some("replace the data of"))]
fn one_that_cannot_follow_any_more_gets_a_copy(
    #[case] has: u64,
    #[case] connects: bool,
    #[case] saved: bool,
    #[case] expected: Option<&str>,
) {
    let steps = steps_for_the_third(&left_behind(has, connects, saved));
    match expected {
        Some(step) => assert!(steps.len() == 1 && steps[0].contains(step), "{steps:?}"),
        None => assert_eq!(steps, Vec::<String>::new()),
    }
}

#[test]
fn what_needs_our_agent_waits_in_a_pod_of_another_operator_and_is_told() {
    let mut world = left_behind(5, false, false);
    world.children.pods.get_mut(&pod_name(2)).unwrap().arguments.clear();
    assert_eq!(steps_for_the_third(&world), Vec::<String>::new());
    let plan = world.watched(MySql::plan);
    let told = plan.waiting.iter().find(|it| it.reason.as_str() == "AgentMissing").expect("it is told");
    assert!(told.stalled && told.message.contains("kubectl windlass restart"), "{told:?}");
}

/// A server whose applier is in the middle of a transaction takes a minute to stop, and shows nothing of the copy until then.
#[test]
fn a_copy_that_nobody_waits_for_any_longer_is_not_begun_again() {
    let mut world = left_behind(5, false, true);
    let plan = world.watched(MySql::plan);
    let begun = plan.steps.into_iter().find_map(|step| match step.act {
        Act::Member(deed) if matches!(deed.task, Task::Replace { .. }) => Some(deed),
        _ => None,
    });
    let Deed { place, task } = begun.expect("it gets a copy");
    let seen = world.facts.of(&world.children.pods[pod_name(2).as_str()]).unwrap().known.clone().unwrap();
    let mut hear = |end: End| {
        let news = News::Ended { task: task.clone(), end };
        world.facts.learn(Fact { place: place.clone(), news }, world.now);
        world.facts.learn(Fact { place: place.clone(), news: News::Seen(Box::new(seen.clone())) }, world.now);
        let waits: Vec<String> = world.watched(MySql::plan).waiting.iter().map(|it| it.reason.to_string()).collect();
        (steps_for_the_third(&world), waits)
    };
    let (steps, waits) = hear(End::StillRunning);
    assert_eq!(steps, Vec::<String>::new());
    assert!(waits.contains(&"Cloning".to_owned()), "{waits:?}");
    let (steps, _) = hear(End::Unknown { why: "the connection ended".into() });
    assert!(steps.len() == 1 && steps[0].contains("replace the data of"), "{steps:?}");
}

/// A copy gives a server another identity, and the event that its process is another one may be late.
#[test]
fn what_was_saved_of_a_server_is_not_noted_of_the_next_one() {
    let mut world = left_behind(5, false, false);
    let save = world.watched(MySql::plan).steps.into_iter().find_map(|step| match step.act {
        Act::Member(deed) if matches!(deed.task, Task::Save { .. }) => Some(deed),
        _ => None,
    });
    let Deed { place, task } = save.expect("it is saved first");
    let before = world.facts.of(&world.children.pods[pod_name(2).as_str()]).unwrap().known.clone().unwrap();
    let after = Known { server: Uuid::new(77), ..before.clone() };
    let mut servers_of_what_is_saved = |task: Task, seen: &Known| {
        for news in [News::Ended { task, end: End::Done }, News::Seen(Box::new(seen.clone()))] {
            world.facts.learn(Fact { place: place.clone(), news }, world.now);
        }
        world.watched(|observed| {
            let mut logbook = observed.memory.entries();
            MySql::remember(observed, &mut logbook);
            logbook.mysql.unwrap().saved.into_iter().map(|it| it.server).collect::<Vec<_>>()
        })
    };
    assert_eq!(servers_of_what_is_saved(task, &before), [before.server.to_string()]);
    let donor = Source { host: "a".into(), port: 1 };
    let replaced = servers_of_what_is_saved(Task::Replace { donor, over: String::new() }, &after);
    assert!(!replaced.contains(&after.server.to_string()), "{replaced:?}");
}

#[test]
fn what_only_it_is_known_to_have_is_not_thrown_away() {
    let mut world = World::new(3, 32);
    world.settle();
    let odd = GtidSet::of_range(Uuid::new(1).into(), 11..=12);
    let mut known = world.servers.look(2, host, 10).unwrap();
    let mut primary = world.servers.look(0, host, 10).unwrap();
    primary.executed = GtidSet::of_range(Uuid::new(1).into(), 1..=10);
    primary.purged = primary.executed.clone();
    known.executed = odd;
    if let Some(replication) = &mut known.replication {
        (replication.connects, replication.receives) = (false, false);
    }
    assert!(known.is_too_old_for(&primary) && !known.is_errant(&primary));
    for (number, known) in [(0, primary), (2, known)] {
        world.facts.learn(Fact { place: world.place(number), news: News::Seen(Box::new(known)) }, world.now);
    }
    let plan = world.watched(MySql::plan);
    assert!(plan.waiting.iter().any(|it| it.reason.as_str() == "ReplicaTooOld"), "{:?}", plan.waiting);
    assert!(!plan.steps.iter().any(|step| step.to_string().contains("replace")), "{:?}", plan.steps);
}
