//! PD becomes larger or smaller: one member at a time, and only while a majority is healthy before and after.
//!
//! A member that leads hands over before it leaves. What cannot be undone is announced; that PD does not list the announced member any
//! more is the proof that its pod may go.

use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::scale::{Drain, Guard, Limits, Scale};

use super::answers::PdMember;
use super::deeds::Task;
use super::membership::{Standing, progress};
use super::plan::Planner;
use super::scene::Scene;

/// How far the removal of a member is.
pub(super) fn drain(scene: &Scene<'_>, ordinal: Ordinal) -> Drain {
    let group = scene.group(Component::Pd);
    let around = group.around(ordinal, scene.asked());
    let deed = scene.running(&scene.names.pod(Component::Pd, ordinal));
    if deed.is_some_and(|deed| matches!(deed.task, Task::DeletePdMember { .. })) {
        return Drain::Draining;
    }
    let begun = |member: &&PdMember| around.leaves && scene.is_announced(super::DELETE_PD_MEMBER, member.id);
    progress(&scene.membership(ordinal), around, begun)
}

/// Whether a majority of those that remain without a member is healthy.
pub(super) fn can_miss(scene: &Scene<'_>, member: &PdMember) -> bool {
    let rest: Vec<&PdMember> = scene.members().unwrap_or_default().iter().filter(|other| other.id != member.id).collect();
    let healthy = rest.iter().filter(|other| scene.is_sound(other)).count();
    !rest.is_empty() && healthy > rest.len() / 2
}

/// Who leads PD; nobody knows when nobody does.
pub(super) fn leader(scene: &Scene<'_>) -> Option<u64> {
    scene.pd.as_ref().ok()?.seen.leader.as_ref().ok().copied().flatten()
}

impl Planner<'_> {
    /// Plans the size of PD; tells whether it is on its way to another one.
    pub(super) fn scale_pd(&mut self) -> Scale {
        let group = self.scene.group(Component::Pd);
        let (size, wanted) = (group.size(), group.wanted());
        if group.wish.is_none() || group.live_set().is_none() || !self.trusted {
            return Scale::default();
        }
        let view = self.view(Component::Pd, |ordinal| (drain(&self.scene, ordinal), self.scene.membership(ordinal)));
        let begun = view.drains.values().any(|drain| matches!(drain, Drain::Draining | Drain::Finished));
        self.remove_strays(size);
        self.tell_vanished(size.min(wanted));
        if size == wanted && !begun {
            return Scale::default();
        }
        let sick: Vec<&str> = match self.scene.members() {
            Ok(members) => members.iter().filter(|it| !self.scene.is_sound(it)).map(|it| it.name.as_str()).collect(),
            Err(why) => {
                self.wait(reason!("PDUnknown"), format!("PD is not scaled now: {why}"), false);
                return Scale::default();
            }
        };
        let mut limits = Limits::default();
        if wanted > size && !sick.is_empty() {
            let message = format!("PD gets another member when all are healthy: {} not", sick.join(", "));
            self.wait(reason!("PDUnhealthy"), message, false);
            return Scale::default();
        }
        limits.guard = self.pd_guard(size);
        let scale = self.scale(Component::Pd, &view, &limits);
        for ordinal in scale.start.iter().chain(&scale.keep) {
            self.leave_pd(ordinal);
        }
        scale
    }

    /// Members of pods that are not there, and will not come back as what they were, count for majorities and serve nobody.
    fn remove_strays(&mut self, size: u16) {
        let group = self.scene.group(Component::Pd);
        let returns = |ordinal: Ordinal| ordinal.get() < group.wanted() && group.has_volumes(ordinal);
        let is_stray = |it: &Ordinal| it.get() >= size && !group.pods.contains_key(it) && !returns(*it);
        let stray = self.scene.own_members().keys().copied().rfind(is_stray).filter(|_| !self.scene.refused);
        if let Some(ordinal) = stray {
            self.leave_pd(ordinal);
        }
    }

    /// Says which members that should stay PD does not know any more, without our doing: one that was removed never comes back by itself.
    fn tell_vanished(&mut self, staying: u16) {
        for ordinal in (0..staying).map(Ordinal::new) {
            if let Standing::Vanished(id) = self.scene.membership(ordinal) {
                let pod = self.scene.names.pod(Component::Pd, ordinal);
                let message = format!(
                    "PD does not know its member {id} ({pod}) any more, and a member that was removed cannot come back; delete the \
                     PersistentVolumeClaims of {pod} and the pod: it joins anew then"
                );
                self.wait(reason!("PDMemberVanished"), message, true);
            }
        }
    }

    /// One may leave while the rest can do without it.
    fn pd_guard(&self, size: u16) -> Guard {
        let next = self.scene.own_members().get(&Ordinal::new(size.saturating_sub(1))).copied();
        match next {
            Some(member) if !can_miss(&self.scene, member) => {
                Guard::AtMost { more: 0, because: "a majority of PD's other members must be healthy".to_owned() }
            }
            _ => Guard::Open,
        }
    }

    fn leave_pd(&mut self, ordinal: Ordinal) {
        let pod = self.scene.names.pod(Component::Pd, ordinal);
        match self.scene.membership(ordinal) {
            Standing::Is(member) if leader(&self.scene).is_none() => {
                let message = format!("member {} ({pod}) leaves PD when somebody leads it", member.name);
                self.wait(reason!("PDUnhealthy"), message, false);
            }
            Standing::Is(member) if leader(&self.scene) == Some(member.id) => {
                self.hand_over(ordinal, member, |other| other < ordinal, "the member that leads is to leave");
            }
            Standing::Is(member) if can_miss(&self.scene, member) => {
                let task = Task::DeletePdMember { id: member.id, name: member.name.clone() };
                let wanted = self.scene.group(Component::Pd).wanted();
                self.pd_task(&pod, Some(member.id), task, format!("the spec asks for {wanted} members of PD"));
            }
            Standing::Is(_) | Standing::Unknown(_) => {}
            Standing::Vanished(id) => {
                let task = Task::DeletePdMember { id, name: pod.clone() };
                self.pd_task(&pod, Some(id), task, "PD lists no such member any more");
            }
            Standing::Left => self.mark(Component::Pd, ordinal),
            Standing::Never => self.never_joined(Component::Pd, ordinal),
        }
    }

    /// Lets a healthy member lead instead of another one: the highest of those above it, else the lowest below. `may` tells who can.
    pub(super) fn hand_over(&mut self, ordinal: Ordinal, member: &PdMember, may: impl Fn(Ordinal) -> bool, why: &str) {
        let members = self.scene.own_members();
        let fit = |(other, it): &(&Ordinal, &&PdMember)| **other != ordinal && may(**other) && self.scene.is_sound(it);
        let above = members.iter().filter(fit).rfind(|(other, _)| **other > ordinal);
        let below = members.iter().find(fit);
        let to = above.or(below).map(|(_, it)| it.name.clone());
        let pod = self.scene.names.pod(Component::Pd, ordinal);
        match to {
            Some(to) => self.pd_task(&pod, Some(member.id), Task::TransferPdLeader { to }, why),
            None => {
                self.wait(reason!("PDUnhealthy"), format!("no healthy member can lead PD instead of {}", member.name), false);
            }
        }
    }
}
