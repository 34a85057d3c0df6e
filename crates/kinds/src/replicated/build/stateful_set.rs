//! The `StatefulSet` with the members' pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvVar, EnvVarSource, ObjectFieldSelector, PersistentVolumeClaim, Volume, VolumeMount,
};
use serde_json::{Value, json};
use windlass_core::likeness::short_hash;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{TCP, manifest, selector};

/// The size changes on another path.
pub(super) const LEFT_OUT: &[&str] = &["replicas"];
const SECRETS_PATH: &str = "/etc/rss/secrets";
const PODINFO_PATH: &str = "/etc/podinfo";
const PODINFO: &str = "podinfo";
const DEFAULT_GRACE_SECONDS: i64 = 600;
/// Chaos of the examples: a hook fails once in this many runs, less the level.
const CHAOS_MODULO: i32 = 20;

pub(super) fn stateful_set(cluster: &Validated, size: u16) -> Manifest {
    let claims: Vec<Value> = cluster.spec.pod.volume_claim_templates.iter().flatten().map(claim_template).collect();
    let spec = without_nothing(json!({
        "replicas": size,
        "serviceName": cluster.names.headless_service(),
        "podManagementPolicy": "Parallel",
        // Pods are replaced by the operator, one at a time and under health; never by the controller on its own.
        "updateStrategy": { "type": "OnDelete" },
        "selector": { "matchLabels": selector(cluster) },
        "template": { "metadata": template_metadata(cluster), "spec": pod_spec(cluster) },
        "volumeClaimTemplates": claims,
    }));
    manifest(cluster, ObjectKind::StatefulSet, &cluster.names.stateful_set(), spec)
}

fn template_metadata(cluster: &Validated) -> Value {
    let mut metadata = json!({ "labels": selector(cluster) });
    if cfg!(feature = "rehearsal") {
        metadata["annotations"] = json!({ "windlass.dev/rehearsal": "true" });
    }
    metadata
}

/// The hash of what of the user's spec reaches the pod template.
pub(super) fn inputs(cluster: &Validated) -> String {
    let spec = &cluster.spec;
    let mut pod = serde_json::to_value(&spec.pod).unwrap_or_default();
    if let Value::Object(pod) = &mut pod {
        pod.remove("commands");
        pod.remove("volumeClaimTemplates");
    }
    let inputs = json!([
        cluster.names.cluster(),
        pod,
        spec.service_account_name,
        spec.node_selector,
        spec.tolerations,
        spec.affinity,
        spec.image_pull_secrets,
        spec.secrets,
        spec.resources,
        spec.chaos_level,
    ]);
    short_hash(&inputs.to_string())
}

/// Only what the user may say of a claim: the rest of its metadata is the server's.
fn claim_template(claim: &PersistentVolumeClaim) -> Value {
    let metadata = &claim.metadata;
    let metadata = json!({ "name": metadata.name, "labels": metadata.labels, "annotations": metadata.annotations });
    without_nothing(json!({ "metadata": without_nothing(metadata), "spec": claim.spec }))
}

fn pod_spec(cluster: &Validated) -> Value {
    let spec = &cluster.spec;
    let pod = &spec.pod;
    let node_selector: BTreeMap<&String, &String> =
        spec.node_selector.iter().chain(pod.node_selector.iter()).flatten().collect();
    without_nothing(json!({
        "containers": pod.containers.iter().map(|it| container(cluster, it)).collect::<Vec<_>>(),
        "volumes": volumes(cluster),
        "serviceAccountName": spec.service_account_name,
        "automountServiceAccountToken": pod.automount_service_account_token.unwrap_or(false),
        "securityContext": pod.security_context,
        "nodeSelector": node_selector,
        "tolerations": spec.tolerations,
        "affinity": affinity(cluster),
        "imagePullSecrets": spec.image_pull_secrets,
        "terminationGracePeriodSeconds": pod.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS),
    }))
}

