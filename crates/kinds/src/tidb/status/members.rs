//! Single members, stores and captures, as they are told. What was not seen anew keeps the time at which it became so.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::logbook::tidb::FailureEntry;
use windlass_api::tidb::{
    Capture, Component, EvictLeader, FailureMember, FailureStore, Nothing, PdMember, PdStatus, PumpMember, Store,
    TidbFailureMember, TidbMember, TiproxyMember, UnjoinedMember, keys,
};

use super::super::answers::{self, Said, StoreState};
use super::super::membership::{component_of, pod_at, pod_of};
use super::super::scene::Group;
use super::{Tellers, is_member_well};

type Named<T> = BTreeMap<String, T>;

impl Tellers<'_, '_> {
    /// Now, in whole seconds: stored times are.
    fn now(&self) -> Time {
        let now = self.scene.observed.now;
        Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))
    }

    /// The members of PD: this cluster's own, those elsewhere, and who leads.
    pub(super) fn pd_members(&self, stored: &PdStatus) -> Option<(Named<PdMember>, Named<PdMember>, Option<PdMember>)> {
        let members = self.scene.members().ok()?;
        let leader = super::super::pd::leader(self.scene);
        let (mut own, mut others, mut leads) = (BTreeMap::new(), BTreeMap::new(), None);
        for member in members {
            let health = self.scene.is_healthy(member);
            let before = [&stored.members, &self.stored.pd.clone().unwrap_or_default().peer_members]
                .into_iter()
                .find_map(|all| all.get(&member.name).cloned());
            let since = before
                .filter(|before| before.health == health && before.id == member.id.to_string())
                .and_then(|it| it.last_transition_time);
            let told = PdMember {
                name: member.name.clone(),
                id: member.id.to_string(),
                client_url: member.client_url.clone(),
                health,
                last_transition_time: since.or_else(|| Some(self.now())),
            };
            if leader == Some(member.id) {
                leads = Some(told.clone());
            }
            let into = if pod_of(&self.scene.names, member).is_some() { &mut own } else { &mut others };
            into.insert(member.name.clone(), told);
        }
        Some((own, others, leads))
    }

    /// Pods of PD that are no members yet.
    pub(super) fn unjoined(&self, members: &Named<PdMember>) -> Named<UnjoinedMember> {
        let group = self.scene.group(Component::Pd);
        let joined = |pod: &str| members.keys().any(|name| name.split('.').next() == Some(pod));
        let pods = group.pods.iter().filter(|(_, pod)| !joined(&pod.meta.name));
        let told = pods.map(|(ordinal, pod)| {
            let pvc_uid_set = group.volumes(*ordinal).into_iter().map(|uid| (uid.to_owned(), Nothing {})).collect();
            let created_at = pod.meta.created.map(Time);
            (pod.meta.name.clone(), UnjoinedMember { pod_name: pod.meta.name.clone(), pvc_uid_set, created_at })
        });
        told.collect()
    }

    /// The stores of a component: this cluster's own, those elsewhere, and those that have left.
    pub(super) fn stores(&self, group: &Group<'_>) -> Option<(Named<Store>, Named<Store>, Named<Store>)> {
        let component = group.component;
        let (mut own, mut others, mut left) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for store in self.scene.stores().ok()?.values() {
            let is_own = pod_at(&self.scene.names, component, &store.address).is_some();
            if !is_own && component_of(store) != component {
                continue;
            }
            let into = match (store.state, is_own) {
                (StoreState::Tombstone, true) => &mut left,
                (StoreState::Tombstone, false) => continue,
                (_, true) => &mut own,
                (_, false) => &mut others,
            };
            into.insert(store.id.to_string(), self.store(component, store));
        }
        Some((own, others, left))
    }

    fn store(&self, component: Component, store: &answers::Store) -> Store {
        let state: &str = store.state.into();
        let host = store.address.rsplit_once(':').map_or(store.address.as_str(), |(host, _)| host);
        let id = store.id.to_string();
        let before = self.stored_store(component, &id).filter(|before| before.state == state);
        Store {
            pod_name: host.split('.').next().unwrap_or_default().to_owned(),
            ip: host.to_owned(),
            state: state.to_owned(),
            last_transition_time: before.and_then(|it| it.last_transition_time.clone()).or_else(|| Some(self.now())),
            id,
        }
    }

    fn stored_store(&self, component: Component, id: &str) -> Option<&Store> {
        let all = match component {
            Component::Tiflash => self.stored.tiflash.as_ref().map(|it| [&it.stores, &it.peer_stores, &it.tombstone_stores]),
            _ => self.stored.tikv.as_ref().map(|it| [&it.stores, &it.peer_stores, &it.tombstone_stores]),
        };
        all.into_iter().flatten().find_map(|stores| stores.get(id))
    }

    fn failures(&self, component: Component) -> impl Iterator<Item = (&String, &FailureEntry)> {
        self.scene.entries.failures.iter().filter(move |(_, it)| it.component == component.as_str())
    }

    pub(super) fn failure_members(&self) -> Named<FailureMember> {
        let told = |(pod, it): (&String, &FailureEntry)| {
            let failure = FailureMember {
                pod_name: pod.clone(),
                member_id: it.id.clone(),
                pvc_uid_set: claims(it),
                member_deleted: it.removed,
                host_down: false,
                created_at: Some(Time(it.since)),
            };
            (pod.clone(), failure)
        };
        self.failures(Component::Pd).map(told).collect()
    }

    pub(super) fn failure_stores(&self, component: Component) -> Named<FailureStore> {
        let told = |(pod, it): (&String, &FailureEntry)| {
            let failure = FailureStore {
                pod_name: pod.clone(),
                store_id: it.id.clone(),
                pvc_uid_set: claims(it),
                store_deleted: it.removed,
                host_down: false,
                created_at: Some(Time(it.since)),
            };
            (it.id.clone(), failure)
        };
        self.failures(component).map(told).collect()
    }

    pub(super) fn tidb_failures(&self) -> Named<TidbFailureMember> {
        let told = |(pod, it): (&String, &FailureEntry)| {
            (pod.clone(), TidbFailureMember { pod_name: pod.clone(), created_at: Some(Time(it.since)) })
        };
        self.failures(Component::Tidb).map(told).collect()
    }

    /// Pods whose annotation asks for leaders to be elsewhere.
    pub(super) fn evict_leader(&self) -> Named<EvictLeader> {
        let group = self.scene.group(Component::Tikv);
        let asked = group.pods.iter().filter(|(ordinal, _)| self.scene.is_asked_to_evict(**ordinal));
        let told = asked.map(|(_, pod)| {
            let begun =
                self.scene.intents.iter().find(|it| it.act == super::super::EVICT_LEADERS && it.target == pod.meta.name);
            let evict = EvictLeader {
                pod_create_time: pod.meta.created.map(Time),
                begin_time: begun.map(|intent| Time(intent.announced)),
                value: pod.meta.annotations.get(keys::EVICT_LEADER).unwrap_or_default().to_owned(),
            };
            (pod.meta.name.clone(), evict)
        });
        told.collect()
    }

    pub(super) fn tidb_members(&self, group: &Group<'_>) -> Named<TidbMember> {
        let stored = self.stored.tidb.as_ref().map(|it| &it.members);
        let told = group.pods.iter().map(|(ordinal, pod)| {
            let name = pod.meta.name.clone();
            let health = is_member_well(self.scene, group, *ordinal);
            let before = stored.and_then(|all| all.get(&name)).filter(|it| it.health == health);
            let last_transition_time = before.and_then(|it| it.last_transition_time.clone()).or_else(|| Some(self.now()));
            (name.clone(), TidbMember { name, health, last_transition_time, node: String::new() })
        });
        told.collect()
    }

    pub(super) fn captures(&self, group: &Group<'_>) -> Named<Capture> {
        let told = group.pods.iter().map(|(ordinal, pod)| {
            let pod_name = pod.meta.name.clone();
            let capture = match self.scene.last_said(Component::Ticdc, *ordinal) {
                Some(Said::Ticdc { capture, version, is_owner, listed }) => Capture {
                    pod_name: pod_name.clone(),
                    id: capture.clone(),
                    version: version.clone(),
                    is_owner: *is_owner,
                    ready: listed == &Ok(true),
                },
                _ => Capture { pod_name: pod_name.clone(), ..Capture::default() },
            };
            (pod_name, capture)
        });
        told.collect()
    }

    pub(super) fn proxies(&self, group: &Group<'_>) -> Named<TiproxyMember> {
        let stored = self.stored.tiproxy.as_ref().map(|it| &it.members);
        let told = group.pods.iter().map(|(ordinal, pod)| {
            let name = pod.meta.name.clone();
            let (health, info) = match self.scene.last_said(Component::Tiproxy, *ordinal) {
                Some(Said::Tiproxy { info }) => (true, info.clone()),
                _ => (false, String::new()),
            };
            let before = stored.and_then(|all| all.get(&name)).filter(|it| it.health == health);
            let last_transition_time = before.and_then(|it| it.last_transition_time.clone()).or_else(|| Some(self.now()));
            (name.clone(), TiproxyMember { name, health, info, last_transition_time })
        });
        told.collect()
    }

    pub(super) fn pumps(&self, group: &Group<'_>) -> Vec<PumpMember> {
        let told = group.pods.keys().filter_map(|ordinal| match self.scene.last_said(Component::Pump, *ordinal)? {
            Said::Pump { node, host, state } => {
                Some(PumpMember { node_id: node.clone(), host: host.clone(), state: state.clone() })
            }
            _ => None,
        });
        told.collect()
    }
}

#[expect(clippy::zero_sized_map_values, reason = "the API has a set in this form")]
fn claims(failure: &FailureEntry) -> Named<Nothing> {
    failure.claims.iter().map(|uid| (uid.clone(), Nothing {})).collect()
}
