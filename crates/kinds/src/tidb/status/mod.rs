//! What is told of a cluster. Computed from observation alone. Of the stored status the times are read, and, for as long as PD cannot be
//! asked, who was seen last: nothing of it is obeyed.

mod members;
mod ready;

use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::{
    Component, MemberPhase, PdStatus, PumpStatus, StatefulSetStatus, TicdcStatus, TidbClusterStatus, TidbStatus, TiflashStatus,
    TikvStatus, TiproxyStatus,
};
use windlass_core::conditions::{Common, Conditions, Previous, Truth};
use windlass_core::kind::{Observed, Report};
use windlass_core::views::{PodView, REVISION, StatefulSetView};
use windlass_core::{reason, telling};

use super::Tidb;
use super::deeds::Deed;
use super::scene::{Group, Scene};
use super::suspend;
use super::unheeded;
use super::walk::has_outdated;
use super::{failover, roll};

pub(super) use ready::{Ready, is_member_well};

pub(super) fn status(observed: &Observed<'_, Tidb>, report: &Report<'_, Deed>) -> TidbClusterStatus {
    let scene = Scene::of(observed, report.remembered);
    let stored = observed.resource.status.clone().unwrap_or_default();
    let previous = Previous::from(stored.conditions.as_slice());
    let tellers = Tellers { scene: &scene, stored: &stored };
    TidbClusterStatus {
        observed_generation: report.remembered.acted_generation,
        conditions: conditions(&scene, report).build(&previous, observed.now),
        cluster_id: cluster_id(report.remembered),
        pd: tellers.pd(),
        pdms: std::collections::BTreeMap::new(),
        tikv: tellers.tikv(),
        tidb: tellers.tidb(),
        tiflash: tellers.tiflash(),
        ticdc: tellers.ticdc(),
        tiproxy: tellers.tiproxy(),
        pump: tellers.pump(),
    }
}

fn cluster_id(logbook: &LogbookSpec) -> String {
    logbook.histories.last().cloned().unwrap_or_default()
}

fn conditions(scene: &Scene<'_>, report: &Report<'_, Deed>) -> Conditions {
    let newest = scene.observed.resource.metadata.generation.unwrap_or_default();
    let acted = report.remembered.acted_generation.unwrap_or_default();
    let mut conditions = Conditions::new(acted, &[]);
    let ready = Ready::of(scene);
    conditions.set(Common::Ready, ready.truth, ready.reason, &ready.message);
    let (available, why) = available(scene);
    let word = match available {
        Truth::True => reason!("Serving"),
        Truth::False => reason!("NotServing"),
        Truth::Unknown => reason!("PDUnknown"),
    };
    conditions.set(Common::Available, available, word, why);
    let stalled = telling::stalled(report);
    telling::tell_work(telling::busy(scene.observed, report).as_ref(), stalled.as_ref(), Some(newest), &mut conditions);
    telling::tell_lanes(scene.observed, report, &mut conditions);
    telling::tell_owner(scene.observed, report, stalled.as_ref(), &mut conditions);
    unheeded::tell(scene.observed.resource, scene.observed.settings, &mut conditions);
    conditions
}

/// Whether clients are served: PD has a majority, a store is up, and a server of TiDB answers where there is to be one.
fn available(scene: &Scene<'_>) -> (Truth, String) {
    let runs = |component: Component| scene.group(component).pods.values().any(|pod| pod.process.is_some());
    if !runs(Component::Pd) {
        return (Truth::False, "no member of PD runs".to_owned());
    }
    if let Err(unheard) = &scene.pd {
        return (Truth::Unknown, unheard.why.clone());
    }
    if !scene.pd_serves() {
        return (Truth::False, "PD has no healthy majority".to_owned());
    }
    let serves = |component: Component| {
        let group = scene.group(component);
        group.wanted() == 0 || group.pods.keys().any(|ordinal| is_member_well(scene, group, *ordinal))
    };
    let silent = [Component::Tikv, Component::Tidb].into_iter().find(|component| !serves(*component));
    match silent {
        Some(component) => (Truth::False, format!("no member of {} serves", component.title())),
        None => (Truth::True, "PD has a healthy majority, and members of TiKV and TiDB serve".to_owned()),
    }
}

/// What is being done to a component.
pub(super) fn phase(scene: &Scene<'_>, group: &Group<'_>) -> MemberPhase {
    let component = group.component;
    if suspend::is_asked(scene, component) {
        return MemberPhase::Suspend;
    }
    // These two never showed that they are scaled.
    let shows_scale = !matches!(component, Component::Ticdc | Component::Pump);
    if shows_scale && group.set.is_some() && group.size() != group.wanted() {
        return MemberPhase::Scale;
    }
    let replaces = has_outdated(group) || group.set.is_some_and(StatefulSetView::is_rolling);
    if replaces && roll::blocked(scene, component).is_none() { MemberPhase::Upgrade } else { MemberPhase::Normal }
}

/// What of a component's block comes from its objects.
struct Tellers<'s, 'a> {
    scene: &'s Scene<'a>,
    stored: &'s TidbClusterStatus,
}

impl Tellers<'_, '_> {
    /// The group of a component, if there is anything to tell of it.
    fn group(&self, component: Component) -> Option<(&Group<'_>, Option<MemberPhase>)> {
        let group = self.scene.group(component);
        let exists = group.wish.is_some() || group.set.is_some() || !group.pods.is_empty();
        exists.then(|| (group, Some(phase(self.scene, group))))
    }

