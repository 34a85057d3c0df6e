//! What to do to members: who is stopped, seeded, promoted, started in which role, and which of them clients are led to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_api::logbook::Intent;
use windlass_core::labels;
use windlass_core::ordinals::Ordinal;
use windlass_core::scale::Scale;
use windlass_core::step::{Act, ObjectKind};

use super::facts::Role;
use super::hooks::{Deed, HookRun, is_decisive};
use super::members::Member;
use super::plan::{Planner, reason};
use super::probes::{backoff, due_at};
use super::seed::{self, Choice};
use super::volumes::Volume;

/// A member that fails for this long is stopped, to be started again. A hook may fail once for reasons of its own.
const PATIENCE: Duration = Duration::from_secs(20);
/// A member that could not be stopped so often gets another pod.
const FUTILE_STOPS: u32 = 3;

impl Planner<'_, '_> {
    /// The label by which the client Service finds members that serve.
    pub(super) fn labels(&mut self, scale: &Scale) {
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
            let has = pod.meta.labels.get(labels::RSS_ACTIVE_MEMBER).unwrap_or("false");
            if has == value {
                continue;
            }
            let act = Act::Label {
                object: self.object(ObjectKind::Pod, &pod.meta.name),
                over: pod.meta.as_judged(),
                labels: BTreeMap::from([(labels::RSS_ACTIVE_MEMBER.to_owned(), Some(value))]),
                annotations: BTreeMap::new(),
            };
            self.step(act, if serves { "the member serves" } else { "the member does not serve" });
        }
    }

    pub(super) fn members(&mut self, scale: &Scale, proven: bool) {
        for ordinal in scale.start.iter() {
            self.hook(ordinal, Deed::Stop, "the member leaves the cluster");
        }
        if self.members.primaries().next().is_some() {
            self.mend_failed(scale);
            self.mend_stranded(scale);
            self.join(scale);
            self.change_roles(scale);
        } else if self.members.size() > 0 && self.cluster.replicas > 0 {
            self.mend_failed(scale);
            self.begin(proven);
        }
    }

    /// Starts members that are stopped while the cluster runs.
    fn join(&mut self, scale: &Scale) {
        let wanted = self.cluster.replicas.min(self.members.size());
        let primaries = self.members.primaries().count();
        let is_joining = |member: &Member<'_>| {
            member.role() == Some(&Role::Starting) || member.running.is_some_and(|run| run.deed != Deed::Stop)
        };
        // Each primary can hand its data to one member at a time.
        let mut places = primaries.saturating_sub(self.members.all.iter().filter(|member| is_joining(member)).count());
        let mut leading = self.leading();
        for member in self.members.all.clone() {
            if member.ordinal.get() >= wanted || member.running.is_some() || member.role() != Some(&Role::Stopped) {
                continue;
            }
            if let Some(told) = self.still_runs(&member) {
                self.wait(reason::STARTING, format!("member {} waits to be started; {told}", member.ordinal), false);
                continue;
            }
            let has_place = places > 0 && self.members.goes_on_without(&member);
            if scale.keep.contains(member.ordinal) || !has_place || !self.may_try(&member) {
                self.wait(reason::STARTING, format!("member {} waits to be started", member.ordinal), false);
                continue;
            }
            let deed = if leading < usize::from(self.cluster.primaries) { Deed::Primary } else { Deed::Secondary };
            if self.hook(member.ordinal, deed, "the member is stopped and the cluster runs") {
                places -= 1;
                leading += usize::from(deed == Deed::Primary);
            }
        }
    }

    /// How many are primaries, or about to be.
    fn leading(&self) -> usize {
        let starting = |member: &&Member<'_>| member.running.is_some_and(|run| run.deed == Deed::Primary);
        self.members.primaries().count() + self.members.all.iter().filter(starting).count()
    }

    /// Makes as many members primaries as are asked for, one at a time and only while all serve.
    fn change_roles(&mut self, scale: &Scale) {
        let quiet = self.members.all.iter().all(|member| member.serves() && member.running.is_none());
        if !quiet || !scale.is_empty() || !self.cluster.has_secondaries() {
            return;
        }
        let (leading, wanted) = (self.leading(), usize::from(self.cluster.primaries));
        let is = |role: Role| move |member: &&Member<'_>| member.role() == Some(&role);
        if leading < wanted {
            let lowest = self.members.all.iter().find(is(Role::Secondary)).map(|member| member.ordinal);
            self.turn(lowest, Deed::Primary, &format!("{wanted} primaries are asked for, and there are {leading}"));
        } else if leading > wanted {
            let highest = self.members.all.iter().rev().find(is(Role::Primary)).map(|member| member.ordinal);
            // Stopped, it is started again as a secondary.
            self.turn(highest, Deed::Stop, &format!("{wanted} primaries are asked for, and there are {leading}"));
        }
    }

    fn turn(&mut self, ordinal: Option<Ordinal>, deed: Deed, why: &str) {
        let member = ordinal.and_then(|ordinal| self.member(ordinal));
        if let Some(member) = member.filter(|member| self.may_try(member)) {
            self.hook(member.ordinal, deed, why);
        }
    }

    /// A member that lost its peers while the rest goes on is stopped, and joins again.
    fn mend_stranded(&mut self, scale: &Scale) {
        for member in self.members.all.clone() {
            let idle = member.running.is_none() && !scale.start.contains(member.ordinal) && self.may_try(&member);
            if member.role() == Some(&Role::Stranded) && idle && self.lasts(&member) {
                self.hook(member.ordinal, Deed::Stop, "the member lost its peers, and the cluster goes on without it");
            }
        }
    }

    /// A member that fails for some time is stopped, so that it can be started again; one that cannot be stopped gets another pod, if
    /// what it holds is on a volume.
    fn mend_failed(&mut self, scale: &Scale) {
        for member in self.members.all.clone() {
            let Some(Role::Failed { .. }) = member.role() else { continue };
            let lingers = member.lingers() == Some(Deed::Stop);
            let stops = member.failure().filter(|failure| failure.deed == Deed::Stop).map_or(0, |failure| failure.count);
            if member.running.is_some() || scale.start.contains(member.ordinal) {
                continue;
            }
            if stops < FUTILE_STOPS && !lingers {
                let due = self.lasts(&member) && self.may_try(&member);
                let begun = due && self.hook(member.ordinal, Deed::Stop, "the member failed, and is to be started again");
                if !begun {
                    self.wait(
                        reason::STARTING,
                        format!("{}; it is stopped soon, to be started again", member.described()),
                        false,
                    );
                }
                continue;
            }
            let others_end = self.members.all.iter().any(|it| it.pod.is_some_and(|pod| pod.meta.deleting));
            match member.pod.filter(|pod| !pod.meta.deleting && self.cluster.has_claims()) {
                Some(pod) if !others_end => {
                    let act = Act::Delete { object: self.object(ObjectKind::Pod, &pod.meta.name), over: pod.meta.as_judged() };
                    let why = if lingers { "in the time that the hook has".to_owned() } else { format!("{stops} times") };
                    self.step(act, format!("the member failed and could not be stopped {why}"));
                }
                Some(_) => {}
                None => {
                    let message = format!("{}; mend it, or delete its pod to start it anew", member.described());
                    self.wait(reason::MEMBER_FAILED, message, true);
                }
            }
        }
    }

    /// Whether a member has been seen like this for some time.
    fn lasts(&self, member: &Member<'_>) -> bool {
        let since = member.facts().and_then(|facts| facts.role.as_ref()).map(|role| role.since);
        since.is_some_and(|since| due_at(since, PATIENCE) <= self.observed.now)
    }

    /// No member is a primary: one is seeded, or promoted, if it can be known which.
    fn begin(&mut self, proven: bool) {
        let remembered = self.observed.memory.entries();
        if self.members.all.iter().any(|member| member.running.is_some()) || !proven {
            return;
        }
        let volume = |member: &Member<'_>| Volume::of(self.observed.children, self.cluster, &remembered, member);
        let (ordinal, deed) = match seed::choose(self.cluster, &self.members, &remembered, volume) {
            Ok(Choice::Seed(ordinal)) => (ordinal, Deed::Seed),
            Ok(Choice::Promote(ordinal)) => (ordinal, Deed::Promote),
            Ok(Choice::Stop(stranded)) => {
                for ordinal in stranded {
                    self.turn(Some(ordinal), Deed::Stop, "it lost its peers and serves nobody; stopped, all can be weighed");
                }
                return;
            }
            Err(undecided) => return self.wait(reason::SEED_UNDECIDED, undecided.message, undecided.stalled),
        };
        let Some(member) = self.member(ordinal) else { return };
        let pods: BTreeSet<&str> = self.members.all.iter().filter_map(|it| it.pod.map(|pod| pod.meta.uid.as_str())).collect();
        // A seed that was announced may still run in its pod, and ends with it at the latest.
        let announced = remembered.intents.iter().find(|it| is_decisive(it) && pods.contains(it.uid.as_str()));
        if let Some(message) = announced.and_then(|intent| self.may_run(intent, &member)) {
            return self.wait(reason::SEED_UNDECIDED, message, true);
        }
        if !self.may_try(&member) {
            return self.wait(reason::STARTING, format!("the seed {} is tried again soon", member.described()), false);
        }
        let why = match deed {
            Deed::Promote => "every other member is stopped, and none has more of the same history",
            _ => "no member is a primary, and this one has all the data there is",
        };
        self.hook(ordinal, deed, why);
    }

    /// Why an announced seed keeps this member from being the seed.
    fn may_run(&self, intent: &Intent, member: &Member<'_>) -> Option<String> {
        let pod = &intent.target;
        if Some(intent.uid.as_str()) != member.pod.map(|pod| pod.meta.uid.as_str()) {
            return Some(format!(
                "{pod} was to be the seed, and whether that still runs is unknown; delete that pod to let another be the seed"
            ));
        }
        // The same one may be tried again when it says that it is stopped: a hook out of our sight refuses to run twice. One whose end
        // we will hear of is waited for.
        self.still_runs(member).map(|told| format!("{pod} is to be the seed; {told}"))
    }

    /// What to say of a member in which a hook runs for too long.
    fn still_runs(&self, member: &Member<'_>) -> Option<String> {
        let deed = member.lingers()?;
        let (name, timeout): (&str, _) = (deed.into(), self.cluster.deed(deed).1.as_secs());
        Some(format!(
            "the hook {} in it did not end within its {timeout} s and still runs, and nothing else is begun there before it ends; look at \
             what it waits for, or delete that pod to end it",
            name.to_lowercase()
        ))
    }

    /// A hook that failed is tried again later and later, and never while it still runs.
    fn may_try(&self, member: &Member<'_>) -> bool {
        member.lingers().is_none()
            && member.failure().is_none_or(|failure| due_at(failure.at, backoff(failure.count)) <= self.observed.now)
    }

    /// Plans a hook. False when its member cannot be reached, or another one still runs in it.
    fn hook(&mut self, ordinal: Ordinal, deed: Deed, why: &str) -> bool {
        let member = self.member(ordinal).filter(|member| member.lingers().is_none());
        let Some(run) = member.and_then(|member| self.run(&member, deed)) else { return false };
        self.step(Act::Member(run), why);
        true
    }

    fn run(&self, member: &Member<'_>, deed: Deed) -> Option<HookRun> {
        let arguments = match deed {
            Deed::Seed | Deed::Promote => Vec::new(),
            Deed::Primary | Deed::Secondary | Deed::Stop => self.members.peers(self.cluster, member.ordinal),
        };
        member.run(self.cluster, deed, arguments)
    }

    fn member(&self, ordinal: Ordinal) -> Option<Member<'_>> {
        self.members.all.iter().find(|member| member.ordinal == ordinal).copied()
    }
}
