//! Members that failed are replaced by further ones, up to a limit; and these go again when they are not needed.
//!
//! Decided only by what PD says now: a silent PD, or one that was silent until a moment ago, fails nobody. One member at a time: the
//! next one only when all that was added before is there. While anything is paused nobody is replaced.

use std::collections::BTreeMap;

use windlass_api::logbook::tidb::{FailureEntry, TidbEntries};
use windlass_api::tidb::Component;
use windlass_core::kind::Kind as _;
use windlass_core::likeness::short_hash;
use windlass_core::ordinals::Ordinal;

use super::Tidb;
use super::answers::StoreState;
use super::component::has_stores;
use super::deeds::Task;
use super::facts::{Kept, Of, after};
use super::membership::Standing;
use super::pd::can_miss;
use super::plan::Planner;
use super::scene::{Group, Scene};
use super::wishes::Recovery;

/// The components whose failed members are replaced.
const REPLACED: [Component; 4] = [Component::Pd, Component::Tikv, Component::Tiflash, Component::Tidb];

/// The name of a component's present replacement, by which the user can end it.
pub(super) fn name(failures: &BTreeMap<String, FailureEntry>, component: Component) -> Option<String> {
    let of_component = failures.iter().filter(|(_, it)| it.component == component.as_str());
    let (pod, first) = of_component.min_by_key(|(_, it)| it.since)?;
    Some(short_hash(&format!("{pod} {}", first.since)))
}

/// Notes who has failed, and who is not needed any more.
pub(super) fn remember(scene: &Scene<'_>, entries: &mut TidbEntries) {
    let requests = Tidb::pause(scene.observed.resource);
    if requests.resources.paused || requests.clustering.paused || scene.observed.memory.lost().is_some() {
        return;
    }
    for component in REPLACED {
        let group = scene.group(component);
        let Some(wish) = group.wish.as_ref().filter(|wish| !wish.suspended) else { continue };
        recover(scene, group, &wish.recovery, entries);
        let failed = entries.failures.values().filter(|it| it.component == component.as_str()).count();
        let allowed = scene.observed.settings.auto_failover && failed < usize::from(wish.failovers);
        if !allowed || !is_complete(scene, group) {
            continue;
        }
        let known = |ordinal: &Ordinal| entries.failures.contains_key(&scene.names.pod(component, *ordinal));
        let mut ordinals = (0..wish.replicas).map(Ordinal::new).filter(|ordinal| !known(ordinal));
        if let Some((ordinal, id)) = ordinals.find_map(|ordinal| Some((ordinal, has_failed(scene, group, ordinal)?))) {
            let claims = group.volumes(ordinal).into_iter().map(str::to_owned).collect();
            let (component, since) = (component.as_str().to_owned(), whole_seconds(scene.observed.now));
            let entry = FailureEntry { component, id, claims, since, ..FailureEntry::default() };
            entries.failures.insert(scene.names.pod(group.component, ordinal), entry);
        }
    }
    note_removed(scene, entries);
}

/// Whether all members are there that there are to be, failed or not: nobody comes or goes.
fn is_complete(scene: &Scene<'_>, group: &Group<'_>) -> bool {
    let joined = |ordinal: Ordinal| match group.component {
        Component::Pd => matches!(scene.membership(ordinal), Standing::Is(_)),
        Component::Tikv | Component::Tiflash => matches!(scene.standing(group.component, ordinal), Standing::Is(_)),
        _ => group.pods.contains_key(&ordinal),
    };
    group.live_set().is_some()
        && group.size() == group.wanted()
        && scene.pd_serves()
        && (0..group.size()).map(Ordinal::new).all(joined)
}

