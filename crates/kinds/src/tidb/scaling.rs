//! What the sizes of all components have in common: volumes that are cleared away, marks on those of members that left, pods that are
//! replaced, and the size itself.
//!
//! A volume is deleted only when it carries the mark of a member that has left, and never while PD knows a store with its address.

use std::time::Duration;

use windlass_api::tidb::{Component, keys};
use windlass_core::ordinals::{Layout, Ordinal, Ordinals};
use windlass_core::reason;
use windlass_core::scale::{self, Drain, Guard, Limits, Scale, View};
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::ClaimView;

use super::component::has_stores;
use super::facts::after;
use super::membership::Standing;
use super::plan::Planner;

/// How long a process may take to join PD.
pub(super) const JOINING: Duration = Duration::from_mins(5);

pub(super) fn is_marked(claim: &ClaimView) -> bool {
    claim.meta.annotations.get(keys::PVC_DEFER_DELETING).is_some_and(|since| !since.is_empty())
}

impl Planner<'_> {
    /// The sizes of a component, and how far each member is that PD knows, or does not know yet.
    pub(super) fn view<T: PartialEq>(&self, component: Component, known: impl Fn(Ordinal) -> (Drain, Standing<T>)) -> View {
        let group = self.scene.group(component);
        let (size, wanted) = (group.size(), group.wanted());
        let mut view = View::at_rest(Layout::plain(size), Layout::plain(wanted));
        for ordinal in (0..size.max(wanted)).map(Ordinal::new) {
            let (drain, standing) = known(ordinal);
            if ordinal.get() >= size {
                if self.is_prepared(component, ordinal, &standing) {
                    view.prepared.insert(ordinal);
                }
                continue;
            }
            view.drains.insert(ordinal, drain);
            if ordinal.get() < wanted && standing == Standing::Never {
                view.joining.insert(ordinal);
            }
        }
        view
    }

    /// Decides what can be done to a size now, and does what is the same for all components. What members do to come and go is the
    /// caller's.
    pub(super) fn scale(&mut self, component: Component, view: &View, limits: &Limits) -> Scale {
        let because = "the spec is refused, and nobody begins to leave before it is mended".to_owned();
        let guard = Guard::AtMost { more: 0, because };
        let refused = Limits { guard, unguarded: Ordinals::new(), ..limits.clone() };
        let scale = scale::plan(view, if self.scene.refused { &refused } else { limits });
        self.follow(component, &scale);
        scale
    }

    fn follow(&mut self, component: Component, scale: &Scale) {
        for ordinal in &scale.prepare {
            self.clear(component, ordinal);
        }
        for ordinal in &scale.replace {
            self.replace(component, ordinal);
        }
        if let Some(layout) = &scale.write {
            self.resize(component, layout.replicas);
        }
        for hold in scale.holds() {
            self.wait(reason!("Scaling"), format!("{}: {hold}", component.title()), false);
        }
    }

    pub(super) fn resize(&mut self, component: Component, to: u16) {
        let group = self.scene.group(component);
        let Some(set) = group.live_set().filter(|set| set.replicas != to) else { return };
        let (over, from, wanted) = (set.object.meta.as_judged(), set.replicas, group.wanted());
        let object = self.object(ObjectKind::StatefulSet, &set.object.meta.name);
        let why = match group.replacements {
            0 => format!("the spec asks for {wanted}"),
            failed => format!("the spec asks for {}, and {failed} failed", wanted.saturating_sub(failed)),
        };
        self.step(Act::SetReplicas { object, over, from, to }, why);
    }

    /// Whether an ordinal may get a pod: there is nothing of an earlier member, or it comes back as what it is in PD.
    pub(super) fn is_prepared<T>(&self, component: Component, ordinal: Ordinal, standing: &Standing<T>) -> bool {
        let group = self.scene.group(component);
        let is_known = matches!(standing, Standing::Is(_));
        // Without its volumes it would be another one, at an address that belongs to the one before.
        if group.claims_of(ordinal).is_empty() { !is_known } else { is_known && group.has_volumes(ordinal) }
    }

    /// Deletes what an earlier member left, if it is known to be of no use, or says why not.
    fn clear(&mut self, component: Component, ordinal: Ordinal) {
        let pod = self.scene.names.pod(component, ordinal);
        let lives = match component {
            Component::Pd => matches!(self.scene.membership(ordinal), Standing::Is(_) | Standing::Unknown(_)),
            _ if has_stores(component) => {
                matches!(self.scene.standing(component, ordinal), Standing::Is(_) | Standing::Unknown(_))
            }
            _ => false,
        };
        // It may have become one since PD was asked, in the moment in which its pod was removed.
        let lives = lives || self.scene.is_just_gone(component, ordinal);
        if self.is_on_its_volumes(component, ordinal) {
            return self.unmark(component, ordinal);
        }
        let claims: Vec<&ClaimView> = self.scene.group(component).claims_of(ordinal).to_vec();
        for claim in claims {
            let name = &claim.meta.name;
            if claim.meta.deleting {
                self.wait(reason!("Scaling"), format!("{pod} is made when PersistentVolumeClaim {name} is gone"), false);
            } else if !is_marked(claim) {
                let message = format!(
                    "{pod} is not made: PersistentVolumeClaim {name} is there, and does not say that its data is of no use; delete it, or \
                     set its annotation {} to a time",
                    keys::PVC_DEFER_DELETING
                );
                self.wait(reason!("VolumeInTheWay"), message, true);
            } else if lives {
                self.wait(reason!("Scaling"), format!("{pod} is made when what it was has left PD"), false);
            } else if self.trusted {
                self.delete(ObjectKind::PersistentVolumeClaim, &claim.meta, format!("{pod} begins with an empty volume"));
            }
        }
    }

    /// Whether a member is in PD, and on record with the very volumes that are there: then it only lacks its pod, whatever the volumes say.
    fn is_on_its_volumes(&self, component: Component, ordinal: Ordinal) -> bool {
        let id = match component {
            Component::Pd => match self.scene.membership(ordinal) {
                Standing::Is(member) => Some(member.id),
                _ => None,
            },
            _ => match self.scene.standing(component, ordinal) {
                Standing::Is(store) => Some(store.id),
                _ => None,
            },
        };
        let stays = !self.scene.group(component).claims_of(ordinal).iter().any(|claim| claim.meta.deleting);
        stays && self.trusted && id.is_some() && self.scene.recorded_id(component, ordinal) == id
    }

    /// A pod that leaves and that PD does not know: its volumes are marked when it is certain that it never was known. One that runs may
    /// have become known since PD was asked: it is made anew when it had long enough, and PD is asked again before it starts. One that
    /// crashes is not running often enough to ask in between.
    pub(super) fn never_joined(&mut self, component: Component, ordinal: Ordinal) {
        let group = self.scene.group(component);
        if group.around(ordinal, self.scene.asked()).unborn {
            return self.mark(component, ordinal);
        }
        let Some(pod) = group.pods.get(&ordinal).copied() else { return };
        let name = &pod.meta.name;
        let old = pod.meta.created.is_none_or(|created| after(created, JOINING) <= self.scene.observed.now);
        if pod.meta.deleting || pod.process.is_none() || !old {
            return self.wait(reason!("Scaling"), format!("{name} leaves when it is known whether it joined PD"), false);
        }
        if self.trusted {
            self.delete(ObjectKind::Pod, &pod.meta, "it is to leave, and never joined PD");
        }
    }

    /// Notes on the volumes of a member that has left that they are of no use.
    pub(super) fn mark(&mut self, component: Component, ordinal: Ordinal) {
        let now = self.scene.observed.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let unmarked = |claim: &&&ClaimView| !is_marked(claim) && !claim.meta.deleting;
        let claims: Vec<&ClaimView> = self.scene.group(component).claims_of(ordinal).iter().filter(unmarked).copied().collect();
        for claim in claims {
            let changes = [(keys::PVC_DEFER_DELETING, Some(now.clone())), (keys::SCALE_IN_TIME, Some(now.clone()))];
            let kind = ObjectKind::PersistentVolumeClaim;
            self.annotate(kind, &claim.meta, &changes, "what is on it has left the cluster");
        }
    }

    /// Takes the marks off volumes of members that stay.
    pub(super) fn keep_volumes(&mut self, component: Component) {
        let group = self.scene.group(component);
        if group.live_set().is_none() || !self.trusted {
            return;
        }
        let stays = |ordinal: Ordinal| match component {
            Component::Pd => matches!(self.scene.membership(ordinal), Standing::Is(_)),
            _ if has_stores(component) => matches!(self.scene.standing(component, ordinal), Standing::Is(_)),
            _ => true,
        };
        let ordinals: Vec<Ordinal> = (0..group.size().min(group.wanted())).map(Ordinal::new).filter(|it| stays(*it)).collect();
        for ordinal in ordinals {
            self.unmark(component, ordinal);
        }
    }

    fn unmark(&mut self, component: Component, ordinal: Ordinal) {
        let marked = |claim: &&&ClaimView| is_marked(claim) && !claim.meta.deleting;
        let claims: Vec<&ClaimView> = self.scene.group(component).claims_of(ordinal).iter().filter(marked).copied().collect();
        for claim in claims {
            let changes = [(keys::PVC_DEFER_DELETING, None), (keys::SCALE_IN_TIME, None)];
            self.annotate(ObjectKind::PersistentVolumeClaim, &claim.meta, &changes, "what is on it is in use");
        }
    }

    /// Lets a pod begin anew whose store or member has left: first its volumes, then itself.
    fn replace(&mut self, component: Component, ordinal: Ordinal) {
        let pod = self.scene.names.pod(component, ordinal);
        let why = format!("{pod} is wanted, and what it was in PD has left for good: it begins anew");
        let group = self.scene.group(component);
        let remaining: Vec<&ClaimView> =
            group.claims_of(ordinal).iter().filter(|claim| !claim.meta.deleting).copied().collect();
        let live = group.pods.get(&ordinal).filter(|pod| !pod.meta.deleting).copied();
        if remaining.is_empty() {
            // The volumes go when nobody uses them any more.
            if let Some(pod) = live {
                self.delete(ObjectKind::Pod, &pod.meta, why);
            }
            return;
        }
        for claim in remaining {
            self.delete(ObjectKind::PersistentVolumeClaim, &claim.meta, why.clone());
        }
    }
}
