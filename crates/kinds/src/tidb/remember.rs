//! What observation adds to the memory of a cluster: its id, which store or member each pod is, who has left for good, and the end of what
//! was announced.
//!
//! That a store has left is on record before what was announced for it ends: it is what the pod may go by, also when PD has forgotten
//! the store.

use std::time::Duration;

use strum::IntoEnumIterator as _;
use windlass_api::logbook::tidb::{MemberEntry, TidbEntries};
use windlass_api::logbook::{Intent, LogbookSpec};
use windlass_api::tidb::{Component, keys};
use windlass_core::kind::Observed;
use windlass_core::memory::Entry;
use windlass_core::ordinals::Ordinal;

use super::Tidb;
use super::answers::{PdSeen, Store, StoreState, Stores};
use super::facts::after;
use super::failover;
use super::membership::{Standing, recorded};
use super::scene::{Group, Scene};

/// By how much the clocks of a store and of Kubernetes may differ.
const SKEW: Duration = Duration::from_mins(1);

pub(super) fn remember(observed: &Observed<'_, Tidb>, logbook: &mut LogbookSpec) {
    if logbook.histories.is_empty()
        && let Some(seen) = first_heard(observed)
    {
        logbook.histories.push(seen.cluster.to_string());
    }
    let scene = Scene::of(observed, logbook);
    let mut entries = scene.entries.clone();
    if !scene.refused {
        let asked = |group: &Group<'_>| Some((group.component.to_string(), group.wish.as_ref()?.as_remembered()));
        entries.asked = scene.groups().filter_map(asked).collect();
    }
    let Ok(heard) = &scene.pd else {
        logbook.tidb = Some(entries);
        return;
    };
    entries.bootstrapped |= matches!(&heard.seen.stores, Ok(Stores::Listed(stores)) if !stores.is_empty());
    for component in [Component::Tikv, Component::Tiflash] {
        for (ordinal, store) in scene.own_stores(component) {
            if is_told_in_time(&scene, component, *ordinal, store) {
                record(&scene, component, *ordinal, store.id, &mut entries);
            }
        }
    }
    for (ordinal, member) in scene.own_members() {
        record(&scene, Component::Pd, *ordinal, member.id, &mut entries);
    }
    note_left(&scene, &mut entries);
    forget(&scene, &mut entries);
    failover::remember(&scene, &mut entries);
    logbook.intents.retain(|intent| !is_over(&scene, intent, &entries));
    logbook.tidb = Some(entries);
}

/// What PD says, when nothing was on record before. Volumes that say otherwise know better.
fn first_heard<'a>(observed: &'a Observed<'_, Tidb>) -> Option<&'a PdSeen> {
    let pd = observed.facts.pd.as_ref().filter(|pd| pd.silent.is_none())?;
    let seen = pd.seen.as_ref()?;
    let labels = observed.children.claims.values().filter_map(|claim| claim.meta.labels.get(keys::CLUSTER_ID));
    labels.into_iter().all(|id| id == seen.cluster.to_string()).then_some(seen)
}

/// What PD says of a store was said by this one, and not by one that had other volumes.
fn is_told_in_time(scene: &Scene<'_>, component: Component, ordinal: Ordinal, store: &Store) -> bool {
    let claims = scene.group(component).claims_of(ordinal);
    let newest = claims.iter().filter_map(|claim| claim.meta.created).max();
    match (store.started, newest) {
        (Some(started), Some(newest)) => after(started, SKEW) >= newest,
        _ => true,
    }
}

fn record(scene: &Scene<'_>, component: Component, ordinal: Ordinal, id: u64, entries: &mut TidbEntries) {
    let (pod, claims) = (scene.names.pod(component, ordinal), scene.group(component).volumes(ordinal));
    // Every one of them has volumes; those that are not seen yet will be.
    let is_known = |(entry, known): (&MemberEntry, u64)| known == id && !entry.left;
    if claims.is_empty() || recorded(entries.members.get(&pod), &claims).is_some_and(is_known) {
        return;
    }
    // What was on other volumes is not on these: PD only has not seen yet that it is gone.
    let is_elsewhere =
        |entry: &MemberEntry| entry.id == id.to_string() && !entry.claims.iter().any(|claim| claims.contains(&claim.as_str()));
    if entries.members.get(&pod).is_some_and(is_elsewhere) {
        return;
    }
    let claims = claims.into_iter().map(str::to_owned).collect();
    entries.members.insert(pod, MemberEntry { id: id.to_string(), claims, ..MemberEntry::default() });
}

/// Notes how much a store has to give away, with the announcement that it leaves, and forgets it with that; and how many leaders it has to
/// get back after they went elsewhere. That a member of PD was to leave is never forgotten: nobody knows when what was sent arrives.
pub(super) fn note_intents(observed: &Observed<'_, Tidb>, logbook: &mut LogbookSpec) {
    let scene = Scene::of(observed, logbook);
    let mut entries = scene.entries.clone();
    let stores = [Component::Tikv, Component::Tiflash].map(|component| (component, scene.own_stores(component)));
    let store = |pod: &str| {
        let mut all = stores.iter().flat_map(|(component, stores)| stores.iter().map(move |store| (*component, store)));
        all.find_map(|(component, (ordinal, store))| (scene.names.pod(component, *ordinal) == pod).then_some(*store))
    };
    for (pod, entry) in &mut entries.members {
        let announced = |act: &str| scene.intents.iter().any(|intent| intent.act == act && intent.target == *pod);
        let regions = entry.regions.or_else(|| store(pod).map(|store| store.regions));
        entry.regions = regions.filter(|_| announced(super::DELETE_STORE));
        let leaders =
            entry.leaders.or_else(|| store(pod).map(|store| store.leaders).filter(|_| announced(super::EVICT_LEADERS)));
        entry.leaders = leaders.filter(|led| announced(super::EVICT_LEADERS) || scene.awaits(pod, *led));
        let identity = entry.id.parse().ok().map(|id| scene.identity(id));
        let sent = |it: &Intent| it.act == super::DELETE_PD_MEMBER && Some(&it.uid) == identity.as_ref();
        entry.sent_away |= scene.intents.iter().any(sent);
    }
    if entries != scene.entries {
        logbook.tidb = Some(entries);
    }
}

