//! Single pods that the user wants to be restarted with care, or to hand over what they do: annotations on the pod itself. Of each
//! component one at a time, and only while the others are well.

use windlass_api::tidb::{Component, keys};
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::ObjectKind;
use windlass_core::views::PodView;

use super::deeds::Task;
use super::membership::Standing;
use super::pd::{can_miss, leader};
use super::plan::Planner;
use super::stores::{can_evict, is_evicted};

impl Planner<'_> {
    /// Does what the annotations of pods ask for.
    pub(super) fn restart(&mut self) {
        for component in [Component::Pd, Component::Tikv, Component::Tidb] {
            let pods: Vec<(Ordinal, &PodView)> =
                self.scene.group(component).pods.iter().map(|(ordinal, pod)| (*ordinal, *pod)).collect();
            for (ordinal, pod) in pods.into_iter().filter(|(_, pod)| !pod.meta.deleting) {
                let Some(then) = self.asked_for(component, ordinal, pod) else { continue };
                let handed_over = match component {
                    Component::Pd => self.stops_leading(ordinal),
                    Component::Tikv => self.stops_leading_regions(ordinal),
                    _ => true,
                };
                if !handed_over || then != keys::THEN_DELETE_POD || !self.trusted {
                    continue;
                }
                if let Some(why) = self.is_needed(component, ordinal) {
                    let message = format!("{} is restarted, as its annotation asks for, when {why}", pod.meta.name);
                    self.wait(reason!("RollingOut"), message, false);
                    continue;
                }
                self.delete(ObjectKind::Pod, &pod.meta, "its annotation asks for a restart");
                // The next one when this one is back.
                break;
            }
        }
    }

    /// Why a pod cannot be missed now, if so: others of its component are not there, or not well.
    fn is_needed(&self, component: Component, ordinal: Ordinal) -> Option<String> {
        let group = self.scene.group(component);
        if group.pods.get(&ordinal).is_none_or(|pod| !pod.ready) {
            return None;
        }
        let others = (0..group.size()).map(Ordinal::new).filter(|other| *other != ordinal);
        let is_ready = |other: &Ordinal| group.pods.get(other).is_some_and(|pod| pod.ready && !pod.meta.deleting);
        if let Some(other) = others.filter(|other| !is_ready(other)).min() {
            return Some(format!("{} is ready", self.scene.names.pod(component, other)));
        }
        match self.scene.membership(ordinal) {
            // Two of two are a majority, and one is none: that cannot be helped.
            Standing::Is(member) if component == Component::Pd && group.size() > 2 && !can_miss(&self.scene, member) => {
                Some("a majority of PD's other members is healthy".to_owned())
            }
            _ => None,
        }
    }

    /// What a pod's annotation asks for after it handed over.
    fn asked_for(&self, component: Component, ordinal: Ordinal, pod: &PodView) -> Option<String> {
        let annotations = &pod.meta.annotations;
        match component {
            Component::Tikv => annotations.get(keys::EVICT_LEADER).filter(|_| self.scene.is_asked_to_evict(ordinal)),
            Component::Pd => {
                let until = annotations.get(keys::PD_TRANSFER_LEADER_EXPIRATION_TIME);
                let until = until.and_then(|until| until.parse::<jiff::Timestamp>().ok());
                let expired = until.is_some_and(|until| until <= self.scene.observed.now);
                annotations.get(keys::PD_TRANSFER_LEADER).filter(|_| !expired)
            }
            _ => annotations.get(keys::TIDB_GRACEFUL_SHUTDOWN),
        }
        .map(str::to_owned)
    }

    fn stops_leading(&mut self, ordinal: Ordinal) -> bool {
        match self.scene.membership(ordinal) {
            Standing::Is(member) if leader(&self.scene) == Some(member.id) => {
                self.hand_over(ordinal, member, |_| true, "its annotation asks for it");
                false
            }
            Standing::Is(_) => leader(&self.scene).is_some(),
            _ => false,
        }
    }

    fn stops_leading_regions(&mut self, ordinal: Ordinal) -> bool {
        let Standing::Is(store) = self.scene.standing(Component::Tikv, ordinal) else { return false };
        let patience = self.scene.group(Component::Tikv).wish.as_ref().map(|wish| wish.patience).unwrap_or_default();
        if !can_evict(&self.scene, store) || is_evicted(&self.scene, ordinal, store, patience) {
            return true;
        }
        let pod = self.scene.names.pod(Component::Tikv, ordinal);
        let is_listed = self.scene.evicting().is_some_and(|evicting| evicting.contains(&store.id));
        if is_listed && self.scene.is_announced(super::EVICT_LEADERS, store.id) {
            let message = format!("{pod} gives its leaders to others, as its annotation asks for");
            self.wait(reason!("Draining"), message, false);
        } else {
            self.pd_task(&pod, Some(store.id), Task::EvictLeaders { store: store.id }, "its annotation asks for it");
        }
        false
    }
}
