//! Histories that people tell, without misfortune: how long they take, and what they show on the way.

use windlass_api::tidb::{Component, ScalePolicy};

use super::super::answers::StoreState;
use super::World;
use windlass_dice::Dice;

/// Rounds within which everything here is over.
const LONG: u32 = 2_000;

/// A cluster that has been there for a while.
pub(super) fn settled(tikv: u16, speeds: &[u64]) -> World {
    let mut world = World::new(7);
    world.resource = super::resource(tikv, 0);
    world.dice = Dice::new(7);
    (world.calm, world.failover, world.pd.max_replicas, world.pd.columns) = (true, false, 3, 0);
    world.speeds = speeds.iter().copied().cycle().take(usize::from(super::LARGEST)).collect();
    world.come_to_rest();
    // Until regions are spread.
    for _ in 0..5 {
        world.round();
    }
    world
}

impl World {
    fn scale(&mut self, replicas: u16, parallelism: u16) {
        let policy = ScalePolicy { scale_in_parallelism: Some(parallelism), scale_out_parallelism: Some(parallelism) };
        self.edit(|resource| {
            let tikv = resource.spec.tikv.as_mut().unwrap();
            (tikv.replicas, tikv.scale_policy) = (replicas, Some(policy));
        });
    }

    fn offline(&self) -> usize {
        self.pd.stores.values().filter(|it| it.state == StoreState::Offline).count()
    }
}

#[test]
fn so_many_leave_at_once_as_may_and_the_size_follows_each_of_them() {
    for parallelism in [1, 2, 3, 5] {
        let mut world = settled(8, &[1, 2, 3, 2, 1, 3]);
        world.scale(3, parallelism);
        let (mut most, mut sizes) = (0, vec![8]);
        for _ in 0..LONG {
            if world.size(Component::Tikv) == 3 {
                break;
            }
            world.round();
            most = most.max(world.offline());
            if sizes.last() != Some(&world.size(Component::Tikv)) {
                sizes.push(world.size(Component::Tikv));
            }
        }
        world.come_to_rest();
        assert_eq!(world.size(Component::Tikv), 3);
        assert_eq!(most, usize::from(parallelism), "work is waiting, and a place is free");
        assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]) && sizes.len() > 2, "progress was not shown: {sizes:?}");
        // And out again: the marked volumes are gone, and new stores are there.
        let before: Vec<String> = world.children.claims.values().map(|claim| claim.meta.uid.clone()).collect();
        world.scale(8, parallelism);
        world.come_to_rest();
        assert_eq!(world.pd.up(false), 8);
        let fresh = world.children.claims.values().filter(|claim| !before.contains(&claim.meta.uid)).count();
        assert_eq!(fresh, 5);
    }
}

#[test]
fn how_far_a_store_is_that_leaves_is_told() {
    let mut world = settled(4, &[1, 1, 1, 4]);
    world.scale(3, 1);
    let mut told = Vec::new();
    for _ in 0..LONG {
        world.round();
        told.extend(
            world.logbook.iter().flat_map(|it| &it.plan.running).filter_map(|it| it.percent.filter(|_| it.since.is_some())),
        );
    }
    assert!(told.first().is_some_and(|first| *first < 100), "{told:?}");
    assert!(told.is_sorted() && told.iter().all(|percent| percent % 5 == 0), "{told:?}");
    world.come_to_rest();
    // It is over, and nothing is left of it.
    let logbook = world.logbook.as_ref().unwrap();
    assert!(logbook.plan.running.is_empty());
    assert!(logbook.tidb.iter().flat_map(|it| it.members.values()).all(|member| member.regions.is_none()));
}

