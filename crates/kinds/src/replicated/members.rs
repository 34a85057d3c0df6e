//! The members of a cluster, each with all that is known of it.

use jiff::Timestamp;
use windlass_core::kind::Observed;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{PodView, StatefulSetView};

use super::Replicated;
use super::facts::{Answer, Dated, Failure, MemberFacts, Position, Role};
use super::hooks::{Deed, Exec, HookRun};
use super::validate::Validated;

/// One member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    pub(super) ordinal: Ordinal,
    pub(super) pod: Option<&'a PodView>,
    facts: Option<&'a MemberFacts>,
    /// The hook that runs in it now.
    pub(super) running: Option<&'a HookRun>,
    has_secondaries: bool,
}

/// All members: those that have a pod, those that should have one, and those that may hold data.
#[derive(Clone, Debug)]
pub(super) struct Members<'a> {
    pub(super) all: Vec<Member<'a>>,
    /// The live `StatefulSet`.
    pub(super) set: Option<&'a StatefulSetView>,
}

impl<'a> Members<'a> {
    pub(super) fn of(observed: &Observed<'a, Replicated>, cluster: &Validated) -> Self {
        let set_name = cluster.names.stateful_set();
        let set = observed.children.stateful_sets.get(&set_name);
        let pods = &observed.children.pods;
        let highest_pod =
            pods.keys().filter_map(|pod| Ordinal::of_pod(&set_name, pod)).map(|it| it.get().saturating_add(1)).max();
        let count =
            [set.map_or(0, |set| set.replicas), cluster.replicas, highest_pod.unwrap_or(0)].into_iter().max().unwrap_or(0);
        let all = (0..count)
            .map(Ordinal::new)
            .map(|ordinal| {
                let name = ordinal.pod_name(&set_name);
                let pod = pods.get(&name);
                Member {
                    ordinal,
                    pod,
                    facts: pod.and_then(|pod| observed.facts.of(ordinal, pod)),
                    running: observed.running.iter().find(|run| run.exec.pod == name),
                    has_secondaries: cluster.has_secondaries(),
                }
            })
            .collect();
        Self { all, set }
    }

    /// How many members the `StatefulSet` has now.
    pub(super) fn size(&self) -> u16 {
        self.set.map_or(0, |set| set.replicas)
    }

    pub(super) fn primaries(&self) -> impl Iterator<Item = &Member<'a>> {
        self.all.iter().filter(|member| member.role() == Some(&Role::Primary))
    }

    /// Whether a primary answered since this member was first seen as it is now. What is known of the others may be from before the blow
    /// that hit them all, and a member that joins nobody is lost for the time that its database takes to give up.
    pub(super) fn goes_on_without(&self, member: &Member<'_>) -> bool {
        member.dated_role().is_some_and(|seen| self.primaries().any(|primary| !primary.was_asked_before(seen.since)))
    }

    /// When a member was last seen to have stopped.
    pub(super) fn last_stop(&self) -> Option<Timestamp> {
        let stopped = self.all.iter().filter(|member| member.role() == Some(&Role::Stopped));
        stopped.filter_map(Member::dated_role).map(|role| role.since).max()
    }

    /// The host names that a starting member is given: primaries first, then the others that should be there.
    pub(super) fn peers(&self, cluster: &Validated, of: Ordinal) -> Vec<String> {
        let (first, then): (Vec<&Member<'_>>, Vec<&Member<'_>>) = self
            .all
            .iter()
            .filter(|member| member.ordinal != of && (member.pod.is_some() || member.ordinal.get() < cluster.replicas))
            .partition(|member| member.role() == Some(&Role::Primary));
        first.iter().chain(then.iter()).map(|member| cluster.names.host(member.ordinal)).collect()
    }
}

