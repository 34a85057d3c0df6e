//! Which members are asked what, and when.
//!
//! An event (another pod, another process, a flipped readiness, a hook that ended) makes a question due at once. Quiet members are
//! asked once per interval; unsettled ones every two seconds; members that cannot be asked less and less often.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_core::kind::Observed;

use super::Replicated;
use super::facts::{Dated, Role};
use super::hooks::{About, Question};
use super::members::{Member, Members};
use super::validate::{Validated, understand};

const UNSETTLED: Duration = Duration::from_secs(2);
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// How long to wait after this many failures in a row.
pub(super) fn backoff(count: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(count.min(10))).min(LONGEST_BACKOFF)
}

pub(super) fn due_at(at: Timestamp, after: Duration) -> Timestamp {
    SignedDuration::try_from(after).ok().and_then(|after| at.checked_add(after).ok()).unwrap_or(Timestamp::MAX)
}

/// The questions that are due now.
pub(super) fn due(observed: &Observed<'_, Replicated>) -> Vec<Question> {
    let Some(cluster) = understand(observed).cluster else { return Vec::new() };
    questions(observed, &cluster, &Members::of(observed, &cluster))
        .into_iter()
        .filter(|(at, _)| *at <= observed.now)
        .map(|(_, question)| question)
        .collect()
}

/// Whether a member that can be asked was never asked since the operator started: what is told now would be blindness, not news.
pub(super) fn is_blind(observed: &Observed<'_, Replicated>) -> bool {
    understand(observed).cluster.is_some_and(|cluster| {
        let members = Members::of(observed, &cluster);
        members.all.iter().any(|member| member.reachable().is_some() && member.facts().is_none_or(|facts| facts.role.is_none()))
    })
}

/// When the next question or retry is due. What is due now is under way, and its end is an event.
pub(super) fn look_again(observed: &Observed<'_, Replicated>) -> Duration {
    let Some(cluster) = understand(observed).cluster else { return LONGEST_BACKOFF };
    let members = Members::of(observed, &cluster);
    let retries = members.all.iter().filter_map(|member| member.failure().map(|it| due_at(it.at, backoff(it.count))));
    let soonest = questions(observed, &cluster, &members)
        .into_iter()
        .map(|(at, _)| at)
        .chain(retries)
        .filter(|at| *at > observed.now)
        .min();
    let wait = soonest.and_then(|at| Duration::try_from(at.duration_since(observed.now)).ok());
    wait.unwrap_or(cluster.interval).clamp(Duration::from_millis(50), cluster.interval.max(UNSETTLED))
}

fn questions(observed: &Observed<'_, Replicated>, cluster: &Validated, members: &Members<'_>) -> Vec<(Timestamp, Question)> {
    let unsettled = !members.all.iter().all(Member::serves) || members.all.len() != usize::from(cluster.replicas);
    let leaderless = members.primaries().next().is_none();
    // The history of a running cluster is asked for once, to know it again.
    let history_wanted = !leaderless && observed.memory.entries().histories.is_empty();
    let pace = if unsettled { UNSETTLED.min(cluster.interval) } else { cluster.interval };
    let last_stop = members.last_stop();
    let mut questions = Vec::new();
    for member in members.all.iter().filter(|member| member.running.is_none()) {
        let facts = member.facts();
        let role = facts.and_then(|facts| facts.role.as_ref());
        // A pod that is ready but not known to serve, or the reverse, flipped since it was asked.
        let flipped = member.pod.is_some_and(|pod| pod.ready) != member.serves();
        let mut at = when(role, if flipped { UNSETTLED.min(pace) } else { pace });
        // Whether a primary outlived those that stopped is asked at once: they wait for it.
        if member.role() == Some(&Role::Primary) && last_stop.is_some_and(|stop| member.was_asked_before(stop)) {
            at = Timestamp::MIN;
        }
        questions.extend(ask(member, cluster, About::Status).map(|question| (at, question)));
        let stopped = leaderless && matches!(member.role(), Some(Role::Stopped | Role::Stranded));
        let tells = history_wanted && member.role() == Some(&Role::Primary);
        if stopped || tells {
            let position = facts.and_then(|facts| facts.position.as_ref());
            let known = position.is_some_and(|position| position.misses == 0);
            // What a stopped member holds does not change by itself.
            if !known {
                questions.extend(ask(member, cluster, About::Sequence).map(|question| (when(position, pace), question)));
            }
        }
    }
    questions
}

fn when<T>(last: Option<&Dated<T>>, pace: Duration) -> Timestamp {
    match last {
        None => Timestamp::MIN,
        Some(last) if last.misses > 0 => due_at(last.at, backoff(last.misses)),
        Some(last) => due_at(last.at, pace),
    }
}

fn ask(member: &Member<'_>, cluster: &Validated, about: About) -> Option<Question> {
    let (command, timeout) = cluster.question(about);
    Some(Question { about, exec: member.exec(cluster, &command.command, timeout)? })
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
