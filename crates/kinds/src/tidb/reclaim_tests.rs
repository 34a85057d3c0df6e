use std::collections::BTreeMap;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::keys;
use windlass_core::kind::{Observed, Options};
use windlass_core::labels::RECLAIM_POLICY;
use windlass_core::memory::Memory;
use windlass_core::plan::Plan;
use windlass_core::reclaim::{RETAIN, note};
use windlass_core::views::{Children, Meta};

use super::super::facts::Facts;
use super::super::fixture::changed;
use super::super::scene::Scene;
use super::super::validate::validate;
use super::super::{Settings, Tidb};
use super::*;

const TIKV: &str = "tikv-harbour-tikv-0";
const PUMP: &str = "data-harbour-pump-0";
/// The note is taken away.
const FORGOTTEN: &str = "forgotten";

/// A claim that is bound.
fn claim(name: &str) -> ClaimView {
    let meta = Meta { name: name.into(), uid: "u-7".into(), resource_version: "3".into(), ..Meta::default() };
    ClaimView { meta, volume: Some("pv".into()), ..ClaimView::default() }
}

fn with(name: &str, key: &str, value: &str) -> ClaimView {
    let mut claim = claim(name);
    claim.meta.annotations.insert(key.to_owned(), value.to_owned());
    claim
}

fn marked(name: &str) -> ClaimView {
    with(name, keys::PVC_DEFER_DELETING, "2026-01-01T00:00:00Z")
}

fn told(policy: &str) -> ClaimView {
    with(TIKV, RECLAIM_POLICY, &note(policy, "u-7"))
}

fn deleting() -> ClaimView {
    let mut claim = claim(TIKV);
    claim.meta.deleting = true;
    claim
}

/// What is told, or forgotten.
fn plan(claim: ClaimView, spec: &[(&str, Value)], settings: &Settings) -> Vec<String> {
    let resource = changed(spec);
    let children = Children { claims: [(claim.meta.name.clone(), claim)].into(), ..Children::default() };
    let memory = Memory::judge(None, "u-1", &children);
    let observed: Observed<'_, Tidb> = Observed {
        resource: &resource,
        children: &children,
        settings,
        options: &Options::None,
        facts: &Facts::default(),
        memory: &memory,
        answered: &BTreeMap::new(),
        running: &[],
        settled: false,
        now: Timestamp::UNIX_EPOCH,
    };
    let scene = Scene::of(&observed, &LogbookSpec::default());
    let mut planner = Planner { scene, plan: Plan::default(), trusted: true };
    planner.set_policies(&validate(&resource).unwrap());
    let policy = |act: &Act<_>| match act {
        Act::SetReclaim { over, volume, policy, .. } => {
            assert_eq!((over.uid.as_str(), over.resource_version.as_str(), volume.as_str()), ("u-7", "3", "pv"));
            policy.clone()
        }
        Act::Label { annotations, .. } => {
            assert_eq!(*annotations, BTreeMap::from([(RECLAIM_POLICY.to_owned(), None)]));
            FORGOTTEN.to_owned()
        }
        other => panic!("{other:?}"),
    };
    planner.plan.steps.iter().map(|step| policy(&step.act)).collect()
}

#[rstest]
#[case::nobody_told_it(claim(TIKV), &[], Some(RETAIN))]
#[case::it_was_told(told(RETAIN), &[], None)]
#[case::the_note_is_another_claims(with(TIKV, RECLAIM_POLICY, &note(RETAIN, "u-6")), &[], Some(RETAIN))]
#[case::there_is_no_volume(ClaimView { volume: None, ..claim(TIKV) }, &[], None)]
#[case::the_spec_changed(told(RETAIN), &[("/spec/pvReclaimPolicy", json!("Delete"))], Some(FORGOTTEN))]
#[case::and_what_was_told_is_forgotten(claim(TIKV), &[("/spec/pvReclaimPolicy", json!("Delete"))], Some(DELETE))]
#[case::as_given(claim(TIKV), &[("/spec/pvReclaimPolicy", json!("Recycle"))], Some("Recycle"))]
#[case::it_is_about_to_go(deleting(), &[], Some(RETAIN))]
#[case::marked_and_nobody_deletes_it(marked(TIKV), &[], Some(RETAIN))]
#[case::marked_and_to_be_deleted(marked(TIKV), &[("/spec/enablePVReclaim", json!(true))], None)]
#[case::marked_and_never_deleted(marked(PUMP), &[("/spec/enablePVReclaim", json!(true))], Some(RETAIN))]
#[case::of_another_cluster(claim("tikv-pier-tikv-0"), &[], None)]
fn a_volume_is_told_what_the_spec_says(
    #[case] claim: ClaimView,
    #[case] spec: &[(&str, Value)],
    #[case] expected: Option<&str>,
) {
    assert_eq!(plan(claim, spec, &Settings::default()), expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn an_operator_of_one_namespace_leaves_volumes_alone() {
    let settings = Settings { manages_volumes: false, ..Settings::default() };
    assert_eq!(plan(claim(TIKV), &[], &settings), [""; 0]);
}
