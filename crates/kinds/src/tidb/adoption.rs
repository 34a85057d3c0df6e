//! A cluster that another operator made and that was taken over: its pods and volumes have names that are known, and not the label by
//! which they are found. They get it, one by one; nothing else is planned before all of them are seen, since a member that is not seen
//! would count as missing.
//!
//! Whether a cluster is taken over is decided by the user, and carried out where its objects are met. Nothing here touches what pods are
//! made of: nothing restarts.

use windlass_api::tidb::Component;
use windlass_core::adoption::{Unseen, unseen};
use windlass_core::reason;
use windlass_core::step::Act;

use super::build;
use super::plan::Planner;
use super::validate::Validated;

impl Planner<'_> {
    /// Takes over what belongs to sets that were taken over, and is not seen yet. Returns whether all of it is seen.
    pub(super) fn take_over(&mut self, cluster: &Validated) -> bool {
        let before = self.plan.steps.len();
        for component in Component::ALL {
            let unseen = self.scene.group(component).live_set().map(|set| unseen(set, self.scene.observed.children));
            for Unseen { kind, name, controller } in unseen.into_iter().flatten() {
                let act =
                    Act::TakeOver { object: self.object(kind, &name), controller, labels: build::labels(cluster, component) };
                self.step(act, "it belongs to a cluster that was taken over");
            }
        }
        let count = self.plan.steps.len() - before;
        if count > 0 {
            let message =
                format!("{count} pods and volumes were made by another operator, and are taken over; nothing restarts");
            self.wait(reason!("Adopting"), message, false);
        }
        count == 0
    }
}
