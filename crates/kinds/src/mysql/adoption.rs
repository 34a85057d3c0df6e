//! A cluster that another operator made and that was taken over: its pods, claims and passwords have names that are known, and not the
//! labels by which they are found. They get them, one by one, until all of them are seen.
//!
//! Whether a cluster is taken over is decided by the user, and carried out where its objects are met. Nothing here touches what pods are
//! made of: nothing restarts.

use windlass_core::adoption::{Unseen, is_adopted, unseen};
use windlass_core::step::{Act, ObjectKind};

use super::build;
use super::plan::Planner;
use super::validate::Validated;

impl Planner<'_> {
    /// Takes over what belongs to a set that was taken over, and is not seen yet.
    pub(super) fn take_over(&mut self, cluster: &Validated) {
        let Some(set) = self.scene.set.filter(|set| is_adopted(set)) else { return };
        let (children, credentials) = (self.scene.observed.children, cluster.names().credentials());
        let passwords = Unseen { kind: ObjectKind::Secret, name: credentials.clone(), controller: None };
        let passwords = (!children.secrets.contains_key(&credentials)).then_some(passwords);
        for Unseen { kind, name, controller } in passwords.into_iter().chain(unseen(set, children)) {
            let act = Act::TakeOver { object: self.object(kind, &name), controller, labels: build::found_by(cluster) };
            self.step(act, "it belongs to a cluster that was taken over");
        }
    }
}

#[cfg(test)]
#[path = "adoption_tests.rs"]
mod tests;
