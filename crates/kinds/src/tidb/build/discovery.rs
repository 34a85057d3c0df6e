//! Discovery: the program that lets exactly one PD found the cluster, and all others join it.
//!
//! It is there even while the cluster is paused: a PD that lost its data, or a new one, could not start without it. One pod only, and
//! never two at once: who founds the cluster is decided in its memory.

use serde_json::{Value, json};
use windlass_api::tidb::keys::COMPONENT_DISCOVERY;
use windlass_core::kept;
use windlass_core::likeness::seal;
use windlass_core::step::{Action, Manifest, ObjectKind};
use windlass_core::views::Children;

use super::super::validate::Validated;
use super::services::{Port, own_port};
use super::{Claims, Objects, TCP, base_labels, inputs, manifest, merge, pods, probes};
use crate::fields::{fields_of, without_nothing};

/// Where members of PD ask.
const DISCOVERY: Port = Port { name: "discovery", number: 10261 };
const NOBODY: i64 = 65_532;

/// Every object of discovery, in the order in which they are applied. `image` is the operator's own: a newer one alone restarts nothing.
pub fn discovery<A: Action>(cluster: &Validated, image: &str, children: &Children) -> Objects<A> {
    let kept = kept::resolve(program(cluster, image), &inputs::of_discovery(cluster), &[], children);
    let removals = kept.removals();
    let mut applied = surroundings(cluster);
    applied.extend(kept.keep);
    applied.push(kept.set);
    Objects { applied, removals, claims: Claims::AsAsked }
}

/// Every object of discovery as it was made before, where nobody knows what the user asks for now. Nothing where it never was.
pub fn discovery_as_kept(cluster: &Validated, children: &Children) -> Option<Vec<Manifest>> {
    let program = kept::as_kept(program(cluster, ""), children)?;
    Some(surroundings(cluster).into_iter().chain([program]).collect())
}

fn object(cluster: &Validated, kind: ObjectKind, spec: Value) -> Manifest {
    let name = cluster.names().discovery();
    Manifest { never_held: true, ..manifest(cluster, kind, COMPONENT_DISCOVERY, &name, spec) }
}

fn program(cluster: &Validated, image: &str) -> Manifest {
    object(cluster, ObjectKind::Deployment, deployment(cluster, image, &cluster.names().discovery()))
}

/// What its program needs around it.
fn surroundings(cluster: &Validated) -> Vec<Manifest> {
    let plain = [
        object(cluster, ObjectKind::ServiceAccount, json!({})),
        object(cluster, ObjectKind::Role, json!({ "rules": rules(cluster) })),
        object(cluster, ObjectKind::RoleBinding, binding(cluster, &cluster.names().discovery())),
        object(cluster, ObjectKind::Service, service(cluster)),
    ];
    plain.into_iter().map(|manifest| seal(manifest, &[])).collect()
}

/// No more than it needs: how many PDs there are to be, whether a claim tells of a cluster that was there before, and the certificates by
/// which it asks PD and shows itself to members of PD. It reads those anew when they are renewed, and so does not mount them.
fn rules(cluster: &Validated) -> Value {
    let mut rules = vec![
        json!({ "apiGroups": ["pingcap.com"], "resources": ["tidbclusters"], "resourceNames": [cluster.name], "verbs": ["get"] }),
        json!({ "apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list"] }),
    ];
    let names = cluster.names();
    let client = cluster.tls.then(|| names.cluster_client_secret());
    let own = cluster.discovery_tls.then(|| names.cluster_secret(COMPONENT_DISCOVERY));
    let secrets: Vec<String> = client.into_iter().chain(own).collect();
    if !secrets.is_empty() {
        rules.push(json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": secrets, "verbs": ["get"] }));
    }
    rules.into()
}

fn binding(cluster: &Validated, name: &str) -> Value {
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": cluster.namespace }],
    })
}

fn service(cluster: &Validated) -> Value {
    let ports = [Value::Object(own_port(DISCOVERY))];
    let spec = json!({
        "type": "ClusterIP",
        "ports": ports,
        "selector": base_labels(cluster, COMPONENT_DISCOVERY),
        "ipFamilyPolicy": cluster.spec.prefer_ipv6.then_some("PreferDualStack"),
    });
    without_nothing(fields_of(&spec)).into()
}

fn deployment(cluster: &Validated, image: &str, name: &str) -> Value {
    let given = &cluster.discovery;
    let mut spec = pods::spec(cluster, COMPONENT_DISCOVERY, given);
    spec.insert("serviceAccountName".to_owned(), name.into());
    let security = json!({ "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "seccompProfile": { "type": "RuntimeDefault" } });
    let security = merge::fields(fields_of(&security), given.security.as_ref());
    spec.insert("securityContext".to_owned(), security.into());
    let containers = merge::containers(vec![container(cluster, image)], &given.additional_containers);
    spec.insert("containers".to_owned(), containers.into());
    spec.insert("initContainers".to_owned(), given.init_containers.clone().into());
    spec.insert("volumes".to_owned(), given.volumes.clone().into());
    // Its pods are none of the cluster's members: the operator does not look for them.
    let mut labels = given.labels.clone();
    labels.extend(base_labels(cluster, COMPONENT_DISCOVERY));
    let metadata = without_nothing(fields_of(&json!({ "labels": labels, "annotations": given.annotations })));
    json!({
        "replicas": 1,
        "strategy": { "type": "Recreate" },
        "selector": { "matchLabels": base_labels(cluster, COMPONENT_DISCOVERY) },
        "template": { "metadata": metadata, "spec": without_nothing(spec) },
    })
}

/// The arguments are those of `windlass discovery`; the image starts the program.
fn container(cluster: &Validated, image: &str) -> Value {
    let given = &cluster.discovery;
    let args =
        vec!["discovery".to_owned(), format!("--namespace={}", cluster.namespace), format!("--cluster={}", cluster.name)];
    let port = json!({ "name": DISCOVERY.name, "containerPort": DISCOVERY.number, "protocol": TCP });
    let security = json!({
        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
    });
    let spec = cluster.spec.discovery.as_ref();
    let probe = |probe: Option<&windlass_api::tidb::Probe>| probe.map(|it| probes::by_connection(DISCOVERY.number, it, 0));
    let container = json!({
        "name": "discovery",
        "image": image,
        "imagePullPolicy": given.pull_policy,
        "args": args,
        "env": merge::env(vec![json!({ "name": "TZ", "value": cluster.timezone })], &given.env),
        "envFrom": given.env_from,
        "ports": [port],
        "resources": without_nothing(fields_of(&json!({ "requests": given.requests, "limits": given.limits }))),
        "securityContext": merge::fields(fields_of(&security), given.container_security.as_ref()),
        "volumeMounts": given.mounts,
        "readinessProbe": probe(given.readiness.as_ref()),
        "livenessProbe": probe(spec.and_then(|spec| spec.liveness_probe.as_ref())),
    });
    without_nothing(fields_of(&container)).into()
}
