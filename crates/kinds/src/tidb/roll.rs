//! Pods get the newest template. The controller of sets replaces those from the partition on; we lower it, one pod at a time, after what
//! that pod does was handed over.

use windlass_api::tidb::{Component, keys};
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::ObjectKind;

use super::answers::{PdMember, Store, StoreState};
use super::deeds::Task;
use super::guard::Guard;
use super::membership::Standing;
use super::order;
use super::pd::{can_miss, leader};
use super::plan::Planner;
use super::scene::Scene;
use super::stores::{can_evict, is_evicted};
use super::walk::{Walk, ailment, is_dead, partition};

/// What a component's pods wait for before any of them is replaced, if for anything.
pub(super) fn blocked(scene: &Scene<'_>, component: Component) -> Option<String> {
    let moves = |other: Component| {
        let group = scene.group(other);
        let runs = group.live_set().is_some() && group.wish.as_ref().is_some_and(|wish| !wish.suspended);
        match Walk::of(scene, other) {
            _ if !runs => None,
            _ if group.size() != group.wanted() => Some(format!("{} has as many members as it should", other.title())),
            Walk::Done => None,
            _ => Some(format!("the pods of {} are replaced", other.title())),
        }
    };
    if comes_to_its_size(scene, component) {
        return Some("those that leave are gone".to_owned());
    }
    order::replaced_after(component).iter().find_map(|other| moves(*other))
}

/// Whether members leave, and will have left without anybody's help: then nobody who leaves needs to be replaced. When those that stay
/// are not well, or too few, it may be the newer template that heals them, and they are not kept waiting.
fn comes_to_its_size(scene: &Scene<'_>, component: Component) -> bool {
    let group = scene.group(component);
    if group.size() <= group.wanted() {
        return false;
    }
    let well = (0..group.wanted()).map(Ordinal::new).all(|ordinal| ailment(scene, group, ordinal).is_none());
    let may_leave = match component {
        Component::Tikv | Component::Tiflash => {
            Guard::of(scene, component).is_ok_and(|guard| guard.holds() && guard.refusal().is_none())
        }
        _ => true,
    };
    well && may_leave
}

/// What may be done to a pod before it is replaced.
enum Farewell {
    /// It may go.
    Go,
    /// It may go when this is so.
    When(String),
    /// It leads PD, and shall not.
    HandOver,
    /// Its leaders shall go.
    Evict(u64),
    /// Its tables shall go.
    Drain,
}

