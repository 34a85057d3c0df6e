use rstest::rstest;
use windlass_api::logbook::mysql::{CouncilEntry, VoterEntry};
use windlass_api::mysql::keys;

use super::super::facts::News;
use super::super::fixture::{Fixture, SET, claim_name, server};

fn scales(fixture: &Fixture) -> Vec<String> {
    fixture.steps().into_iter().filter(|step| step.starts_with("scale")).collect()
}

#[rstest]
#[case::out(3, 5, false, &["scale StatefulSet moco-harbour from 3 to 5"])]
#[case::offline(5, 5, true, &["scale StatefulSet moco-harbour from 5 to 0"])]
#[case::in_is_refused(5, 3, false, &[])]
fn the_size_follows_the_spec(#[case] is: u16, #[case] wanted: u16, #[case] offline: bool, #[case] expected: &[&str]) {
    let mut fixture = Fixture::healthy(is);
    (fixture.resource.spec.replicas, fixture.resource.spec.offline) = (Some(wanted), offline);
    assert_eq!(scales(&fixture), expected);
    assert_eq!(fixture.waits().iter().any(|it| it.starts_with("ScaleInRefused!")), expected.is_empty());
}

/// A cluster that was stopped.
fn stopped(size: u16) -> Fixture {
    let mut fixture = Fixture::healthy(size);
    fixture.resource.spec.offline = true;
    fixture.carry_out();
    fixture.children.pods.clear();
    fixture.settle("r1");
    fixture
}

#[rstest]
fn all_come_back_from_offline(#[values(1, 3, 5)] size: u16) {
    let mut fixture = stopped(size);
    assert_eq!(fixture.set().replicas, 0);
    fixture.resource.spec.offline = false;
    assert_eq!(scales(&fixture), [format!("scale StatefulSet moco-harbour from 0 to {size}")]);
}

#[rstest]
#[case::remembered(true, false)]
#[case::seen_by_their_claims(false, true)]
fn nobody_is_left_out_on_the_way_back(#[case] remembered: bool, #[case] claims: bool) {
    let mut fixture = stopped(5);
    (fixture.resource.spec.offline, fixture.resource.spec.replicas) = (false, Some(3));
    if !remembered {
        fixture.logbook.counts.restore = 0;
    }
    if !claims {
        fixture.children.claims.clear();
    }
    assert_eq!(scales(&fixture), Vec::<String>::new());
    assert!(fixture.waits().iter().any(|it| it.starts_with("ScaleInRefused!: spec.replicas is 3, and there are 5")));
}

#[test]
fn a_change_under_a_pause_does_not_count_as_acted_upon_before_instances_were_asked() {
    let mut fixture = Fixture::healthy(3);
    fixture.pass();
    assert_eq!(fixture.logbook.acted_generation, Some(1));
    fixture.annotate(keys::CLUSTERING_STOPPED, "true");
    fixture.resource.metadata.generation = Some(2);
    let heard = std::mem::take(&mut fixture.facts);
    fixture.pass();
    assert_eq!(fixture.logbook.acted_generation, Some(1));
    fixture.facts = heard;
    fixture.pass();
    assert_eq!(fixture.logbook.acted_generation, Some(2), "nothing is held back");
}

#[test]
fn a_set_is_made_when_its_passwords_are_there() {
    let mut fixture = Fixture::healthy(3);
    let there = std::mem::take(&mut fixture.children);
    fixture.logbook.mysql = None;
    let steps = fixture.steps();
    assert!(steps.contains(&"apply Secret moco-harbour".to_owned()), "{steps:?}");
    assert!(!steps.contains(&"apply StatefulSet moco-harbour".to_owned()), "{steps:?}");
    fixture.children.secrets = there.secrets;
    assert!(fixture.steps().contains(&"apply StatefulSet moco-harbour".to_owned()), "{:?}", fixture.steps());
}

#[test]
fn those_who_came_while_nobody_took_writes_are_remembered() {
    let mut fixture = Fixture::healthy(3);
    fixture.silence(0);
    fixture.set().replicas = 5;
    assert_eq!(fixture.remembered().counts.restore, 5);
}

#[test]
fn a_set_that_somebody_deleted_comes_back_with_everybody() {
    let mut fixture = Fixture::healthy(5);
    fixture.resource.spec.replicas = Some(3);
    fixture.children.stateful_sets.clear();
    fixture.carry_out();
    assert_eq!(fixture.set().replicas, 5);
}

#[rstest]
#[case::too_few(1, true)]
#[case::enough(3, false)]
fn a_budget_that_could_only_block_is_removed(#[case] size: u16, #[case] removed: bool) {
    let mut fixture = Fixture::healthy(size);
    let budget = fixture.children.services[SET].clone();
    fixture.children.disruption_budgets.get_or_insert_with(SET.into(), || budget);
    assert_eq!(fixture.steps().contains(&"delete PodDisruptionBudget moco-harbour".to_owned()), removed);
}

#[test]
fn offline_takes_the_budget_away_and_keeps_the_claims() {
    let mut fixture = Fixture::healthy(3);
    fixture.resource.spec.offline = true;
    let steps = fixture.steps();
    assert!(steps.contains(&"delete PodDisruptionBudget moco-harbour".to_owned()), "{steps:?}");
    assert!(!steps.iter().any(|step| step.contains(&claim_name(0))), "{steps:?}");
}

/// It would receive half of a transaction before it is stopped again, and then takes a minute to stop.
#[test]
fn an_instance_that_takes_no_part_does_not_follow_for_the_sake_of_not_acknowledging() {
    let mut fixture = Fixture::healthy(3);
    let pod = fixture.pod(2).clone();
    let mut known = fixture.facts.of(&pod).unwrap().known.clone().unwrap();
    known.executed = known.executed.joined_with(&format!("{}:1-2", known.server).parse().unwrap());
    known.replication = None;
    fixture.hear(2, News::Seen(Box::new(known)));
    let council = |ordinals: &[u16]| CouncilEntry {
        voters: ordinals.iter().map(|it| VoterEntry { ordinal: *it, server: server(*it).to_string() }).collect(),
        count: 1,
    };
    fixture.logbook.mysql.as_mut().unwrap().councils = vec![council(&[1, 2]), council(&[1])];
    let tasks: Vec<String> = fixture.steps().into_iter().filter(|step| step.starts_with("let ")).collect();
    assert_eq!(tasks, ["let moco-harbour-2 acknowledge nothing"]);
}
