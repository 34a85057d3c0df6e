//! Who may do what: the operator exactly what its chart grants, the writer and the fake kubelet what they need.

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

/// What the chart allows the operator, all of it everywhere.
fn operator_rules() -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/windlass/files/rules.yaml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: `cargo xtask gen` writes it", path.display()))?;
    let rules: Value = serde_saphyr::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?;
    let all: Vec<Value> = ["clusters", "release"].iter().filter_map(|part| rules[part].as_array().cloned()).flatten().collect();
    ensure!(!all.is_empty(), "{} has no rules: `cargo xtask gen` writes it", path.display());
    Ok(Value::Array(all))
}

fn writer_rules() -> Value {
    let verbs = ["create", "get", "list", "watch", "patch", "delete"];
    json!([
        { "apiGroups": [""], "resources": ["services", "configmaps", "secrets", "serviceaccounts"], "verbs": verbs },
        { "apiGroups": ["apps"], "resources": ["statefulsets", "deployments"], "verbs": verbs },
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": verbs },
        // Who makes a role needs its rights, or these.
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate", "bind"] },
        { "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": verbs },
        { "apiGroups": ["windlass.dev"], "resources": ["logbooks"], "verbs": verbs },
        { "apiGroups": ["clusterlabs.org"], "resources": ["replicatedstatefulsets"], "verbs": verbs },
        { "apiGroups": ["moco.cybozu.com"], "resources": ["mysqlclusters"], "verbs": verbs },
        { "apiGroups": ["pingcap.com"], "resources": ["tidbclusters"], "verbs": verbs },
    ])
}

fn kubelet_rules() -> Value {
    json!([
        { "apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "get", "patch"] },
        { "apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch"] },
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "delete"] },
        { "apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"] },
        { "apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["patch"] },
        { "apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["create"] },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "patch"] },
    ])
}
