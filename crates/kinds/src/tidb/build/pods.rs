//! The pods of a component as a whole: where they run, who they are, and what the user says of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::tidb::{Component, TopologySpreadConstraint, keys};

use super::super::validate::{Group, Pods, Validated};
use super::containers::Parts;
use super::services::status_port;
use super::{base_labels, labels};
use crate::fields::{Fields, fields_of, without_nothing};

/// The template of the pods.
pub(super) fn template(cluster: &Validated, group: &Group, parts: &Parts) -> Value {
    let pods = &group.pods;
    let mut spec = spec(cluster, group.component.as_str(), pods);
    let security = if sets_kernel_parameters(pods) { without_sysctls(pods) } else { pods.security.clone() };
    spec.extend([
        ("securityContext".to_owned(), json!(security)),
        ("initContainers".to_owned(), parts.init_containers(cluster, group).into()),
        ("containers".to_owned(), parts.containers(group).into()),
        ("volumes".to_owned(), parts.volumes(group).into()),
    ]);
    json!({ "metadata": metadata(cluster, group), "spec": without_nothing(spec) })
}

fn metadata(cluster: &Validated, group: &Group) -> Value {
    let component = group.component;
    let mut own_labels = group.pods.labels.clone();
    own_labels.extend(labels(cluster, component));
    let mut annotations = prometheus(component);
    annotations.extend(group.pods.annotations.clone());
    if cfg!(feature = "rehearsal") {
        annotations.insert("windlass.dev/rehearsal".to_owned(), "true".to_owned());
    }
    json!({ "labels": own_labels, "annotations": annotations })
}

fn prometheus(component: Component) -> BTreeMap<String, String> {
    let path = if component == Component::Tiproxy { "/api/metrics" } else { "/metrics" };
    let port = status_port(component).to_string();
    let mut annotations = BTreeMap::from([
        (keys::PROMETHEUS_SCRAPE.to_owned(), "true".to_owned()),
        (keys::PROMETHEUS_PATH.to_owned(), path.to_owned()),
        (keys::PROMETHEUS_PORT.to_owned(), port),
    ]);
    if component == Component::Tiflash {
        annotations.insert(format!("tiflash.proxy.{}", keys::PROMETHEUS_PORT), "20292".to_owned());
    }
    annotations
}

/// What counts for all containers of a pod.
pub(super) fn spec(cluster: &Validated, component: &str, pods: &Pods) -> Fields {
    let dns_policy = pods.dns_policy.clone().or_else(|| pods.host_network.then(|| "ClusterFirstWithHostNet".to_owned()));
    let spec = json!({
        "serviceAccountName": pods.service_account,
        "automountServiceAccountToken": pods.automount_token,
        "imagePullSecrets": pods.pull_secrets,
        "hostNetwork": pods.host_network.then_some(true),
        "affinity": pods.affinity,
        "priorityClassName": pods.priority_class,
        "schedulerName": pods.scheduler,
        "nodeSelector": pods.node_selector,
        "tolerations": pods.tolerations,
        "securityContext": pods.security,
        "dnsConfig": pods.dns_config,
        "dnsPolicy": dns_policy,
        "terminationGracePeriodSeconds": pods.grace_seconds,
        "topologySpreadConstraints": pods.spread.iter().map(|it| spread(cluster, component, it)).collect::<Vec<_>>(),
    });
    without_nothing(fields_of(&spec))
}

/// Pods of the component are counted; the user may say of which component, and of which cluster.
fn spread(cluster: &Validated, component: &str, given: &TopologySpreadConstraint) -> Value {
    let mut counted = base_labels(cluster, component);
    for (key, value) in given.match_labels.iter().flatten() {
        if [keys::COMPONENT, keys::INSTANCE].contains(&key.as_str()) {
            counted.insert(key.clone(), value.clone());
        }
    }
    let constraint = json!({
        "topologyKey": given.topology_key,
        "maxSkew": given.max_skew.filter(|skew| *skew > 0).unwrap_or(1),
        "minDomains": given.min_domains,
        "nodeAffinityPolicy": given.node_affinity_policy,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": counted },
    });
    without_nothing(fields_of(&constraint)).into()
}

/// Whether a container sets kernel parameters, because the kubelet does not allow pods to ask for them.
fn sets_kernel_parameters(pods: &Pods) -> bool {
    pods.annotations.get(keys::SYSCTL_INIT).is_some_and(|value| value == "true") && !sysctls(pods).is_empty()
}

fn sysctls(pods: &Pods) -> Vec<(String, String)> {
    let given = pods.security.as_ref().and_then(|security| security.get("sysctls")).and_then(Value::as_array);
    let pair = |it: &Value| Some((it.get("name")?.as_str()?.to_owned(), it.get("value")?.as_str()?.to_owned()));
    given.into_iter().flatten().filter_map(pair).collect()
}

fn without_sysctls(pods: &Pods) -> Option<Value> {
    let mut security = pods.security.clone()?;
    security.as_object_mut()?.remove("sysctls");
    Some(security)
}

/// The container that sets kernel parameters, if the user asks for it. It has what the component has: the two never run at once.
pub(super) fn sysctl_container(cluster: &Validated, group: &Group) -> Option<Value> {
    let pods = &group.pods;
    if !sets_kernel_parameters(pods) {
        return None;
    }
    let words = sysctls(pods).into_iter().map(|(name, value)| format!("{name}={value}"));
    let command: Vec<String> = ["sysctl".to_owned(), "-w".to_owned()].into_iter().chain(words).collect();
    let resources = without_nothing(fields_of(&json!({ "requests": pods.requests, "limits": pods.limits })));
    let container = json!({
        "name": "sysctl",
        "image": cluster.helper_image,
        "imagePullPolicy": cluster.helper_pull_policy,
        "command": command,
        "securityContext": { "privileged": true },
        "resources": resources,
    });
    Some(without_nothing(fields_of(&container)).into())
}
