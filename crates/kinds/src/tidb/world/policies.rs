//! What becomes of volumes when their claims go: what the world knows of it, what the operator may say of it, and how it ends.

use windlass_core::labels::RECLAIM_POLICY;
use windlass_core::reclaim::{DELETE, RETAIN, note};
use windlass_core::step::{Act, Over, Step};
use windlass_core::views::ClaimView;

use super::super::deeds::Deed;
use super::super::scaling::is_marked;
use super::World;
use super::scenarios::settled;

impl World {
    /// A claim gets its volume when its pod begins. The storage class says that it goes with the claim.
    pub(super) fn bind(&mut self, pod: &str) {
        let of_pod = format!("-{pod}");
        let mut claims = self.children.claims.values_mut();
        let Some(claim) = claims.find(|it| it.volume.is_none() && it.meta.name.ends_with(&of_pod)) else { return };
        let volume = format!("volume-of-{}", claim.meta.uid);
        claim.meta.resource_version.push_str("-bound");
        claim.volume = Some(volume.clone());
        self.policies.insert(volume, DELETE.into());
    }

    /// The claim of a volume is gone.
    pub(super) fn release(&mut self, volume: Option<String>) {
        if let Some(volume) = volume.filter(|it| self.policies.get(it).is_some_and(|policy| policy == DELETE)) {
            self.policies.remove(&volume);
        }
    }

    /// Carries a step out that is about what becomes of a volume, unless a request gets lost. Tells whether it is one.
    pub(super) fn take_policy(&mut self, step: &Step<Deed>) -> bool {
        match &step.act {
            Act::SetReclaim { object, over, volume, policy } => self.set_policy(&object.name, over, volume, policy),
            Act::Label { object, over, annotations, .. } if annotations.contains_key(RECLAIM_POLICY) => {
                let arrives = self.calm || !self.policy_dice.chance(10);
                let claim = self.children.claims.get_mut(&object.name).filter(|it| it.meta.as_judged() == *over);
                if let Some(claim) = claim.filter(|_| arrives) {
                    claim.meta.annotations.remove(RECLAIM_POLICY);
                    claim.meta.resource_version.push_str("-forgotten");
                }
            }
            _ => return false,
        }
        true
    }

    /// Two requests: one to the volume, one to the claim. Either may get lost.
    fn set_policy(&mut self, name: &str, over: &Over, volume: &str, policy: &str) {
        let lost = if self.calm { 9 } else { self.policy_dice.below(10) };
        let Some(claim) = self.children.claims.get_mut(name).filter(|it| it.meta.as_judged() == *over && lost > 0) else {
            return;
        };
        self.policies.insert(volume.to_owned(), policy.to_owned());
        if lost > 1 {
            claim.meta.annotations.insert(RECLAIM_POLICY.into(), note(policy, &over.uid));
            claim.meta.resource_version.push_str("-told");
        }
    }

    /// People change their minds about volumes, too.
    pub(super) fn trouble_with_policies(&mut self) {
        if self.policy_dice.chance(10) {
            let policy = [None, Some(RETAIN), Some(DELETE)][self.policy_dice.index(3)].map(str::to_owned);
            self.edit(|resource| resource.spec.pv_reclaim_policy = policy);
        }
    }

    fn wanted_policy(&self) -> &str {
        self.resource.spec.pv_reclaim_policy.as_deref().unwrap_or(RETAIN)
    }

    fn is_to_go(&self, claim: &ClaimView) -> bool {
        self.resource.spec.enable_pv_reclaim == Some(true) && is_marked(claim)
    }

    /// A volume goes with its claim only where the spec says so, or where it is of no use and claims are to be deleted.
    pub(super) fn judge_policy(&self, step: &Step<Deed>, uid: &str, policy: &str) {
        let claim = self.children.claims.values().find(|it| it.meta.uid == uid).unwrap();
        let is_useless = policy == DELETE && self.is_to_go(claim) && !self.held.get(uid).is_some_and(|id| self.is_in_pd(*id));
        assert!(policy == self.wanted_policy() || is_useless, "{step}, and the spec says {}", self.wanted_policy());
    }

    /// At rest every volume is as the spec says.
    pub(super) fn judge_policies(&self) {
        for claim in self.children.claims.values().filter(|claim| !self.is_to_go(claim)) {
            let policy = claim.volume.as_ref().map(|volume| self.policies[volume].as_str());
            assert!(policy.is_none_or(|policy| policy == self.wanted_policy()), "{} has {policy:?}", claim.meta.name);
        }
    }

    /// Becomes smaller by one store, and tells what came of that store's volume: the policies that it had on the way, and whether it is
    /// there at the end.
    fn lose_one(&mut self) -> (Vec<String>, bool) {
        self.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas -= 1);
        let volume = self.children.claims["tikv-a-tikv-3"].volume.clone().unwrap();
        let mut seen = vec![self.policies[&volume].clone()];
        for _ in 0..2_000 {
            self.round();
            seen.extend(self.policies.get(&volume).cloned());
            seen.dedup();
        }
        (seen, self.policies.contains_key(&volume))
    }
}

#[test]
fn volumes_are_kept_where_the_spec_says_nothing() {
    let mut world = settled(4, &[1]);
    assert!(world.policies.len() > 4 && world.policies.values().all(|policy| policy == RETAIN), "{:?}", world.policies);
    assert_eq!(world.lose_one(), (vec![RETAIN.to_owned()], true));
    let claim = &world.children.claims["tikv-a-tikv-3"];
    assert!(is_marked(claim) && !claim.meta.deleting, "{claim:?}");
}

#[test]
fn the_volume_of_a_store_that_left_goes_with_its_claim_where_the_spec_wants_it() {
    let mut world = settled(4, &[1]);
    world.edit(|resource| resource.spec.enable_pv_reclaim = Some(true));
    assert_eq!(world.lose_one(), (vec![RETAIN.to_owned(), DELETE.to_owned()], false));
    assert!(!world.children.claims.contains_key("tikv-a-tikv-3"));
    assert!(world.policies.values().all(|policy| policy == RETAIN), "{:?}", world.policies);
}

#[test]
fn a_policy_that_changes_is_told_once_to_every_volume() {
    let mut world = settled(3, &[1]);
    world.edit(|resource| resource.spec.pv_reclaim_policy = Some(DELETE.to_owned()));
    let told = |plan: &windlass_core::plan::Plan<Deed>| {
        plan.steps.iter().filter(|step| matches!(step.act, Act::SetReclaim { .. })).count()
    };
    // What was told before is forgotten first.
    assert_eq!((told(&world.pass().plan), told(&world.pass().plan)), (0, world.policies.len()));
    assert!(world.policies.values().all(|policy| policy == DELETE), "{:?}", world.policies);
    // Somebody changes one by hand, and nobody is in her way.
    world.policies.values_mut().next().unwrap().replace_range(.., RETAIN);
    assert_eq!(told(&world.pass().plan), 0);
}
