//! What to do next: objects first, then size, then members (see `clustering`), then replacing outdated pods.
//!
//! Each part is planned on its own, so that one which waits does not stop another.

use std::cmp::Reverse;
use std::num::NonZeroU16;

use windlass_core::conditions::Reason;
use windlass_core::kind::Observed;
use windlass_core::memory::ways_out;
use windlass_core::ordinals::{Layout, Ordinal, Ordinals};
use windlass_core::plan::{Plan, Waiting};
use windlass_core::scale::{self, Drain, Guard, Limits, Scale, View};
use windlass_core::step::{Act, ObjectKind, ObjectRef, Step};
use windlass_core::views::Children;

use super::Replicated;
use super::build::{self, Objects};
use super::facts::{Position, Role};
use super::hooks::{Deed, HookRun};
use super::members::Members;
use super::remember::{below_restore, is_below_restore};
use super::validate::{Understood, Validated, understand};
use super::volumes;

/// Reasons of waiting, as they appear in conditions.
pub(super) mod reason {
    use windlass_core::conditions::Reason;

    pub(in super::super) const INVALID_SPEC: Reason = windlass_core::reason!("InvalidSpec");
    pub(in super::super) const LOGBOOK_LOST: Reason = windlass_core::reason!("LogbookLost");
    pub(in super::super) const LOGBOOK_CONTRADICTED: Reason = windlass_core::reason!("LogbookContradicted");
    pub(in super::super) const BELOW_RESTORE: Reason = windlass_core::reason!("ReplicasBelowRestore");
    pub(in super::super) const SEED_UNDECIDED: Reason = windlass_core::reason!("SeedUndecided");
    pub(in super::super) const MEMBER_FAILED: Reason = windlass_core::reason!("MemberFailed");
    pub(in super::super) const SCALING: Reason = windlass_core::reason!("Scaling");
    pub(in super::super) const STARTING: Reason = windlass_core::reason!("MembersStarting");
}

pub(super) fn plan(observed: &Observed<'_, Replicated>) -> Plan<HookRun> {
    plan_with(observed, build::objects)
}

/// The plan for objects that somebody else builds.
pub(super) fn plan_with(
    observed: &Observed<'_, Replicated>,
    build: impl FnOnce(&Validated, u16, &Children) -> Objects,
) -> Plan<HookRun> {
    let Understood { cluster, invalid } = understand(observed);
    let mut plan = Plan::default();
    if let Some(invalid) = &invalid {
        plan.waiting.push(Waiting { reason: reason::INVALID_SPEC, message: invalid.to_string(), stalled: true });
    }
    let Some(cluster) = cluster else { return plan };
    let members = Members::of(observed, &cluster);
    let mut planner = Planner { observed, cluster: &cluster, members, plan };
    let proven = planner.memory();
    if invalid.is_some() {
        // The objects stay as they are; the members that they have are looked after.
        planner.labels(&Scale::default());
        planner.members(&Scale::default(), proven);
        return planner.plan;
    }
    planner.objects(build);
    let scale = planner.size(proven);
    planner.labels(&scale);
    planner.members(&scale, proven);
    planner.roll(&scale);
    planner.plan
}

/// A plan in the making.
pub(super) struct Planner<'a, 'b> {
    pub(super) observed: &'b Observed<'a, Replicated>,
    pub(super) cluster: &'b Validated,
    pub(super) members: Members<'a>,
    pub(super) plan: Plan<HookRun>,
}

impl Planner<'_, '_> {
    pub(super) fn wait(&mut self, reason: Reason, message: impl Into<String>, stalled: bool) {
        self.plan.waiting.push(Waiting { reason, message: message.into(), stalled });
    }

    pub(super) fn step(&mut self, act: Act<HookRun>, why: impl Into<String>) {
        self.plan.steps.push(Step::new(act, why));
    }

    /// Whether what is remembered can carry steps that cannot be undone. Lost memory is proven again when every member serves.
    fn memory(&mut self) -> bool {
        if let Some(why) = self.observed.memory.lost() {
            let mut message = format!("{why}; nothing is seeded or removed until every member was seen to serve");
            let remembered = self.observed.memory.entries();
            if !remembered.own_uid.is_empty() {
                let ways = ways_out(&remembered);
                message = format!("{message}; or say what it held, by these annotations on the custom resource: {ways}");
            }
            self.wait(reason::LOGBOOK_LOST, message, true);
            return false;
        }
        let remembered = self.observed.memory.entries().histories;
        let stranger = self.members.all.iter().find(|member| match member.position() {
            Some(Position::At { history: Some(history), .. }) => !remembered.is_empty() && !remembered.contains(history),
            _ => false,
        });
        let Some(stranger) = stranger else { return true };
        let had = remembered.join(", ");
        let message = format!(
            "{}, but the cluster is remembered to have history {had}; nothing is seeded or removed; find out where its data comes from, put \
             it aside if it is not needed, and delete the pod",
            stranger.described()
        );
        self.wait(reason::LOGBOOK_CONTRADICTED, message, true);
        false
    }