    fn heard(&self) -> bool {
        self.scene.pd.is_ok()
    }

    fn pd(&self) -> Option<PdStatus> {
        let (group, phase) = self.group(Component::Pd)?;
        let stored = self.stored.pd.clone().unwrap_or_default();
        let told = PdStatus {
            synced: self.heard(),
            phase,
            stateful_set: stateful_set(group),
            members: stored.members,
            leader: stored.leader,
            failure_members: self.failure_members(),
            image: image(group),
            ..PdStatus::default()
        };
        Some(match self.pd_members(&told) {
            Some((members, peer_members, leader)) => {
                let unjoined_members = self.unjoined(&members);
                PdStatus { members, peer_members, leader, unjoined_members, ..told }
            }
            None => told,
        })
    }

    fn tikv(&self) -> Option<TikvStatus> {
        let (group, phase) = self.group(Component::Tikv)?;
        let before = self.stored.tikv.clone().unwrap_or_default();
        let (stores, peer_stores, tombstone_stores) =
            self.stores(group).unwrap_or((before.stores, before.peer_stores, before.tombstone_stores));
        Some(TikvStatus {
            synced: self.heard(),
            phase,
            boot_strapped: self.scene.entries.bootstrapped,
            stateful_set: stateful_set(group),
            selector: selector(self.scene, Component::Tikv),
            stores,
            peer_stores,
            tombstone_stores,
            failure_stores: self.failure_stores(Component::Tikv),
            failover_uid: failover::name(&self.scene.entries.failures, Component::Tikv).unwrap_or_default(),
            image: image(group),
            evict_leader: self.evict_leader(),
            ..TikvStatus::default()
        })
    }

    fn tiflash(&self) -> Option<TiflashStatus> {
        let (group, phase) = self.group(Component::Tiflash)?;
        let before = self.stored.tiflash.clone().unwrap_or_default();
        let (stores, peer_stores, tombstone_stores) =
            self.stores(group).unwrap_or((before.stores, before.peer_stores, before.tombstone_stores));
        Some(TiflashStatus {
            synced: self.heard(),
            phase,
            stateful_set: stateful_set(group),
            stores,
            peer_stores,
            tombstone_stores,
            failure_stores: self.failure_stores(Component::Tiflash),
            failover_uid: failover::name(&self.scene.entries.failures, Component::Tiflash).unwrap_or_default(),
            image: image(group),
            ..TiflashStatus::default()
        })
    }

    fn tidb(&self) -> Option<TidbStatus> {
        let (group, phase) = self.group(Component::Tidb)?;
        Some(TidbStatus {
            phase,
            stateful_set: stateful_set(group),
            members: self.tidb_members(group),
            failure_members: self.tidb_failures(),
            image: image(group),
            ..TidbStatus::default()
        })
    }

    fn ticdc(&self) -> Option<TicdcStatus> {
        let (group, phase) = self.group(Component::Ticdc)?;
        let captures = self.captures(group);
        let synced = captures.values().all(|capture| capture.ready);
        Some(TicdcStatus { synced, phase, stateful_set: stateful_set(group), captures, ..TicdcStatus::default() })
    }

    fn tiproxy(&self) -> Option<TiproxyStatus> {
        let (group, phase) = self.group(Component::Tiproxy)?;
        let members = self.proxies(group);
        let synced = members.values().all(|member| member.health);
        Some(TiproxyStatus { synced, phase, stateful_set: stateful_set(group), members, ..TiproxyStatus::default() })
    }

    fn pump(&self) -> Option<PumpStatus> {
        let (group, phase) = self.group(Component::Pump)?;
        Some(PumpStatus { phase, stateful_set: stateful_set(group), members: self.pumps(group), ..PumpStatus::default() })
    }
}

/// The set of a component, by its pods: what its controller wrote may be older.
fn stateful_set(group: &Group<'_>) -> Option<StatefulSetStatus> {
    let set = group.set?;
    let revision = |pod: &&&PodView, wanted: Option<&str>| wanted.is_some() && pod.meta.labels.get(REVISION) == wanted;
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let (current, update) = (set.current_revision.as_deref(), set.update_revision.as_deref());
    let ready = count(group.pods.values().filter(|pod| pod.ready).count());
    Some(StatefulSetStatus {
        observed_generation: set.observed_generation,
        replicas: count(group.pods.len()),
        ready_replicas: ready,
        current_replicas: count(group.pods.values().filter(|pod| revision(pod, current)).count()),
        updated_replicas: count(group.pods.values().filter(|pod| revision(pod, update)).count()),
        available_replicas: ready,
        current_revision: current.unwrap_or_default().to_owned(),
        update_revision: update.unwrap_or_default().to_owned(),
    })
}

/// The image of a component's first container.
fn image(group: &Group<'_>) -> String {
    let spec = group.set.map(|set| set.object.spec.value());
    let containers = spec.as_ref().and_then(|spec| spec.pointer("/template/spec/containers")?.as_array());
    let mine = containers.into_iter().flatten().find(|container| container["name"] == group.component.as_str());
    mine.and_then(|container| container["image"].as_str()).unwrap_or_default().to_owned()
}

/// The selector of a component's pods.
fn selector(scene: &Scene<'_>, component: Component) -> String {
    let set = scene.group(component).set.map(|set| set.object.spec.value());
    let labels = set.as_ref().and_then(|spec| spec.pointer("/selector/matchLabels")?.as_object());
    let terms: Vec<String> =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    terms.join(",")
}
