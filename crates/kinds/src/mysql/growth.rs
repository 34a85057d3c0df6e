//! Volumes that have to grow, and the `StatefulSet` that has to be made again for it.
//!
//! The claims that are there are asked to grow first, whatever else goes on; each is compared with the spec itself, so that none is
//! forgotten. When all of them ask for enough, and the set is otherwise as it should be, the set is deleted alone and made again with
//! other claim templates. Volumes never become smaller.

use windlass_core::ordinals::Ordinal;
use windlass_core::quantity;
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::ClaimView;

use super::plan::Planner;
use super::validate::Validated;

impl Planner<'_> {
    /// Lets every claim of the cluster that asks for less ask for what the spec does. It waits for no other object.
    pub(super) fn grow(&mut self, cluster: &Validated) {
        for template in &cluster.spec.volume_claim_templates {
            let Some(name) = template.metadata.name.as_deref() else { continue };
            let requests = template.spec.resources.as_ref().and_then(|it| it.requests.as_ref());
            let Some(wanted) = requests.and_then(|it| it.get("storage")).map(|it| it.0.clone()) else { continue };
            let is_less = |claim: &&ClaimView| {
                let has = claim.requested.as_deref().and_then(quantity::bytes);
                has.is_some() && has < quantity::bytes(&wanted) && !claim.meta.deleting
            };
            let observed = self.scene.observed;
            let of_template = observed.children.claims.values().filter(|claim| self.is_of(name, &claim.meta.name));
            let smaller: Vec<&ClaimView> = of_template.filter(is_less).collect();
            for claim in smaller {
                let object = self.object(ObjectKind::PersistentVolumeClaim, &claim.meta.name);
                let from = claim.requested.clone().unwrap_or_default();
                let act = Act::Grow { object, over: claim.meta.as_judged(), from, to: wanted.clone() };
                self.step(act, format!("the spec asks for volumes of {wanted}"));
            }
        }
    }

    /// Whether a claim is one of an instance's, by this template.
    fn is_of(&self, template: &str, claim: &str) -> bool {
        let pod = claim.strip_prefix(template).and_then(|rest| rest.strip_prefix('-'));
        pod.is_some_and(|pod| Ordinal::of_pod(&self.scene.names.set(), pod).is_some())
    }

    /// Deletes the set alone. Comes after the objects: what is created after it must be the same set but for the claim templates: so everything else that there
    /// is to do to it comes first, and the template that is in force must be kept where it is found again.
    pub(super) fn recreate(&mut self, cluster: &Validated) {
        let Some(set) = self.scene.set.filter(|set| !set.object.meta.deleting) else { return };
        let concerns = |kind: ObjectKind| {
            matches!(kind, ObjectKind::StatefulSet | ObjectKind::ControllerRevision | ObjectKind::PersistentVolumeClaim)
        };
        let first = self.plan.steps.iter().find(|step| step.judged().is_some_and(|(object, _)| concerns(object.kind)));
        let wanted = if cluster.offline { 0 } else { cluster.replicas };
        let waits_for = match first {
            Some(step) => Some(format!("this is done: {step}")),
            None if set.observed_generation != set.object.meta.generation => {
                Some("its controller has seen its newest state".to_owned())
            }
            None if set.replicas != wanted => Some(format!("it has {wanted} instances, as the spec asks for")),
            None => None,
        };
        let object = self.object(ObjectKind::StatefulSet, &set.object.meta.name);
        if let Some(what) = waits_for {
            let message = format!("{object} is made again, with other claim templates and the same pods, when {what}");
            self.wait(reason!("Recreating"), message, false);
        } else {
            let act = Act::DeleteAlone { object, over: set.object.meta.as_judged() };
            self.step(act, "its claim templates cannot be changed in place; its pods run on");
        }
    }
}

#[cfg(test)]
#[path = "growth_tests.rs"]
mod tests;
