//! The custom resources that Windlass serves, as types.
//!
//! Types only: nothing here decides anything, talks to anybody or knows the time. The doc comments of the fields become
//! what `kubectl explain` prints.

#[cfg(test)]
mod fixture;
pub mod lenient;
pub mod logbook;
pub mod mysql;
pub mod part;
pub mod replicated;
pub mod schema;
pub mod tidb;

pub use logbook::Logbook;
pub use replicated::ReplicatedStatefulSet;
pub use tidb::TidbCluster;

/// Every custom resource definition, in the order in which they are installed.
///
/// The schemas are already fit for the API server (see [`schema::fit`]).
pub fn custom_resource_definitions()
-> Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> {
    use kube::CustomResourceExt as _;
    let ours = [Logbook::crd(), ReplicatedStatefulSet::crd()].into_iter().map(schema::fit);
    ours.chain(mysql::custom_resource_definitions()).chain([tidb::custom_resource_definition()]).collect()
}
