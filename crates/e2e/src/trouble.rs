//! What somebody needs to see who looks at a failed test. Never fails itself.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt as _;
use kube::api::{ListParams, LogParams};
use windlass_api::{Logbook, ReplicatedStatefulSet};

use crate::place::{Place, is_ready};

/// All releases of Windlass.
const OPERATORS: &str = "app.kubernetes.io/name=windlass,app.kubernetes.io/component=controller";
/// How much of an operator's log is worth showing.
const LINES: usize = 60;

pub(crate) async fn tell(place: &Place) {
    println!("==> what is in namespace {}", place.namespace());
    let all = ListParams::default();
    for cluster in place.api::<ReplicatedStatefulSet>().list(&all).await.into_iter().flatten() {
        let generation = cluster.metadata.generation.unwrap_or_default();
        let status = serde_json::to_string_pretty(&cluster.status).unwrap_or_default();
        println!("-- cluster {} (generation {generation}), status {status}", cluster.name_any());
    }
    for logbook in place.api::<Logbook>().list(&all).await.into_iter().flatten() {
        println!("-- logbook {} {}", logbook.name_any(), serde_json::to_string_pretty(&logbook.spec).unwrap_or_default());
    }
    for pod in place.api::<Pod>().list(&all).await.into_iter().flatten() {
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        println!("-- pod {} {phase} ready={} labels={:?}", pod.name_any(), is_ready(&pod), pod.labels());
    }
    let mut events = place.api::<Event>().list(&all).await.map(|events| events.items).unwrap_or_default();
    events.sort_by_key(|event| event.metadata.creation_timestamp.clone());
    for event in events {
        let object = event.involved_object.name.unwrap_or_default();
        println!("-- event {object}: {} {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default());
    }
    let operators: kube::Api<Pod> = kube::Api::all(place.stage().client());
    for pod in operators.list(&all.labels(OPERATORS)).await.into_iter().flatten() {
        let pods: kube::Api<Pod> = kube::Api::namespaced(place.stage().client(), &pod.namespace().unwrap_or_default());
        let log = pods.logs(&pod.name_any(), &LogParams::default()).await.unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(place.namespace())).collect();
        println!("-- {} about it\n{}", pod.name_any(), lines[lines.len().saturating_sub(LINES)..].join("\n"));
    }
}
