//! What observation adds to the memory of a cluster.

use strum::IntoEnumIterator as _;
use windlass_api::logbook::LogbookSpec;
use windlass_core::kind::Observed;
use windlass_core::memory::Entry;

use super::Replicated;
use super::facts::Position;
use super::members::{Member, Members};
use super::validate::validate;

/// The set is settled at its desired size and every member serves: then all that was remembered shows in them.
pub(super) fn proven(observed: &Observed<'_, Replicated>) -> Vec<Entry> {
    let all_serve =
        validate(observed.resource).is_ok_and(|cluster| settled(&Members::of(observed, &cluster), cluster.replicas));
    if all_serve { Entry::iter().collect() } else { Vec::new() }
}

fn settled(members: &Members<'_>, replicas: u16) -> bool {
    members.set.is_some_and(|set| set.observed_generation == set.object.meta.generation && set.replicas == replicas)
        && replicas > 0
        && members.all.len() == usize::from(replicas)
        && members.all.iter().all(Member::serves)
}

pub(super) fn remember(observed: &Observed<'_, Replicated>, logbook: &mut LogbookSpec) {
    let Ok(cluster) = validate(observed.resource) else { return };
    let members = Members::of(observed, &cluster);
    let size = members.size();
    for member in members.primaries() {
        if let Some(Position::At { history: Some(history), .. }) = member.position()
            && logbook.histories.is_empty()
        {
            logbook.histories.push(history.clone());
        }
    }
    let counts = &mut logbook.counts;
    // A set that is about to be made is counted with the size that it gets.
    counts.largest = counts.largest.max(if members.set.is_none() { cluster.replicas } else { size });
    // Whether there is data at all. Hooks that print plain numbers tell no history, but whoever serves has some.
    let data = counts.restore > 0 || !logbook.histories.is_empty() || members.primaries().next().is_some();
    // Every member that was ever part of the set may hold data, until the set was made smaller on purpose and all that remain serve.
    counts.restore = if settled(&members, cluster.replicas) { size } else { counts.restore.max(if data { size } else { 0 }) };
    // A seed that succeeded shows in a primary; one whose pod is gone ended with it.
    if members.primaries().next().is_some() {
        logbook.intents.retain(|intent| intent.act != "Seed");
    }
}

#[cfg(test)]
#[path = "remember_tests.rs"]
mod tests;
