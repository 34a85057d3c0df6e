//! The objects that every lab's cluster begins with: roles of the lab's own parts and the storage
//! class.

use anyhow::{Context as _, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::components::{apiserver, coredns, provisioner};
use crate::provisioner::PROVISIONER;

/// The storage class of the lab's volumes.
pub const STORAGE_CLASS: &str = "lab";

/// Creates them all.
pub(crate) async fn apply(client: &Client) -> Result<()> {
    let roles = [
        (
            coredns::USER,
            json!([
                {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ]),
        ),
        (
            provisioner::USER,
            json!([
                {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["list", "watch", "create", "patch", "delete"]},
                {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list", "watch"]},
                {"apiGroups": [""], "resources": ["persistentvolumeclaims/status"], "verbs": ["patch"]},
                {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["get"]},
            ]),
        ),
    ];
    for (user, rules) in roles {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": user}, "rules": rules,
        });
        patch(&Api::<ClusterRole>::all(client.clone()), user, &role).await?;
        patch(&Api::<ClusterRoleBinding>::all(client.clone()), user, &binding(user, user)).await?;
    }
    let kubelet = binding(apiserver::KUBELET_CLIENT, "system:kubelet-api-admin");
    patch(&Api::<ClusterRoleBinding>::all(client.clone()), apiserver::KUBELET_CLIENT, &kubelet).await?;

    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": true,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    patch(&Api::<StorageClass>::all(client.clone()), STORAGE_CLASS, &class).await
}

fn binding(user: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

async fn patch<K>(api: &Api<K>, name: &str, object: &Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.patch(name, &PatchParams::apply("windlass-lab").force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot create {name} in the lab"))?;
    Ok(())
}
