//! The pods of a component: what the cluster says for all, under what the component says for its own.
//!
//! What is embedded of Kubernetes is judged by whether Kubernetes could read it, and is then kept as it was written.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value};
use windlass_api::part::Part;
use windlass_api::tidb::{Component, ComponentSpec, Probe, TidbClusterSpec, TopologySpreadConstraint};

use super::cluster::{PULL_POLICIES, one_of};
use super::{Problems, given};

type Texts = BTreeMap<String, String>;

/// The pods of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods {
    /// When images are pulled. `IfNotPresent` where nobody says anything.
    pub pull_policy: String,
    /// Secrets to pull images with.
    pub pull_secrets: Vec<Value>,
    /// The service account.
    pub service_account: Option<String>,
    /// Whether pods get its token.
    pub automount_token: Option<bool>,
    /// Whether they use the network of the node.
    pub host_network: bool,
    /// Where they may run.
    pub affinity: Option<Value>,
    /// Their priority class.
    pub priority_class: Option<String>,
    /// Who schedules them.
    pub scheduler: Option<String>,
    /// Nodes that may run them.
    pub node_selector: Texts,
    /// Annotations of the user's.
    pub annotations: Texts,
    /// Labels of the user's.
    pub labels: Texts,
    /// Taints that they tolerate.
    pub tolerations: Vec<Value>,
    /// Their security context.
    pub security: Option<Value>,
    /// The security context of the component's container.
    pub container_security: Option<Value>,
    /// DNS settings.
    pub dns_config: Option<Value>,
    /// The DNS policy.
    pub dns_policy: Option<String>,
    /// How many seconds they have to end.
    pub grace_seconds: Option<i64>,
    /// How they are spread over nodes.
    pub spread: Vec<TopologySpreadConstraint>,
    /// Environment variables of the user's.
    pub env: Vec<Value>,
    /// Sources of environment variables.
    pub env_from: Vec<Value>,
    /// Containers of the user's that run first.
    pub init_containers: Vec<Value>,
    /// Containers of the user's, beside ours or merged into them.
    pub additional_containers: Vec<Value>,
    /// Volumes of the user's.
    pub volumes: Vec<Value>,
    /// Where the component's container has them.
    pub mounts: Vec<Value>,
    /// What the component's container requests, without storage.
    pub requests: BTreeMap<String, Quantity>,
    /// What it may not exceed, without storage.
    pub limits: BTreeMap<String, Quantity>,
    /// The limit of storage, which TiKV takes for its capacity.
    pub storage_limit: Option<String>,
    /// How readiness is probed, where the user says so.
    pub readiness: Option<Probe>,
}

/// The containers of a component that the operator makes: one of the user's with such a name is merged into it.
pub(super) const fn containers(component: Component) -> &'static [&'static str] {
    match component {
        Component::Pd => &["pd"],
        Component::Tikv => &["tikv", "rocksdblog", "raftlog"],
        Component::Tidb => &["tidb", "slowlog"],
        Component::Tiflash => &["tiflash", "serverlog", "errorlog", "clusterlog"],
        Component::Ticdc => &["ticdc"],
        Component::Tiproxy => &["tiproxy"],
        Component::Pump => &["pump"],
    }
}

/// Which volumes a component's container has, by the user's own list.
pub(super) fn mount_names(component: &ComponentSpec) -> Vec<String> {
    let mounts = component.additional_volume_mounts.iter().flatten();
    mounts.filter_map(|mount| mount.fields.get("name")?.as_str().map(str::to_owned)).collect()
}

