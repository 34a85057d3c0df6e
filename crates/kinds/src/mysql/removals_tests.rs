use std::collections::BTreeMap;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;
use windlass_core::views::{Compact, PodView, StatefulSetView};

use super::*;

const OURS: &str = "u-1";

fn owner() -> Owner {
    Owner { api_version: "v".into(), kind: "MySQLCluster".into(), name: "harbour".into(), uid: OURS.into() }
}

fn wanted(kind: ObjectKind, name: &str, spec: Value) -> Manifest {
    let object = ObjectRef { kind, namespace: "shop".into(), name: name.into() };
    Manifest {
        object,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        owner: owner(),
        spec,
        over: None,
        never_held: false,
    }
}

fn view(name: &str, age: u8, spec: &Value) -> (String, ObjectView) {
    let meta = Meta {
        namespace: "shop".into(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "7".into(),
        owner_uid: Some(OURS.into()),
        created: Timestamp::from_second(1_800_000_000 - i64::from(age)).ok(),
        ..Meta::default()
    };
    (name.to_owned(), ObjectView { meta, spec: Compact::of(spec) })
}

/// The texts 0 (the newest) to 11 (the oldest); the first is in force. Two would go.
fn twelve() -> (Vec<Manifest>, Children) {
    let maps = (0..12).map(|age| view(&format!("map-{age:02}"), age, &json!({ "my.cnf": "" })));
    let children = Children { config_maps: maps.collect(), ..Children::default() };
    let set = wanted(ObjectKind::StatefulSet, "moco-harbour", json!({ "template": naming("map-00") }));
    (vec![wanted(ObjectKind::ConfigMap, "map-00", json!({})), set], children)
}

fn naming(map: &str) -> Value {
    json!({ "spec": { "volumes": [{ "name": "tmp", "emptyDir": {} }, { "name": "c", "configMap": { "name": map } }] } })
}

fn removed(applied: &[Manifest], children: &Children) -> Vec<String> {
    let steps = of_no_use(&owner(), applied, children);
    steps
        .into_iter()
        .map(|step| match step.act {
            Act::Delete { object, over } => {
                assert_eq!((over.uid, over.resource_version), (format!("uid-{}", object.name), "7".into()));
                assert_eq!(object.namespace, "shop");
                object.name
            }
            act => panic!("{act:?}"),
        })
        .collect()
}

fn with_live_set(children: &mut Children, map: &str) {
    let mut set = StatefulSetView::default();
    set.object.spec = Compact::of(&json!({ "template": naming(map) }));
    children.stateful_sets.insert("moco-harbour".into(), set);
}

#[rstest]
#[case::nothing_names_them(|_: &mut Children| (), &["map-11", "map-10"])]
#[case::a_pod_has_one(|it: &mut Children| {
    let pod = PodView { config_maps: ["map-11".to_owned()].into(), ..PodView::default() };
    it.pods.insert("moco-harbour-2".into(), pod);
}, &["map-10"])]
#[case::the_set_names_one(|it: &mut Children| with_live_set(it, "map-10"), &["map-11"])]
#[case::a_kept_template_names_one(|it: &mut Children| it.templates.extend([view("kept", 0, &naming("map-11"))]), &["map-10"])]
#[case::one_is_somebody_elses(|it: &mut Children| it.config_maps.get_mut("map-11").unwrap().meta.owner_uid = None, &["map-10"])]
#[case::one_is_another_clusters(|it: &mut Children| {
    it.config_maps.get_mut("map-11").unwrap().meta.owner_uid = Some("u-2".into());
}, &["map-10"])]
#[case::one_is_going(|it: &mut Children| it.config_maps.get_mut("map-11").unwrap().meta.deleting = true, &["map-10"])]
#[case::the_other_sort_has_a_history_of_its_own(|it: &mut Children| {
    it.config_maps.extend((20..30).map(|age| view(&format!("slow-{age}"), age, &json!({ "fluent-bit.conf": "" }))));
}, &["map-11", "map-10"])]
#[case::what_is_of_no_known_sort_stays(|it: &mut Children| {
    it.config_maps.extend((20..40).map(|age| view(&format!("other-{age}"), age, &json!({ "script": "" }))));
}, &["map-11", "map-10"])]
fn old_texts_are_removed_when_nothing_needs_them(#[case] change: fn(&mut Children), #[case] expected: &[&str]) {
    let (applied, mut children) = twelve();
    change(&mut children);
    assert_eq!(removed(&applied, &children), expected);
}

#[test]
fn an_old_text_that_is_in_force_again_stays_and_counts() {
    let (mut applied, children) = twelve();
    applied[0].object.name = "map-11".into();
    applied[1].spec["template"] = naming("map-11");
    assert_eq!(removed(&applied, &children), ["map-10", "map-09"]);
}

#[test]
fn ten_are_kept() {
    let (applied, mut children) = twelve();
    children.config_maps.retain(|name, _| name.as_str() < "map-10");
    assert_eq!(removed(&applied, &children), Vec::<String>::new());
}

#[test]
fn while_a_setting_cannot_be_written_nothing_is_removed() {
    let (_, children) = twelve();
    assert_eq!(removed(&[], &children), Vec::<String>::new());
}

#[rstest]
#[case::it_is_wanted(true, OURS, &[])]
#[case::it_is_not(false, OURS, &["moco-harbour"])]
#[case::it_is_somebody_elses(false, "u-2", &[])]
fn a_budget_goes_when_there_is_to_be_none(#[case] is_wanted: bool, #[case] of: &str, #[case] expected: &[&str]) {
    let mut children = Children::default();
    children.disruption_budgets.extend([view("moco-harbour", 0, &json!({}))]);
    children.disruption_budgets.get_mut("moco-harbour").unwrap().meta.owner_uid = Some(of.into());
    let budget = wanted(ObjectKind::PodDisruptionBudget, "moco-harbour", json!({}));
    let applied: Vec<Manifest> = is_wanted.then_some(budget).into_iter().collect();
    assert_eq!(removed(&applied, &children), expected);
}
