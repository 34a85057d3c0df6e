//! Pure: the pods, claims and revisions a StatefulSet stands for.

use serde_json::{Map, Value, json};

use crate::object::meta;

/// The label with a pod's revision.
pub(super) const REVISION: &str = "controller-revision-hash";

/// The name of the revision of a set's template: the same template gives the same name.
pub(super) fn revision_name(set: &Value) -> String {
    // FNV-1a: small, and the same on every machine.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in set["spec"]["template"].to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{}-{:010x}", meta(set, "name"), hash & 0xff_ffff_ffff)
}

/// The reference to a set as the controller of what it makes.
pub(super) fn owner_of(set: &Value) -> Value {
    json!([{
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": meta(set, "name"),
        "uid": meta(set, "uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// Keeps a claim while pods use it.
pub(super) const PROTECTION: &str = "kubernetes.io/pvc-protection";

pub(super) fn build_revision(set: &Value, name: &str, number: u64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": meta(set, "namespace"),
            "labels": set["spec"]["selector"]["matchLabels"],
            "ownerReferences": owner_of(set),
        },
        "data": { "spec": { "template": set["spec"]["template"] } },
        "revision": number,
    })
}

/// The pod of one ordinal, from the template of a revision.
pub(super) fn build_pod(set: &Value, template: &Value, revision: &str, ordinal: u64) -> Value {
    let name = format!("{}-{ordinal}", meta(set, "name"));
    let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), json!(name));
    labels.insert("apps.kubernetes.io/pod-index".to_owned(), json!(ordinal.to_string()));
    labels.insert(REVISION.to_owned(), json!(revision));
    let mut spec = template["spec"].clone();
    spec["hostname"] = json!(name);
    spec["subdomain"] = set["spec"]["serviceName"].clone();
    let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
    for claim in claim_names(set, ordinal) {
        volumes.retain(|volume| volume["name"] != claim.0.as_str());
        volumes.push(json!({ "name": claim.0, "persistentVolumeClaim": { "claimName": claim.1 } }));
    }
    spec["volumes"] = Value::Array(volumes);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta(set, "namespace"),
            "labels": labels,
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": owner_of(set),
        },
        "spec": spec,
    })
}

/// (volume name, claim name) of every claim template.
pub(super) fn claim_names(set: &Value, ordinal: u64) -> Vec<(String, String)> {
    let templates = set["spec"]["volumeClaimTemplates"].as_array();
    templates
        .into_iter()
        .flatten()
        .map(|template| {
            let volume = meta(template, "name");
            (volume.to_owned(), format!("{volume}-{}-{ordinal}", meta(set, "name")))
        })
        .collect()
}

/// The claims of one ordinal.
pub(super) fn build_claims(set: &Value, ordinal: u64) -> Vec<Value> {
    let templates = set["spec"]["volumeClaimTemplates"].as_array();
    let names = claim_names(set, ordinal);
    templates
        .into_iter()
        .flatten()
        .zip(names)
        .map(|(template, (_, name))| {
            let mut labels: Map<String, Value> = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
            labels.extend(set["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default());
            json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": meta(set, "namespace"),
                    "labels": labels,
                    "annotations": template["metadata"]["annotations"],
                    "finalizers": [PROTECTION],
                },
                "spec": template["spec"],
            })
        })
        .collect()
}
