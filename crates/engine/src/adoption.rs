//! Objects of somebody else: how they are refused, and what makes them ours once the user says so.
//!
//! Only metadata is touched, and of a `StatefulSet` the strategy: what else there is to change is decided when the object is seen.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::{Value, json};
use windlass_core::labels::{ADOPT, ADOPTED, FIELD_MANAGER};
use windlass_core::step::{Manifest, ObjectKind, ObjectRef};

const APPLY: &str = "Apply";

/// What makes an object that was found ours.
pub(crate) fn adoption(manifest: &Manifest, found: ObjectMeta) -> Value {
    let mut owners = found.owner_references.unwrap_or_default();
    owners.retain(|owner| owner.uid != manifest.owner.uid);
    let mut owners = json!(owners);
    if let Some(owners) = owners.as_array_mut() {
        owners.push(manifest.body()["metadata"]["ownerReferences"][0].take());
    }
    let mut body = json!({ "metadata": {
        "uid": found.uid,
        "resourceVersion": found.resource_version,
        "labels": manifest.labels,
        "annotations": { ADOPTED: "true" },
        "ownerReferences": owners,
    } });
    // What one other manager wrote we apply from now on: else nobody could ever take a field of it away.
    let mut managers = found.managed_fields.unwrap_or_default();
    if let Some(entry) = predecessor(&mut managers) {
        entry.manager = Some(FIELD_MANAGER.to_owned());
        entry.operation = Some(APPLY.to_owned());
        body["metadata"]["managedFields"] = json!(managers);
    }
    if manifest.object.kind == ObjectKind::StatefulSet {
        // From here on pods are replaced by us alone.
        body["spec"] = json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } });
    }
    body
}

/// The operator before us: the one that applied the object, or, where nobody applies, the one that wrote whose it is. What people wrote
/// beside it stays theirs.
fn predecessor(managers: &mut [ManagedFieldsEntry]) -> Option<&mut ManagedFieldsEntry> {
    if managers.iter().any(|it| it.manager.as_deref() == Some(FIELD_MANAGER)) {
        return None;
    }
    let applies = |it: &ManagedFieldsEntry| it.operation.as_deref() == Some(APPLY);
    let nobody_applies = !managers.iter().any(applies);
    let owns = |it: &ManagedFieldsEntry| {
        let fields = it.fields_v1.as_ref().map(|fields| &fields.0["f:metadata"]["f:ownerReferences"]);
        fields.is_some_and(|fields| !fields.is_null())
    };
    let mut fit = managers.iter_mut().filter(|it| it.subresource.is_none() && (applies(it) || (nobody_applies && owns(it))));
    match (fit.next(), fit.next()) {
        (Some(sole), None) => Some(sole),
        _ => None,
    }
}

/// Why an object is not touched.
pub(crate) fn foreign(object: &ObjectRef, found: &ObjectMeta) -> String {
    let owner = found.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| format!(" for {} {}", owner.kind, owner.name)).unwrap_or_default();
    let writers: BTreeSet<&str> = found.managed_fields.iter().flatten().filter_map(|it| it.manager.as_deref()).collect();
    let writers: Vec<&str> = writers.into_iter().collect();
    format!(
        "{object} is there already and was made{owner} by {}; delete or rename it, or let Windlass take it over with the annotation {ADOPT}: \"true\" \
         once nobody else writes to it",
        if writers.is_empty() { "somebody else".to_owned() } else { writers.join(", ") },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, owns: bool, subresource: Option<&str>) -> ManagedFieldsEntry {
        let fields = if owns { json!({ "f:metadata": { "f:ownerReferences": {} } }) } else { json!({ "f:metadata": {} }) };
        serde_json::from_value(json!({
            "manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields,
        }))
        .unwrap()
    }

    fn before_us(mut managers: Vec<ManagedFieldsEntry>) -> Option<String> {
        predecessor(&mut managers).and_then(|it| it.manager.clone())
    }

    #[test]
    fn who_applied_an_object_was_before_us() {
        let person = || entry("kubectl", "Update", false, None);
        assert_eq!(before_us(vec![entry("moco", "Apply", true, None), person()]).as_deref(), Some("moco"));
        assert_eq!(before_us(vec![entry("a", "Apply", true, None), entry("b", "Apply", false, None)]), None, "which one?");
    }

    #[test]
    fn where_nobody_applies_it_is_who_wrote_whose_the_object_is() {
        let (person, operator) = (entry("kubectl-edit", "Update", false, None), entry("tidb", "Update", true, None));
        assert_eq!(before_us(vec![person.clone(), operator]).as_deref(), Some("tidb"));
        assert_eq!(before_us(vec![entry("kube-controller-manager", "Update", true, Some("status"))]), None);
        assert_eq!(before_us(vec![person]), None, "what people wrote stays theirs");
        assert_eq!(before_us(Vec::new()), None);
    }

    #[test]
    fn what_we_wrote_already_has_nobody_before_us() {
        assert_eq!(before_us(vec![entry(FIELD_MANAGER, "Apply", true, None), entry("a", "Update", true, None)]), None);
    }
}