/// Notes who has left for good, while PD still tells.
fn note_left(scene: &Scene<'_>, entries: &mut TidbEntries) {
    let left = |component: Component, ordinal: Ordinal| match component {
        Component::Pd => scene.membership(ordinal) == Standing::Left,
        _ => scene.standing(component, ordinal) == Standing::Left,
    };
    for component in [Component::Pd, Component::Tikv, Component::Tiflash] {
        for ordinal in scene.group(component).claims.keys().copied().filter(|ordinal| left(component, *ordinal)) {
            if let Some(entry) = entries.members.get_mut(&scene.names.pod(component, ordinal)) {
                entry.left = true;
            }
        }
    }
    for (pod, entry) in entries.members.iter_mut().filter(|(_, entry)| !entry.left) {
        entry.left = is_gone_with_its_volumes(scene, pod, entry);
    }
}

/// Whether PD does not have a member any more that was on other volumes than the pod has now.
fn is_gone_with_its_volumes(scene: &Scene<'_>, pod: &str, entry: &MemberEntry) -> bool {
    let Some((component, ordinal)) = place(scene, pod) else { return false };
    let volumes = scene.group(component).volumes(ordinal);
    let Ok(id) = entry.id.parse::<u64>() else { return false };
    let is_known = match component {
        Component::Pd => scene.members().map(|members| members.iter().any(|member| member.id == id)),
        _ => scene.stores().map(|stores| stores.get(&id).is_some_and(|store| store.state != StoreState::Tombstone)),
    };
    is_known == Ok(false) && !entry.claims.iter().any(|claim| volumes.contains(&claim.as_str()))
}

/// The component and the ordinal of a pod.
fn place(scene: &Scene<'_>, pod: &str) -> Option<(Component, Ordinal)> {
    Component::ALL.into_iter().find_map(|it| Some((it, Ordinal::of_pod(&scene.names.set(it), pod)?)))
}

/// Forgets pods that are gone with all that they had.
fn forget(scene: &Scene<'_>, entries: &mut TidbEntries) {
    let is_there = |pod: &str| {
        place(scene, pod).is_some_and(|(component, ordinal)| {
            let group = scene.group(component);
            ordinal.get() < group.size().max(group.wanted())
                || !group.claims_of(ordinal).is_empty()
                || group.pods.contains_key(&ordinal)
        })
    };
    entries.members.retain(|pod, entry| is_there(pod) || !entry.left);
}

/// Whether what was announced has come to its end.
fn is_over(scene: &Scene<'_>, intent: &Intent, entries: &TidbEntries) -> bool {
    let Some(id) = intent.uid.rsplit_once('/').and_then(|(_, id)| id.parse::<u64>().ok()) else { return false };
    let Ok(heard) = &scene.pd else { return false };
    if !scene.is_settled(&intent.target, heard.asked) {
        return false;
    }
    match intent.act.as_str() {
        super::EVICT_LEADERS => {
            let unwanted = scene.wanted_evictions().is_some_and(|wanted| !wanted.contains(&id));
            unwanted && scene.evicting().is_some_and(|evicting| !evicting.contains(&id))
        }
        super::DELETE_STORE => {
            let Ok(stores) = scene.stores() else { return false };
            match stores.get(&id) {
                None | Some(Store { state: StoreState::Tombstone, .. }) => is_noted(entries, &intent.target, id),
                Some(Store { state: StoreState::Offline, .. }) => false,
                Some(_) => stays(scene, &intent.target),
            }
        }
        super::DELETE_PD_MEMBER => {
            let Ok(members) = scene.members() else { return false };
            if members.iter().any(|member| member.id == id) {
                stays(scene, &intent.target)
            } else {
                is_noted(entries, &intent.target, id)
            }
        }
        _ => false,
    }
}

/// Whether it is on record that a pod's store or member has left, or the pod is another one by now.
fn is_noted(entries: &TidbEntries, pod: &str, id: u64) -> bool {
    entries.members.get(pod).is_none_or(|entry| entry.left || entry.id != id.to_string())
}

/// Whether a pod is wanted, after all.
fn stays(scene: &Scene<'_>, pod: &str) -> bool {
    place(scene, pod).is_some_and(|(component, ordinal)| {
        let group = scene.group(component);
        group.wish.is_some() && ordinal.get() < group.wanted()
    })
}

/// PD tells everything that is on record: when it was heard, and no volume says that it is of another cluster, nothing is in doubt.
pub(super) fn proven(observed: &Observed<'_, Tidb>) -> Vec<Entry> {
    let remembered = observed.memory.entries();
    let agrees = first_heard(observed).is_some_and(|seen| {
        let id = seen.cluster.to_string();
        seen.stores.is_ok() && seen.members.is_ok() && remembered.histories.iter().all(|known| *known == id)
    });
    if agrees { Entry::iter().collect() } else { Vec::new() }
}
