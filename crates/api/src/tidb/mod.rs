//! `TidbCluster` (pingcap.com/v1alpha1): PD, TiKV, TiDB, TiFlash, TiCDC, TiProxy and Pump.
//!
//! The fields are those that users of this API know. What is embedded of Kubernetes is kept as it was written ([`crate::part`]), and
//! what reaches a pod template has no default in the definition: a newer definition must restart nothing.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

mod base;
mod clients;
pub mod conditions;
mod config;
pub mod keys;
mod kinds;
mod members;
mod pd;
mod service;
mod spec;
mod status;
mod storage;
mod stores;
#[cfg(test)]
mod tests;

pub use base::{ComponentSpec, DiscoverySpec, Probe, Resources, SuspendAction, TopologySpreadConstraint};
pub use clients::{CustomizedProbe, PumpSpec, SlowLogTailer, TicdcSpec, TidbInitializer, TidbSpec, TiproxySpec, TlsClient};
pub use config::Config;
pub use kinds::Component;
pub use members::{
    Capture, EvictLeader, FailureMember, FailureStore, Nothing, PdMember, PumpMember, Store, TidbFailureMember, TidbMember,
    TiproxyMember, UnjoinedMember,
};
pub use pd::{PdMicroService, PdSpec};
pub use service::{ServiceSpec, ServiceType, TidbServiceSpec};
pub use spec::{ClusterRef, HelperSpec, TidbCluster, TidbClusterSpec, TlsCluster};
pub use status::{
    MemberPhase, PdMicroServiceStatus, PdStatus, PumpStatus, StatefulSetStatus, TicdcStatus, TidbClusterStatus, TidbStatus,
    TiflashStatus, TikvStatus, TiproxyStatus, VolumeStatus,
};
pub use storage::{StorageClaim, StorageVolume};
pub use stores::{Failover, ScalePolicy, TiflashConfig, TiflashSpec, TikvSpec};

/// Its definition.
pub fn custom_resource_definition() -> CustomResourceDefinition {
    crate::schema::fit(TidbCluster::crd())
}
