//! Which outdated pod is replaced next, and when: one at a time, the highest first, the primary last.
//!
//! A pod that works is replaced while the cluster is healthy, so that what is missing is never more than that one. A pod that does not
//! work is replaced first, healthy or not: whatever broke it must not stop its own repair. With the annotation
//! `moco.cybozu.com/force-rolling-update` health is not awaited, but the order is kept, and the one at a time as well.

use std::collections::BTreeMap;

use windlass_api::mysql::conditions::State;
use windlass_api::mysql::keys;
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::{PodView, StatefulSetView};

use super::plan::Planner;

/// The pods of a set.
struct Fleet<'a> {
    set: &'a StatefulSetView,
    pods: BTreeMap<Ordinal, &'a PodView>,
}

impl Fleet<'_> {
    /// A pod that is on its way: while there is one, no other is taken away.
    fn on_its_way(&self) -> Option<String> {
        let ends = |pod: &&PodView| pod.meta.deleting;
        if let Some(pod) = self.pods.values().find(|pod| ends(pod)) {
            return Some(format!("{} ends", pod.meta.name));
        }
        let mut numbers = (0..self.set.replicas).map(Ordinal::new);
        let missing = numbers.find(|number| !self.pods.contains_key(number))?;
        Some(format!("{} is made", missing.pod_name(&self.set.object.meta.name)))
    }

    fn not_ready(&self) -> String {
        let names: Vec<&str> = self.pods.values().filter(|pod| !pod.ready).map(|pod| pod.meta.name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(" ({} not ready)", names.join(", ")) }
    }
}

impl Planner<'_> {
    /// Replaces one outdated pod, or says what that waits for.
    pub(super) fn roll(&mut self) {
        let Some(set) = self.scene.set.filter(|set| !set.object.meta.deleting && !self.scene.offline) else { return };
        if set.update_revision.is_none() {
            return;
        }
        if set.observed_generation != set.object.meta.generation {
            let message = "which pods are outdated is not known before the StatefulSet controller has seen the newest template";
            return self.wait(reason!("RollingOut"), message, false);
        }
        let fleet = Fleet { set, pods: self.scene.by_pod() };
        let primary = self.scene.primary();
        let outdated = fleet.pods.iter().filter(|(_, pod)| set.is_outdated(pod) && !pod.meta.deleting);
        let next = outdated.max_by_key(|(ordinal, pod)| (!pod.ready, **ordinal != primary, **ordinal));
        let Some((&ordinal, &pod)) = next else { return };
        let (object, over) = (self.object(ObjectKind::Pod, &pod.meta.name), pod.meta.as_judged());
        match self.waits_for(&fleet, ordinal, pod) {
            Some(why) => {
                let message = format!("{} has an outdated template; it is replaced when {why}", object.name);
                self.wait(reason!("RollingOut"), message, false);
            }
            // The deletion of the primary's pod is a switchover: its server goes on for as long as the pod ends.
            None => self.step(Act::Delete { object, over }, "the pod has an outdated template"),
        }
    }

    /// What the replacement of a pod waits for, if for anything.
    fn waits_for(&self, fleet: &Fleet<'_>, ordinal: Ordinal, pod: &PodView) -> Option<String> {
        if let Some(other) = fleet.on_its_way() {
            return Some(format!("no other one is on its way: {other}"));
        }
        let changes = |object: &windlass_core::step::ObjectRef| object.kind == ObjectKind::StatefulSet;
        if self.plan.steps.iter().any(|step| step.judged().is_some_and(|(object, _)| changes(object))) {
            return Some("the StatefulSet is as it should be".to_owned());
        }
        if let Some(deed) = self.scene.running(ordinal) {
            return Some(format!("this is done: {deed}"));
        }
        // Its deletion would be refused.
        if let Some(behind) = self.scene.too_far_behind().filter(|_| ordinal == self.scene.primary()) {
            return Some(format!("instance {behind} is not far behind any more"));
        }
        if !pod.ready {
            return self.broken_waits_for(ordinal, pod);
        }
        let annotations = self.scene.observed.resource.metadata.annotations.as_ref();
        if annotations.and_then(|all| all.get(keys::FORCE_ROLLING_UPDATE)).is_some_and(|value| value == "true") {
            // Nobody asks for health here, but a template with which no server starts is not rolled on.
            let dead = fleet.pods.values().find(|pod| !fleet.set.is_outdated(pod) && pod.process.is_none());
            return dead.map(|pod| format!("the server of {} runs with the new template", pod.meta.name));
        }
        let state = self.scene.state();
        if state != State::Healthy {
            return Some(format!("the cluster is healthy; it is {}{}", state.as_str(), fleet.not_ready()));
        }
        let busy = self.put_off || !self.plan.steps.is_empty() || !self.scene.observed.running.is_empty();
        busy.then(|| "nothing else is in hand".to_owned())
    }

    /// A pod that is not ready may still have a server that acknowledges commits: that one is needed unless enough others do. One
    /// that was not asked yet may be such a server.
    fn broken_waits_for(&self, ordinal: Ordinal, pod: &PodView) -> Option<String> {
        let facts = self.scene.observed.facts.of(pod);
        if pod.process.is_none() || facts.is_some_and(|facts| facts.silent.is_some()) {
            return None;
        }
        if self.scene.known(ordinal).is_none() {
            return Some("its server was asked".to_owned());
        }
        let (others, needed) = (self.scene.cluster().following().len(), usize::from(self.scene.size / 2));
        let alone = self.scene.size > 1 && others < needed.max(1);
        alone.then(|| {
            format!("{needed} other instances follow the primary, for its server runs and may acknowledge; {others} do")
        })
    }
}

#[cfg(test)]
#[path = "roll_tests.rs"]
mod tests;
