//! What cannot be undone is announced before, and recorded after.

use windlass_api::logbook::LogbookSpec;
use windlass_core::bookkeeping::{self, Change, change, note_pass};
use windlass_core::claim::Identity;
use windlass_core::step::Act;

use super::Replicated;
use super::fixtures::*;

fn me() -> Identity {
    Identity { release: "ops/windlass".into(), version: "1".into(), holder: "pod".into() }
}

/// The logbook after a pass.
fn passed(fixture: &Fixture) -> LogbookSpec {
    let observed = fixture.observed();
    let mut entries = fixture.memory.entries();
    let plan = fixture.plan();
    let gate = bookkeeping::gate::<Replicated>(observed.resource, observed.running, &entries);
    let parted = gate.part(&plan);
    note_pass(&observed, &me(), &plan, &gate, &parted, &mut entries);
    entries
}

fn outdated() -> Fixture {
    let mut fixture = Fixture::serving(3).logbook(|_| {});
    fixture.set().update_revision = Some("r2".into());
    fixture
}

fn intents(entries: &LogbookSpec) -> Vec<(&str, &str)> {
    entries.intents.iter().map(|it| (it.act.as_str(), it.target.as_str())).collect()
}

#[test]
fn a_pod_is_deleted_only_after_it_was_announced_and_the_act_is_recorded() {
    let mut fixture = outdated();
    let announced = passed(&fixture);
    assert_eq!(intents(&announced), [("DeletePod", "rss-orders-2")]);
    let change = change(Some(&fixture.memory.entries()), &announced);
    assert_eq!(change, Change::Duty, "it must be written before the step is taken");
    let name = fixture.pod(2).meta.name.clone();
    fixture.children.pods.remove(&name);
    let ended = passed(&fixture.logbook(|logbook| logbook.clone_from(&announced)));
    assert!(intents(&ended).is_empty());
    let act = ended.acts.last().unwrap();
    assert_eq!((act.act.as_str(), act.outcome.as_str(), act.by.as_str()), ("DeletePod", "Done", "ops/windlass@1"));
}

/// A deletion was announced and is not wanted any more.
fn unwanted(announced: &LogbookSpec) -> Fixture {
    Fixture::serving(3).logbook(|logbook| logbook.clone_from(announced))
}

/// The notes that the pass makes on pods are made.
fn spared(mut fixture: Fixture) -> Fixture {
    let notes = bookkeeping::spare(&fixture.observed(), &fixture.plan(), &fixture.memory.entries());
    for note in notes {
        let Act::Sync { object, annotations, .. } = note.act else { panic!("{note}") };
        fixture.children.pods.get_mut(&object.name).unwrap().meta.annotations.extend(annotations);
    }
    fixture
}

#[test]
fn what_is_not_wanted_any_more_is_withdrawn_when_the_pod_has_another_version() {
    let announced = passed(&outdated());
    let fixture = unwanted(&announced);
    assert_eq!(intents(&passed(&fixture)), [("DeletePod", "rss-orders-2")], "the deletion may be on its way");
    let ended = passed(&spared(fixture));
    assert!(intents(&ended).is_empty());
    assert_eq!(ended.acts.last().unwrap().outcome, "Withdrawn");
}

#[test]
fn a_note_of_an_earlier_withdrawal_does_not_count() {
    let announced = passed(&outdated());
    let mut later = announced.clone();
    later.intents[0].announced = "2030-01-01T00:00:00Z".parse().unwrap();
    let noted_before = spared(unwanted(&announced)).logbook(|logbook| logbook.clone_from(&later));
    assert_eq!(passed(&noted_before).intents.len(), 1);
    assert!(passed(&spared(noted_before)).intents.is_empty());
}

#[test]
fn a_pod_that_is_still_to_be_deleted_is_not_spared() {
    let fixture = outdated();
    let announced = passed(&fixture);
    assert!(bookkeeping::spare(&fixture.observed(), &fixture.plan(), &announced).is_empty());
}

#[test]
fn only_the_last_acts_are_kept() {
    let mut announced = passed(&outdated());
    announced.acts = vec![windlass_api::logbook::Act::default(); 16];
    let ended = passed(&spared(unwanted(&announced)));
    assert_eq!((ended.acts.len(), ended.acts.last().unwrap().act.as_str()), (16, "DeletePod"));
}
