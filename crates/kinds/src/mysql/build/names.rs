//! The names of the objects of a `MySQLCluster`. Existing scripts and selectors know them, so they never change.
//!
//! Decides names only, never whether an object exists or whether the cluster's name leaves room for them.

use windlass_core::ordinals::Ordinal;

/// The claim that holds the data, and the volume of that name.
pub const DATA: &str = "mysql-data";

/// The names of the objects of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    cluster: &'a str,
    namespace: &'a str,
}

impl<'a> Names<'a> {
    /// The names for a cluster of this name in this namespace.
    pub const fn new(cluster: &'a str, namespace: &'a str) -> Self {
        Self { cluster, namespace }
    }

    /// The `StatefulSet`. The headless Service, the `ServiceAccount`, the disruption budget and the Secret with the passwords are
    /// called the same.
    pub fn set(&self) -> String {
        format!("moco-{}", self.cluster)
    }

    /// The Service that gives every instance a host name, ready or not.
    pub fn headless_service(&self) -> String {
        self.set()
    }

    /// The Service that leads to the primary.
    pub fn primary_service(&self) -> String {
        format!("{}-primary", self.set())
    }

    /// The Service that leads to the replicas.
    pub fn replica_service(&self) -> String {
        format!("{}-replica", self.set())
    }

    /// The `ServiceAccount` of the pods.
    pub fn service_account(&self) -> String {
        self.set()
    }

    /// The `PodDisruptionBudget`.
    pub fn disruption_budget(&self) -> String {
        self.set()
    }

    /// The Secret with the passwords of all accounts.
    pub fn credentials(&self) -> String {
        self.set()
    }

    /// The Secret with files of the same passwords for the `mysql` program.
    pub fn my_cnf_credentials(&self) -> String {
        format!("moco-my-cnf-{}", self.cluster)
    }

    /// The Secret with the agents' certificate.
    pub fn certificate(&self) -> String {
        format!("{}-grpc", self.set())
    }

    /// The `ConfigMap` with the my.cnf of this fingerprint.
    pub fn my_cnf(&self, fingerprint: &str) -> String {
        format!("{}.{fingerprint}", self.set())
    }

    /// The `ConfigMap` with the configuration of this fingerprint for the container that prints slow queries.
    pub fn slow_log(&self, fingerprint: &str) -> String {
        format!("moco-slow-log-agent-config-{}.{fingerprint}", self.cluster)
    }

    /// The pod of an instance.
    pub fn pod(&self, ordinal: Ordinal) -> String {
        ordinal.pod_name(&self.set())
    }

    /// The host name under which other instances reach an instance.
    pub fn host(&self, ordinal: Ordinal) -> String {
        format!("{}.{}.{}.svc", self.pod(ordinal), self.headless_service(), self.namespace)
    }

    /// The claim that an instance has by this template.
    pub fn claim(&self, template: &str, ordinal: Ordinal) -> String {
        format!("{template}-{}", self.pod(ordinal))
    }

    /// The claim with the data of an instance.
    pub fn data_claim(&self, ordinal: Ordinal) -> String {
        self.claim(DATA, ordinal)
    }
}
