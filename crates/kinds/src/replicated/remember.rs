//! What observation adds to the memory of a cluster.

use strum::IntoEnumIterator as _;
use windlass_api::logbook::{LogbookSpec, Override};
use windlass_core::kind::Observed;
use windlass_core::memory::Entry;

use super::Replicated;
use super::facts::Position;
use super::hooks::is_decisive;
use super::members::{Member, Members};
use super::validate::{Validated, understand, validate};
use super::volumes;

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
    let (size, settled) = (members.size(), settled(&members, cluster.replicas));
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
    counts.restore = if settled { size } else { counts.restore.max(if data { size } else { 0 }) };
    volumes::remember(observed.children, &cluster, &members, settled, logbook);
    // A seed that succeeded shows in a primary; one whose pod is gone ended with it.
    if members.primaries().next().is_some() {
        logbook.intents.retain(|intent| !is_decisive(intent));
    } else if observed.memory.lost().is_none() {
        volumes::give_up(observed.resource, observed.children, &cluster, &members, logbook, observed.now);
        accept_restore(observed, &cluster, &members, logbook);
    }
}

/// Whoever is about to be the seed may hold data that nobody else has, long before it is seen to serve.
pub(super) fn note_intents(observed: &Observed<'_, Replicated>, logbook: &mut LogbookSpec) {
    if !logbook.intents.iter().any(is_decisive) {
        return;
    }
    let Some(cluster) = understand(observed).cluster else { return };
    let members = Members::of(observed, &cluster);
    for intent in logbook.intents.iter().filter(|it| is_decisive(it)) {
        let seed = members.all.iter().find(|member| member.pod.is_some_and(|pod| pod.meta.uid == intent.uid));
        let volume = seed.and_then(|member| volumes::present(observed.children, &cluster, member));
        if let Some(volume) = volume {
            logbook.volumes.entry(intent.target.clone()).or_insert(volume);
        }
    }
}

/// The seed's one exception: a user who changes `status.restoreReplicas` while that very number blocks the cluster is obeyed, within
/// what was ever observed. That it was changed shows in the rest of the status, which is ours and names the number that blocks.
fn accept_restore(observed: &Observed<'_, Replicated>, cluster: &Validated, members: &Members<'_>, logbook: &mut LogbookSpec) {
    let Some(status) = &observed.resource.status else { return };
    let (told, restore) = (status.restore_replicas, logbook.counts.restore);
    let blocked = is_below_restore(members, cluster, restore) && status.reason == below_restore(cluster.replicas, restore);
    if blocked && told != restore && (1..=logbook.counts.largest).contains(&told) {
        logbook.counts.restore = told;
        let (entry, value) = ("restoreReplicas".to_owned(), told.to_string());
        let uid = observed.resource.metadata.uid.clone().unwrap_or_default();
        logbook.overrides.push(Override { entry, value, uid, used: observed.now, spent: true, ..Override::default() });
    }
}

/// Whether the cluster was stopped with more members than are asked for now.
pub(super) fn is_below_restore(members: &Members<'_>, cluster: &Validated, restore: u16) -> bool {
    members.set.is_some_and(|set| set.replicas == 0) && cluster.replicas > 0 && cluster.replicas < restore
}

/// How that is told.
pub(super) fn below_restore(replicas: u16, restore: u16) -> String {
    format!(
        "spec.replicas is {replicas}, but {restore} members held data when the cluster was stopped; set it to {restore} or more, so that \
         the newest data is among them; if you know that {replicas} are enough, set status.restoreReplicas to {replicas}"
    )
}

#[cfg(test)]
#[path = "remember_tests.rs"]
mod tests;
