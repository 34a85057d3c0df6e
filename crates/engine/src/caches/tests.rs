use jiff::Timestamp;
use serde_json::{Value, json};

use super::slim::{Claim, Deployment, Pod, Role, RoleBinding, Service};
use super::*;

fn object(name: &str, uid: &str, version: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
            "labels": { KIND_LABEL: "rss", labels::INSTANCE: "a" },
        },
        "spec": { "v": version },
    })
}

fn service(name: &str, uid: &str, version: u64) -> Service {
    serde_json::from_value(object(name, uid, version)).unwrap()
}

fn key() -> Key {
    Key { kind: "rss".into(), namespace: "n".into(), name: "a".into() }
}

fn versions(caches: &Caches) -> Vec<(String, String)> {
    let children = caches.children(&key());
    children.services.values().map(|it| (it.meta.uid.clone(), it.meta.resource_version.clone())).collect()
}

#[test]
fn a_cache_never_goes_back_in_time() {
    let caches = Caches::default();
    caches.put(service("s", "u", 5));
    caches.put(service("s", "u", 4));
    assert_eq!(versions(&caches), [("u".to_owned(), "5".to_owned())]);
    caches.put(service("s", "u", 10));
    assert_eq!(versions(&caches), [("u".to_owned(), "10".to_owned())], "versions are numbers, not text");
}