/// What the cluster and a component say of its pods.
pub(super) fn read(spec: &TidbClusterSpec, own: &ComponentSpec, field: &str, ours: &[&str], problems: &mut Problems) -> Pods {
    check_parts(spec, own, field, problems);
    check_env(own, field, problems);
    check_containers(own, field, ours, problems);
    one_of(&format!("{field}.imagePullPolicy"), own.image_pull_policy.as_ref(), PULL_POLICIES, problems);
    one_of("spec.imagePullPolicy", spec.image_pull_policy.as_ref(), PULL_POLICIES, problems);
    let probe = own.readiness_probe.as_ref().and_then(|probe| probe.type_.as_ref());
    one_of(&format!("{field}.readinessProbe.type"), probe, &["tcp", "command"], problems);
    check_resources(own, field, problems);
    let text = |own: Option<&String>, cluster: Option<&String>| given(own).or(given(cluster)).cloned();
    let without_storage = |given: Option<&BTreeMap<String, Quantity>>| {
        given
            .into_iter()
            .flatten()
            .filter(|it| it.0 != "storage")
            .map(|(name, amount)| (name.clone(), amount.clone()))
            .collect()
    };
    let pull_policy = text(own.image_pull_policy.as_ref(), spec.image_pull_policy.as_ref());
    Pods {
        pull_policy: pull_policy.unwrap_or_else(|| "IfNotPresent".to_owned()),
        pull_secrets: first_list(own.image_pull_secrets.as_deref(), spec.image_pull_secrets.as_deref()),
        service_account: text(own.service_account.as_ref(), spec.service_account.as_ref()),
        automount_token: own.automount_service_account_token,
        host_network: own.host_network.or(spec.host_network).unwrap_or_default(),
        affinity: own.affinity.as_ref().or(spec.affinity.as_ref()).map(value),
        priority_class: text(own.priority_class_name.as_ref(), spec.priority_class_name.as_ref()),
        scheduler: text(own.scheduler_name.as_ref(), spec.scheduler_name.as_ref()),
        node_selector: merged(spec.node_selector.as_ref(), own.node_selector.as_ref()),
        annotations: merged(spec.annotations.as_ref(), own.annotations.as_ref()),
        labels: merged(spec.labels.as_ref(), own.labels.as_ref()),
        tolerations: first_list(own.tolerations.as_deref(), spec.tolerations.as_deref()),
        security: own.pod_security_context.as_ref().or(spec.pod_security_context.as_ref()).map(value),
        container_security: own.security_context.as_ref().map(value),
        dns_config: own.dns_config.as_ref().or(spec.dns_config.as_ref()).map(value),
        dns_policy: text(own.dns_policy.as_ref(), spec.dns_policy.as_ref()),
        grace_seconds: own.termination_grace_period_seconds,
        spread: spread(own, spec),
        env: values(own.env.as_deref()),
        env_from: values(own.env_from.as_deref()),
        init_containers: values(own.init_containers.as_deref()),
        additional_containers: values(own.additional_containers.as_deref()),
        volumes: values(own.additional_volumes.as_deref()),
        mounts: values(own.additional_volume_mounts.as_deref()),
        requests: without_storage(own.requests.as_ref()),
        limits: without_storage(own.limits.as_ref()),
        storage_limit: own.limits.as_ref().and_then(|limits| limits.get("storage")).map(|limit| limit.0.clone()),
        readiness: own.readiness_probe.clone(),
    }
}

fn value<T>(part: &Part<T>) -> Value {
    Value::Object(part.fields.clone())
}

fn values<T>(parts: Option<&[Part<T>]>) -> Vec<Value> {
    parts.unwrap_or_default().iter().map(value).collect()
}

/// The component's own list, unless it is empty.
fn first_list<T>(own: Option<&[Part<T>]>, cluster: Option<&[Part<T>]>) -> Vec<Value> {
    let own = values(own);
    if own.is_empty() { values(cluster) } else { own }
}

