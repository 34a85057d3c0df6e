//! Where members of the cluster can be, and the pods and volumes that are there.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::tidb::build::Names;
use windlass_testkit::FakeApiServer;

use super::super::kit::NAMESPACE;

pub(super) const CLUSTER: &str = "harbour";
/// More members than any scenario asks for.
const LARGEST: u16 = 6;
const COMPONENTS: [Component; 4] = [Component::Pd, Component::Tikv, Component::Tiflash, Component::Tidb];

pub(super) const NAMES: Names<'static> = Names::new(CLUSTER, NAMESPACE, None);

/// Where a member can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) component: Component,
    pub(super) ordinal: Ordinal,
}

/// All of them.
pub(super) fn places() -> impl Iterator<Item = Place> {
    COMPONENTS.into_iter().flat_map(|component| (0..LARGEST).map(move |it| Place { component, ordinal: Ordinal::new(it) }))
}

pub(super) fn pod_name(component: Component, ordinal: u16) -> String {
    NAMES.pod(component, Ordinal::new(ordinal))
}

impl Place {
    pub(super) fn pod(self) -> String {
        NAMES.pod(self.component, self.ordinal)
    }

    /// The claim of a member that has something to keep.
    pub(super) fn claim(self) -> Option<String> {
        let template = match self.component {
            Component::Pd => "pd",
            Component::Tikv => "tikv",
            Component::Tiflash => "data0",
            _ => return None,
        };
        Some(NAMES.claim(template, self.component, self.ordinal))
    }

    /// The address of a store.
    pub(super) fn address(self) -> String {
        let port = if self.component == Component::Tiflash { 3930 } else { 20160 };
        format!("{}:{port}", NAMES.host(self.component, self.ordinal))
    }
}

/// A pod whose containers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) deleting: bool,
    /// The server's container as the kubelet tells of it.
    pub(super) process: String,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) deleting: bool,
}

/// The objects that the world looks at.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) claims: BTreeMap<String, Claim>,
    /// The sizes of sets that are to stay.
    pub(super) sizes: BTreeMap<String, u64>,
    /// The custom resource, unless it is about to go.
    pub(super) resource: Option<Value>,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn name(object: &Value) -> Option<String> {
    text(&object["metadata"]["name"])
}

/// The server is called after its component.
fn pod(object: &Value) -> Option<Pod> {
    let component = object["metadata"]["labels"]["app.kubernetes.io/component"].as_str()?;
    let containers = object["status"]["containerStatuses"].as_array()?;
    Some(Pod {
        uid: text(&object["metadata"]["uid"])?,
        deleting: is_deleting(object),
        process: containers.iter().find(|it| it["name"] == component).and_then(|it| text(&it["containerID"]))?,
    })
}

pub(super) fn look(server: &FakeApiServer) -> Objects {
    let store = server.store();
    let claim = |object: &Value| Some(Claim { uid: text(&object["metadata"]["uid"])?, deleting: is_deleting(object) });
    let sets = store.list("statefulsets");
    let sets = sets.iter().filter(|set| !is_deleting(set));
    Objects {
        pods: store.list("pods").iter().filter_map(|it| Some((name(it)?, pod(it)?))).collect(),
        claims: store.list("persistentvolumeclaims").iter().filter_map(|it| Some((name(it)?, claim(it)?))).collect(),
        sizes: sets.filter_map(|it| Some((name(it)?, it["spec"]["replicas"].as_u64()?))).collect(),
        resource: store.get("tidbclusters", NAMESPACE, CLUSTER).filter(|it| !is_deleting(it)),
    }
}
