//! Which member may start a cluster that has no primary.
//!
//! Rests on complete knowledge only: every member that may hold data must have answered. Unknown blocks; empty beside data is a
//! joiner; several histories are never weighed against each other.

use windlass_api::logbook::LogbookSpec;
use windlass_core::ordinals::Ordinal;

use super::facts::{Position, Role};
use super::members::{Member, Members};

/// Why no member may be the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    /// What is awaited, from whom.
    pub(super) message: String,
    /// Whether it goes on only with somebody's help; else an answer is on its way.
    pub(super) stalled: bool,
}

/// Chooses the seed.
pub(super) fn choose(members: &Members<'_>, remembered: &LogbookSpec) -> Result<Ordinal, Undecided> {
    let needed = usize::from(members.size().max(remembered.counts.restore));
    let heard: Vec<&Member<'_>> = members.all.iter().take(needed).collect();
    if heard.len() < needed {
        return Err(undecided(
            &heard,
            &format!(
                "{needed} members may hold data, and only {} are in the StatefulSet; set spec.replicas to {needed} until all serve",
                heard.len()
            ),
            true,
        ));
    }
    // A member that runs in any way may have moved on since it was asked.
    let silent = heard.iter().any(|member| member.role() != Some(&Role::Stopped) || member.position().is_none());
    if silent {
        let lost = heard.iter().any(|member| matches!(member.role(), Some(Role::Failed { .. })));
        return Err(undecided(&heard, "every member must be stopped and say what it holds", lost));
    }
    let holding: Vec<(&Member<'_>, &Option<String>, u64)> = heard
        .iter()
        .filter_map(|member| match member.position() {
            Some(Position::At { history, sequence }) => Some((*member, history, *sequence)),
            _ => None,
        })
        .collect();
    let Some((_, history, _)) = holding.first() else {
        return if remembered.histories.is_empty() {
            heard.first().map(|member| member.ordinal).ok_or_else(|| undecided(&heard, "there is no member", false))
        } else {
            let had = remembered.histories.join(", ");
            Err(undecided(&heard, &format!("all members are empty, but the cluster held data of history {had}"), true))
        };
    };
    if holding.iter().any(|(_, other, _)| other != history) {
        return Err(undecided(&heard, "members hold different histories", true));
    }
    if let Some(history) = history
        && !remembered.histories.is_empty()
        && !remembered.histories.contains(history)
    {
        let had = remembered.histories.join(", ");
        return Err(undecided(&heard, &format!("members hold history {history}, but the cluster had {had}"), true));
    }
    holding
        .iter()
        .max_by_key(|(member, _, sequence)| (*sequence, std::cmp::Reverse(member.ordinal)))
        .map(|(member, _, _)| member.ordinal)
        .ok_or_else(|| undecided(&heard, "there is no member", false))
}

fn undecided(members: &[&Member<'_>], problem: &str, stalled: bool) -> Undecided {
    let each: Vec<String> = members.iter().map(|member| member.described()).collect();
    Undecided { message: format!("no member may be the seed: {problem} ({})", each.join("; ")), stalled }
}

#[cfg(test)]
#[path = "seed_tests.rs"]
mod tests;