#[test]
fn a_store_that_is_wanted_again_stays_and_one_that_has_left_begins_anew() {
    let mut world = settled(6, &[1, 1, 1, 1, 1, 12]);
    world.scale(4, 2);
    // The highest is gone at once, the other one is on its way.
    for _ in 0..LONG {
        if world.offline() == 1 && world.pd.stores.values().any(|it| it.state == StoreState::Tombstone) {
            break;
        }
        world.round();
    }
    let leaving = world.pd.stores.iter().find(|(_, it)| it.state == StoreState::Offline).map(|(id, _)| *id).unwrap();
    world.scale(6, 2);
    world.come_to_rest();
    assert_eq!(world.pd.stores[&leaving].told(), StoreState::Up);
    assert_eq!((world.pd.up(false), world.pd.evicting.len()), (6, 0));
}

#[test]
fn fewer_than_the_copies_need_are_refused_before_anything_is_touched() {
    let mut world = settled(4, &[3]);
    world.scale(2, 1);
    let before = world.pd.clone();
    for _ in 0..30 {
        let passed = world.round();
        assert!(passed.plan.steps.is_empty(), "{:?}", passed.plan);
        assert!(passed.plan.waiting.iter().any(|it| it.reason.as_str() == "FailedScaleIn" && it.stalled));
    }
    assert_eq!((world.offline(), world.pd.evicting), (0, before.evicting));
}

#[test]
fn a_bad_version_goes_no_further_than_one_pod_and_can_be_taken_back() {
    let mut world = settled(4, &[3]);
    world.edit(|resource| resource.spec.version = Some(super::BAD.into()));
    for _ in 0..200 {
        world.round();
    }
    let bad = world.children.pods.values().filter(|pod| pod.meta.labels.values().any(|it| it.ends_with(super::BAD)));
    assert_eq!(bad.count(), 1);
    world.edit(|resource| resource.spec.version = Some("v1".into()));
    world.come_to_rest();
    assert_eq!(world.pd.up(false), 4);
}

#[test]
fn changes_made_while_paused_come_as_one() {
    let mut world = settled(3, &[3]);
    world.edit(|resource| resource.spec.paused = true);
    for _ in 0..5 {
        world.round();
    }
    let before = world.children.clone();
    for version in ["v2", "v3", "v4"] {
        world.edit(|resource| resource.spec.version = Some(version.into()));
        for _ in 0..10 {
            world.round();
        }
    }
    assert_eq!(world.children, before, "something was written while paused");
    world.edit(|resource| resource.spec.paused = false);
    let mut revisions = std::collections::BTreeSet::new();
    for _ in 0..400 {
        world.round();
        revisions.extend(world.set(Component::Tikv).and_then(|set| set.update_revision.clone()));
    }
    world.come_to_rest();
    assert_eq!(revisions.len(), 2, "{revisions:?}");
}

#[test]
fn a_pause_in_the_middle_stops_everything_but_what_pd_does_by_itself() {
    let mut world = settled(6, &[1]);
    world.scale(3, 2);
    for _ in 0..LONG {
        if world.offline() == 2 {
            break;
        }
        world.round();
    }
    world.edit(|resource| resource.spec.paused = true);
    for _ in 0..10 {
        world.round();
    }
    let (children, evicting) = (world.children.clone(), world.pd.evicting.clone());
    for _ in 0..60 {
        world.round();
    }
    assert_eq!(
        (&world.children, &world.pd.evicting, world.offline()),
        (&children, &evicting, 0),
        "PD finished, and nobody else did"
    );
    assert_eq!(world.size(Component::Tikv), 6);
    world.edit(|resource| resource.spec.paused = false);
    world.come_to_rest();
    assert_eq!((world.size(Component::Tikv), world.pd.up(false)), (3, 3));
}

#[test]
fn a_logbook_that_was_lost_stops_what_cannot_be_undone_until_pd_was_heard() {
    let mut world = settled(5, &[1]);
    world.scale(3, 1);
    for _ in 0..LONG {
        if world.offline() == 1 {
            break;
        }
        world.round();
    }
    (world.logbook, world.facts) = (None, super::Facts::default());
    let passed = world.round();
    assert!(passed.plan.waiting.iter().any(|it| it.reason.as_str() == "LogbookLost"));
    world.come_to_rest();
    assert_eq!((world.size(Component::Tikv), world.pd.up(false)), (3, 3));
}

