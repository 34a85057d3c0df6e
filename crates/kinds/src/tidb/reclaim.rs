//! What becomes of volumes: the policy that the spec asks for is told to each of them once, and the claims of members that left for good
//! are deleted where the user wants it.
//!
//! What was told is noted on the claim, and compared with the note alone: nobody looks at volumes again and again, and what a person
//! changes on one of them by hand stays. So a note must never be wrong: it is taken away before a volume is told something else, and
//! whoever is interrupted in between tells it again. A volume goes with its claim only when the spec says so, or when it was marked as of
//! no use and the spec wants such claims to be deleted.

use windlass_api::tidb::Component;
use windlass_core::labels::RECLAIM_POLICY;
use windlass_core::ordinals::Ordinal;
use windlass_core::reclaim::{DELETE, noted};
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::ClaimView;

use super::membership::Standing;
use super::plan::Planner;
use super::scaling::is_marked;
use super::validate::Validated;

/// The components whose claims are deleted when their members have left, where the user wants it.
const RECLAIMED: [Component; 3] = [Component::Pd, Component::Tikv, Component::Tiflash];

/// Whether a claim is one of those that are deleted, sooner or later.
fn is_to_go(cluster: &Validated, component: Component, claim: &ClaimView) -> bool {
    cluster.deletes_claims && RECLAIMED.contains(&component) && is_marked(claim)
}

impl Planner<'_> {
    /// Tells every volume what the spec says. This comes before all else that is done to claims: one that is deleted in the same pass
    /// should leave a volume that knows whether it is to stay.
    pub(super) fn set_policies(&mut self, cluster: &Validated) {
        let policy = &cluster.volume_reclaim_policy;
        let claims = |component| self.scene.group(component).claims.values().flatten().map(move |claim| (component, *claim));
        let stays = |(component, claim): &(Component, &ClaimView)| !is_to_go(cluster, *component, claim);
        let untold: Vec<(&ClaimView, String)> = Component::ALL
            .into_iter()
            .flat_map(claims)
            .filter(stays)
            .filter_map(|(_, claim)| Some((claim, self.untold(claim, policy)?.to_owned())))
            .collect();
        for (claim, volume) in untold {
            self.set_policy(claim, volume, policy, format!("pvReclaimPolicy is {policy}"));
        }
    }

    /// Deletes the claims of members that have left, where the user wants it, and lets their volumes go with them.
    pub(super) fn reclaim(&mut self, cluster: &Validated) {
        if !self.trusted {
            return;
        }
        for component in RECLAIMED {
            let group = self.scene.group(component);
            let is_gone = |ordinal: Ordinal| {
                let lives = match component {
                    Component::Pd => matches!(self.scene.membership(ordinal), Standing::Is(_) | Standing::Unknown(_)),
                    _ => matches!(self.scene.standing(component, ordinal), Standing::Is(_) | Standing::Unknown(_)),
                };
                let unseen = self.scene.is_just_gone(component, ordinal);
                ordinal.get() >= group.size().max(group.wanted()) && !unseen && !lives
            };
            let claims = group.claims.iter().filter(|(ordinal, _)| is_gone(**ordinal)).flat_map(|(_, claims)| claims);
            let useless = claims.filter(|claim| is_to_go(cluster, component, claim) && !claim.meta.deleting);
            let useless: Vec<&ClaimView> = useless.copied().collect();
            for claim in useless {
                let why = "what is on it has left, and enablePVReclaim is true";
                match self.untold(claim, DELETE).map(str::to_owned) {
                    Some(volume) => self.set_policy(claim, volume, DELETE, why),
                    None => self.delete(ObjectKind::PersistentVolumeClaim, &claim.meta, why),
                }
            }
        }
    }

    /// The volume of a claim, if there is one, and it was not told this.
    fn untold<'c>(&self, claim: &'c ClaimView, policy: &str) -> Option<&'c str> {
        let is_news = self.scene.observed.settings.manages_volumes && noted(&claim.meta) != Some(policy);
        claim.volume.as_deref().filter(|_| is_news)
    }

    fn set_policy(&mut self, claim: &ClaimView, volume: String, policy: &str, why: impl Into<String>) {
        if noted(&claim.meta).is_some() {
            return self.annotate(ObjectKind::PersistentVolumeClaim, &claim.meta, &[(RECLAIM_POLICY, None)], why);
        }
        let object = self.object(ObjectKind::PersistentVolumeClaim, &claim.meta.name);
        self.step(Act::SetReclaim { object, over: claim.meta.as_judged(), volume, policy: policy.to_owned() }, why);
    }
}

#[cfg(test)]
#[path = "reclaim_tests.rs"]
mod tests;