/// The answer to a write and the event of a watch are read by the same types, and neither keeps what nobody reads.
#[test]
fn who_wrote_which_field_is_never_read() {
    let mut given = object("s", "u", 5);
    let metadata = json!({
        "managedFields": [{ "manager": "windlass", "operation": "Apply", "fieldsV1": { "f:spec": {} } }],
        "generation": 3,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionTimestamp": "2026-01-02T03:04:06Z",
        "annotations": { "a": "b" },
        "finalizers": ["f"],
        "ownerReferences": [{ "apiVersion": "v1", "kind": "K", "name": "o", "uid": "owner", "controller": true }],
    });
    given["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let read: Service = serde_json::from_value(given).unwrap();
    assert_eq!(kube::Resource::meta(&read).managed_fields, None);
    let known = read.view().meta;
    assert_eq!((known.namespace.as_str(), known.name.as_str(), known.uid.as_str()), ("n", "s", "u"));
    assert_eq!((known.resource_version.as_str(), known.generation, known.deleting), ("5", Some(3), true));
    assert_eq!(known.created, Some("2026-01-02T03:04:05Z".parse().unwrap()));
    assert_eq!((known.labels.iter().count(), known.annotations.iter().count()), (2, 1));
    assert_eq!(known.owner_uid.as_deref(), Some("owner"));
}

#[test]
fn the_end_of_an_earlier_object_does_not_end_its_successor() {
    let caches = Caches::default();
    caches.put(service("s", "old", 5));
    caches.put(service("s", "new", 7));
    caches.remove(service("s", "old", 6));
    assert_eq!(versions(&caches), [("new".to_owned(), "7".to_owned())]);
    caches.remove(service("s", "new", 8));
    assert!(versions(&caches).is_empty());
}

#[test]
fn an_answer_that_comes_after_the_end_brings_nothing_back() {
    let caches = Caches::default();
    caches.put(service("s", "u", 5));
    caches.remove(service("s", "u", 7));
    caches.put_answer(service("s", "u", 6));
    assert!(versions(&caches).is_empty());
    assert!(caches.lock().families.is_empty(), "a cluster without objects costs nothing");
    // What was made after all that the watch has shown is taken in before its event.
    caches.put_answer(service("s", "new", 8));
    assert_eq!(versions(&caches), [("new".to_owned(), "8".to_owned())]);
}

#[test]
fn a_late_answer_brings_no_logbook_back() {
    let logbook = |version: u64| -> Logbook {
        let mut logbook = object("rss-a", "u", version);
        logbook["apiVersion"] = json!("windlass.dev/v1alpha1");
        logbook["kind"] = json!("Logbook");
        logbook["spec"] = json!({});
        serde_json::from_value(logbook).unwrap()
    };
    let caches = Caches::default();
    caches.put_logbook(logbook(5));
    caches.remove_logbook(&logbook(7));
    caches.put_logbook_answer(logbook(6));
    assert!(caches.logbook(&key()).is_none());
    caches.put_logbook_answer(logbook(8));
    assert!(caches.logbook(&key()).is_some());
}

#[test]
fn a_new_list_removes_what_is_gone_and_keeps_what_we_wrote_after_it() {
    let caches = Caches::default();
    // The newest of all that was listed says nothing about what is gone: it may have been newer.
    caches.put(service("gone", "u1", 8));
    caches.put(service("kept", "u2", 4));
    caches.expect_list("services");
    caches.put_answer(service("ours", "u3", 9));
    let listed = BTreeMap::from([(("n".to_owned(), "kept".to_owned()), "u2".to_owned())]);
    caches.retain::<Service>(&listed, 5);
    assert_eq!(versions(&caches), [("u2".to_owned(), "4".to_owned()), ("u3".to_owned(), "9".to_owned())]);
    assert!(caches.take_doubt(&key()), "it may have ended before the list was made");
    assert!(!caches.take_doubt(&key()));
}

#[test]
fn a_list_in_which_nothing_is_new_leaves_a_cluster_as_it_is() {
    let caches = Caches::default();
    caches.put(service("s", "u", 5));
    let (edition, before) = (caches.edition(&key()), caches.children(&key()));
    caches.put(service("s", "u", 5));
    caches.retain::<Service>(&BTreeMap::from([(("n".to_owned(), "s".to_owned()), "u".to_owned())]), 5);
    caches.retain::<Claim>(&BTreeMap::new(), 5);
    assert!(Arc::ptr_eq(&before, &caches.children(&key())), "it would be copied");
    assert_eq!(caches.edition(&key()), edition, "all of it would be looked at again");
}

#[test]
fn every_change_is_another_edition() {
    let caches = Caches::default();
    let mut editions = vec![caches.edition(&key())];
    caches.put(service("s", "u", 5));
    editions.push(caches.edition(&key()));
    caches.put(service("t", "v", 6));
    editions.push(caches.edition(&key()));
    caches.remove(service("t", "v", 7));
    editions.push(caches.edition(&key()));
    caches.put(service("s", "u", 8));
    editions.push(caches.edition(&key()));
    assert!(editions.is_sorted_by(|one, next| one < next), "{editions:?}");
}

#[test]
fn children_that_are_packed_are_the_same_for_everybody_and_take_changes() {
    let caches = Caches::default();
    caches.put(service("s", "u", 5));
    caches.put(serde_json::from_value::<Claim>(object("data-0", "w", 1)).unwrap());
    let (edition, loose) = (caches.edition(&key()), caches.children(&key()));
    caches.pack(&key());
    assert!(caches.children(&key()).are_closed());
    assert_eq!((caches.edition(&key()), &caches.children(&key())), (edition, &loose));
    // Whoever looks into them does it for himself.
    assert_eq!(versions(&caches), [("u".to_owned(), "5".to_owned())]);
    assert!(caches.lock().families[&key()].children.are_closed());
    // An older state is still known to be older, a newer one is taken, and the rest stays as it was.
    caches.put(service("s", "u", 4));
    assert_eq!(caches.edition(&key()), edition);
    caches.put(service("s", "u", 6));
    assert_eq!(versions(&caches), [("u".to_owned(), "6".to_owned())]);
    assert_eq!(caches.children(&key()).claims, loose.claims);
    assert!(caches.edition(&key()) > edition);
    caches.remove(service("s", "u", 7));
    caches.retain::<Claim>(&BTreeMap::new(), 9);
    assert_eq!(*caches.children(&key()), Children::default());
}

#[test]
fn a_list_of_one_kind_leaves_the_others_alone() {
    let caches = Caches::default();
    caches.put(serde_json::from_value::<Claim>(object("data-0", "u", 1)).unwrap());
    caches.retain::<Service>(&BTreeMap::new(), 100);
    assert_eq!(caches.children(&key()).claims.len(), 1);
}

#[test]
fn objects_without_our_labels_are_nobodys() {
    let caches = Caches::default();
    let mut stray = object("s", "u", 1);
    stray["metadata"]["labels"] = json!({});
    caches.put(serde_json::from_value::<Service>(stray).unwrap());
    assert!(caches.lock().families.is_empty());
}

/// A claim may ask for a volume that is not there, or keep the name of one that was lost.
#[test]
fn a_claim_has_a_volume_when_it_is_bound_to_it() {
    for (phase, expected) in [("Bound", Some("pv")), ("Pending", None), ("Lost", None)] {
        let mut claim = object("data-0", "u", 1);
        claim["spec"] = json!({ "volumeName": "pv" });
        claim["status"] = json!({ "phase": phase });
        assert_eq!(serde_json::from_value::<Claim>(claim).unwrap().view().volume.as_deref(), expected, "{phase}");
    }
}

#[test]
fn only_the_first_container_counts_and_only_while_it_runs() {
    let pod = |state: Value, before: Value| {
        let mut pod = object("p", "u", 1);
        pod["spec"] = json!({ "containers": [{ "name": "db" }, { "name": "side" }] });
        pod["status"] = json!({ "phase": "Running", "containerStatuses": [
            { "name": "side", "containerID": "c://side", "state": { "running": {} }, "lastState": ended("2026-01-01T00:00:00Z") },
            { "name": "db", "containerID": "c://db", "state": state, "lastState": before },
        ] });
        let view = serde_json::from_value::<Pod>(pod).unwrap().view();
        (view.process, view.ended)
    };
    let (runs, none, noon) = (json!({ "running": { "startedAt": "x" } }), json!({}), "2026-11-17T12:00:00Z");
    let at_noon = Some(noon.parse().unwrap());
    assert_eq!(pod(runs.clone(), none.clone()), (Some("c://db".to_owned()), None));
    assert_eq!(pod(runs, ended(noon)), (Some("c://db".to_owned()), at_noon));
    assert_eq!(pod(ended(noon), none.clone()), (None, at_noon));
    assert_eq!(pod(json!({ "waiting": {} }), ended(noon)), (None, at_noon));
    assert_eq!(pod(json!({ "waiting": {} }), none.clone()), (None, None));
    assert_eq!(pod(json!({ "terminated": { "exitCode": 137, "finishedAt": null } }), none), (None, Some(Timestamp::MAX)));
}

fn ended(at: &str) -> Value {
    json!({ "terminated": { "exitCode": 1, "finishedAt": at } })
}

#[tokio::test]
async fn whoever_waits_for_a_cluster_is_woken_by_its_objects_only() {
    let caches = Caches::default();
    let notify = Arc::new(Notify::new());
    caches.wake_for(key(), Arc::clone(&notify));
    let mut other = object("s", "u", 1);
    other["metadata"]["labels"][labels::INSTANCE] = json!("b");
    caches.put(serde_json::from_value::<Service>(other).unwrap());
    assert!(futures::poll!(std::pin::pin!(notify.notified())).is_pending());
    caches.put(service("s", "u", 2));
    notify.notified().await;
}

#[test]
fn of_roles_and_their_bindings_every_field_is_kept_and_nothing_else() {
    let with = |fields: Value| {
        let mut object = object("a-discovery", "u", 5);
        object.as_object_mut().unwrap().remove("spec");
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    let subjects = json!([{ "kind": "ServiceAccount", "name": "a-discovery" }]);
    let reference = json!({ "kind": "Role", "name": "a-discovery", "apiGroup": "rbac.authorization.k8s.io" });
    let role: Role = serde_json::from_value(with(json!({ "apiVersion": "v1", "kind": "Role", "rules": rules }))).unwrap();
    let binding = with(json!({ "kind": "RoleBinding", "subjects": subjects, "roleRef": reference }));
    let binding: RoleBinding = serde_json::from_value(binding).unwrap();
    let deployment: Deployment = serde_json::from_value(object("a-discovery", "u", 5)).unwrap();
    let caches = Caches::default();
    caches.put(role);
    caches.put(binding);
    caches.put(deployment);
    let children = caches.children(&key());
    assert_eq!(children.roles["a-discovery"].spec.value(), json!({ "rules": rules }));
    assert_eq!(children.role_bindings["a-discovery"].spec.value(), json!({ "subjects": subjects, "roleRef": reference }));
    assert_eq!(children.deployments["a-discovery"].spec.value(), json!({ "v": 5 }));
}
