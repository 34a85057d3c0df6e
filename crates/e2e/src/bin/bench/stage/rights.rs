//! Who may do what: the operator exactly what its manifest grants, the writer and the fake kubelet what they need.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{KUBELET, OPERATOR, RUN, WRITER, from_json};

/// Makes the roles of a run and binds them.
pub(super) async fn grant(admin: &Client, run: &str) -> Result<()> {
    for (user, rules) in [(OPERATOR, operator_rules()?), (WRITER, writer_rules()), (KUBELET, kubelet_rules())] {
        let metadata = json!({ "name": format!("{user}-{run}"), "labels": { RUN: run } });
        let role: ClusterRole = from_json(json!({ "metadata": metadata, "rules": rules }))?;
        let binding: ClusterRoleBinding = from_json(json!({
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": metadata["name"] },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }))?;
        let parameters = PostParams::default();
        Api::all(admin.clone())
            .create(&parameters, &role)
            .await
            .with_context(|| format!("the role of {user} cannot be made"))?;
        Api::all(admin.clone())
            .create(&parameters, &binding)
            .await
            .with_context(|| format!("the role of {user} cannot be bound"))?;
    }
    Ok(())
}

/// The rules of all cluster roles in the manifest that installs the operator.
fn operator_rules() -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/windlass.yaml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: `cargo xtask gen` writes it", path.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).context("deploy/windlass.yaml cannot be read")?;
    let rules: Vec<Value> = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRole")
        .filter_map(|role| role["rules"].as_array().cloned())
        .flatten()
        .collect();
    ensure!(!rules.is_empty(), "deploy/windlass.yaml has no ClusterRole: `cargo xtask gen` writes it");
    Ok(Value::Array(rules))
}

fn writer_rules() -> Value {
    let verbs = ["create", "get", "list", "watch", "patch", "delete"];
    json!([
        { "apiGroups": [""], "resources": ["services", "configmaps"], "verbs": verbs },
        { "apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": verbs },
        { "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": verbs },
        { "apiGroups": ["windlass.dev"], "resources": ["logbooks"], "verbs": verbs },
        { "apiGroups": ["clusterlabs.org"], "resources": ["replicatedstatefulsets"], "verbs": verbs },
    ])
}

fn kubelet_rules() -> Value {
    json!([
        { "apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "get", "patch"] },
        { "apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch"] },
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "delete"] },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "patch"] },
    ])
}
