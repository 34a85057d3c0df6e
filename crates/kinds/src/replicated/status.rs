//! What is told of a cluster. Computed from observation alone; of the stored status only the times of conditions are read.

use windlass_api::replicated::{MembersStatus, Phase, ReplicatedStatefulSetStatus};
use windlass_core::conditions::{Common, Conditions, Previous, Reason, Truth};
use windlass_core::gate::Door;
use windlass_core::kind::{Figures, Observed, Report};
use windlass_core::lane::Lane;
use windlass_core::{reason, telling};

use super::Replicated;
use super::build;
use super::facts::Role;
use super::hooks::HookRun;
use super::members::{Member, Members};
use super::plan::reason::INVALID_SPEC;
use super::validate::understand;

pub(super) fn status(observed: &Observed<'_, Replicated>, report: &Report<'_, HookRun>) -> ReplicatedStatefulSetStatus {
    let cluster = understand(observed).cluster;
    let members = cluster.as_ref().map(|cluster| Members::of(observed, cluster));
    let members: &[Member<'_>] = members.as_ref().map_or(&[], |members| &members.all);
    let verdict = Verdict::of(observed, report, members, cluster.as_ref().map(|cluster| cluster.replicas));
    let conditions = conditions(observed, report, &verdict);
    let previous =
        observed.resource.status.as_ref().map(|status| Previous::from(status.conditions.as_slice())).unwrap_or_default();
    let controlled = |lane| *report.gate.door(lane) != Door::Closed;
    ReplicatedStatefulSetStatus {
        observed_generation: report.remembered.acted_generation,
        phase: Some(phase(&verdict, report)),
        reason: verdict.message.clone(),
        control_paused: !controlled(Lane::Resources) && !controlled(Lane::Clustering),
        conditions: conditions.build(&previous, observed.now),
        replicas: count(members.iter().filter(|member| member.pod.is_some())),
        restore_replicas: report.remembered.counts.restore,
        service_name: cluster.as_ref().map(|cluster| cluster.names.client_service()).unwrap_or_default(),
        client_port: cluster.as_ref().and_then(|cluster| cluster.ports.first()).map(|port| port.port),
        members: lists(members),
        selector: cluster.as_ref().map(selector).unwrap_or_default(),
    }
}

fn selector(cluster: &super::Validated) -> String {
    let terms: Vec<String> = build::selector(cluster).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    terms.join(",")
}

fn count<'a>(members: impl Iterator<Item = &'a Member<'a>>) -> u16 {
    u16::try_from(members.count()).unwrap_or(u16::MAX)
}