impl<'a> Member<'a> {
    /// The role, if it is known.
    pub(super) fn role(&self) -> Option<&'a Role> {
        match &self.facts?.role.as_ref()?.answer {
            // Without a hook for secondaries there are none: the two codes mean the same.
            Answer::Known(Role::Secondary) if !self.has_secondaries => Some(&Role::Primary),
            Answer::Known(role) => Some(role),
            Answer::Unknown { .. } => None,
        }
    }

    fn dated_role(&self) -> Option<&'a Dated<Role>> {
        self.facts?.role.as_ref()
    }

    pub(super) fn was_asked_before(&self, time: Timestamp) -> bool {
        self.dated_role().is_none_or(|role| role.at < time)
    }

    /// What it holds, if that is known.
    pub(super) fn position(&self) -> Option<&'a Position> {
        match &self.facts?.position.as_ref()?.answer {
            Answer::Known(position) => Some(position),
            Answer::Unknown { .. } => None,
        }
    }

    pub(super) fn facts(&self) -> Option<&'a MemberFacts> {
        self.facts
    }

    pub(super) fn failure(&self) -> Option<&'a Failure> {
        self.facts?.failure.as_ref()
    }

    /// The hook that still runs in it although nobody waits for it any longer.
    pub(super) fn lingers(&self) -> Option<Deed> {
        self.facts?.lingers
    }

    /// Whether it serves, in whatever role.
    pub(super) fn serves(&self) -> bool {
        matches!(self.role(), Some(Role::Primary | Role::Secondary))
    }

    /// The pod and the process in it that hooks can reach.
    pub(super) fn reachable(&self) -> Option<(&'a PodView, &'a str)> {
        let pod = self.pod.filter(|pod| !pod.meta.deleting)?;
        Some((pod, pod.process.as_deref()?))
    }

    /// How a command is run in it.
    pub(super) fn exec(&self, cluster: &Validated, command: &[String], timeout: std::time::Duration) -> Option<Exec> {
        let (pod, process) = self.reachable()?;
        Some(Exec {
            namespace: cluster.namespace.clone(),
            pod: pod.meta.name.clone(),
            pod_uid: pod.meta.uid.clone(),
            process: process.to_owned(),
            turn: self.facts.map_or(0, |facts| facts.turn),
            ordinal: self.ordinal,
            container: cluster.hook_container().to_owned(),
            command: command.to_vec(),
            timeout,
        })
    }

    /// The hook that does this, with its arguments.
    pub(super) fn run(&self, cluster: &Validated, deed: Deed, arguments: Vec<String>) -> Option<HookRun> {
        let (command, timeout) = cluster.deed(deed);
        let mut exec = self.exec(cluster, &command.command, timeout)?;
        exec.command.extend(arguments);
        Some(HookRun { deed, exec })
    }

    /// What is known of it, in a few words, for messages.
    pub(super) fn described(&self) -> String {
        let name = self.ordinal;
        let Some(pod) = self.pod else {
            return format!("member {name}: no pod");
        };
        if pod.meta.deleting {
            return format!("member {name}: its pod is being deleted");
        }
        if pod.process.is_none() {
            return format!("member {name}: its pod is {}", if pod.phase.is_empty() { "not started" } else { &pod.phase });
        }
        let role = match self.facts.and_then(|facts| facts.role.as_ref()).map(|role| &role.answer) {
            None => "not asked yet".to_owned(),
            Some(Answer::Unknown { why, .. }) => format!("unknown ({why})"),
            Some(Answer::Known(Role::Failed { code, said })) => format!("failed with exit code {code} {said}"),
            Some(Answer::Known(role)) => format!("{role:?}").to_lowercase(),
        };
        let position = match self.facts.and_then(|facts| facts.position.as_ref()).map(|position| &position.answer) {
            None => String::new(),
            Some(Answer::Unknown { why, .. }) => format!(", position unknown ({why})"),
            Some(Answer::Known(Position::Empty)) => ", empty".to_owned(),
            Some(Answer::Known(Position::At { history: Some(history), sequence })) => format!(", at {history}:{sequence}"),
            Some(Answer::Known(Position::At { history: None, sequence })) => format!(", at {sequence}"),
        };
        format!("member {name}: {role}{position}")
    }
}
