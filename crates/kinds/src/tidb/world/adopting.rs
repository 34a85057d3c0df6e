//! A cluster that another operator made.

use std::collections::BTreeMap;

use windlass_core::kind::{Observed, Options};
use windlass_core::labels::{ADOPTED, AS_GOOD_AS};
use windlass_core::memory::{Found, Memory};
use windlass_core::step::Act;

use super::super::Settings;
use super::super::scene::Scene;
use super::super::status::Ready;
use super::scenarios::settled;
use super::{UID, World};

fn adopted() -> World {
    let mut world = settled(3, &[1]);
    for set in world.children.stateful_sets.values_mut() {
        set.object.meta.annotations.insert(ADOPTED.into(), "true".into());
    }
    world
}

/// Why it is ready, or not.
fn readiness(world: &World) -> &'static str {
    let memory = Memory::judge(world.logbook.as_ref().map(|logbook| Found { logbook, uid: "logbook" }), UID, &world.children);
    let observed = Observed {
        resource: &world.resource,
        children: &world.children,
        settings: &Settings::default(),
        options: &Options::None,
        facts: &world.facts,
        memory: &memory,
        answered: &BTreeMap::new(),
        running: &world.running,
        settled: false,
        now: world.now,
    };
    let entries = memory.entries();
    Ready::of(&Scene::of(&observed, &entries)).reason.as_str()
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

/// Its pods have the template that the other operator gave them; the newest has our labels besides, and no pod is replaced for those.
#[test]
fn one_whose_pods_are_as_good_is_ready() {
    let mut world = adopted();
    for set in world.children.stateful_sets.values_mut() {
        let before = set.update_revision.replace("with-our-labels".into()).unwrap();
        set.object.meta.annotations.insert(AS_GOOD_AS.into(), before);
    }
    assert_eq!(readiness(&world), "Ready");
    for set in world.children.stateful_sets.values_mut() {
        set.object.meta.annotations.remove(AS_GOOD_AS);
    }
    assert_eq!(readiness(&world), "StatefulSetNotUpToDate");
}

#[test]
fn what_was_made_here_is_never_taken_over() {
    let mut world = settled(3, &[1]);
    world.children.pods.remove("a-tikv-1");
    assert!(world.pass().plan.steps.iter().all(|step| !matches!(step.act, Act::TakeOver { .. })));
}
