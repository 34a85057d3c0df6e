//! A cluster that another operator made.

use windlass_core::labels::ADOPTED;
use windlass_core::step::Act;

use super::World;
use super::scenarios::settled;

fn adopted() -> World {
    let mut world = settled(3, &[1]);
    for set in world.children.stateful_sets.values_mut() {
        set.object.meta.annotations.insert(ADOPTED.into(), "true".into());
    }
    world
}

#[test]
fn nothing_is_planned_before_every_member_is_seen() {
    let mut world = adopted();
    let unseen = ["a-tikv-1", "a-pd-2"].map(|pod| world.children.pods.remove(pod).unwrap());
    world.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas = 5);
    let plan = world.pass().plan;
    let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(steps, ["take over Pod a-pd-2", "take over Pod a-tikv-1"]);
    assert!(plan.waiting.iter().any(|it| it.reason.as_str() == "Adopting"), "{:?}", plan.waiting);
    for pod in unseen {
        world.children.pods.insert(pod.meta.name.clone(), pod);
    }
    let plan = world.pass().plan;
    assert!(plan.steps.iter().any(|step| step.to_string().contains("StatefulSet a-tikv from 3 to")), "{:?}", plan.steps);
}

#[test]
fn what_was_made_here_is_never_taken_over() {
    let mut world = settled(3, &[1]);
    world.children.pods.remove("a-tikv-1");
    assert!(world.pass().plan.steps.iter().all(|step| !matches!(step.act, Act::TakeOver { .. })));
}
