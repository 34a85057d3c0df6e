//! The defaults the server fills into the built-in kinds we write.
//!
//! A stored object is never just what was sent; code that compares the two must live with that here as it must on a
//! real server. Only the kinds and fields Windlass touches are covered.

use serde_json::{Value, json};

use crate::{object::text, registry::Resource};

/// Fills in what is missing.
pub(crate) fn fill(resource: &Resource, object: &mut Value) {
    if resource.custom || !object.is_object() {
        return;
    }
    let fill_spec: fn(&mut Value) = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "secrets") => return set(object, "type", json!("Opaque")),
        ("", "services") => fill_service,
        ("", "pods") => fill_pod_spec,
        ("", "persistentvolumeclaims") => fill_claim_spec,
        ("apps", "statefulsets") => fill_stateful_set,
        _ => return,
    };
    inside(object, &["spec"], fill_spec);
}

/// Changes the object at a path, if there is one: an absent field must not spring up as null.
fn inside(object: &mut Value, path: &[&str], change: impl FnOnce(&mut Value)) {
    let place = path.iter().try_fold(object, |value, name| value.get_mut(*name));
    if let Some(place) = place.filter(|place| place.is_object()) {
        change(place);
    }
}

/// Sets a field that is absent, where there is an object to set it in.
fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.entry(name).or_insert(value);
    }
}

fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn fill_service(spec: &mut Value) {
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    if text(spec, &["type"]) != "ExternalName" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
        set(spec, "ipFamilies", json!(["IPv4"]));
        set(spec, "ipFamilyPolicy", json!("SingleStack"));
    }
    if let Some(address) = spec.get("clusterIP").cloned() {
        set(spec, "clusterIPs", json!([address]));
    }
    for port in items(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
}

/// The address of a Service that asked for none in particular.
pub(crate) fn give_address(resource: &Resource, object: &mut Value, number: u64) {
    if !resource.group.is_empty() || resource.plural != "services" {
        return;
    }
    inside(object, &["spec"], |spec| {
        if text(spec, &["type"]) != "ExternalName" && spec.get("clusterIP").is_none() {
            let address = format!("10.96.{}.{}", number / 250 % 256, number % 250 + 1);
            spec["clusterIP"] = json!(address);
            spec["clusterIPs"] = json!([address]);
        }
    });
}

fn fill_stateful_set(spec: &mut Value) {
    set(spec, "replicas", json!(1));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    inside(spec, &["updateStrategy"], |strategy| {
        set(strategy, "type", json!("RollingUpdate"));
        if strategy["type"] == "RollingUpdate" {
            set(strategy, "rollingUpdate", json!({}));
        }
    });
    inside(spec, &["updateStrategy", "rollingUpdate"], |rolling| {
        set(rolling, "partition", json!(0));
    });
    set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    inside(spec, &["persistentVolumeClaimRetentionPolicy"], |policy| {
        set(policy, "whenDeleted", json!("Retain"));
        set(policy, "whenScaled", json!("Retain"));
    });
    inside(spec, &["template", "spec"], fill_pod_spec);
    for claim in items(spec, "volumeClaimTemplates") {
        set(claim, "kind", json!("PersistentVolumeClaim"));
        set(claim, "apiVersion", json!("v1"));
        inside(claim, &["spec"], fill_claim_spec);
        set(claim, "status", json!({ "phase": "Pending" }));
    }
}

fn fill_claim_spec(spec: &mut Value) {
    set(spec, "volumeMode", json!("Filesystem"));
}

fn fill_pod_spec(spec: &mut Value) {
    for (name, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ] {
        set(spec, name, value);
    }
    for list in ["initContainers", "containers"] {
        for container in items(spec, list) {
            fill_container(container);
        }
    }
    for volume in items(spec, "volumes") {
        for source in ["configMap", "secret", "projected"] {
            inside(volume, &[source], |source| set(source, "defaultMode", json!(420)));
        }
    }
}

fn fill_container(container: &mut Value) {
    let image = text(container, &["image"]);
    let floating =
        !image.contains('@') && image.rsplit('/').next().is_some_and(|last| !last.contains(':') || last.ends_with(":latest"));
    set(container, "imagePullPolicy", json!(if floating { "Always" } else { "IfNotPresent" }));
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    set(container, "resources", json!({}));
    for port in items(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        inside(container, &[probe], fill_probe);
    }
    for variable in items(container, "env") {
        inside(variable, &["valueFrom", "fieldRef"], |reference| {
            set(reference, "apiVersion", json!("v1"));
        });
    }
}

fn fill_probe(probe: &mut Value) {
    for (name, value) in [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)] {
        set(probe, name, json!(value));
    }
    inside(probe, &["httpGet"], |get| set(get, "scheme", json!("HTTP")));
}
