//! Volumes that grow, and sets that are made again for it.
//!
//! The claims that are there are asked to grow first, each compared with the spec itself. When all of them ask for enough, and the set
//! is otherwise as it should be, it is deleted alone and made again with other claim templates. Volumes never become smaller.

use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_core::quantity;
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::ClaimView;

use super::plan::Planner;
use super::validate::Validated;

impl Planner<'_> {
    /// Lets every claim of a component that asks for less ask for what the spec does. It waits for no other object.
    pub(super) fn grow(&mut self, cluster: &Validated, component: Component) {
        let templates = cluster.group(component).map(|group| group.claims.clone()).unwrap_or_default();
        for template in templates {
            let wanted = template.size.clone();
            let prefix = format!("{}-{}-", template.name, self.scene.names.set(component));
            let is_less = |claim: &&ClaimView| {
                let has = claim.requested.as_deref().and_then(quantity::bytes);
                has.is_some() && has < quantity::bytes(&wanted) && !claim.meta.deleting
            };
            let of_template = |claim: &&ClaimView| {
                let ordinal = claim.meta.name.strip_prefix(&prefix);
                ordinal.is_some_and(|ordinal| ordinal.parse::<Ordinal>().is_ok())
            };
            let observed = self.scene.observed;
            let smaller: Vec<&ClaimView> = observed.children.claims.values().filter(of_template).filter(is_less).collect();
            for claim in smaller {
                let object = self.object(ObjectKind::PersistentVolumeClaim, &claim.meta.name);
                let from = claim.requested.clone().unwrap_or_default();
                let act = Act::Grow { object, over: claim.meta.as_judged(), from, to: wanted.clone() };
                self.step(act, format!("the spec asks for volumes of {wanted}"));
            }
        }
    }

    /// Deletes a set alone. What is made after it must be the same set but for the claim templates: so everything else that there is to
    /// do to it comes first, and the template that is in force must be kept where it is found again.
    pub(super) fn recreate(&mut self, component: Component) {
        let group = self.scene.group(component);
        let Some(set) = group.live_set() else { return };
        let (name, size, wanted) = (set.object.meta.name.clone(), group.size(), group.wanted());
        let concerns = |kind: ObjectKind, other: &str| match kind {
            ObjectKind::StatefulSet => other == name,
            ObjectKind::ControllerRevision | ObjectKind::PersistentVolumeClaim => other.contains(&format!("{name}-")),
            _ => false,
        };
        // What becomes of a volume later has nothing to do with it.
        let mut due = self.plan.steps.iter().filter(|step| !matches!(step.act, Act::SetReclaim { .. }));
        let first = due.find(|step| step.judged().is_some_and(|(object, _)| concerns(object.kind, &object.name)));
        let waits_for = match first {
            Some(step) => Some(format!("this is done: {step}")),
            None if set.observed_generation != set.object.meta.generation => {
                Some("its controller has seen its newest state".to_owned())
            }
            None if size != wanted => Some(format!("it has {wanted} members, as the spec asks for")),
            None => None,
        };
        let object = self.object(ObjectKind::StatefulSet, &name);
        if let Some(what) = waits_for {
            let message = format!("{object} is made again, with other claim templates and the same pods, when {what}");
            self.wait(reason!("Recreating"), message, false);
        } else if self.trusted {
            let act = Act::DeleteAlone { object, over: set.object.meta.as_judged() };
            self.step(act, "its claim templates cannot be changed in place; its pods run on");
        }
    }
}
