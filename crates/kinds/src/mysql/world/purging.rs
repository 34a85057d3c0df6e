//! A replica that needs what the primary has purged from its binary logs.

use rstest::rstest;
use windlass_api::logbook::mysql::SavedEntry;

use super::super::gtid::{GtidSet, Uuid};
use super::*;

/// What is planned where instance 2 has this many of the primary's ten transactions, of which it purged eight.
fn planned(has: u64, connects: bool, saved: bool, with_agent: bool) -> Plan<Deed> {
    let mut world = World::new(3, 31);
    world.settle();
    if !with_agent {
        world.children.pods.get_mut(&pod_name(2)).unwrap().arguments.clear();
    }
    let made = |count: u64| GtidSet::of_range(Uuid::new(1).into(), 1..=count);
    for number in [0, 2] {
        let place = world.watched(|observed| {
            Scene::of(observed, entries(&world.logbook)).place(Ordinal::new(u16::try_from(number).unwrap()))
        });
        let mut known = world.servers.look(number, host, 10).unwrap();
        (known.executed, known.purged) = if number == 0 { (made(10), made(8)) } else { (made(has), GtidSet::default()) };
        if let Some(replication) = &mut known.replication {
            (replication.received, replication.connects, replication.receives) = (GtidSet::default(), connects, connects);
        }
        world.facts.learn(Fact { place: place.unwrap(), news: News::Seen(Box::new(known)) }, world.now);
    }
    if saved {
        let server = Uuid::new(3).to_string();
        let mut remembered = entries(&world.logbook);
        remembered.saved.push(SavedEntry { ordinal: 2, server, set: String::new() });
        world.logbook.mysql = Some(remembered);
    }
    world.watched(MySql::plan)
}

fn steps_for_the_third(plan: &Plan<Deed>) -> Vec<String> {
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
    let steps = steps_for_the_third(&planned(has, connects, saved, true));
    match expected {
        Some(step) => assert!(steps.len() == 1 && steps[0].contains(step), "{steps:?}"),
        None => assert_eq!(steps, Vec::<String>::new()),
    }
}

#[test]
fn what_needs_our_agent_waits_in_a_pod_of_another_operator_and_is_told() {
    let plan = planned(5, false, false, false);
    assert_eq!(steps_for_the_third(&plan), Vec::<String>::new());
    let told = plan.waiting.iter().find(|it| it.reason.as_str() == "AgentMissing").expect("it is told");
    assert!(told.stalled && told.message.contains("kubectl windlass restart"), "{told:?}");
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
        let place = world.watched(|observed| Scene::of(observed, entries(&world.logbook)).place(Ordinal::new(number)));
        world.facts.learn(Fact { place: place.unwrap(), news: News::Seen(Box::new(known)) }, world.now);
    }
    let plan = world.watched(MySql::plan);
    assert!(plan.waiting.iter().any(|it| it.reason.as_str() == "ReplicaTooOld"), "{:?}", plan.waiting);
    assert!(!plan.steps.iter().any(|step| step.to_string().contains("replace")), "{:?}", plan.steps);
}
