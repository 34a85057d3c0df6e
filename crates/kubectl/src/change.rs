//! The changes that a person can ask for, as merge patches that carry nothing else. Pure.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_core::labels;
use windlass_core::lane::Lane;

use crate::cluster::{Cluster, LANES};
use crate::error::Error;
use crate::kinds::Kind;

/// What `kubectl rollout restart` notes, so that both are found by the same look.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// Asks for a pause of these lanes, or of the whole cluster when none is named.
pub(crate) fn pause(kind: &Kind, lanes: &[Lane], reason: Option<&str>) -> Value {
    let mut annotations = Map::new();
    if let Some(reason) = reason {
        annotations.insert(labels::PAUSE_REASON.to_owned(), json!(reason));
    }
    let whole = lanes.is_empty() && kind.pause.has_field;
    if !whole {
        let closed = if lanes.is_empty() { &LANES } else { lanes };
        annotations.extend(closed.iter().map(|lane| (kind.pause.annotation(*lane).to_owned(), json!("true"))));
    }
    let mut change = Map::new();
    if whole {
        change.insert("spec".to_owned(), json!({ "paused": true }));
    }
    if !annotations.is_empty() {
        change.insert("metadata".to_owned(), json!({ "annotations": annotations }));
    }
    Value::Object(change)
}

/// Withdraws the pause of these lanes, or of the whole cluster when none is named, and leaves nothing of it behind.
///
/// When one lane is resumed of a cluster that is paused as a whole, the other must stay closed: it gets its own annotation. That
/// rests on what was read, so such a patch carries the version it was read at.
pub(crate) fn resume(cluster: &Cluster, lanes: &[Lane]) -> Value {
    let pause = &cluster.kind.pause;
    let stays = |lane: &Lane| !lanes.is_empty() && !lanes.contains(lane) && cluster.is_pause_requested(*lane);
    let staying: Vec<Lane> = LANES.into_iter().filter(stays).collect();
    let mut annotations = Map::new();
    for lane in LANES.iter().filter(|lane| lanes.is_empty() || lanes.contains(lane)) {
        annotations.insert(pause.annotation(*lane).to_owned(), Value::Null);
    }
    if staying.is_empty() {
        annotations.insert(labels::PAUSE_REASON.to_owned(), Value::Null);
    }
    let mut change = json!({});
    if lanes.is_empty() {
        if pause.has_field {
            change["spec"] = json!({ "paused": null });
        }
    } else if cluster.is_whole_pause_requested() {
        change["spec"] = json!({ "paused": null });
        annotations.extend(staying.iter().map(|lane| (pause.annotation(*lane).to_owned(), json!("true"))));
        change["metadata"]["resourceVersion"] = json!(cluster.object.metadata.resource_version);
    }
    change["metadata"]["annotations"] = Value::Object(annotations);
    change
}

/// Says how many members may come and go at a time. Nothing when nothing is said about it.
pub(crate) fn pace(kind: &Kind, scale_in: Option<u16>, scale_out: Option<u16>) -> Result<Option<Value>, Error> {
    let said = [("scaleInParallelism", scale_in), ("scaleOutParallelism", scale_out)];
    let policy: Map<String, Value> =
        said.into_iter().filter_map(|(field, value)| Some((field.to_owned(), json!(value?)))).collect();
    if policy.is_empty() {
        return Ok(None);
    }
    let Some(path) = kind.scale_policy else {
        return Err(Error::Usage(format!("the spec of {} does not say how many members come or go at a time", kind.short)));
    };
    Ok(Some(path.iter().rev().fold(Value::Object(policy), |inner, name| json!({ *name: inner }))))
}

/// Asks for new pods, by a note in the template of the spec. Nothing for a kind whose spec has no place for it.
pub(crate) fn restart(kind: &Kind, now: Timestamp) -> Option<Value> {
    let metadata = json!({ "annotations": { RESTARTED: format!("{now:.0}") } });
    Some(kind.pod_metadata?.iter().rev().fold(metadata, |inner, name| json!({ *name: inner })))
}

