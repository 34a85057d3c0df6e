//! What the user says about pods, claims and Services.
//!
//! Only what a rule speaks of has a field here. All else is kept as it was written: every field is optional, and what a newer
//! Kubernetes knows is neither pruned nor lost.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceRequirements, SecurityContext, ServiceSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::part::Part;

/// Names and labels of what is made from a template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name. It counts for claims only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The instances' pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels and annotations of the pods. A name has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The pods, as in a Pod. The container of the server is called mysqld.
    pub spec: PodSpecTemplate,
    /// Resources and security contexts of the containers that the operator adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite_containers: Option<Vec<OverwriteContainer>>,
}

/// The pods, as in a Pod. Every field of a pod may be given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
#[x_kube(
    validation = ("self.containers.exists(c, c.name == 'mysqld')", "a container must be called mysqld"),
    validation = ("self.containers.all(c, c.name != 'agent')", "the container name agent is reserved"),
    validation = ("self.containers.all(c, c.name != 'mysqld' || !has(c.ports) || c.ports.all(p, !has(p.containerPort) || !(p.containerPort in [3306, 33060, 33062, 9081])))", "ports 3306, 33060, 33062 and 9081 of the container mysqld are reserved"),
    validation = ("self.containers.all(c, c.name != 'mysqld' || !has(c.ports) || c.ports.all(p, !has(p.name) || !(p.name in ['mysql', 'mysqlx', 'mysql-admin', 'health'])))", "port names mysql, mysqlx, mysql-admin and health of the container mysqld are reserved"),
    validation = ("!has(self.initContainers) || self.initContainers.all(c, c.name != 'moco-init')", "the init container name moco-init is reserved"),
    validation = ("!has(self.volumes) || self.volumes.all(v, !has(v.name) || !(v.name in ['tmp', 'run', 'var-log', 'mysql-conf', 'mysql-conf-d', 'my-cnf-secret', 'slow-fluent-bit-config']))", "volume names tmp, run, var-log, mysql-conf, mysql-conf-d, my-cnf-secret and slow-fluent-bit-config are reserved")
)]
pub struct PodSpecTemplate {
    /// The containers. The one called mysqld is the server.
    #[schemars(length(min = 1, max = 100))]
    pub containers: Vec<ContainerTemplate>,
    /// Containers that run first, after those of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub init_containers: Option<Vec<ContainerTemplate>>,
    /// Volumes that the containers mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub volumes: Option<Vec<VolumeTemplate>>,
    /// All other fields of a pod.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// One container. Every field of a container may be given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ContainerTemplate {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub ports: Option<Vec<PortTemplate>>,
    /// All other fields of a container.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// One port of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PortTemplate {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_port: Option<i32>,
    /// All other fields of a port.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// One volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct VolumeTemplate {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All other fields of a volume.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// What one of the operator's own containers gets instead of its defaults.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverwriteContainer {
    /// Which container.
    pub name: SystemContainer,
    /// Its resources, in place of all that it has by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Part<ResourceRequirements>>,
    /// Its security context, in place of all that it has by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<Part<SecurityContext>>,
}

/// A container that the operator adds to the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SystemContainer {
    /// Looks after the server from within the pod.
    Agent,
    /// Brings the program that prepares the data directory.
    CopyMocoInit,
    /// Prepares the data directory.
    MocoInit,
    /// Prints the log of slow queries.
    SlowLog,
    /// Exports metrics of the server.
    MysqldExporter,
}

/// A claim that each instance gets of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.spec.resources) && has(self.spec.resources.requests) && 'storage' in self.spec.resources.requests", "a claim must request storage")
)]
pub struct ClaimTemplate {
    /// The claim's name, labels and annotations.
    pub metadata: Metadata,
    /// The claim. It is ReadWriteOnce and a Filesystem when it says nothing else.
    pub spec: ClaimSpec,
}

/// What is claimed. Every field of a PersistentVolumeClaim's spec may be given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClaimSpec {
    /// How large the volume is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ClaimResources>,
    /// All other fields of a claim.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// How large a volume is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClaimResources {
    /// What is requested, at least storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<BTreeMap<String, Quantity>>,
    /// All other fields.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// What a Service gets beside what the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplate {
    /// Labels and annotations of the Service. A name has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The Service, as in a Service. Selector, and numbers of the ports mysql and mysqlx, are the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Part<ServiceSpec>>,
}