fn merged(cluster: Option<&Texts>, own: Option<&Texts>) -> Texts {
    cluster.into_iter().chain(own).flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn spread(own: &ComponentSpec, spec: &TidbClusterSpec) -> Vec<TopologySpreadConstraint> {
    let own = own.topology_spread_constraints.clone().filter(|constraints| !constraints.is_empty());
    own.or_else(|| spec.topology_spread_constraints.clone()).unwrap_or_default()
}

/// What Kubernetes could not read is told with its place, not refused by the server as a whole later.
fn check_parts(spec: &TidbClusterSpec, own: &ComponentSpec, field: &str, problems: &mut Problems) {
    macro_rules! check {
        ($at:expr, $part:expr, $name:literal) => {
            if let Some(part) = &$part {
                problems.check_part(format!("{}.{}", $at, $name), part.read(), "Pod");
            }
        };
    }
    macro_rules! check_list {
        ($at:expr, $list:expr, $name:literal) => {
            for (index, part) in $list.iter().flatten().enumerate() {
                problems.check_part(format!("{}.{}[{index}]", $at, $name), part.read(), "Pod");
            }
        };
    }
    check!("spec", spec.affinity, "affinity");
    check!("spec", spec.dns_config, "dnsConfig");
    check!("spec", spec.pod_security_context, "podSecurityContext");
    check_list!("spec", spec.tolerations, "tolerations");
    check_list!("spec", spec.image_pull_secrets, "imagePullSecrets");
    check!(field, own.affinity, "affinity");
    check!(field, own.dns_config, "dnsConfig");
    check!(field, own.pod_security_context, "podSecurityContext");
    check!(field, own.security_context, "securityContext");
    check_list!(field, own.tolerations, "tolerations");
    check_list!(field, own.image_pull_secrets, "imagePullSecrets");
    check_list!(field, own.env, "env");
    check_list!(field, own.env_from, "envFrom");
    check_list!(field, own.init_containers, "initContainers");
    check_list!(field, own.additional_containers, "additionalContainers");
    check_list!(field, own.additional_volumes, "additionalVolumes");
    check_list!(field, own.additional_volume_mounts, "additionalVolumeMounts");
}

/// Values that differ from pod to pod would differ from what the operator thinks of the component.
fn check_env(own: &ComponentSpec, field: &str, problems: &mut Problems) {
    for (index, variable) in own.env.iter().flatten().enumerate() {
        let field = format!("{field}.env[{index}]");
        if text(&variable.fields, "name").is_empty() {
            problems.tell(format!("{field}.name"), "every variable needs a name");
        }
        let sources = variable.fields.get("valueFrom").and_then(Value::as_object);
        for source in sources.into_iter().flatten().map(|it| it.0) {
            if source != "configMapKeyRef" && source != "secretKeyRef" {
                let problem = format!("{source:?} is not supported; write configMapKeyRef or secretKeyRef");
                problems.tell(format!("{field}.valueFrom"), problem);
            }
        }
    }
}

fn check_containers(own: &ComponentSpec, field: &str, ours: &[&str], problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    let additional =
        own.additional_containers.iter().flatten().enumerate().map(|(index, it)| ("additionalContainers", index, it));
    let init = own.init_containers.iter().flatten().enumerate().map(|(index, it)| ("initContainers", index, it));
    for (list, index, container) in additional.chain(init) {
        let field = format!("{field}.{list}[{index}]");
        let name = text(&container.fields, "name");
        if name.is_empty() {
            problems.tell(format!("{field}.name"), "every container needs a name");
        } else if !seen.insert(name.to_owned()) {
            problems.tell(format!("{field}.name"), format!("two containers are called {name:?}; give each its own name"));
        }
        let is_merged = list == "additionalContainers" && ours.contains(&name);
        if !is_merged && text(&container.fields, "image").is_empty() {
            let problem =
                format!("a container that is not merged into one of the operator's ({}) needs an image", ours.join(", "));
            problems.tell(format!("{field}.image"), problem);
        }
    }
}

fn check_resources(own: &ComponentSpec, field: &str, problems: &mut Problems) {
    for (list, amounts) in [("requests", &own.requests), ("limits", &own.limits)] {
        // The size of a volume is judged where it is needed.
        for (name, amount) in amounts.iter().flatten().filter(|it| it.0 != "storage") {
            if windlass_core::quantity::bytes(&amount.0).is_none() {
                problems.tell(
                    format!("{field}.{list}.{name}"),
                    format!("{:?} is no quantity; write for example 2, 500m or 4Gi", amount.0),
                );
            }
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}
