//! The kinds of clusters that are measured, and what the bench has to know of each.

use clap::ValueEnum;
use kube::core::{ApiResource, DynamicObject};
use serde::Serialize;
use serde_json::Value;
use windlass_api::ReplicatedStatefulSet;
use windlass_api::mysql::MySQLCluster;
use windlass_api::tidb::TidbCluster;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;
use windlass_kinds::tidb::build::KIND as TIDB;

use crate::stage::Stage;
use crate::{cluster, floor, mysql, tidb};

/// A kind of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// ReplicatedStatefulSets.
    Rss,
    /// MySQLClusters, with fake servers.
    Mysql,
    /// TidbClusters, with fake servers.
    Tidb,
}

/// A kind of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Child {
    Service,
    DisruptionBudget,
    StatefulSet,
    Logbook,
    Secret,
    ConfigMap,
    ServiceAccount,
    Role,
    RoleBinding,
    Deployment,
}

impl Kind {
    /// How many children of each kind a cluster has. It is known of the operator's rendering, to know when the first one is complete.
    pub(crate) const fn children(self) -> &'static [(Child, usize)] {
        match self {
            Self::Rss => &[(Child::Service, 2), (Child::DisruptionBudget, 1), (Child::StatefulSet, 1), (Child::Logbook, 1)],
            Self::Mysql => &[
                (Child::Secret, 3),
                (Child::ConfigMap, 1),
                (Child::ServiceAccount, 1),
                (Child::Service, 3),
                (Child::DisruptionBudget, 1),
                (Child::StatefulSet, 1),
                (Child::Logbook, 1),
            ],
            Self::Tidb => &[
                (Child::ServiceAccount, 1),
                (Child::Role, 1),
                (Child::RoleBinding, 1),
                (Child::Deployment, 1),
                (Child::Service, 5),
                (Child::ConfigMap, 3),
                (Child::DisruptionBudget, 3),
                (Child::StatefulSet, 3),
                (Child::Logbook, 1),
            ],
        }
    }

    /// How many children a cluster has.
    pub(crate) fn objects(self) -> usize {
        self.children().iter().map(|(_, count)| count).sum()
    }

    /// The custom resource.
    pub(crate) fn api(self) -> ApiResource {
        match self {
            Self::Rss => ApiResource::erase::<ReplicatedStatefulSet>(&()),
            Self::Mysql => ApiResource::erase::<MySQLCluster>(&()),
            Self::Tidb => ApiResource::erase::<TidbCluster>(&()),
        }
    }

    /// The request that creates a cluster.
    pub(crate) fn post(self, stage: &Stage, namespace: &str, name: &str, members: u16) -> floor::Post {
        let resource = match self {
            Self::Rss => cluster::resource(&stage.run, namespace, name, members),
            Self::Mysql => mysql::resource::resource(&stage.run, &stage.node(), namespace, name, members),
            Self::Tidb => tidb::resource::resource(&stage.run, &stage.node(), namespace, name, members),
        };
        let api = self.api();
        floor::Post::of(&format!("/apis/{}", api.api_version), &api.plural, namespace, &resource)
    }

    /// Whether a cluster is as it should be, by what its status tells of its newest spec.
    pub(crate) fn is_converged(self, resource: &DynamicObject) -> bool {
        let status = &resource.data["status"];
        let observed = status["observedGeneration"].as_i64();
        let current = observed.is_some() && observed == resource.metadata.generation;
        let well = match self {
            Self::Rss => true,
            Self::Mysql => is_true(status, "Healthy"),
            Self::Tidb => is_true(status, "Ready"),
        };
        current && well
    }

    /// The containers of a pod of this component.
    pub(crate) fn containers(self, component: &str) -> Vec<String> {
        match self {
            Self::Rss => vec![cluster::CONTAINER.to_owned()],
            Self::Mysql => mysql::resource::CONTAINERS.iter().map(|name| (*name).to_owned()).collect(),
            // Each has one, which is called as the component is.
            Self::Tidb => vec![component.to_owned()],
        }
    }

    /// How many pods a cluster has.
    pub(crate) fn pods(self, members: u16) -> usize {
        match self {
            Self::Rss | Self::Mysql => usize::from(members),
            Self::Tidb => tidb::resource::pods(members),
        }
    }

    /// The selector of what the operator made.
    pub(crate) fn selector(self) -> String {
        match self {
            Self::Rss | Self::Mysql => format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_WINDLASS),
            // These say that they are managed by TiDB Operator, as scripts expect it.
            Self::Tidb => format!("{KIND_LABEL}={TIDB}"),
        }
    }

    /// The change of a spec whose arrival in a StatefulSet is timed; none where that is not measured.
    pub(crate) fn change(self, value: &str) -> Option<Value> {
        match self {
            Self::Rss => Some(cluster::change(value)),
            Self::Mysql => None,
            Self::Tidb => Some(tidb::resource::change(value)),
        }
    }

    /// The name of the resource in requests for its status.
    pub(crate) fn status(self) -> String {
        format!("{}/status", self.api().plural)
    }
}

fn is_true(status: &Value, condition: &str) -> bool {
    let all = status["conditions"].as_array();
    all.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(generation: i64, observed: i64, healthy: &str) -> DynamicObject {
        well(generation, observed, "Healthy", healthy)
    }

    fn well(generation: i64, observed: i64, condition: &str, holds: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Any", "metadata": { "name": "a", "generation": generation },
            "status": { "observedGeneration": observed, "conditions": [{ "type": condition, "status": holds }] },
        }))
        .unwrap()
    }

    #[test]
    fn a_cluster_with_servers_has_to_be_well_and_any_has_to_speak_of_its_newest_spec() {
        assert!(Kind::Tidb.is_converged(&well(2, 2, "Ready", "True")));
        assert!(!Kind::Tidb.is_converged(&well(2, 2, "Ready", "False")));
        assert!(!Kind::Tidb.is_converged(&well(2, 1, "Ready", "True")));
        assert!(Kind::Mysql.is_converged(&resource(2, 2, "True")));
        assert!(!Kind::Mysql.is_converged(&resource(2, 2, "Unknown")));
        assert!(!Kind::Mysql.is_converged(&resource(2, 1, "True")));
        assert!(Kind::Rss.is_converged(&resource(2, 2, "False")));
        assert!(!Kind::Rss.is_converged(&resource(2, 1, "True")));
    }
}
