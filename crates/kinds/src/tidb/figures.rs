//! What metrics show of a cluster. What changes by itself, as regions and leaders do, is shown here and nowhere else.

use windlass_api::tidb::{Component, MemberPhase};
use windlass_core::kind::{Figures, Observed, Report};
use windlass_core::metrics::{Described, Sort, of_components, own};

use super::Tidb;
use super::answers::{Store, StoreState};
use super::deeds::Deed;
use super::scene::{Group, Scene};
use super::status::{is_member_well, phase};

const LEAVING: Described =
    own("windlass_tidb_leaving_stores", Sort::Gauge, "Stores of TiKV and TiFlash that give away what they have, to leave");
const REGIONS: Described = own(
    "windlass_tidb_leaving_regions",
    Sort::Gauge,
    "Regions that are still on stores that leave: what is moved because the cluster becomes smaller",
);
const BEGUN: Described = own(
    "windlass_tidb_leaving_regions_at_start",
    Sort::Gauge,
    "Regions that the stores that leave had when they began: how far they are is 1 less windlass_tidb_leaving_regions by this",
);
const EVICTED: Described =
    own("windlass_tidb_evicted_stores", Sort::Gauge, "Stores whose leaders are elsewhere because Windlass asked for it");
const REPLACED: Described =
    own("windlass_tidb_replaced_members", Sort::Gauge, "Members that failed, and have others in their place");

/// The name is TiDB Operator's: dashboards have it.
const ASKED: Described = of_components(
    "tidb_operator_cluster_spec_replicas",
    "Members that the spec asks for, those in place of failed ones aside; while a spec is refused, those of the last good one",
);

/// All of them.
pub(super) const METRICS: &[Described] = &[LEAVING, REGIONS, BEGUN, EVICTED, REPLACED, ASKED];

pub(super) fn figures(observed: &Observed<'_, Tidb>, report: &Report<'_, Deed>) -> Figures {
    let scene = Scene::of(observed, report.remembered);
    let phases: Vec<MemberPhase> =
        scene.groups().filter(|group| group.wish.is_some()).map(|group| phase(&scene, group)).collect();
    let worst = [MemberPhase::Suspend, MemberPhase::Scale, MemberPhase::Upgrade].into_iter().find(|it| phases.contains(it));
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let mut own = vec![(&EVICTED, count(scene.evictions().count())), (&REPLACED, count(scene.entries.failures.len()))];
    let mut members = Vec::new();
    // What PD does not tell is not shown: a zero would wake somebody up for nothing.
    if scene.stores().is_ok() {
        let stores: Vec<_> = [Component::Tikv, Component::Tiflash].map(|it| (it, scene.stores_of(it))).into();
        let leaving = || stores.iter().flat_map(|(_, all)| all).filter(|store| store.state == StoreState::Offline);
        own.push((&LEAVING, count(leaving().count())));
        #[expect(clippy::cast_precision_loss, reason = "nobody has as many regions as a float cannot count")]
        own.push((&REGIONS, leaving().map(|store| store.regions).sum::<u64>() as f64));
        // Of stores that somebody else sends away nobody noted how many they had.
        let begun = |store: &&&Store| {
            let entry = scene.entries.members.values().find(|entry| entry.id == store.id.to_string());
            entry.and_then(|entry| entry.regions).unwrap_or(store.regions).max(store.regions)
        };
        #[expect(clippy::cast_precision_loss, reason = "nobody has as many regions as a float cannot count")]
        own.push((&BEGUN, leaving().map(|store| begun(&store)).sum::<u64>() as f64));
        for (component, stores) in &stores {
            for state in [StoreState::Up, StoreState::Disconnected, StoreState::Down, StoreState::Offline] {
                let so_many = stores.iter().filter(|store| store.state == state).count();
                members.push((store_state(*component, state), so_many));
            }
        }
    }
    for group in scene.groups().filter(|group| group.wish.is_some()) {
        let healthy = match group.component {
            Component::Pd => "pd healthy",
            Component::Tidb => "tidb healthy",
            Component::Ticdc => "ticdc healthy",
            Component::Tiproxy => "tiproxy healthy",
            Component::Pump => "pump healthy",
            Component::Tikv | Component::Tiflash => continue,
        };
        members.push((healthy, group.pods.keys().filter(|ordinal| is_member_well(&scene, group, **ordinal)).count()));
    }
    let phase = match worst {
        Some(MemberPhase::Suspend) => "Suspend",
        Some(MemberPhase::Scale) => "Scale",
        Some(MemberPhase::Upgrade) => "Upgrade",
        _ => "Normal",
    };
    let asked = |group: &Group<'_>| Some((&ASKED, group.component.as_str(), f64::from(group.wish.as_ref()?.replicas)));
    Figures { phase: Some(phase), members, own, parts: scene.groups().filter_map(asked).collect() }
}

fn store_state(component: Component, state: StoreState) -> &'static str {
    match (component, state) {
        (Component::Tiflash, StoreState::Up) => "tiflash Up",
        (Component::Tiflash, StoreState::Disconnected) => "tiflash Disconnected",
        (Component::Tiflash, StoreState::Down) => "tiflash Down",
        (Component::Tiflash, StoreState::Offline) => "tiflash Offline",
        (Component::Tiflash, StoreState::Tombstone) => "tiflash Tombstone",
        (_, StoreState::Up) => "tikv Up",
        (_, StoreState::Disconnected) => "tikv Disconnected",
        (_, StoreState::Down) => "tikv Down",
        (_, StoreState::Offline) => "tikv Offline",
        (_, StoreState::Tombstone) => "tikv Tombstone",
    }
}
