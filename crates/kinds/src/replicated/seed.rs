//! How a cluster that has no primary gets one: which member is the seed, or may be promoted in place.
//!
//! Rests on complete knowledge only: every member that may hold data must have answered, or been given up by the user. Unknown
//! blocks; empty beside data is a joiner; several histories are never weighed against each other.

use windlass_api::logbook::LogbookSpec;
use windlass_core::ordinals::Ordinal;

use super::facts::{Position, Role};
use super::members::{Member, Members};
use super::validate::Validated;
use super::volumes::Volume;

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This member starts the cluster.
    Seed(Ordinal),
    /// This one runs, lost its peers, and is proven to have all the data: it goes on alone.
    Promote(Ordinal),
    /// These run and lost their peers. They serve nobody, and are stopped so that all can be weighed.
    Stop(Vec<Ordinal>),
}

/// Why no member may be the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    /// What is awaited, from whom.
    pub(super) message: String,
    /// Whether it goes on only with somebody's help; else an answer is on its way.
    pub(super) stalled: bool,
}

/// A member, and what is known of its volume.
struct Heard<'a, 'b> {
    member: &'b Member<'a>,
    volume: Volume,
}

impl Heard<'_, '_> {
    /// A member that runs in any other way may have moved on since it was asked.
    fn has_answered(&self) -> bool {
        matches!(self.member.role(), Some(Role::Stopped | Role::Stranded)) && self.member.position().is_some()
    }

    /// What it held can never be heard of again, and nobody said that this is accepted.
    fn is_lost(&self) -> bool {
        self.volume.replaced && !self.volume.given_up
    }

    /// Who was given up and does not answer is not waited for. Who answers is heard.
    fn is_awaited(&self) -> bool {
        !self.volume.given_up || self.has_answered()
    }

    fn described(&self) -> String {
        let volume = match &self.volume {
            Volume { given_up: true, .. } => ", given up by the user",
            Volume { replaced: true, .. } => ", on another volume than it served from",
            _ => "",
        };
        format!("{}{volume}", self.member.described())
    }
}

/// What a member that answered holds.
struct Holding<'a> {
    ordinal: Ordinal,
    history: &'a Option<String>,
    sequence: u64,
}

/// Chooses.
pub(super) fn choose(
    cluster: &Validated,
    members: &Members<'_>,
    remembered: &LogbookSpec,
    volume: impl Fn(&Member<'_>) -> Volume,
) -> Result<Choice, Undecided> {
    let needed = usize::from(members.size().max(remembered.counts.restore));
    let heard: Vec<Heard<'_, '_>> =
        members.all.iter().take(needed).map(|member| Heard { member, volume: volume(member) }).collect();
    if heard.len() < needed {
        let problem = format!(
            "{needed} members may hold data, and only {} are in the StatefulSet; set spec.replicas to {needed} until all serve",
            heard.len()
        );
        // Whoever was not asked yet may be a primary: then all this is no trouble.
        let asked = heard.iter().all(|it| it.member.reachable().is_none() || it.member.facts().is_some());
        return Err(undecided(&heard, &problem, asked));
    }
    if heard.iter().any(Heard::is_lost) {
        let problem =
            "what a member held is lost with its volume, and it may have been the newest data; if it cannot come back";
        return Err(undecided(&heard, &with_ways_out(problem, heard.iter().filter(|it| it.is_lost())), true));
    }
    let needed_for_data = remembered.counts.restore > 0;
    let awaited: Vec<&Heard<'_, '_>> = heard.iter().filter(|it| it.is_awaited()).collect();
    if awaited.iter().any(|it| !it.has_answered()) {
        let failed = awaited.iter().any(|it| matches!(it.member.role(), Some(Role::Failed { .. })));
        let mut problem = "every member must be stopped and say what it holds".to_owned();
        // A new cluster has nothing that could be lost.
        let mut gone = awaited.iter().copied().filter(|it| it.member.reachable().is_none() && needed_for_data).peekable();
        if gone.peek().is_some() {
            problem = with_ways_out(&format!("{problem}; if one cannot come back"), gone);
        }
        return Err(undecided(&heard, &problem, failed));
    }
    let holding: Vec<Holding<'_>> = awaited.iter().filter_map(|it| held_by(it.member)).collect();
    let stranded: Vec<Ordinal> =
        awaited.iter().filter(|it| it.member.role() == Some(&Role::Stranded)).map(|it| it.member.ordinal).collect();
    let Some(first) = holding.first() else {
        return if remembered.histories.is_empty() {
            let lowest = awaited.first().map(|it| Choice::Seed(it.member.ordinal));
            lowest.ok_or_else(|| undecided(&heard, "there is no member", false))
        } else {
            let had = remembered.histories.join(", ");
            Err(undecided(&heard, &format!("all members are empty, but the cluster held data of history {had}"), true))
        };
    };
    if holding.iter().any(|it| it.history != first.history) {
        return Err(undecided(&heard, "members hold different histories", true));
    }
    if let Some(history) = first.history
        && !remembered.histories.is_empty()
        && !remembered.histories.contains(history)
    {
        let had = remembered.histories.join(", ");
        return Err(undecided(&heard, &format!("members hold history {history}, but the cluster had {had}"), true));
    }
    let newest = holding.iter().map(|it| it.sequence).max().unwrap_or_default();
    let has_all = |it: &&Holding<'_>| it.sequence == newest;
    match stranded.as_slice() {
        [] => holding
            .iter()
            .find(has_all)
            .map(|it| Choice::Seed(it.ordinal))
            .ok_or_else(|| undecided(&heard, "there is no member", false)),
        // Without histories nobody can be proven to be behind.
        [one]
            if cluster.can_promote()
                && first.history.is_some()
                && holding.iter().filter(has_all).any(|it| it.ordinal == *one) =>
        {
            Ok(Choice::Promote(*one))
        }
        _ => Ok(Choice::Stop(stranded)),
    }
}

fn held_by<'a>(member: &Member<'a>) -> Option<Holding<'a>> {
    match member.position() {
        Some(Position::At { history, sequence }) => Some(Holding { ordinal: member.ordinal, history, sequence: *sequence }),
        _ => None,
    }
}

fn with_ways_out<'a, 'b: 'a, 'c: 'b>(problem: &str, members: impl Iterator<Item = &'a Heard<'c, 'b>>) -> String {
    let ways: Vec<String> = members.map(|it| it.volume.way_out(it.member.ordinal)).collect();
    format!("{problem}, give it up by the annotation {}", ways.join(" "))
}

fn undecided(members: &[Heard<'_, '_>], problem: &str, stalled: bool) -> Undecided {
    let each: Vec<String> = members.iter().map(Heard::described).collect();
    Undecided { message: format!("no member may be the seed: {problem} ({})", each.join("; ")), stalled }
}

#[cfg(test)]
#[path = "seed_tests.rs"]
mod tests;
