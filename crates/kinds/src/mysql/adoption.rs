//! A cluster that another operator made and that was taken over: its pods, claims and passwords have names that are known, and not the
//! labels by which they are found. They get them, one by one, until all of them are seen.
//!
//! Whether a cluster is taken over is decided by the user, and carried out where its objects are met. Nothing here touches what pods are
//! made of: nothing restarts.

use serde_json::Value;
use windlass_core::labels::ADOPTED;
use windlass_core::ordinals::Ordinal;
use windlass_core::step::{Act, ObjectKind};

use super::build;
use super::plan::Planner;
use super::validate::Validated;

impl Planner<'_> {
    /// Takes over what belongs to a set that was taken over, and is not seen yet.
    pub(super) fn take_over(&mut self, cluster: &Validated) {
        let is_adopted = |annotations: &std::collections::BTreeMap<String, String>| annotations.contains_key(ADOPTED);
        let Some(set) = self.scene.set.filter(|set| is_adopted(&set.object.meta.annotations)) else { return };
        let (children, names) = (self.scene.observed.children, cluster.names());
        let mut unseen = Vec::new();
        if !children.secrets.contains_key(&names.credentials()) {
            unseen.push((ObjectKind::Secret, names.credentials(), None));
        }
        let spec = set.object.spec.value();
        let templates = spec.get("volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
        let templates: Vec<&str> = templates.filter_map(|it| it.pointer("/metadata/name")?.as_str()).collect();
        for ordinal in (0..set.replicas).map(Ordinal::new) {
            let pod = names.pod(ordinal);
            if !children.pods.contains_key(&pod) {
                unseen.push((ObjectKind::Pod, pod, Some(set.object.meta.uid.clone())));
            }
            let claims = templates.iter().map(|template| names.claim(template, ordinal));
            let claims = claims.filter(|claim| !children.claims.contains_key(claim));
            unseen.extend(claims.map(|claim| (ObjectKind::PersistentVolumeClaim, claim, None)));
        }
        for (kind, name, controller) in unseen {
            let act = Act::TakeOver { object: self.object(kind, &name), controller, labels: build::found_by(cluster) };
            self.step(act, "it belongs to a cluster that was taken over");
        }
    }
}

#[cfg(test)]
#[path = "adoption_tests.rs"]
mod tests;