impl Planner<'_> {
    /// The partition that a component's set is to have, and what has to be done before it can be lower.
    pub(super) fn roll(&mut self, component: Component) -> u16 {
        let group = self.scene.group(component);
        let size = group.size().max(group.wanted());
        let Some(set) = group.live_set() else { return size };
        let live = partition(set);
        let title = component.title();
        match Walk::of(&self.scene, component) {
            Walk::Done => live.max(size),
            Walk::Unknown => {
                let message =
                    format!("which pods of {title} are outdated is not known before the controller has seen their template");
                self.wait(reason!("RollingOut"), message, false);
                live
            }
            Walk::Settles { why, .. } => {
                self.wait(reason!("RollingOut"), format!("the pods of {title} are replaced one by one: {why}"), false);
                live
            }
            Walk::Goes { ordinal } => {
                let pod = self.scene.names.pod(component, ordinal);
                self.wait(reason!("RollingOut"), format!("{pod} is replaced"), false);
                live
            }
            Walk::Abandoned { ordinal } => {
                let pod = self.scene.group(component).pods.get(&ordinal).copied();
                if let Some(pod) = pod.filter(|_| self.trusted) {
                    self.delete(ObjectKind::Pod, &pod.meta, "it does not run, and has an outdated template");
                }
                live
            }
            // It holds the pod until that may go.
            Walk::Next { ordinal } if self.goes(component, ordinal) => ordinal.get(),
            Walk::Next { .. } => live,
        }
    }

    fn goes(&mut self, component: Component, ordinal: Ordinal) -> bool {
        let pod = self.scene.names.pod(component, ordinal);
        let hands_off = self.scene.group(component).wish.as_ref().is_some_and(|wish| wish.hands_off);
        if hands_off {
            let message =
                format!("{pod} has an outdated template; it is yours to delete, as statefulSetUpdateStrategy is OnDelete");
            self.wait(reason!("RollingOut"), message, false);
            return false;
        }
        let blocked = blocked(&self.scene, component).map(Farewell::When);
        match blocked.unwrap_or_else(|| self.farewell(component, ordinal)) {
            Farewell::Go => return self.trusted,
            Farewell::When(what) => {
                self.wait(reason!("RollingOut"), format!("{pod} has an outdated template; it is replaced when {what}"), false);
            }
            Farewell::HandOver => {
                if let Standing::Is(member) = self.scene.membership(ordinal) {
                    self.hand_over(ordinal, member, |_| true, "its pod is about to be replaced");
                }
            }
            Farewell::Evict(store) => {
                let is_listed = self.scene.evicting().is_some_and(|evicting| evicting.contains(&store));
                if is_listed && self.scene.is_announced(super::EVICT_LEADERS, store) {
                    let message = format!("{pod} is replaced when store {store} leads nothing any more");
                    self.wait(reason!("RollingOut"), message, false);
                } else {
                    self.pd_task(&pod, Some(store), Task::EvictLeaders { store }, "its pod is about to be replaced");
                }
            }
            Farewell::Drain => return self.drain_capture(ordinal, "its pod is about to be replaced"),
        }
        false
    }

    fn farewell(&self, component: Component, ordinal: Ordinal) -> Farewell {
        match component {
            Component::Pd => self.farewell_to_pd(ordinal),
            Component::Tikv => self.farewell_to_store(ordinal),
            Component::Tiflash => match self.scene.standing(component, ordinal) {
                Standing::Unknown(why) => Farewell::When(format!("its store is known: {why}")),
                _ => Farewell::Go,
            },
            Component::Ticdc => Farewell::Drain,
            Component::Tidb | Component::Tiproxy | Component::Pump => Farewell::Go,
        }
    }

    fn farewell_to_pd(&self, ordinal: Ordinal) -> Farewell {
        let group = self.scene.group(Component::Pd);
        // One that does not run is missed already, and may be what keeps PD from being heard.
        if self.is_forced() || group.size() == 1 || !group.runs(ordinal) {
            return Farewell::Go;
        }
        let members = match self.scene.members() {
            Ok(members) => members,
            // Without most of its pods nobody leads PD, whatever it would say.
            Err(_) if self.has_no_majority() => return Farewell::Go,
            Err(why) => return Farewell::When(format!("PD is known: {why}")),
        };
        match self.scene.membership(ordinal) {
            Standing::Unknown(why) => Farewell::When(format!("it is known: {why}")),
            // Two of two are a majority, and one is none: that cannot be helped.
            Standing::Is(member) if !can_miss(&self.scene, member) && members.len() > 2 => {
                Farewell::When("a majority of PD's other members is healthy".to_owned())
            }
            // Nobody can lead instead of the only one.
            Standing::Is(_) if members.len() == 1 => Farewell::Go,
            Standing::Is(PdMember { id, .. }) if leader(&self.scene) == Some(*id) => Farewell::HandOver,
            _ => Farewell::Go,
        }
    }

    /// Whether the user wants pods to be replaced though others of their component are not well: because it is the newer template that
    /// heals them, and nobody else knows.
    fn is_forced(&self) -> bool {
        let annotations = self.scene.observed.resource.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(keys::FORCE_UPGRADE)).is_some_and(|value| value == "true")
    }

    /// Whether so few pods of PD run that it cannot serve, and have not for a while.
    fn has_no_majority(&self) -> bool {
        let group = self.scene.group(Component::Pd);
        let dead = group.pods.values().filter(|pod| is_dead(&self.scene, pod)).count();
        dead * 2 >= group.pods.len().max(usize::from(group.size()))
    }

    fn farewell_to_store(&self, ordinal: Ordinal) -> Farewell {
        let store = match self.scene.standing(Component::Tikv, ordinal) {
            Standing::Unknown(why) => return Farewell::When(format!("its store is known: {why}")),
            Standing::Is(store) => store,
            // It serves nobody.
            Standing::Left | Standing::Vanished(_) | Standing::Never => return Farewell::Go,
        };
        let stores = self.scene.stores_of(Component::Tikv);
        // One that leaves has given its copies to others before it goes.
        let serves = |it: &Store| it.state == StoreState::Offline || self.scene.is_up(Component::Tikv, it);
        let missing = stores.iter().find(|other| other.id != store.id && !serves(other));
        if let Some(other) = missing.filter(|_| serves(store) && !self.is_forced()) {
            let state: &str = other.state.into();
            return Farewell::When(format!("all other stores are up: store {} at {} is {state}", other.id, other.address));
        }
        let returning = self.scene.evictions().find(|(_, id)| *id != store.id && !self.scene.leaves(*id));
        if let Some((pod, _)) = returning {
            return Farewell::When(format!("{pod} may lead again"));
        }
        if let Some(pod) = self.scene.returning() {
            return Farewell::When(format!(
                "two thirds of the leaders of {pod} are back, or waitLeaderTransferBackTimeout is over"
            ));
        }
        let patience = self.scene.group(Component::Tikv).wish.as_ref().map(|wish| wish.patience).unwrap_or_default();
        if can_evict(&self.scene, store) && !is_evicted(&self.scene, ordinal, store, patience) {
            return Farewell::Evict(store.id);
        }
        Farewell::Go
    }
}
