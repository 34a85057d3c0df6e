use super::no_action::NoAction;
use super::*;
use rstest::rstest;
use serde_json::json;

#[rstest]
#[case(ObjectKind::Service, json!({ "type": "ClusterIP" }), "spec")]
#[case(ObjectKind::Deployment, json!({ "replicas": 1 }), "spec")]
#[case(ObjectKind::ConfigMap, json!({ "file": "text" }), "data")]
fn what_an_object_is_about_lies_in_one_field(#[case] kind: ObjectKind, #[case] spec: Value, #[case] field: &str) {
    assert_eq!(body(kind, &spec)[field], spec);
}

#[rstest]
#[case(ObjectKind::ServiceAccount, json!({ "automountServiceAccountToken": false }))]
#[case(ObjectKind::Role, json!({ "rules": [{ "verbs": ["get"] }] }))]
#[case(ObjectKind::RoleBinding, json!({ "subjects": [{ "name": "a" }], "roleRef": { "name": "a" } }))]
fn or_in_all_of_them(#[case] kind: ObjectKind, #[case] fields: Value) {
    let body = body(kind, &fields);
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(body[name], *value);
    }
    assert_eq!(body["spec"], Value::Null);
    assert_eq!((&body["apiVersion"], &body["kind"]), (&json!(kind.api_version()), &json!(kind.to_string())));
}

/// Else a pause would be told anew all the time.
#[test]
fn a_step_that_notes_the_time_is_told_in_the_same_way_later() {
    let told = |time: &str| {
        let object = ObjectRef { kind: ObjectKind::PersistentVolumeClaim, namespace: "n".into(), name: "a".into() };
        let labels = [("part".to_owned(), Some("b".to_owned()))].into();
        let annotations = [("since".to_owned(), Some(time.to_owned())), ("until".to_owned(), None)].into();
        let over = Over { uid: "u".into(), resource_version: "1".into() };
        Step::<NoAction>::new(Act::Label { object, over, labels, annotations }, "it was given up").to_string()
    };
    assert_eq!(told("1"), "label PersistentVolumeClaim a part=b,since,until-");
    assert_eq!(told("1"), told("2"));
}

fn body(kind: ObjectKind, spec: &Value) -> Value {
    let object = ObjectRef { kind, namespace: "n".into(), name: "a".into() };
    let owner = Owner { api_version: "v1".into(), kind: "A".into(), name: "a".into(), uid: "u".into() };
    let (labels, annotations) = (BTreeMap::new(), BTreeMap::new());
    Manifest { object, labels, annotations, owner, spec: spec.clone(), over: None, never_held: false }.body()
}

#[test]
fn what_becomes_of_a_volume_is_held_with_the_resources_and_told_by_its_claim() {
    let object = ObjectRef { kind: ObjectKind::PersistentVolumeClaim, namespace: "n".into(), name: "tikv-a-tikv-0".into() };
    let over = Over { uid: "u".into(), resource_version: "1".into() };
    let act = Act::SetReclaim { object: object.clone(), over: over.clone(), volume: "pv".into(), policy: "Retain".into() };
    let step = Step::<NoAction>::new(act, "the spec says so");
    assert_eq!(step.lane(), Some(Lane::Resources));
    assert_eq!(step.judged(), Some((&object, Some(&over))));
    assert_eq!(step.to_string(), "set reclaim policy Retain on the volume of PersistentVolumeClaim tikv-a-tikv-0");
}
