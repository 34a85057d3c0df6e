//! What observation adds to the memory of a cluster: the primary, who acknowledges, and what was made once.
//!
//! What is recorded here is on record before any server is changed because of it: plans rest on the stored logbook.

use kube::Resource as _;
use strum::IntoEnumIterator as _;
use windlass_api::logbook::mysql::{CouncilEntry, MySqlEntries, PromotionEntry, SavedEntry, VoterEntry};
use windlass_api::logbook::{Intent, LogbookSpec};
use windlass_core::kind::Observed;
use windlass_core::memory::Entry;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::PodView;

use super::MySql;
use super::acknowledging::{Council, Next, next};
use super::instance::Known;
use super::office::{Change, Office, office};
use super::scene::{Scene, server_id_base};

/// How many failovers, and how many saved surpluses, are remembered.
const REMEMBERED: usize = 16;

/// What is remembered of this kind; nothing when new.
pub(super) fn entries(logbook: &LogbookSpec) -> MySqlEntries {
    logbook.mysql.clone().unwrap_or_default()
}

pub(super) fn remember(observed: &Observed<'_, MySql>, logbook: &mut LogbookSpec) {
    let mut entries = entries(logbook);
    if entries.server_id_base == 0 {
        entries.server_id_base = server_id_base(observed.resource.meta().uid.as_deref().unwrap_or_default());
    }
    let scene = Scene::of(observed, entries.clone());
    entries.has_credentials |= observed.children.secrets.contains_key(&scene.names.credentials());
    let counts = &mut logbook.counts;
    counts.largest = counts.largest.max(scene.size);
    if observed.memory.lost().is_some() {
        // Nothing is done to any server, so there is nothing that a stop could wait for.
        entries.changing = false;
        // Who takes writes is the primary, when all were heard and it is one.
        if let Some(primary) = sole_writer(&scene) {
            entries.primary = primary;
            entries.opened = true;
            entries.server = server(&scene, primary);
        } else if let Some(primary) = sole_intermediate(&scene) {
            // All of them have what came from elsewhere, and none takes writes.
            (entries.primary, entries.server) = (primary, server(&scene, primary));
            (entries.copy_asked, entries.cloned) = (true, true);
        }
        logbook.mysql = Some(entries);
        return;
    }
    if !scene.has_history() {
        entries.server = server(&scene, entries.primary);
    }
    entries.copy_asked |= scene.outside().is_some();
    if entries.copy_asked && !scene.has_history() && scene.known(scene.primary()).is_some_and(Known::is_copied) {
        entries.cloned = true;
    }
    // Who follows a server elsewhere is not opened by us, whatever somebody did by hand.
    if scene.outside().is_none() && scene.known(scene.primary()).is_some_and(|known| !known.read_only) {
        entries.opened = true;
        logbook.intents.retain(|intent| intent.act != super::OPEN_TO_WRITES);
        logbook.counts.restore = scene.size;
    }
    if entries.opened {
        // Who came has data, whether or not somebody takes writes at that time.
        logbook.counts.restore = logbook.counts.restore.max(scene.size);
    }
    note_saved(&scene, &mut entries);
    if let Some(primary) = scene.known(scene.primary()) {
        let is_to_go = |known: &Known| known.is_errant(primary) || known.is_too_old_for(primary);
        let stays = |ordinal: Ordinal| scene.known(ordinal).is_none_or(is_to_go);
        let pods = scene.by_pod();
        let same = |pod: &PodView, uid: &str| pod.meta.uid == uid;
        let on = |intent: &Intent| pods.iter().find(|(_, pod)| same(pod, &intent.uid)).map(|(ordinal, _)| *ordinal);
        logbook.intents.retain(|intent| intent.act != super::REPLACE || on(intent).is_some_and(stays));
        entries.errant = scene.cluster().errant().into_iter().map(Ordinal::get).collect();
    }
    if scene.outside().is_some() {
        (entries.councils, entries.floor) = (Vec::new(), None);
    } else {
        council(&scene, &mut entries);
    }
    // Who is to let the servers alone begins nothing, and finishes what it began.
    let office = if scene.is_to_be_let_alone() { Office::Stay } else { office(&scene) };
    entries.changing = match office {
        Office::Prepare(_) | Office::Hand { .. } => true,
        Office::Stay | Office::Wait { .. } => entries.changing && !scene.is_at_rest(),
    };
    if let Office::Hand { to, by } = office {
        if by == Change::Failover {
            note_promotion(&scene, to, &mut entries);
        }
        entries.primary = to.get();
        entries.server = server(&scene, to.get());
    }
    logbook.mysql = Some(entries);
}

