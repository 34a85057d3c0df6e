//! Components that are stopped: their sets go, and everything else stays. Whoever needs another one goes before it.

use windlass_api::tidb::Component;
use windlass_core::reason;
use windlass_core::step::ObjectKind;

use super::order;
use super::plan::Planner;
use super::scene::Scene;

/// Whether a component is to be stopped.
pub(super) fn is_asked(scene: &Scene<'_>, component: Component) -> bool {
    scene.group(component).wish.as_ref().is_some_and(|wish| wish.suspended)
}

/// Whether a component is stopped: nothing of it runs.
pub(super) fn is_stopped(scene: &Scene<'_>, component: Component) -> bool {
    let group = scene.group(component);
    group.set.is_none() && group.pods.is_empty()
}

impl Planner<'_> {
    pub(super) fn suspend(&mut self, component: Component) {
        let before = order::stopped_after(component).iter().copied();
        let mut waits_for = before.filter(|other| is_asked(&self.scene, *other) && !is_stopped(&self.scene, *other));
        let (group, title) = (self.scene.group(component), component.title());
        match (waits_for.next(), group.live_set()) {
            _ if is_stopped(&self.scene, component) => {}
            (Some(other), Some(_)) => {
                self.wait(reason!("Suspending"), format!("{title} is stopped when {} is", other.title()), false);
            }
            (None, Some(set)) if self.trusted => {
                self.delete(ObjectKind::StatefulSet, &set.object.meta, "suspendAction asks for it; its volumes stay");
            }
            _ => self.wait(reason!("Suspending"), format!("the pods of {title} end"), false),
        }
    }
}
