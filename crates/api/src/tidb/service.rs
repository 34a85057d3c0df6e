//! What the user says about Services.

use k8s_openapi::api::core::v1::ServicePort;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::Texts;
use crate::part::Part;

/// The Service of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Its type. ClusterIP when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Texts>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Texts>,
    /// The address that its load balancer gets.
    #[serde(default, rename = "loadBalancerIP", skip_serializing_if = "Option::is_none")]
    pub load_balancer_ip: Option<String>,
    /// Its address.
    #[serde(default, rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    pub cluster_ip: Option<String>,
    /// What its port is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_name: Option<String>,
    /// The number of its port. It counts for TiDB only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// Who makes its load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// Which clients the load balancer lets in, as 10.0.0.0/8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer_source_ranges: Option<Vec<String>>,
}

/// The Service of TiDB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TidbServiceSpec {
    /// What every Service has.
    #[serde(flatten)]
    pub service: ServiceSpec,
    /// Whether clients from outside are led to TiDBs of the same node only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<String>,
    /// Whether the port for status is there too. It is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose_status: Option<bool>,
    /// The port on nodes for clients. Kubernetes chooses when it is 0 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mysql_node_port: Option<u16>,
    /// The port on nodes for status. Kubernetes chooses when it is 0 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_node_port: Option<u16>,
    /// Further ports, as in a Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_ports: Option<Vec<Part<ServicePort>>>,
}

/// The type of a Service. Use the service field of the component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceType {
    /// Which component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of its Service.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}
