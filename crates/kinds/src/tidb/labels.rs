//! What pods and volumes say of themselves: the ids that PD gave to the cluster, to stores and to members. People look for them, and
//! discovery founds no cluster while a volume says that it is of one.

use std::collections::BTreeMap;

use windlass_api::tidb::{Component, keys};
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::Meta;

use super::plan::Planner;

impl Planner<'_> {
    /// Labels the volumes of every member with what it is.
    pub(super) fn label(&mut self) {
        let Some(cluster) = self.scene.cluster_id.filter(|_| self.trusted) else { return };
        for component in Component::ALL {
            let group = self.scene.group(component);
            let mut wanted: Vec<(&Meta, BTreeMap<&str, String>)> = Vec::new();
            for (ordinal, claims) in &group.claims {
                let pod = self.scene.names.pod(component, *ordinal);
                let volumes = group.volumes(*ordinal);
                let record = self.scene.entries.members.get(&pod).filter(|it| it.claims.iter().eq(volumes.iter()) && !it.left);
                for claim in claims.iter().filter(|claim| !claim.meta.deleting) {
                    let mut labels = BTreeMap::from([(keys::CLUSTER_ID, cluster.to_string()), (keys::POD_NAME, pod.clone())]);
                    let key = if component == Component::Pd { keys::MEMBER_ID } else { keys::STORE_ID };
                    labels.extend(record.map(|record| (key, record.id.clone())));
                    wanted.push((&claim.meta, labels));
                }
            }
            for (meta, labels) in wanted {
                let missing = labels.into_iter().filter(|(key, value)| meta.labels.get(key) != Some(value.as_str()));
                let labels: BTreeMap<String, Option<String>> =
                    missing.map(|(key, value)| (key.to_owned(), Some(value))).collect();
                if labels.is_empty() {
                    continue;
                }
                let object = self.object(ObjectKind::PersistentVolumeClaim, &meta.name);
                let act = Act::Label { object, over: meta.as_judged(), labels, annotations: BTreeMap::new() };
                self.step(act, "it says to which cluster and member it belongs");
            }
        }
    }
}