fn container(cluster: &Validated, given: &Container) -> Container {
    let mut container = given.clone();
    if container.resources.is_none() {
        container.resources.clone_from(&cluster.spec.resources);
    }
    for port in container.ports.iter_mut().flatten() {
        port.protocol.get_or_insert_with(|| TCP.to_owned());
    }
    let env = container.env.get_or_insert_default();
    add_env(env, "SERVICE_NAME", Some(cluster.names.headless_service()), None);
    add_env(env, "POD_NAME", None, Some("metadata.name"));
    add_env(env, "POD_NAMESPACE", None, Some("metadata.namespace"));
    if let Some(level) = cluster.spec.chaos_level.filter(|level| *level > 0) {
        add_env(env, "CHAOS_LEVEL", Some(level.to_string()), None);
        add_env(env, "CHAOS_MODULO", Some((CHAOS_MODULO - level).to_string()), None);
    }
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.push(mount(PODINFO, PODINFO_PATH.to_owned()));
    for secret in &cluster.spec.secrets {
        mounts.push(mount(&secret_volume(secret), format!("{SECRETS_PATH}/{secret}")));
    }
    container
}

/// A variable that the user set himself stays as it is.
fn add_env(env: &mut Vec<EnvVar>, name: &str, value: Option<String>, field: Option<&str>) {
    if env.iter().any(|variable| variable.name == name) {
        return;
    }
    // The server would fill the version in, and every later comparison would find it different.
    let field_ref = field.map(|path| ObjectFieldSelector { api_version: Some("v1".into()), field_path: path.to_owned() });
    let value_from = field_ref.map(|field_ref| EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() });
    env.push(EnvVar { name: name.to_owned(), value, value_from });
}

fn mount(volume: &str, path: String) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path, read_only: Some(true), ..VolumeMount::default() }
}

/// Secret names may have dots and be long; volume names may not.
fn secret_volume(secret: &str) -> String {
    if secret.len() <= 56 && !secret.contains('.') {
        return format!("secret-{secret}");
    }
    // The hash keeps names apart that only differ in what had to go.
    let text: String = secret.chars().filter(char::is_ascii_alphanumeric).take(39).collect();
    format!("secret-{text}-{}", short_hash(secret))
}

fn volumes(cluster: &Validated) -> Vec<Value> {
    let given =
        cluster.spec.pod.volumes.iter().flatten().map(|volume: &Volume| serde_json::to_value(volume).unwrap_or_default());
    let podinfo = json!({
        "name": PODINFO,
        "downwardAPI": { "items": [
            { "path": "labels", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.labels" } },
            { "path": "annotations", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.annotations" } },
        ] },
    });
    let secrets =
        cluster.spec.secrets.iter().map(|secret| json!({ "name": secret_volume(secret), "secret": { "secretName": secret } }));
    given.chain(std::iter::once(podinfo)).chain(secrets).collect()
}

/// The user's affinity, and beside it "never two members on one node" when that is asked for.
fn affinity(cluster: &Validated) -> Value {
    let mut affinity = cluster.spec.affinity.clone().unwrap_or_default();
    if cluster.spec.pod.anti_affinity == Some(true) {
        let term = serde_json::from_value(json!({
            "labelSelector": { "matchLabels": selector(cluster) },
            "topologyKey": "kubernetes.io/hostname",
        }));
        let terms = &mut affinity.pod_anti_affinity.get_or_insert_default().required_during_scheduling_ignored_during_execution;
        terms.get_or_insert_default().extend(term);
    }
    if affinity == Affinity::default() { Value::Null } else { serde_json::to_value(affinity).unwrap_or_default() }
}

/// Leaves out what is null or empty: server-side apply would own it, and the server would not keep it. What is deeper down the
/// user wrote, and there an empty map can mean something: an empty directory, a selector of everything.
fn without_nothing(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| *value != Value::Null && *value != json!({}) && *value != json!([]));
    }
    value
}