#[test]
fn a_store_that_is_down_for_long_gets_another_one_in_its_place_and_that_goes_again() {
    let mut world = settled(3, &[3]);
    world.failover = true;
    world.process_ends("a-tikv-1");
    for _ in 0..LONG {
        if world.size(Component::Tikv) == 4 {
            break;
        }
        world.round();
    }
    assert_eq!(world.size(Component::Tikv), 4);
    for _ in 0..200 {
        world.round();
    }
    assert_eq!((world.size(Component::Tikv), world.pd.up(false)), (4, 3), "one in place of one");
    let uid = world.children.pods["a-tikv-1"].meta.uid.clone();
    world.process_starts("a-tikv-1", &uid);
    for _ in 0..100 {
        world.round();
    }
    assert_eq!(world.size(Component::Tikv), 4, "it stays until somebody says that it may go");
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().recover_failover = true);
    world.come_to_rest();
    assert_eq!((world.size(Component::Tikv), world.pd.up(false)), (3, 3));
}

#[test]
fn nobody_is_replaced_while_pd_is_silent() {
    let mut world = settled(3, &[3]);
    world.failover = true;
    for pod in ["a-pd-0", "a-pd-1", "a-tikv-1"] {
        world.process_ends(pod);
    }
    for _ in 0..1_000 {
        world.round();
    }
    assert_eq!((world.size(Component::Tikv), world.size(Component::Pd)), (3, 3));
}

#[test]
fn a_member_of_pd_that_is_sick_for_long_is_replaced() {
    let mut world = settled(3, &[3]);
    world.failover = true;
    let before = world.on("a-pd-1").unwrap();
    world.process_ends("a-pd-1");
    for _ in 0..LONG {
        if !world.pd.members.contains_key(&before) {
            break;
        }
        world.round();
    }
    assert!(!world.pd.members.contains_key(&before));
    world.come_to_rest();
    assert_eq!((world.size(Component::Pd), world.pd.members.len()), (3, 3));
}

#[test]
fn a_cluster_is_stopped_and_comes_back_as_it_was() {
    let mut world = settled(4, &[3]);
    let (claims, stores) = (world.children.claims.len(), world.pd.up(false));
    let suspend = windlass_api::tidb::SuspendAction { suspend_stateful_set: true };
    world.edit(|resource| resource.spec.suspend_action = Some(suspend));
    for _ in 0..200 {
        world.round();
    }
    assert!(world.children.stateful_sets.is_empty() && world.children.pods.is_empty());
    assert_eq!(world.children.claims.len(), claims);
    world.edit(|resource| resource.spec.suspend_action = None);
    world.come_to_rest();
    assert_eq!(world.pd.up(false), stores);
}

#[test]
fn pd_becomes_larger_and_smaller_one_by_one() {
    let mut world = settled(3, &[3]);
    for replicas in [5, 1, 3] {
        world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = replicas);
        world.come_to_rest();
        assert_eq!((world.size(Component::Pd), world.pd.members.len()), (replicas, usize::from(replicas)));
    }
}

#[test]
fn pd_is_never_taken_away_from_its_stores() {
    let mut world = settled(3, &[3]);
    world.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = 0);
    for _ in 0..30 {
        let passed = world.round();
        assert!(passed.plan.waiting.iter().any(|it| it.reason.as_str() == "InvalidSpec" && it.stalled));
    }
    assert_eq!(world.pd.members.len(), 3);
}

#[test]
fn an_annotation_restarts_one_pod_after_its_leaders_are_gone() {
    let mut world = settled(4, &[3]);
    let pod = world.children.pods.get_mut("a-tikv-2").unwrap();
    let before = pod.meta.uid.clone();
    pod.meta.annotations.insert(windlass_api::tidb::keys::EVICT_LEADER.into(), "delete-pod".into());
    for _ in 0..LONG {
        if world.children.pods["a-tikv-2"].meta.deleting {
            break;
        }
        world.round();
    }
    assert_eq!(world.pd.stores[&world.on("a-tikv-2").unwrap()].leaders, 0);
    world.come_to_rest();
    assert!(world.children.pods["a-tikv-2"].meta.uid != before && world.pd.evicting.is_empty());
}

