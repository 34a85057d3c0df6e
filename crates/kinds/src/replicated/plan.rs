//! What to do next: objects first, then size, then members, then replacing outdated pods.
//!
//! Each part is planned on its own, so that one which waits does not stop another.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use windlass_core::conditions::Reason;
use windlass_core::kind::Observed;
use windlass_core::labels;
use windlass_core::likeness::already_so;
use windlass_core::memory::ways_out;
use windlass_core::ordinals::{Layout, Ordinal};
use windlass_core::plan::{Plan, Waiting};
use windlass_core::scale::{self, Drain, Guard, Limits, Scale, View};
use windlass_core::step::{Act, Manifest, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, ObjectView, PodView};

use super::Replicated;
use super::build::{self, Objects};
use super::facts::{Position, Role};
use super::hooks::{Deed, HookRun};
use super::members::{Member, Members};
use super::probes;
use super::seed;
use super::validate::{Understood, Validated, understand};

const REVISION: &str = "controller-revision-hash";

/// Reasons of waiting, as they appear in conditions.
pub(super) mod reason {
    use windlass_core::conditions::Reason;

    pub(in super::super) const INVALID_SPEC: Reason = windlass_core::reason!("InvalidSpec");
    pub(in super::super) const FOREIGN_OBJECT: Reason = windlass_core::reason!("ForeignObject");
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

struct Planner<'a, 'b> {
    observed: &'b Observed<'a, Replicated>,
    cluster: &'b Validated,
    members: Members<'a>,
    plan: Plan<HookRun>,
}

impl Planner<'_, '_> {
    fn wait(&mut self, reason: Reason, message: impl Into<String>, stalled: bool) {
        self.plan.waiting.push(Waiting { reason, message: message.into(), stalled });
    }

    fn step(&mut self, act: Act<HookRun>, why: impl Into<String>) {
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
            "{}, but the cluster is remembered to have history {had}; nothing is seeded or removed",
            stranger.described()
        );
        self.wait(reason::LOGBOOK_CONTRADICTED, message, true);
        false
    }

    fn objects(&mut self, build: impl FnOnce(&Validated, u16, &Children) -> Objects) {
        let restore = self.observed.memory.entries().counts.restore;
        // A set that somebody deleted comes back with every member that may hold data.
        let size = self.members.set.map_or(self.cluster.replicas.max(restore), |set| set.replicas);
        let size = if self.members.set.is_none() && self.cluster.replicas == 0 { 0 } else { size };
        let Objects { applied, removals } = build(self.cluster, size, self.observed.children);
        self.plan.steps.extend(removals);
        for mut manifest in applied {
            let live = self.live(&manifest);
            let answered = self.observed.answered.get(&manifest.object);
            let why = match live {
                None => "it does not exist",
                Some(live) if already_so(&manifest, live, answered) => continue,
                Some(live) => {
                    manifest.over = Some(live.meta.as_judged());
                    "it differs from what the spec asks for"
                }
            };
            self.step(Act::Apply(Box::new(manifest)), why);
        }
    }

    fn live(&self, manifest: &Manifest) -> Option<&ObjectView> {
        let children = self.observed.children;
        let name = &manifest.object.name;
        match manifest.object.kind {
            ObjectKind::Service => children.services.get(name),
            ObjectKind::PodDisruptionBudget => children.disruption_budgets.get(name),
            ObjectKind::StatefulSet => children.stateful_sets.get(name).map(|set| &set.object),
            ObjectKind::ControllerRevision => children.templates.get(name),
            ObjectKind::Pod | ObjectKind::PersistentVolumeClaim => None,
        }
    }