/// What a member that has failed is in PD, where PD knows it; nothing of one that has not.
fn has_failed(scene: &Scene<'_>, group: &Group<'_>, ordinal: Ordinal) -> Option<String> {
    let period = scene.observed.settings.failover_period(group.component);
    let long_ago = |since| after(since, period) <= scene.observed.now;
    let since = |of: Of, kept: Kept| {
        let (was, since) = scene.observed.facts.pd.as_ref()?.since.get(&of)?;
        (*was == kept).then_some(*since)
    };
    match group.component {
        Component::Pd => match scene.membership(ordinal) {
            Standing::Is(member) if can_miss(scene, member) => since(Of::Member(member.id), Kept::Healthy(false))
                .filter(|since| long_ago(*since))
                .map(|_| member.id.to_string()),
            _ => None,
        },
        Component::Tikv | Component::Tiflash => match scene.standing(group.component, ordinal) {
            Standing::Is(store) => {
                let down = since(Of::Store(store.id), Kept::State(StoreState::Down));
                down.filter(|since| long_ago(*since)).map(|_| store.id.to_string())
            }
            _ => None,
        },
        _ => {
            let pod = group.pods.get(&ordinal).filter(|pod| !pod.ready && !pod.meta.deleting && pod.phase != "Pending")?;
            pod.ready_since.filter(|since| long_ago(*since)).map(|_| String::new())
        }
    }
}

/// Drops those that are not needed any more.
fn recover(scene: &Scene<'_>, group: &Group<'_>, recovery: &Recovery, entries: &mut TidbEntries) {
    let component = group.component;
    let replicas = group.wish.as_ref().map_or(0, |wish| wish.replicas);
    let ordinal = |pod: &str| Ordinal::of_pod(&scene.names.set(component), pod);
    let is_well = |ordinal: Ordinal| {
        let ready = group.pods.get(&ordinal).is_some_and(|pod| pod.ready && !pod.meta.deleting);
        ready
            && match component {
                Component::Pd => matches!(scene.membership(ordinal), Standing::Is(member) if scene.is_healthy(member)),
                Component::Tikv | Component::Tiflash => {
                    matches!(scene.standing(component, ordinal), Standing::Is(store) if store.state == StoreState::Up)
                }
                _ => true,
            }
    };
    let all_well = (0..replicas).map(Ordinal::new).all(is_well);
    let wished = match recovery {
        Recovery::All => true,
        Recovery::Of(uid) => name(&entries.failures, component).as_ref() == Some(uid),
        Recovery::None => !has_stores(component),
    };
    entries.failures.retain(|pod, failure| {
        if failure.component != component.as_str() {
            return true;
        }
        let Some(ordinal) = ordinal(pod) else { return false };
        let undesired = ordinal.get() >= replicas;
        // Until PD has forgotten it, a member may simply come back.
        let came_back = match component {
            Component::Pd => !failure.removed && is_well(ordinal),
            Component::Tidb => is_well(ordinal),
            _ => false,
        };
        !(undesired || came_back || (wished && all_well))
    });
}

/// Notes which failed members PD has forgotten.
fn note_removed(scene: &Scene<'_>, entries: &mut TidbEntries) {
    let Ok(members) = scene.members() else { return };
    for failure in entries.failures.values_mut().filter(|it| it.component == Component::Pd.as_str()) {
        failure.removed |= !members.iter().any(|member| member.id.to_string() == failure.id);
    }
}

fn whole_seconds(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time)
}

impl Planner<'_> {
    /// A failed member of PD is removed first: from then on it counts for no majority, and its pod begins anew.
    pub(super) fn fail_over(&mut self) {
        let failed = self.scene.entries.failures.iter().filter(|(_, it)| it.component == Component::Pd.as_str() && !it.removed);
        let ordinals =
            failed.filter_map(|(pod, it)| Some((Ordinal::of_pod(&self.scene.names.set(Component::Pd), pod)?, it.id.clone())));
        let ordinals: Vec<(Ordinal, String)> = ordinals.collect();
        for (ordinal, id) in ordinals {
            if let Standing::Is(member) = self.scene.membership(ordinal)
                && member.id.to_string() == id
                && !self.scene.is_healthy(member)
                && can_miss(&self.scene, member)
            {
                let pod = self.scene.names.pod(Component::Pd, ordinal);
                let task = Task::DeletePdMember { id: member.id, name: member.name.clone() };
                self.pd_task(&pod, Some(member.id), task, "it is not healthy for too long, and another one comes in its place");
            }
        }
    }
}