#[test]
fn pods_that_are_all_to_be_restarted_go_one_after_the_other() {
    let mut world = settled(4, &[3]);
    let pods = ["a-pd-0", "a-pd-1", "a-pd-2"];
    let before = pods.map(|pod| {
        let pod = world.children.pods.get_mut(pod).unwrap();
        pod.meta.annotations.insert(windlass_api::tidb::keys::PD_TRANSFER_LEADER.into(), "delete-pod".into());
        pod.meta.uid.clone()
    });
    let is_back =
        |world: &World, (pod, uid): (&str, &String)| world.children.pods.get(pod).is_some_and(|it| it.meta.uid != *uid);
    for _ in 0..10 * LONG {
        world.round();
        let serves = |pod: &&&str| world.children.pods.get(pod).is_some_and(|it| it.ready && !it.meta.deleting);
        assert!(pods.iter().filter(serves).count() >= 2, "two are away");
        if pods.into_iter().zip(&before).all(|pair| is_back(&world, pair)) {
            break;
        }
    }
    let passed = world.round();
    assert!(pods.into_iter().zip(&before).all(|pair| is_back(&world, pair)), "{:?} {:?}", passed.plan, world.pd);
    world.come_to_rest();
}

#[test]
fn somebody_elses_evictions_are_left_alone() {
    let mut world = settled(4, &[3]);
    let store = world.on("a-tikv-1").unwrap();
    world.pd.evicting.insert(store);
    world.edit(|resource| resource.spec.tidb.as_mut().unwrap().replicas = 2);
    world.come_to_rest();
    assert!(world.pd.evicting.contains(&store));
}

#[test]
fn stores_are_told_where_they_are() {
    let mut world = settled(3, &[3]);
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().store_labels = Some(vec!["rack".into()]));
    world.come_to_rest();
    assert!(world.pd.places.is_empty(), "no node has such a label");
    world.pd.location_labels = vec!["host".into()];
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas = 4);
    world.come_to_rest();
    for ordinal in 0..4 {
        let store = world.on(&format!("a-tikv-{ordinal}")).unwrap();
        assert_eq!(world.pd.places[&store]["host"], format!("node-of-a-tikv-{ordinal}"));
    }
}

/// For how many seconds a store is back before the next one is replaced, when each led so many regions before.
fn seconds_between_stores(leaders: u64) -> i64 {
    let mut world = settled(3, &[3]);
    for store in world.pd.stores.values_mut() {
        store.leaders = leaders;
    }
    // Until PD was heard of it.
    for _ in 0..5 {
        world.round();
    }
    world.edit(|resource| {
        let tikv = resource.spec.tikv.as_mut().unwrap();
        tikv.component.version = Some("v2".into());
        tikv.wait_leader_transfer_back_timeout = Some("10m".into());
    });
    let (first, next) = (world.children.pods["a-tikv-2"].meta.uid.clone(), world.on("a-tikv-1").unwrap());
    for _ in 0..10 * LONG {
        world.round();
        if world.pd.evicting.contains(&next) {
            break;
        }
    }
    let pod = &world.children.pods["a-tikv-2"];
    assert!(pod.meta.uid != first && pod.ready);
    let between = world.now.duration_since(pod.ready_since.unwrap()).as_secs();
    world.come_to_rest();
    let entries = world.logbook.unwrap().tidb.unwrap();
    assert!(entries.members.values().all(|entry| entry.leaders.is_none()), "{:?}", entries.members);
    between
}

#[test]
fn many_leaders_are_waited_for_before_the_next_store_is_replaced() {
    // In this world a store never leads so many again: it is waited for to the end.
    assert!((600..700).contains(&seconds_between_stores(900)));
    assert!(seconds_between_stores(4) < 60);
}