    fn objects(&mut self, build: impl FnOnce(&Validated, u16, &Children) -> Objects) {
        if self.observed.settled {
            self.plan.settled = true;
            return;
        }
        let restore = self.observed.memory.entries().counts.restore;
        // A set that somebody deleted comes back with every member that may hold data.
        let size = self.members.set.map_or(self.cluster.replicas.max(restore), |set| set.replicas);
        let size = if self.members.set.is_none() && self.cluster.replicas == 0 { 0 } else { size };
        let Objects { applied, removals } = build(self.cluster, size, self.observed.children);
        let before = self.plan.len();
        self.plan.steps.extend(removals);
        self.plan.apply(applied, self.observed.children, self.observed.answered);
        self.plan.settled = self.plan.len() == before;
    }

    fn size(&mut self, proven: bool) -> Scale {
        let Some(set) = self.members.set else {
            return Scale::default();
        };
        let desired = self.cluster.replicas;
        let restore = self.observed.memory.entries().counts.restore;
        if is_below_restore(&self.members, self.cluster, restore) {
            self.wait(reason::BELOW_RESTORE, below_restore(desired, restore), true);
            return Scale::default();
        }
        let view = self.scale_view(set.replicas, proven);
        let scale = scale::plan(&view, &self.scale_limits(desired));
        if let Some(layout) = &scale.write {
            let act = Act::SetReplicas {
                object: self.object(ObjectKind::StatefulSet, &set.object.meta.name),
                over: set.object.meta.as_judged(),
                from: set.replicas,
                to: layout.replicas,
            };
            self.step(act, format!("the spec asks for {desired} members"));
        }
        for hold in scale.holds() {
            self.wait(reason::SCALING, hold, false);
        }
        scale
    }

    fn scale_view(&self, size: u16, proven: bool) -> View {
        let desired = self.cluster.replicas;
        let mut view = View::without_drain(Layout::plain(size), Layout::plain(desired));
        // A member may only go while another one has all the data, or when all are stopped in order.
        let safe = proven && (desired == 0 || self.members.primaries().any(|member| member.ordinal.get() < desired));
        for member in self.members.all.iter().filter(|member| member.ordinal.get() >= desired && member.ordinal.get() < size) {
            let drain = match (member.role(), member.running) {
                _ if !safe => Drain::Unknown,
                (_, Some(run)) if run.deed == Deed::Stop => Drain::Draining,
                (Some(Role::Stopped), None) => Drain::Finished,
                (Some(_), None) => Drain::NotStarted,
                // No process ever ran in a pod that was not started: there is nothing to stop.
                (None, None) if member.pod.is_some_and(|pod| pod.phase == "Pending" && pod.process.is_none()) => {
                    Drain::Finished
                }
                (None, None) if member.pod.is_none() && self.was_never_there(member.ordinal) => Drain::Finished,
                (_, Some(_)) | (None, None) => Drain::Unknown,
            };
            view.drains.insert(member.ordinal, drain);
        }
        view
    }

    /// Members that should have volumes and have none hold nothing: they were never there. A set that somebody made too large by
    /// hand is full of them.
    fn was_never_there(&self, ordinal: Ordinal) -> bool {
        self.cluster.has_claims() && volumes::claims(self.observed.children, self.cluster, ordinal).next().is_none()
    }

    /// As many may leave at once as leaves a quorum of those that serve; down to nothing, one at a time.
    fn scale_limits(&self, desired: u16) -> Limits {
        let serving = u16::try_from(self.members.primaries().count()).unwrap_or(u16::MAX);
        let at_once = if desired == 0 { 1 } else { (serving.saturating_sub(1) / 2).max(1) };
        Limits {
            scale_in_parallelism: NonZeroU16::new(at_once).unwrap_or(NonZeroU16::MIN),
            scale_out_parallelism: NonZeroU16::MAX,
            guard: Guard::Open,
            unguarded: Ordinals::new(),
        }
    }

    /// Replaces one outdated pod, and only while all members serve and are ready: a quorum holds all the time. Primaries come last, so
    /// that roles change hands as seldom as can be; among equals the highest comes first.
    fn roll(&mut self, scale: &Scale) {
        let Some(set) = self.members.set else { return };
        if set.update_revision.is_none() {
            return;
        }
        if set.observed_generation != set.object.meta.generation {
            // Which pods are outdated is not known before.
            return self.wait(reason::STARTING, "the StatefulSet controller has not seen the newest template yet", false);
        }
        if !scale.is_empty() {
            return;
        }
        let of_outdated = self.members.all.iter().filter(|member| member.pod.is_some_and(|pod| set.is_outdated(pod)));
        let next = of_outdated.min_by_key(|member| (member.role() == Some(&Role::Primary), Reverse(member.ordinal)));
        let Some(pod) = next.and_then(|member| member.pod) else { return };
        let (object, over) = (self.object(ObjectKind::Pod, &pod.meta.name), pod.meta.as_judged());
        let all_well = self
            .members
            .all
            .iter()
            .all(|member| member.serves() && member.pod.is_some_and(|pod| pod.ready && !pod.meta.deleting));
        if all_well && self.plan.steps.is_empty() {
            self.step(Act::Delete { object, over }, "the pod has an outdated template");
        } else {
            self.wait(reason::STARTING, format!("{} is replaced when all members serve", object.name), false);
        }
    }

    pub(super) fn object(&self, kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: self.cluster.namespace.clone(), name: name.to_owned() }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "plan_scale_tests.rs"]
mod scale_tests;