/// Records who is on the way to acknowledge, and settles when they are there.
fn council(scene: &Scene<'_>, entries: &mut MySqlEntries) {
    let Some(primary) = scene.known(scene.primary()) else { return };
    let wanted = scene.wanted_council();
    let seen = scene.settings(primary);
    let mut record = scene.record();
    match next(&record, &seen, &wanted) {
        Next::Record(council) => {
            record.add(council);
            entries.councils = record.councils.iter().map(entry).collect();
        }
        Next::Settle if primary.waiting_commits == 0 => {
            entries.councils = vec![entry(&wanted)];
            entries.floor = Some(primary.executed.to_string());
        }
        _ => {}
    }
}

/// What the new primary has of the one that it replaces. Of what else that one made, nobody was told.
fn note_promotion(scene: &Scene<'_>, to: Ordinal, entries: &mut MySqlEntries) {
    let (Some(former), Some(new)) = (scene.entries.server.clone(), scene.known(to)) else { return };
    let Ok(uuid) = former.parse() else { return };
    entries.promotions.push(PromotionEntry { former, set: new.has().of_uuid(uuid).to_string() });
    drop_oldest(&mut entries.promotions);
}

fn note_saved(scene: &Scene<'_>, entries: &mut MySqlEntries) {
    for (ordinal, pod) in scene.by_pod() {
        let saved = scene.observed.facts.of(pod).and_then(|facts| facts.saved.clone());
        let (Some(set), Some(server)) = (saved, server(scene, ordinal.get())) else { continue };
        let entry = SavedEntry { ordinal: ordinal.get(), server, set };
        if !entries.saved.contains(&entry) {
            entries.saved.push(entry);
        }
    }
    drop_oldest(&mut entries.saved);
}

fn drop_oldest<T>(entries: &mut Vec<T>) {
    entries.drain(..entries.len().saturating_sub(REMEMBERED));
}

/// Who an instance is now.
fn server(scene: &Scene<'_>, ordinal: u16) -> Option<String> {
    scene.known(Ordinal::new(ordinal)).map(|known| known.server.to_string())
}

fn entry(council: &Council) -> CouncilEntry {
    let voters = council.voters.iter().map(|it| VoterEntry { ordinal: it.ordinal.get(), server: it.server.to_string() });
    CouncilEntry { voters: voters.collect(), count: u16::try_from(council.count).unwrap_or(u16::MAX) }
}

fn sole_writer(scene: &Scene<'_>) -> Option<u16> {
    if !scene.instances.iter().all(|it| it.known.is_some()) {
        return None;
    }
    let mut writers = scene.instances.iter().filter(|it| it.known.as_ref().is_some_and(|known| !known.read_only));
    let first = writers.next()?;
    writers.next().is_none().then_some(first.ordinal.get())
}

/// The one that follows a server elsewhere, and that all others follow. Where a source is named and nobody takes writes, it is the
/// primary.
fn sole_intermediate(scene: &Scene<'_>) -> Option<u16> {
    scene.outside()?;
    let known = scene.instances.iter().map(|it| Some((it.ordinal, it.known.as_ref()?)));
    let known: Vec<(Ordinal, &Known)> = known.collect::<Option<_>>()?;
    let (primary, _) = *known.iter().find(|(_, known)| scene.follows_outside(known))?;
    let host = scene.names.host(primary);
    let follows = |known: &Known| known.replication.as_ref().is_some_and(|it| it.source_host == host);
    let fits = |(ordinal, known): &(Ordinal, &Known)| known.super_read_only && (*ordinal == primary || follows(known));
    known.iter().all(fits).then_some(primary.get())
}

/// Every instance was heard, and one of them takes writes or follows a server elsewhere for all others: then all that was remembered
/// shows in them.
pub(super) fn proven(observed: &Observed<'_, MySql>) -> Vec<Entry> {
    let scene = Scene::of(observed, entries(&observed.memory.entries()));
    let primary = sole_writer(&scene).or_else(|| sole_intermediate(&scene));
    if primary.is_some() { Entry::iter().collect() } else { Vec::new() }
}
