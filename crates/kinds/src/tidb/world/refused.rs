//! A spec that is refused: what was begun goes on, and nothing else happens.

use windlass_api::tidb::Component;
use windlass_core::lane::Lane;

use super::super::answers::StoreState;
use super::World;
use super::scenarios::settled;

/// Rounds within which everything here is over.
const LONG: u32 = 2_000;

impl World {
    /// Asks for something that cannot be, beside another size of TiKV.
    fn refuse(&mut self, tikv: u16) {
        self.edit(|resource| {
            resource.spec.pd.as_mut().unwrap().replicas = 0;
            resource.spec.tikv.as_mut().unwrap().replicas = tikv;
        });
    }

    fn state(&self, store: u64) -> StoreState {
        self.pd.stores[&store].state
    }
}

#[test]
fn a_store_that_is_on_its_way_out_leaves_and_its_pod_stays() {
    let mut world = settled(6, &[2]);
    let (going, next) = (world.on("a-tikv-5").unwrap(), world.on("a-tikv-4").unwrap());
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas = 4);
    while !world.pd.evicting.contains(&going) {
        world.round();
    }
    assert_eq!(world.state(going), StoreState::Up);
    world.refuse(6);
    for _ in 0..LONG {
        let passed = world.round();
        assert!(passed.plan.steps.iter().all(|step| step.lane() != Some(Lane::Resources)), "{:?}", passed.plan.steps);
    }
    assert_eq!(world.state(going), StoreState::Tombstone, "what was begun goes on");
    assert_eq!(world.state(next), StoreState::Up, "nobody else begins");
    assert_eq!(world.size(Component::Tikv), 6);
    // And when it is mended, the rest comes.
    world.edit(|resource| {
        resource.spec.pd.as_mut().unwrap().replicas = 3;
        resource.spec.tikv.as_mut().unwrap().replicas = 4;
    });
    world.come_to_rest();
    assert_eq!((world.size(Component::Tikv), world.state(next)), (4, StoreState::Tombstone));
}

#[test]
fn nobody_begins_to_leave() {
    let mut world = settled(6, &[2]);
    world.refuse(3);
    for _ in 0..LONG {
        world.round();
    }
    assert!(world.pd.evicting.is_empty() && world.pd.up(false) == 6);
}

#[test]
fn a_member_of_pd_that_fails_is_removed_from_pd() {
    let mut world = settled(3, &[2]);
    world.failover = true;
    world.refuse(3);
    world.round();
    let before = world.on("a-pd-2").unwrap();
    world.process_ends("a-pd-2");
    for _ in 0..LONG {
        world.round();
    }
    assert!(!world.pd.members.contains_key(&before), "{:?}", world.pd.members);
    assert_eq!(world.size(Component::Pd), 3, "another one comes when the spec is mended");
}
