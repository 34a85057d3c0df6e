//! The names of the objects of a `TidbCluster`. Existing scripts and selectors know them, so they never change.
//!
//! Decides names only, never whether an object exists or whether the cluster's name leaves room for them.

use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;

/// The names of the objects of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    cluster: &'a str,
    namespace: &'a str,
    domain: Option<&'a str>,
}

impl<'a> Names<'a> {
    /// The names for a cluster of this name in this namespace, in a Kubernetes with this DNS domain, if hosts are named with one.
    pub const fn new(cluster: &'a str, namespace: &'a str, domain: Option<&'a str>) -> Self {
        Self { cluster, namespace, domain }
    }

    /// The `StatefulSet` of a component. Its client Service, its `ConfigMap` and its disruption budget are called the same.
    pub fn set(&self, component: Component) -> String {
        format!("{}-{component}", self.cluster)
    }

    /// The Service that leads clients to a component.
    pub fn client_service(&self, component: Component) -> String {
        self.set(component)
    }

    /// The Service that gives every member of a component a host name, ready or not.
    pub fn headless_service(&self, component: Component) -> String {
        match component {
            Component::Pump => self.set(component),
            _ => format!("{}-peer", self.set(component)),
        }
    }

    /// The `ConfigMap` of a component, without what another configuration may add to its name.
    pub fn config_map(&self, component: Component) -> String {
        self.set(component)
    }

    /// The disruption budget of a component.
    pub fn disruption_budget(&self, component: Component) -> String {
        self.set(component)
    }

    /// The pod of a member.
    pub fn pod(&self, component: Component, ordinal: Ordinal) -> String {
        ordinal.pod_name(&self.set(component))
    }

    /// The host name under which others reach a member.
    pub fn host(&self, component: Component, ordinal: Ordinal) -> String {
        self.host_of(component, &self.pod(component, ordinal))
    }

    /// The host name of the pod that a script or a template names in its own way.
    pub(in super::super) fn host_of(&self, component: Component, pod: &str) -> String {
        self.in_domain(format!("{pod}.{}.{}.svc", self.headless_service(component), self.namespace))
    }

    /// The host name of a component's client Service.
    pub fn service_host(&self, component: Component) -> String {
        self.in_domain(format!("{}.{}.svc", self.client_service(component), self.namespace))
    }

    /// The name of a member of PD: that of its pod, or its host name where hosts are named with a domain.
    pub fn pd_member(&self, ordinal: Ordinal) -> String {
        match self.domain {
            Some(_) => self.host(Component::Pd, ordinal),
            None => self.pod(Component::Pd, ordinal),
        }
    }

    /// Whether members of PD are called by their host names.
    pub(in super::super) const fn names_hosts(&self) -> bool {
        self.domain.is_some()
    }

    /// The claim that a member has by this template.
    pub fn claim(&self, template: &str, component: Component, ordinal: Ordinal) -> String {
        format!("{template}-{}", self.pod(component, ordinal))
    }

    /// Everything of discovery: its Deployment, Service, `ServiceAccount`, Role and `RoleBinding`.
    pub fn discovery(&self) -> String {
        format!("{}-discovery", self.cluster)
    }

    /// The host name of discovery.
    pub fn discovery_host(&self) -> String {
        self.in_domain(format!("{}.{}.svc", self.discovery(), self.namespace))
    }

    /// The Secret with the certificate that a component shows to others of the cluster.
    pub fn cluster_secret(&self, component: &str) -> String {
        format!("{}-{component}-cluster-secret", self.cluster)
    }

    /// The Secret with the certificate of clients within the cluster.
    pub fn cluster_client_secret(&self) -> String {
        format!("{}-cluster-client-secret", self.cluster)
    }

    /// The Secret with the certificate that TiDB shows to clients.
    pub fn tidb_server_secret(&self) -> String {
        format!("{}-tidb-server-secret", self.cluster)
    }

    /// The Secret with the certificate that clients show to TiDB.
    pub fn tidb_client_secret(&self) -> String {
        format!("{}-tidb-client-secret", self.cluster)
    }

    /// The Secret with the keys that tokens of clients are checked with.
    pub fn auth_token_secret(&self) -> String {
        format!("{}-tidb-auth-token-jwks-secret", self.cluster)
    }

    fn in_domain(&self, host: String) -> String {
        match self.domain {
            Some(domain) => format!("{host}.{domain}"),
            None => host,
        }
    }
}
