//! The pods of the cluster as their servers live in them: a server ends with its pod, and starts some time after it.

use serde_json::Value;
use windlass_testkit::FakeApiServer;

use super::super::kit::NAMESPACE;

/// The highest number of instances.
pub(super) const SIZE: usize = 5;
pub(super) const SET: &str = "moco-harbour";
/// The container of the server.
const CONTAINER: &str = "mysqld";

pub(super) fn pod_name(number: usize) -> String {
    format!("{SET}-{number}")
}

/// The host name by which other servers know an instance.
pub(super) fn host(number: usize) -> String {
    format!("{}.{SET}.{NAMESPACE}.svc", pod_name(number))
}

/// A pod whose containers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) address: String,
    pub(super) deleting: bool,
    /// The volume that it has.
    pub(super) claim: String,
    /// The server's container as the kubelet tells of it.
    pub(super) process: String,
}

/// The pods that run, by number.
pub(super) fn look(server: &FakeApiServer) -> [Option<Pod>; SIZE] {
    std::array::from_fn(|number| {
        let pod = server.store().get("pods", NAMESPACE, &pod_name(number))?;
        let claim = server.store().get("persistentvolumeclaims", NAMESPACE, &format!("mysql-data-{}", pod_name(number)))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let containers = pod["status"]["containerStatuses"].as_array()?;
        Some(Pod {
            uid: text(&pod["metadata"]["uid"])?,
            address: text(&pod["status"]["podIP"])?,
            deleting: pod["metadata"].get("deletionTimestamp").is_some(),
            claim: text(&claim["metadata"]["uid"])?,
            process: containers.iter().find(|it| it["name"] == CONTAINER).and_then(|it| text(&it["containerID"]))?,
        })
    })
}

/// The instance of a host name or an address.
pub(super) fn number_of(pods: &[Option<Pod>; SIZE], host: &str) -> Option<usize> {
    let by_address = pods.iter().position(|pod| pod.as_ref().is_some_and(|pod| pod.address == host));
    by_address.or_else(|| host.split('.').next()?.rsplit_once('-')?.1.parse().ok().filter(|number| *number < SIZE))
}

#[test]
fn hosts_and_addresses_are_those_of_the_instances() {
    let mut pods: [Option<Pod>; SIZE] = std::array::from_fn(|_| None);
    let text = String::new;
    pods[3] = Some(Pod { uid: text(), address: "10.64.0.9".into(), deleting: false, claim: text(), process: text() });
    assert_eq!((number_of(&pods, &host(2)), number_of(&pods, "10.64.0.9")), (Some(2), Some(3)));
    assert_eq!(windlass_core::ordinals::Ordinal::new(2).pod_name(SET), pod_name(2));
}
