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
use super::tls::{self, Mounted};
use super::{Claims, Objects, TCP, base_labels, inputs, manifest, merge, pods, probes};
use crate::fields::{fields_of, without_nothing};

/// Where members of PD ask.
const DISCOVERY: Port = Port { name: "discovery", number: 10261 };
/// Where the dashboard of PD is shown.
const PROXY: Port = Port { name: "proxy", number: 10262 };
const NOBODY: i64 = 65_532;

/// Every object of discovery, in the order in which they are applied. `image` is the operator's own: a newer one alone restarts nothing.
pub fn discovery<A: Action>(cluster: &Validated, image: &str, children: &Children) -> Objects<A> {
    let name = cluster.names().discovery();
    let object = |kind: ObjectKind, spec: Value| Manifest {
        never_held: true,
        ..manifest(cluster, kind, COMPONENT_DISCOVERY, &name, spec)
    };
    let deployment = object(ObjectKind::Deployment, deployment(cluster, image, &name));
    let kept = kept::resolve(deployment, &inputs::of_discovery(cluster), &[], children);
    let plain = [
        object(ObjectKind::ServiceAccount, json!({})),
        object(ObjectKind::Role, json!({ "rules": rules(cluster) })),
        object(ObjectKind::RoleBinding, binding(cluster, &name)),
        object(ObjectKind::Service, service(cluster)),
    ];
    let removals = kept.removals();
    let mut applied: Vec<Manifest> = plain.into_iter().map(|manifest| seal(manifest, &[])).collect();
    applied.extend(kept.keep);
    applied.push(kept.set);
    Objects { applied, removals, claims: Claims::AsAsked }
}

/// No more than it needs: how many PDs there are to be, and whether a claim tells of a cluster that was there before.
fn rules(cluster: &Validated) -> Value {
    json!([
        { "apiGroups": ["pingcap.com"], "resources": ["tidbclusters"], "resourceNames": [cluster.name], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list"] },
    ])
}

fn binding(cluster: &Validated, name: &str) -> Value {
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": cluster.namespace }],
    })
}

fn service(cluster: &Validated) -> Value {
    let ports = [DISCOVERY, PROXY].map(|port| Value::Object(own_port(port)));
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
    let secrets = secrets(cluster);
    let mut spec = pods::spec(cluster, COMPONENT_DISCOVERY, given);
    spec.insert("serviceAccountName".to_owned(), name.into());
    let security = json!({ "runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "seccompProfile": { "type": "RuntimeDefault" } });
    let security = merge::fields(fields_of(&security), given.security.as_ref());
    spec.insert("securityContext".to_owned(), security.into());
    let containers = merge::containers(vec![container(cluster, image, &secrets)], &given.additional_containers);
    spec.insert("containers".to_owned(), containers.into());
    spec.insert("initContainers".to_owned(), given.init_containers.clone().into());
    let volumes: Vec<Value> = secrets.iter().map(Mounted::volume).chain(given.volumes.iter().cloned()).collect();
    spec.insert("volumes".to_owned(), volumes.into());
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

/// The certificate by which PD is asked, and the one that is shown to members of PD.
fn secrets(cluster: &Validated) -> Vec<Mounted> {
    let names = cluster.names();
    let client = Mounted::new("cluster-client-tls", names.cluster_client_secret(), tls::CLUSTER_CLIENT);
    let path = tls::cluster_path(COMPONENT_DISCOVERY);
    let own = Mounted::new("discovery-tls", names.cluster_secret(COMPONENT_DISCOVERY), &path);
    [cluster.tls.then_some(client), cluster.discovery_tls.then_some(own)].into_iter().flatten().collect()
}

/// The arguments are those of `windlass discovery`; the image starts the program.
fn container(cluster: &Validated, image: &str, secrets: &[Mounted]) -> Value {
    let given = &cluster.discovery;
    let mut args =
        vec!["discovery".to_owned(), format!("--namespace={}", cluster.namespace), format!("--cluster={}", cluster.name)];
    if cluster.tls {
        args.push(format!("--pd-certificates={}", tls::CLUSTER_CLIENT));
    }
    if cluster.discovery_tls {
        args.push(format!("--certificates={}", tls::cluster_path(COMPONENT_DISCOVERY)));
    }
    let mounts: Vec<Value> = secrets.iter().map(Mounted::mount).chain(given.mounts.iter().cloned()).collect();
    let ports = [DISCOVERY, PROXY].map(|port| json!({ "name": port.name, "containerPort": port.number, "protocol": TCP }));
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
        "ports": ports,
        "resources": without_nothing(fields_of(&json!({ "requests": given.requests, "limits": given.limits }))),
        "securityContext": merge::fields(fields_of(&security), given.container_security.as_ref()),
        "volumeMounts": mounts,
        "readinessProbe": probe(given.readiness.as_ref()),
        "livenessProbe": probe(spec.and_then(|spec| spec.liveness_probe.as_ref())),
    });
    without_nothing(fields_of(&container)).into()
}