    fn size(&mut self, proven: bool) -> Scale {
        let Some(set) = self.members.set else {
            return Scale::default();
        };
        let desired = self.cluster.replicas;
        let restore = self.observed.memory.entries().counts.restore;
        if set.replicas == 0 && desired > 0 && desired < restore {
            let message = format!(
                "spec.replicas is {desired}, but {restore} members held data when the cluster was stopped; \
                 set it to {restore} or more, so that the newest data is among them"
            );
            self.wait(reason::BELOW_RESTORE, message, true);
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
        let never_there = self.never_there();
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
                (None, None) if member.pod.is_none() && never_there(member.ordinal) => Drain::Finished,
                (_, Some(_)) | (None, None) => Drain::Unknown,
            };
            view.drains.insert(member.ordinal, drain);
        }
        view
    }

    /// Members that should have volumes and have none hold nothing: they were never there. A set that somebody made too large by
    /// hand is full of them.
    fn never_there(&self) -> impl Fn(Ordinal) -> bool + use<> {
        let has_volumes = self.cluster.spec.pod.volume_claim_templates.iter().flatten().next().is_some();
        let set = self.cluster.names.stateful_set();
        let claims = self.observed.children.claims.keys();
        // The name of a claim is that of its template, and that of the pod.
        let of_pod = |claim: &String| Ordinal::of_pod(&set, &claim[claim.find(&format!("{set}-"))?..]);
        let held: BTreeSet<Ordinal> = claims.filter_map(of_pod).collect();
        move |ordinal| has_volumes && !held.contains(&ordinal)
    }

    /// As many may leave at once as leaves a quorum of those that serve; down to nothing, one at a time.
    fn scale_limits(&self, desired: u16) -> Limits {
        let serving = u16::try_from(self.members.primaries().count()).unwrap_or(u16::MAX);
        let at_once = if desired == 0 { 1 } else { (serving.saturating_sub(1) / 2).max(1) };
        Limits {
            scale_in_parallelism: NonZeroU16::new(at_once).unwrap_or(NonZeroU16::MIN),
            scale_out_parallelism: NonZeroU16::MAX,
            guard: Guard::Open,
        }
    }

    /// The label by which the client Service finds members that serve.
    fn labels(&mut self, scale: &Scale) {
        for member in self.members.all.clone() {
            let Some(pod) = member.pod.filter(|pod| !pod.meta.deleting) else {
                continue;
            };
            let leaves = scale.start.contains(member.ordinal) || scale.keep.contains(member.ordinal);
            // Without an answer the label stays as it is: the operator's blindness must not take a healthy member away from clients.
            let serves = match member.role() {
                Some(_) => member.serves() && !leaves,
                None if leaves => false,
                None => continue,
            };
            let value = serves.to_string();
            // A member without the label serves nobody: there is nothing to take away.
            let has = pod.meta.labels.get(labels::RSS_ACTIVE_MEMBER).map_or("false", String::as_str);
            if has == value {
                continue;
            }
            let act = Act::Label {
                object: self.object(ObjectKind::Pod, &pod.meta.name),
                over: pod.meta.as_judged(),
                labels: BTreeMap::from([(labels::RSS_ACTIVE_MEMBER.to_owned(), value)]),
            };
            self.step(act, if serves { "the member serves" } else { "the member does not serve" });
        }
    }

    fn members(&mut self, scale: &Scale, proven: bool) {
        for ordinal in scale.start.iter() {
            let run = self
                .member(ordinal)
                .and_then(|member| member.run(self.cluster, Deed::Stop, self.members.peers(self.cluster, ordinal)));
            if let Some(run) = run {
                self.hook(run, "the member leaves the cluster");
            }
        }
        if self.members.primaries().next().is_some() {
            self.join(scale);
        } else if self.members.size() > 0 && self.cluster.replicas > 0 {
            self.seed(proven);
        }
        for member in self.members.all.clone() {
            if let Some(Role::Failed { .. }) = member.role() {
                let message = format!("{}; mend it, or delete its pod to start it anew", member.described());
                self.wait(reason::MEMBER_FAILED, message, true);
            }
        }
    }

    fn join(&mut self, scale: &Scale) {
        let wanted = self.cluster.replicas.min(self.members.size());
        let primaries = self.members.primaries().count();
        let is_joining = |member: &Member<'_>| {
            member.role() == Some(&Role::Starting) || member.running.is_some_and(|run| run.deed != Deed::Stop)
        };
        // Each primary can hand its data to one member at a time.
        let mut places = primaries.saturating_sub(self.members.all.iter().filter(|member| is_joining(member)).count());
        let mut leading = primaries
            + self.members.all.iter().filter(|member| member.running.is_some_and(|run| run.deed == Deed::Primary)).count();
        for member in self.members.all.clone() {
            if member.ordinal.get() >= wanted || member.running.is_some() || member.role() != Some(&Role::Stopped) {
                continue;
            }
            if scale.keep.contains(member.ordinal) || places == 0 || !self.may_try(&member) {
                self.wait(reason::STARTING, format!("member {} waits to be started", member.ordinal), false);
                continue;
            }
            let deed = if leading < usize::from(self.cluster.primaries) { Deed::Primary } else { Deed::Secondary };
            if let Some(run) = member.run(self.cluster, deed, self.members.peers(self.cluster, member.ordinal)) {
                places -= 1;
                leading += usize::from(deed == Deed::Primary);
                self.hook(run, "the member is stopped and the cluster runs");
            }
        }
    }

    fn seed(&mut self, proven: bool) {
        let remembered = self.observed.memory.entries();
        if self.members.all.iter().any(|member| member.running.is_some()) || !proven {
            return;
        }
        let ordinal = match seed::choose(&self.members, &remembered) {
            Ok(ordinal) => ordinal,
            Err(undecided) => return self.wait(reason::SEED_UNDECIDED, undecided.message, undecided.stalled),
        };
        let Some(member) = self.member(ordinal) else { return };
        let pods: BTreeSet<&str> = self.members.all.iter().filter_map(|it| it.pod.map(|pod| pod.meta.uid.as_str())).collect();
        // A seed that was announced may still run in its pod, and ends with it at the latest. Until then no other member may be tried;
        // the same one may, once it says that it is stopped: its hook refuses to run twice.
        let announced = remembered.intents.iter().find(|intent| intent.act == "Seed" && pods.contains(intent.uid.as_str()));
        if let Some(intent) = announced
            && Some(intent.uid.as_str()) != member.pod.map(|pod| pod.meta.uid.as_str())
        {
            let message = format!(
                "{} was to be the seed, and whether that still runs is unknown; delete that pod to let another be the seed",
                intent.target
            );
            return self.wait(reason::SEED_UNDECIDED, message, true);
        }
        if !self.may_try(&member) {
            return self.wait(reason::STARTING, format!("the seed {} is tried again soon", member.described()), false);
        }
        if let Some(run) = member.run(self.cluster, Deed::Seed, Vec::new()) {
            self.hook(run, "no member is a primary, and this one has all the data there is");
        }
    }

    /// A hook that failed is tried again later and later.
    fn may_try(&self, member: &Member<'_>) -> bool {
        member.failure().is_none_or(|failure| probes::due_at(failure.at, probes::backoff(failure.count)) <= self.observed.now)
    }

    /// Replaces one outdated pod, the highest first, and only while all members serve and are ready.
    fn roll(&mut self, scale: &Scale) {
        let Some(set) = self.members.set else { return };
        let Some(revision) = &set.update_revision else { return };
        if set.observed_generation != set.object.meta.generation {
            // Which pods are outdated is not known before.
            return self.wait(reason::STARTING, "the StatefulSet controller has not seen the newest template yet", false);
        }
        if !scale.is_empty() {
            return;
        }
        let outdated = |pod: &PodView| pod.meta.labels.get(REVISION).is_some_and(|has| has != revision);
        let Some(pod) = self.members.all.iter().rev().filter_map(|member| member.pod).find(|pod| outdated(pod)) else {
            return;
        };
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

    fn hook(&mut self, run: HookRun, why: &str) {
        self.step(Act::Member(run), why);
    }

    fn member(&self, ordinal: Ordinal) -> Option<Member<'_>> {
        self.members.all.iter().find(|member| member.ordinal == ordinal).copied()
    }

    fn object(&self, kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: self.cluster.namespace.clone(), name: name.to_owned() }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "plan_scale_tests.rs"]
mod scale_tests;
