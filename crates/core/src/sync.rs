//! What is copied to the metadata of a cluster's `StatefulSet`s: the custom resource's labels, so that every component finds
//! its own objects by selector, and the logbook's edition. Never to pods: that would restart them.
//!
//! Applied by a field manager of its own, unforced: a label that somebody else set stays hers, and the conflict is told.

use std::collections::BTreeMap;

use windlass_api::logbook::LogbookSpec;

use crate::bookkeeping::speaks_of_data;
use crate::labels::{LOGBOOK_EDITION, SYNCED_LABELS, is_reserved};
use crate::likeness::short_hash;
use crate::step::{Act, Action, ObjectKind, ObjectRef, Step};
use crate::views::{Children, Meta};

/// The steps that make the copies so.
pub fn steps<A: Action>(
    labels: Option<&BTreeMap<String, String>>,
    stored: Option<&LogbookSpec>,
    children: &Children,
) -> Vec<Step<A>> {
    let labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !is_reserved(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut annotations = BTreeMap::new();
    if !labels.is_empty() {
        annotations.insert(SYNCED_LABELS.to_owned(), short_hash(&format!("{labels:?}")));
    }
    if let Some(stored) = stored.filter(|stored| speaks_of_data(stored)) {
        annotations.insert(LOGBOOK_EDITION.to_owned(), stored.edition.to_string());
    }
    let sets = children.stateful_sets.values().map(|set| &set.object.meta).filter(|meta| !meta.deleting);
    sets.filter(|meta| !is_so(meta, &labels, &annotations))
        .map(|meta| step(meta, labels.clone(), annotations.clone()))
        .collect()
}

/// The hash tells whether a label has to go as well.
fn is_so(meta: &Meta, labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> bool {
    let same = |key: &str| meta.annotations.get(key) == annotations.get(key);
    labels.iter().all(|(key, value)| meta.labels.get(key) == Some(value)) && same(SYNCED_LABELS) && same(LOGBOOK_EDITION)
}

fn step<A: Action>(meta: &Meta, labels: BTreeMap<String, String>, annotations: BTreeMap<String, String>) -> Step<A> {
    let object = ObjectRef { kind: ObjectKind::StatefulSet, namespace: meta.namespace.clone(), name: meta.name.clone() };
    let (uid, resource_version) = (meta.uid.clone(), meta.resource_version.clone());
    let act = Act::Sync { object, uid, resource_version, labels, annotations };
    Step::new(act, "labels of the custom resource and the logbook's edition are copied to it")
}
