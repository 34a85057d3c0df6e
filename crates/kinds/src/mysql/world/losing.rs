//! When a primary counts as lost: how it is silent, for how long, and what its replicas say.

use std::time::Duration;

use rstest::rstest;
use windlass_core::step::Act;

use super::super::deeds::Task;
use super::super::facts::Silence;
use super::*;

/// A cluster whose primary was watched and fell silent so long ago, and whose replicas say this of it now.
fn fallen_silent(how: Silence, seconds: u64, receives: bool, quiet: Option<u64>) -> World {
    let mut world = World::new(3, 8);
    world.settle();
    for number in 0..3 {
        let place = world.place(number);
        let news = if number == 0 {
            News::Gone { how, quiet: Duration::from_secs(seconds), why: "it is silent".into() }
        } else {
            let mut known = world.servers.look(number.into(), host, 10).unwrap();
            let replication = known.replication.as_mut().unwrap();
            (replication.receives, replication.quiet) = (receives, quiet.map(Duration::from_secs));
            News::Seen(Box::new(known))
        };
        // What it said last is older than its silence.
        let at = if number == 0 { world.now + SignedDuration::from_secs(60) } else { world.now };
        world.facts.learn(Fact { place, news }, at);
    }
    world.now += SignedDuration::from_secs(60);
    world
}

/// Whether the failover begins: nobody is to receive anything any more.
fn is_replaced(world: &World) -> bool {
    let stops = |act: &Act<Deed>| matches!(act, Act::Member(deed) if deed.task == Task::StopReceiving);
    world.watched(MySql::plan).steps.iter().any(|step| stops(&step.act))
}

#[rstest]
#[case::its_end_and_lost_connections(Silence::Closed, 0, false, None, true)]
#[case::its_end_alone(Silence::Closed, 0, true, Some(0), false)]
#[case::its_end_and_stale_connections(Silence::Closed, 0, true, Some(3), true)]
#[case::a_short_hang(Silence::Hangs, 3, true, Some(3), false)]
#[case::a_hang(Silence::Hangs, 4, true, Some(3), true)]
#[case::a_hang_for_us_alone(Silence::Hangs, 60, true, Some(1), false)]
#[case::a_hang_and_no_sign_ever(Silence::Hangs, 60, true, None, false)]
#[case::lost_packets(Silence::Unreachable, 12, true, Some(12), false)]
#[case::a_black_hole(Silence::Unreachable, 13, true, Some(12), true)]
#[case::a_black_hole_for_us_alone(Silence::Unreachable, 60, true, Some(11), false)]
#[case::a_wrong_password(Silence::Refused, 60, false, None, false)]
fn a_primary_is_replaced_when_nobody_hears_it(
    #[case] how: Silence,
    #[case] seconds: u64,
    #[case] receives: bool,
    #[case] quiet: Option<u64>,
    #[case] replaced: bool,
) {
    assert_eq!(is_replaced(&fallen_silent(how, seconds, receives, quiet)), replaced);
}

/// Its server lives on for seconds, and stops: whoever it could not reach then would not have what it tells its last clients of.
#[rstest]
#[case::its_replicas_hear_it(true, Some(0), false)]
#[case::nothing_came_for_a_while(true, Some(3), true)]
#[case::the_connections_ended(false, None, true)]
fn a_primary_whose_pod_was_removed_is_replaced_when_its_replicas_do_not_hear_it(
    #[case] receives: bool,
    #[case] quiet: Option<u64>,
    #[case] replaced: bool,
) {
    let mut world = fallen_silent(Silence::Closed, 0, receives, quiet);
    world.children.pods.remove(&pod_name(0));
    assert_eq!(is_replaced(&world), replaced);
}

#[test]
fn a_primary_is_given_the_time_to_come_back_that_somebody_asked_for() {
    let mut world = fallen_silent(Silence::Closed, 9, false, None);
    world.resource.metadata.annotations = Some([(keys::PRIMARY_RESTART_GRACE.to_owned(), "10s".to_owned())].into());
    assert!(!is_replaced(&world));
    world.now += SignedDuration::from_secs(1);
    assert!(is_replaced(&world));
    world.resource.metadata.annotations = Some([(keys::PRIMARY_RESTART_GRACE.to_owned(), "soon".to_owned())].into());
    let plan = world.watched(MySql::plan);
    assert!(plan.waiting.iter().any(|it| it.reason.as_str() == "InvalidAnnotation" && it.message.contains("soon")));
}
