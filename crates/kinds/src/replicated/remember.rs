//! What observation adds to the memory of a cluster.

use windlass_api::logbook::LogbookSpec;
use windlass_core::kind::Observed;

use super::Replicated;
use super::facts::Position;
use super::members::{Member, Members};
use super::validate::validate;

/// Whether the set is settled at its desired size and every member serves.
pub(super) fn all_serve(observed: &Observed<'_, Replicated>) -> bool {
    validate(observed.resource).is_ok_and(|cluster| settled(&Members::of(observed, &cluster), cluster.replicas))
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
    let counts = &mut logbook.counts;
    counts.largest = counts.largest.max(size);
    // Every member that was ever part of the set may hold data, until the set was made smaller on purpose and all that remain serve.
    counts.restore = if settled(&members, cluster.replicas) { size } else { counts.restore.max(if logbook.histories.is_empty() { 0 } else { size }) };
    for member in members.primaries() {
        if let Some(Position::At { history: Some(history), .. }) = member.position()
            && !logbook.histories.contains(history)
        {
            logbook.histories.push(history.clone());
        }
    }
    // A seed that succeeded shows in a primary; one whose pod is gone ended with it.
    if members.primaries().next().is_some() {
        logbook.intents.retain(|intent| intent.act != "Seed");
    }
}
