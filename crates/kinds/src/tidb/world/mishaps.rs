//! Histories of misfortune, one sort each: what random histories have found, told shortly.

use windlass_api::tidb::{Component, SuspendAction};

use super::super::answers::StoreState;
use super::super::deeds::Task;
use super::super::facts::End;
use super::scenarios::settled;
use super::{BAD, Event, World};

impl World {
    fn suspend(&mut self, is_asked: bool) {
        self.edit(|resource| {
            resource.spec.suspend_action = is_asked.then_some(SuspendAction { suspend_stateful_set: true });
        });
    }

    /// The process of a pod ends, and another one is started.
    fn restart(&mut self, pod: &str) {
        self.process_ends(pod);
        let uid = self.children.pods[pod].meta.uid.clone();
        self.after(1, Event::Starts { pod: pod.to_owned(), uid });
    }

    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.round();
        }
    }
}

#[test]
fn a_cluster_of_which_no_pod_starts_heals_with_its_version() {
    let mut world = settled(3, &[3]);
    world.suspend(true);
    world.rounds(100);
    assert!(world.children.pods.is_empty());
    world.edit(|resource| resource.spec.version = Some(BAD.into()));
    world.suspend(false);
    world.rounds(100);
    assert!(!world.pd.serves(), "every pod has a version with which nothing starts");
    world.edit(|resource| resource.spec.version = Some("v2".into()));
    world.come_to_rest();
    assert_eq!((world.pd.members.len(), world.pd.up(false)), (3, 3));
}

#[test]
fn stores_that_people_sent_away_and_that_can_never_leave_are_told_and_left_to_them() {
    let mut world = settled(4, &[3]);
    let stores = ["a-tikv-1", "a-tikv-2"].map(|pod| world.on(pod).unwrap());
    for store in stores {
        world.pd.stores.get_mut(&store).unwrap().state = StoreState::Offline;
    }
    world.disturbed_by_hand = true;
    world.rounds(3);
    for _ in 0..30 {
        let passed = world.round();
        let told = passed.plan.waiting.iter().filter(|it| it.reason.as_str() == "StoreCannotLeave" && it.stalled);
        assert_eq!(told.count(), 2, "{:?}", passed.plan);
    }
    assert!(stores.iter().all(|store| world.pd.stores[store].state == StoreState::Offline), "a person's wish was undone");
    world.pd.stores.get_mut(&stores[0]).unwrap().state = StoreState::Up;
    world.come_to_rest();
    assert_eq!((world.pd.stores[&stores[1]].state, world.pd.up(false)), (StoreState::Tombstone, 4));
}

#[test]
fn a_member_whose_volume_was_lost_is_not_taken_for_the_one_on_the_next_volume() {
    let mut world = settled(3, &[3]);
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 4);
    world.come_to_rest();
    let (before, version) = (world.on("a-pd-3").unwrap(), world.fresh().to_string());
    world.lose("pd-a-pd-3", version);
    world.rounds(20);
    let claim = world.children.claims["pd-a-pd-3"].meta.uid.clone();
    let entries = world.logbook.as_ref().and_then(|it| it.tidb.clone()).unwrap();
    let entry = &entries.members["a-pd-3"];
    assert!(entry.id != before.to_string() || !entry.claims.contains(&claim), "{entry:?}");
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 3);
    world.come_to_rest();
    assert_eq!(world.pd.members.len(), 3);
}

#[test]
fn a_store_that_pd_forgot_leaves_though_no_other_may() {
    let mut world = settled(4, &[3]);
    let store = world.on("a-tikv-3").unwrap();
    world.pd.stores.remove(&store);
    world.forgotten.insert(store);
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas = 3);
    world.come_to_rest();
    assert_eq!((world.size(Component::Tikv), world.pd.up(false)), (3, 3));
}

#[test]
fn a_member_of_pd_that_was_never_seen_comes_back_with_the_others() {
    let mut world = settled(3, &[3]);
    world.suspend(true);
    world.rounds(100);
    let entries = world.logbook.as_mut().and_then(|it| it.tidb.as_mut()).unwrap();
    for pod in ["a-pd-1", "a-pd-2"] {
        entries.members.remove(pod).unwrap();
    }
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 1);
    world.suspend(false);
    world.come_to_rest();
    assert_eq!((world.size(Component::Pd), world.pd.members.len()), (1, 1));
}

#[test]
fn a_member_of_pd_whose_removal_was_called_off_and_arrived_late_begins_anew() {
    let mut world = settled(3, &[3]);
    let before = world.on("a-pd-2").unwrap();
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 2);
    let mut late = None;
    while late.is_none() {
        let passed = world.pass();
        let is_removal = |(_, event): &mut (_, Event)| matches!(event, Event::Acts { deed, .. } if matches!(deed.task, Task::DeletePdMember { .. }));
        late = world.events.extract_if(.., is_removal).next();
        if late.is_none() {
            world.advance(passed.look_again);
        }
    }
    let Some((_, Event::Acts { deed, .. })) = late else { panic!("it is a task") };
    world.happen(Event::Reported { deed: deed.clone(), end: End::Unknown { why: "connection reset".to_owned() } });
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 3);
    world.rounds(30);
    assert!(world.logbook.as_ref().unwrap().intents.is_empty() && world.pd.members.contains_key(&before));
    world.happen(Event::Acts { deed, heard: false });
    world.restart("a-pd-2");
    world.come_to_rest();
    assert_eq!((world.size(Component::Pd), world.pd.members.len()), (3, 3));
    assert!(!world.pd.members.contains_key(&before));
}

#[test]
fn a_member_of_pd_that_somebody_else_removed_is_told_and_its_volumes_stay() {
    let mut world = settled(3, &[3]);
    let (before, claims) = (world.on("a-pd-1").unwrap(), world.children.claims.clone());
    world.pd.members.remove(&before);
    world.restart("a-pd-1");
    world.rounds(10);
    for _ in 0..60 {
        let passed = world.round();
        let told = |it: &windlass_core::plan::Waiting| it.reason.as_str() == "PDMemberVanished" && it.stalled;
        assert!(passed.plan.waiting.iter().any(told), "{:?}", passed.plan);
    }
    assert_eq!(world.children.claims, claims, "nobody said that what is on the volume is of no use");
    // The person does what the message says.
    world.come_to_rest();
    assert_eq!((world.size(Component::Pd), world.pd.members.len()), (3, 3));
}
