//! Trouble with volumes: marks that people set and take away, volumes that are slow to go, and volumes that are lost.

use jiff::SignedDuration;
use windlass_api::tidb::keys;
use windlass_core::views::ClaimView;

use super::super::answers::StoreState;
use super::super::scaling::is_marked;
use super::super::simulation::SimulatedStore;
use super::World;

impl World {
    pub(super) fn trouble_with_volumes(&mut self) {
        let claims: Vec<String> = self.children.claims.keys().cloned().collect();
        let place = self.dice.index(claims.len());
        let Some(name) = claims.get(place).cloned() else { return };
        let version = self.fresh().to_string();
        let until = self.now.checked_add(SignedDuration::from_secs(60)).unwrap();
        match self.dice.below(8) {
            // Somebody marks a volume, or takes the mark away.
            0..=3 => {
                if !self.can_be_lost(&name) {
                    return;
                }
                let Some(claim) = self.children.claims.get_mut(&name) else { return };
                if is_marked(claim) {
                    claim.meta.annotations.remove(keys::PVC_DEFER_DELETING);
                } else {
                    claim.meta.annotations.insert(keys::PVC_DEFER_DELETING.into(), "2026-01-01T00:00:00Z".into());
                }
                claim.meta.resource_version = version;
            }
            // It will take its time to go.
            4..=6 => drop(self.lingering.insert(name, until)),
            _ => self.lose(&name, version),
        }
    }

    /// Whether PD keeps a majority of its volumes without this one: else nothing heals it.
    fn can_be_lost(&self, name: &str) -> bool {
        let kept = |id: &u64| {
            let is_of_use = |claim: &&ClaimView| claim.meta.name != name && !claim.meta.deleting && !is_marked(claim);
            let mut claims = self.children.claims.values().filter(is_of_use);
            claims.any(|claim| self.held.get(&claim.meta.uid) == Some(id))
        };
        self.pd.members.keys().filter(|id| kept(id)).count() * 2 > self.pd.members.len()
    }

    /// A volume and its pod are gone, and what was on it with them.
    pub(super) fn lose(&mut self, name: &str, version: String) {
        if !self.can_be_lost(name) {
            return;
        }
        let Some(claim) = self.children.claims.get_mut(name) else { return };
        claim.meta.deleting = true;
        claim.meta.resource_version = version;
        let pod = self.children.pods.keys().find(|pod| name.ends_with(&format!("-{pod}"))).cloned();
        if let Some(pod) = pod {
            self.disturbed_by_hand = true;
            self.delete_pod(&pod);
        }
    }

    /// Whether somebody keeps a volume that is to go.
    pub(super) fn lingers(&self, claim: &ClaimView) -> bool {
        self.lingering.get(&claim.meta.name).is_some_and(|until| !self.calm && *until > self.now)
    }

    /// Whether the volume is there that something in PD is on.
    pub(super) fn is_held(&self, id: u64) -> bool {
        self.children.claims.values().any(|claim| self.held.get(&claim.meta.uid) == Some(&id))
    }

    /// A person lets PD forget those whose volumes were lost, for their pods cannot come back before that: members by
    /// `DELETE /members/id/ID`, stores by `DELETE /store/ID?force=true`. False when there are none.
    pub(super) fn bury(&mut self) -> bool {
        let is_lost = |(id, it): &(&u64, &SimulatedStore)| {
            it.state != StoreState::Tombstone && !it.alive && !it.destroyed && !self.is_held(**id)
        };
        if let Some(id) = self.pd.stores.iter().find(is_lost).map(|(id, _)| *id) {
            self.pd.stores.entry(id).and_modify(|it| (it.state, it.destroyed) = (StoreState::Offline, true));
            return true;
        }
        let lost = self.pd.members.iter().find(|(id, it)| !it.alive && !self.is_held(**id)).map(|(id, _)| *id);
        lost.is_some_and(|id| self.pd.members.remove(&id).is_some())
    }
}