/// The pod that can be asked to hand over, and the annotation that asks.
pub(crate) fn hand_over(cluster: &Cluster) -> Result<(String, &'static str), Error> {
    let handle = cluster.handle();
    let refuse = |why: &str| Err(Error::Call { act: format!("switch the primary of {handle}"), why: why.to_owned() });
    let Some(annotation) = cluster.kind.hand_over else {
        return Err(Error::Usage(format!("{} has no single primary that could hand over", cluster.kind.short)));
    };
    if cluster.object.data["spec"]["offline"] == true {
        return refuse("offline cluster is not able to switch");
    }
    if cluster.members().wanted == 1 {
        return refuse("single-instance cluster is not able to switch");
    }
    match cluster.primary() {
        Some(pod) => Ok((pod, annotation)),
        None => refuse("its status names no primary yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::SERVED;
    use crate::render::fixtures::cluster;

    const RESOURCES: &str = "windlass.dev/resources-paused";
    const CLUSTERING: &str = "windlass.dev/clustering-paused";
    const REASON: &str = "windlass.dev/pause-reason";

    #[test]
    fn a_pause_carries_the_field_or_the_annotation_and_nothing_else() {
        let kind = &SERVED[0];
        assert_eq!(pause(kind, &[], None), json!({ "spec": { "paused": true } }));
        assert_eq!(
            pause(kind, &[], Some("disk")),
            json!({ "spec": { "paused": true }, "metadata": { "annotations": { REASON: "disk" } } })
        );
        assert_eq!(
            pause(kind, &[Lane::Clustering], Some("disk")),
            json!({ "metadata": { "annotations": { CLUSTERING: "true", REASON: "disk" } } })
        );
    }

    #[test]
    fn a_resume_leaves_nothing_of_the_pause() {
        let change = resume(&cluster(json!({ "spec": { "paused": true } }), None), &[]);
        let nothing = json!({ RESOURCES: null, CLUSTERING: null, REASON: null });
        assert_eq!(change, json!({ "spec": { "paused": null }, "metadata": { "annotations": nothing } }));
    }

    #[test]
    fn one_lane_of_a_whole_pause_is_resumed_and_the_other_stays_closed() {
        let paused = cluster(json!({ "metadata": { "resourceVersion": "7" }, "spec": { "paused": true } }), None);
        let annotations = json!({ CLUSTERING: null, RESOURCES: "true" });
        assert_eq!(
            resume(&paused, &[Lane::Clustering]),
            json!({ "spec": { "paused": null }, "metadata": { "resourceVersion": "7", "annotations": annotations } })
        );
    }

    #[test]
    fn the_reason_stays_as_long_as_a_lane_is_closed() {
        let both = cluster(json!({ "metadata": { "annotations": { RESOURCES: "true", CLUSTERING: "true" } } }), None);
        assert_eq!(resume(&both, &[Lane::Clustering]), json!({ "metadata": { "annotations": { CLUSTERING: null } } }));
        let one = cluster(json!({ "metadata": { "annotations": { CLUSTERING: "true" } } }), None);
        let nothing = json!({ CLUSTERING: null, REASON: null });
        assert_eq!(resume(&one, &[Lane::Clustering]), json!({ "metadata": { "annotations": nothing } }));
    }

    #[test]
    fn a_pace_is_said_where_the_kind_has_a_place_for_it() {
        assert_eq!(pace(&SERVED[2], None, None).unwrap(), None);
        let said = json!({ "spec": { "tikv": { "scalePolicy": { "scaleInParallelism": 3 } } } });
        assert_eq!(pace(&SERVED[2], Some(3), None).unwrap(), Some(said));
        assert_eq!(pace(&SERVED[0], None, None).unwrap(), None);
        assert!(pace(&SERVED[0], None, Some(2)).unwrap_err().to_string().contains("rss"));
    }

    #[test]
    fn a_restart_is_a_note_in_the_template_where_the_kind_has_one() {
        let now: Timestamp = "2026-11-16T01:00:00.25Z".parse().unwrap();
        let noted = json!({ "annotations": { RESTARTED: "2026-11-16T01:00:00Z" } });
        assert_eq!(restart(&SERVED[1], now), Some(json!({ "spec": { "podTemplate": { "metadata": noted } } })));
        assert_eq!(restart(&SERVED[0], now), None);
    }
}
