//! What happened to a cluster, told once: what came on record, in the words that scripts of users look for.

use std::collections::BTreeMap;

use windlass_api::logbook::LogbookSpec;
use windlass_api::logbook::tidb::{FailureEntry, TidbEntries};
use windlass_api::tidb::Component;
use windlass_core::conditions::Reason;
use windlass_core::kind::{News, Observed, Report};
use windlass_core::reason;

use super::Tidb;
use super::deeds::Deed;
use super::unheeded;

/// What was told and is not on record. Everything else that is told here is, and so is told by whoever puts it there.
#[derive(Debug, Default)]
pub struct Told {
    /// What has no effect.
    unheeded: Option<String>,
}

fn event(warning: bool, reason: Reason, note: impl Into<String>) -> News {
    News::Event { warning, reason, note: note.into() }
}

fn entries(logbook: &LogbookSpec) -> TidbEntries {
    logbook.tidb.clone().unwrap_or_default()
}

pub(super) fn news(told: &mut Told, observed: &Observed<'_, Tidb>, report: &Report<'_, Deed>) -> Vec<News> {
    let unheeded = unheeded::news(&mut told.unheeded, observed.resource, observed.settings);
    let mut news: Vec<News> = unheeded.into_iter().collect();
    // What was lost and is found again did not happen now.
    if observed.memory.lost().is_some() {
        return news;
    }
    let stored = observed.memory.entries();
    let (before, after) = (entries(&stored), entries(report.remembered));
    if let (true, Some(id)) = (stored.histories.is_empty(), report.remembered.histories.last()) {
        news.push(event(false, reason!("ClusterFounded"), format!("PD founded cluster {id}")));
    }
    for (pod, entry) in after.members.iter().filter(|(_, it)| it.left) {
        if before.members.get(pod).is_some_and(|was| was.id == entry.id && !was.left) {
            news.push(event(false, reason!("Left"), format!("{pod} ({}) has left PD for good", entry.id)));
        }
    }
    for (pod, failure) in new_in(&after.failures, &before.failures) {
        let (word, note) = if failure.component == Component::Pd.as_str() {
            (reason!("PDMemberUnhealthy"), format!("{pod} ({}) is not healthy for too long, and is replaced", failure.id))
        } else {
            (reason!("Unhealthy"), format!("{pod} is not healthy for too long, and another one comes in its place"))
        };
        news.push(event(true, word, note));
    }
    for (pod, failure) in after.failures.iter().filter(|(_, it)| it.removed) {
        if before.failures.get(pod).is_some_and(|was| !was.removed) {
            news.push(event(false, reason!("PDMemberDeleted"), format!("{pod} ({}) was deleted from PD", failure.id)));
        }
    }
    for (pod, _) in new_in(&before.failures, &after.failures) {
        news.push(event(false, reason!("Recovery"), format!("{pod} is not replaced any more")));
    }
    news
}

fn new_in<'a>(
    these: &'a BTreeMap<String, FailureEntry>,
    others: &'a BTreeMap<String, FailureEntry>,
) -> impl Iterator<Item = (&'a String, &'a FailureEntry)> {
    these.iter().filter(|(pod, _)| !others.contains_key(*pod))
}
