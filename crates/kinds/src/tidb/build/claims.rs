//! The claims that each member gets of its own. They outlive the cluster: what becomes of data is the user's to say.

use serde_json::{Value, json};

use super::super::validate::{ClaimTemplate, Group, Validated};
use super::labels;
use crate::claim_templates::Asked;

/// The claim templates of a component.
pub(super) fn templates(cluster: &Validated, group: &Group) -> Vec<Value> {
    let template = |claim: &ClaimTemplate| {
        let mut template = written(claim);
        // The controller of sets adds those of the selector only; the operator would not find its claims by these.
        template["metadata"]["labels"] = json!(labels(cluster, group.component));
        template["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
        template["spec"]["volumeMode"] = "Filesystem".into();
        template
    };
    group.claims.iter().map(template).collect()
}

/// What the user asks for.
pub(super) fn asked<'a>(group: &Group, field: &'a str) -> Asked<'a> {
    Asked { templates: group.claims.iter().map(written).collect(), field, members: "pods" }
}

fn written(claim: &ClaimTemplate) -> Value {
    let mut spec = json!({ "resources": { "requests": { "storage": claim.size } } });
    if let Some(class) = &claim.class {
        spec["storageClassName"] = class.clone().into();
    }
    json!({ "metadata": { "name": claim.name }, "spec": spec })
}