fn lists(members: &[Member<'_>]) -> MembersStatus {
    let names = |wanted: &dyn Fn(&Member<'_>) -> bool| {
        members
            .iter()
            .filter(|member| wanted(member))
            .filter_map(|member| member.pod.map(|pod| pod.meta.name.clone()))
            .collect()
    };
    MembersStatus {
        ready: names(&|member| member.pod.is_some_and(|pod| pod.ready)),
        unready: names(&|member| !member.pod.is_some_and(|pod| pod.ready)),
        failed: names(&|member| matches!(member.role(), Some(Role::Failed { .. }))),
        primary: names(&|member| member.role() == Some(&Role::Primary)),
        secondary: names(&|member| member.role() == Some(&Role::Secondary)),
    }
}

/// The state of the cluster in one word and one sentence.
struct Verdict {
    ready: bool,
    available: Truth,
    stalled: Option<(Reason, String)>,
    busy: Option<String>,
    reason: Reason,
    message: String,
    valid: bool,
}

impl Verdict {
    fn of(
        observed: &Observed<'_, Replicated>,
        report: &Report<'_, HookRun>,
        members: &[Member<'_>],
        replicas: Option<u16>,
    ) -> Self {
        let waiting = &report.plan.waiting;
        let serving = members.iter().filter(|member| member.serves()).count();
        let wanted = usize::from(replicas.unwrap_or(0));
        let ready_pods = members.iter().filter(|member| member.serves() && member.pod.is_some_and(|pod| pod.ready)).count();
        let stalled = telling::stalled(report);
        let busy = telling::busy(observed, report);
        let complete = replicas.is_some() && members.len() == wanted && ready_pods == wanted;
        // What a step of this pass changed is not seen yet: the next pass tells.
        let idle = report.plan.steps.is_empty() && busy.is_none();
        let ready = complete && idle && report.held.is_empty() && stalled.is_none() && wanted > 0;
        let available = if serving > 0 {
            Truth::True
        } else if members.iter().all(|member| member.role().is_some() || member.pod.is_none()) {
            Truth::False
        } else {
            Truth::Unknown
        };
        let (reason, message) = if let Some((reason, message)) = &stalled {
            (*reason, message.clone())
        } else if !report.held.is_empty() {
            let steps: Vec<String> = report.held.iter().map(ToString::to_string).collect();
            (reason!("HeldByPause"), format!("a pause holds back: {}", steps.join("; ")))
        } else if replicas == Some(0) && members.is_empty() {
            (reason!("Stopped"), "spec.replicas is 0; the data is kept".to_owned())
        } else if let Some(busy) = &busy {
            (reason!("Progressing"), busy.clone())
        } else if ready {
            (reason!("AllMembersServe"), format!("all {wanted} members serve"))
        } else {
            (reason!("MembersNotReady"), format!("{ready_pods} of {wanted} members serve and are ready"))
        };
        let valid = !waiting.iter().any(|it| it.reason == INVALID_SPEC);
        Self { ready, available, stalled, busy, reason, message, valid }
    }
}

fn phase(verdict: &Verdict, report: &Report<'_, HookRun>) -> Phase {
    let both_closed = [Lane::Resources, Lane::Clustering].iter().all(|lane| *report.gate.door(*lane) == Door::Closed);
    let was_complete = report.remembered.counts.restore > 0;
    match verdict {
        _ if both_closed => Phase::Paused,
        Verdict { stalled: Some(_), .. } => Phase::Failed,
        Verdict { available: Truth::True, .. } if was_complete => Phase::Running,
        Verdict { ready: true, .. } => Phase::Running,
        _ if was_complete => Phase::Recovering,
        _ => Phase::Creating,
    }
}

fn conditions(observed: &Observed<'_, Replicated>, report: &Report<'_, HookRun>, verdict: &Verdict) -> Conditions {
    let newest = observed.resource.metadata.generation.unwrap_or_default();
    let acted = report.remembered.acted_generation.unwrap_or_default();
    let mut conditions = Conditions::new(acted, &[]);
    conditions.set(Common::Ready, verdict.ready, verdict.reason, &verdict.message);
    let available = match verdict.available {
        Truth::True => (reason!("MembersServe"), "at least one member serves"),
        Truth::False => (reason!("NoMemberServes"), "no member serves"),
        Truth::Unknown => (reason!("MembersUnknown"), "members have not answered yet"),
    };
    conditions.set(Common::Available, verdict.available, available.0, available.1);
    // That a spec is refused is known for the newest one at once.
    telling::tell_work(verdict.busy.as_ref(), verdict.stalled.as_ref(), (!verdict.valid).then_some(newest), &mut conditions);
    telling::tell_lanes(observed, report, &mut conditions);
    telling::tell_owner(observed, report, verdict.stalled.as_ref(), &mut conditions);
    conditions
}

/// What metrics show of a status.
pub(super) fn figures(status: &ReplicatedStatefulSetStatus) -> Figures {
    let MembersStatus { ready, unready, failed, primary, secondary } = &status.members;
    let members = [("ready", ready), ("unready", unready), ("failed", failed), ("primary", primary), ("secondary", secondary)];
    let phase = status.phase.map(|phase| match phase {
        Phase::Creating => "Creating",
        Phase::Running => "Running",
        Phase::Paused => "Paused",
        Phase::Recovering => "Recovering",
        Phase::Failed => "Failed",
    });
    Figures { phase, members: members.map(|(state, names)| (state, names.len())).to_vec(), ..Figures::default() }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
