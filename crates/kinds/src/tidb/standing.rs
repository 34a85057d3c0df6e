//! How each pod of a cluster stands in PD, by what PD said and by what is on record.

use std::collections::BTreeMap;

use windlass_api::logbook::tidb::MemberEntry;
use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;

use super::answers::{PdMember, Store, StoreState, Stores};
use super::membership::{Standing, component_of, pod_at, pod_of, recorded};
use super::scene::Scene;

/// What in PD belongs to pods of this cluster. Found once: who stands where is asked for each member, many times in a pass.
#[derive(Default)]
pub(super) struct Own<'a> {
    tikv: BTreeMap<Ordinal, &'a Store>,
    tiflash: BTreeMap<Ordinal, &'a Store>,
    members: BTreeMap<Ordinal, &'a PdMember>,
}

impl<'a> Own<'a> {
    pub(super) fn of(scene: &Scene<'a>) -> Self {
        let stores = |component| {
            let own = |store: &'a Store| Some((pod_at(&scene.names, component, &store.address)?, store));
            scene.stores_of(component).into_iter().filter_map(own).collect()
        };
        let members = scene.members().unwrap_or_default().iter();
        let members = members.filter_map(|member| Some((pod_of(&scene.names, member)?, member))).collect();
        Self { tikv: stores(Component::Tikv), tiflash: stores(Component::Tiflash), members }
    }
}

impl<'a> Scene<'a> {
    /// All stores; none while there never was one.
    pub(super) fn stores(&self) -> Result<&'a BTreeMap<u64, Store>, String> {
        static NONE: BTreeMap<u64, Store> = BTreeMap::new();
        let heard = self.pd.as_ref().map_err(|unheard| unheard.why.clone())?;
        match &heard.seen.stores {
            Ok(Stores::Listed(stores)) => Ok(stores),
            Ok(Stores::NotBootstrapped) => Ok(&NONE),
            Err(why) => Err(format!("PD did not tell its stores: {why}")),
        }
    }

    /// The stores of a component that have not left, whosoever they are.
    pub(super) fn stores_of(&self, component: Component) -> Vec<&'a Store> {
        let stores = self.stores().map(BTreeMap::values).into_iter().flatten();
        stores.filter(|store| component_of(store) == component && store.state != StoreState::Tombstone).collect()
    }

    /// The stores of this cluster's own pods, those that have left aside.
    pub(super) fn own_stores(&self, component: Component) -> &BTreeMap<Ordinal, &'a Store> {
        if component == Component::Tiflash { &self.own.tiflash } else { &self.own.tikv }
    }

    /// How a pod of TiKV or TiFlash stands in PD.
    pub(super) fn standing(&self, component: Component, ordinal: Ordinal) -> Standing<&'a Store> {
        let pod = self.names.pod(component, ordinal);
        let stores = match self.stores() {
            Ok(stores) => stores,
            Err(why) => return Standing::Unknown(why),
        };
        if !self.pd.as_ref().is_ok_and(|heard| self.is_settled(&pod, heard.asked)) {
            return Standing::Unknown("it was not looked at since the last task about it".to_owned());
        }
        if let Some(store) = self.own_stores(component).get(&ordinal) {
            return Standing::Is(store);
        }
        let Some((entry, id)) = self.record(component, ordinal) else { return Standing::Never };
        match stores.get(&id) {
            _ if entry.left => Standing::Left,
            Some(store) if store.state == StoreState::Tombstone => Standing::Left,
            // It has another address than it should.
            Some(store) => Standing::Unknown(format!("store {id} of {pod} has the address {:?} in PD", store.address)),
            None if self.is_announced(super::DELETE_STORE, id) => Standing::Left,
            None => Standing::Vanished(id),
        }
    }

    /// The members of PD.
    pub(super) fn members(&self) -> Result<&'a [PdMember], String> {
        let heard = self.pd.as_ref().map_err(|unheard| unheard.why.clone())?;
        heard.seen.members.as_deref().map_err(|why| format!("PD did not tell its members: {why}"))
    }

    /// The members of PD that are this cluster's own pods.
    pub(super) fn own_members(&self) -> &BTreeMap<Ordinal, &'a PdMember> {
        &self.own.members
    }

    /// How a pod of PD stands in PD.
    pub(super) fn membership(&self, ordinal: Ordinal) -> Standing<&'a PdMember> {
        let pod = self.names.pod(Component::Pd, ordinal);
        let members = match self.members() {
            Ok(members) => members,
            Err(why) => return Standing::Unknown(why),
        };
        if !self.pd.as_ref().is_ok_and(|heard| self.is_settled(&pod, heard.asked)) {
            return Standing::Unknown("it was not looked at since the last task about it".to_owned());
        }
        if let Some(member) = self.own_members().get(&ordinal) {
            return Standing::Is(member);
        }
        let Some((entry, id)) = self.record(Component::Pd, ordinal) else { return Standing::Never };
        match members.iter().any(|member| member.id == id) {
            _ if entry.left => Standing::Left,
            true => Standing::Unknown(format!("member {id} of {pod} has another name in PD")),
            false if entry.sent_away || self.is_announced(super::DELETE_PD_MEMBER, id) => Standing::Left,
            false => Standing::Vanished(id),
        }
    }

    /// What is on record as being on the volumes of a pod, and has not left.
    pub(super) fn recorded_id(&self, component: Component, ordinal: Ordinal) -> Option<u64> {
        self.record(component, ordinal).filter(|(entry, _)| !entry.left).map(|(_, id)| id)
    }

    fn record(&self, component: Component, ordinal: Ordinal) -> Option<(&MemberEntry, u64)> {
        let entry = self.entries.members.get(&self.names.pod(component, ordinal));
        recorded(entry, &self.group(component).volumes(ordinal))
    }
}
