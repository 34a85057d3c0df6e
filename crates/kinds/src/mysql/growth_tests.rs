use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::mysql::keys;
use windlass_core::gate::Door;
use windlass_core::labels::CLAIM_INPUTS;
use windlass_core::views::{ClaimView, Compact};

use super::super::fixture::{Fixture, SET, claim_name, pod_name};

/// A cluster whose spec asks for volumes of this size.
fn asking(size: &str) -> Fixture {
    let mut fixture = Fixture::healthy(3);
    ask(&mut fixture, |claim| claim["spec"]["resources"]["requests"]["storage"] = json!(size));
    fixture
}

fn ask(fixture: &mut Fixture, change: impl FnOnce(&mut Value)) {
    let mut claims = serde_json::to_value(&fixture.resource.spec.volume_claim_templates).unwrap();
    change(&mut claims[0]);
    fixture.resource.spec.volume_claim_templates = serde_json::from_value(claims).unwrap();
}

/// The claim templates of the live set are made otherwise, by somebody who is not us.
fn made_by_another(fixture: &mut Fixture, change: impl FnOnce(&mut Value)) {
    let set = fixture.set();
    let mut spec = set.object.spec.value();
    change(&mut spec["volumeClaimTemplates"][0]);
    set.object.spec = Compact::of(&spec);
    set.object.meta.annotations.remove(CLAIM_INPUTS);
}

const RECREATE: &str = "delete StatefulSet moco-harbour alone and make it again";

#[test]
fn claims_grow_first_then_the_set_is_made_again_with_the_same_pods() {
    let mut fixture = asking("2Gi");
    let before = fixture.set().object.spec.value();
    let grown: Vec<String> =
        (0..3).map(|it| format!("grow PersistentVolumeClaim {} from 1Gi to 2Gi", claim_name(it))).collect();
    assert_eq!(fixture.steps(), grown);
    assert!(fixture.waits()[0].starts_with("Recreating: StatefulSet moco-harbour is made again"), "{:?}", fixture.waits());
    fixture.carry_out();
    assert_eq!(fixture.steps(), [RECREATE]);
    fixture.carry_out();
    assert!(fixture.children.stateful_sets.is_empty());
    // A pass after a crash sees no more than this.
    assert_eq!(fixture.steps(), ["apply StatefulSet moco-harbour"]);
    fixture.carry_out();
    fixture.settle("r1");
    assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()));
    let mut after = fixture.set().object.spec.value();
    let storage = &mut after["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
    assert_eq!(*storage, "2Gi");
    *storage = json!("1Gi");
    assert_eq!(after, before, "the same set but for the size of its volumes");
}

/// Passes until the set is deleted; what is announced for it stays.
fn halfway() -> Fixture {
    let mut fixture = asking("2Gi");
    fixture.carry_out();
    let (_, goes) = fixture.pass();
    assert_eq!(goes, [RECREATE]);
    assert_eq!(fixture.intents(), [("RecreateSet", SET)], "it is announced before it is deleted");
    fixture.carry_out();
    fixture
}

#[test]
fn a_pause_waits_for_a_set_that_is_halfway_and_for_nothing_else() {
    let mut fixture = halfway();
    fixture.annotate(keys::RECONCILIATION_STOPPED, "true");
    fixture.children.services.clear();
    let (door, goes) = fixture.pass();
    assert_eq!(door, Door::Closing { awaiting: vec!["make StatefulSet moco-harbour again".into()] });
    assert_eq!(goes, ["apply StatefulSet moco-harbour"], "a delete is followed by its create, and by nothing else");
    fixture.carry_out();
    fixture.set().object.meta.uid = "uid-new".into();
    fixture.settle("r1");
    fixture.pass();
    assert!(fixture.intents().is_empty());
    assert_eq!(fixture.logbook.acts.last().unwrap().outcome, "Done");
    assert_eq!(fixture.pass().0, Door::Closed);
}

#[test]
fn a_pause_does_not_wait_for_a_set_that_is_still_whole() {
    let mut fixture = asking("2Gi");
    fixture.carry_out();
    fixture.pass();
    fixture.annotate(keys::RECONCILIATION_STOPPED, "true");
    assert_eq!(fixture.pass().1, Vec::<String>::new(), "it is not begun any more");
    assert!(fixture.intents().is_empty());
    assert_eq!(fixture.pass().0, Door::Closed);
}

#[test]
fn a_set_that_somebody_else_deleted_is_not_made_in_a_pause() {
    let mut fixture = Fixture::healthy(3);
    fixture.annotate(keys::RECONCILIATION_STOPPED, "true");
    fixture.children.stateful_sets.clear();
    assert_eq!(fixture.pass(), (Door::Closed, Vec::new()));
}

#[rstest]
#[case::the_same(|_: &mut ClaimView| (), 3)]
#[case::larger_already(|it: &mut ClaimView| it.requested = Some("3Gi".into()), 2)]
#[case::as_large_in_other_words(|it: &mut ClaimView| it.requested = Some("2048Mi".into()), 2)]
#[case::about_to_go(|it: &mut ClaimView| it.meta.deleting = true, 2)]
#[case::nobody_knows_how_large(|it: &mut ClaimView| it.requested = None, 2)]
fn a_claim_that_asks_for_less_grows(#[case] change: fn(&mut ClaimView), #[case] expected: usize) {
    let mut fixture = asking("2Gi");
    change(fixture.children.claims.get_mut(&claim_name(1)).unwrap());
    assert_eq!(fixture.steps().len(), expected, "{:?}", fixture.steps());
}

#[test]
fn claims_of_nobody_here_stay_as_they_are() {
    let mut fixture = asking("2Gi");
    let claim = fixture.children.claims[claim_name(0).as_str()].clone();
    for name in ["scratch-moco-harbour-0", "mysql-data-moco-harbour-old", "mysql-data-moco-harbour2-0", "moco-harbour-0"] {
        let mut other = claim.clone();
        other.meta.name = name.into();
        fixture.children.claims.insert(name.into(), other);
    }
    assert_eq!(fixture.steps().len(), 3, "{:?}", fixture.steps());
}

#[test]
fn claims_grow_while_pods_are_replaced_and_the_set_is_made_again_in_between() {
    let mut fixture = asking("2Gi");
    fixture.settle("r2");
    let steps = fixture.steps();
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(!steps.iter().any(|step| step.starts_with("delete Pod")), "{steps:?}");
    fixture.carry_out();
    assert_eq!(fixture.steps(), [RECREATE], "no pod is taken away in the same pass");
    fixture.carry_out();
    fixture.carry_out();
    fixture.settle("r2");
    assert_eq!(fixture.steps(), [format!("delete Pod {}", pod_name(2))]);
}

#[test]
fn a_new_template_comes_to_the_set_before_it_is_made_again() {
    let mut fixture = asking("2Gi");
    fixture.carry_out();
    let rest = &mut fixture.resource.spec.pod_template.spec.containers[0].rest;
    rest.insert("image".into(), json!("mysql:9.8"));
    let steps = fixture.steps();
    assert!(steps.contains(&"apply StatefulSet moco-harbour".to_owned()) && !steps.contains(&RECREATE.to_owned()), "{steps:?}");
    fixture.carry_out();
    fixture.carry_out();
    fixture.settle("r1");
    assert_eq!(fixture.steps(), [RECREATE]);
}

#[rstest]
#[case::the_size_is_to_change(|it: &mut Fixture| it.resource.spec.replicas = Some(5))]
#[case::the_size_cannot_change(|it: &mut Fixture| it.resource.spec.replicas = Some(1))]
#[case::its_controller_is_behind(|it: &mut Fixture| it.set().observed_generation = Some(0))]
#[case::its_template_is_not_kept(|it: &mut Fixture| it.children.templates.clear())]
fn the_set_is_not_deleted_while_anything_else_is_to_be_done_to_it(#[case] change: fn(&mut Fixture)) {
    let mut fixture = asking("2Gi");
    fixture.carry_out();
    change(&mut fixture);
    assert!(!fixture.steps().contains(&RECREATE.to_owned()), "{:?}", fixture.steps());
    assert!(fixture.waits().iter().any(|it| it.starts_with("Recreating: ")), "{:?}", fixture.waits());
}

#[test]
fn a_set_that_is_being_deleted_is_left_alone() {
    let mut fixture = asking("2Gi");
    fixture.carry_out();
    fixture.set().object.meta.deleting = true;
    assert_eq!(fixture.steps(), Vec::<String>::new());
    assert!(fixture.waits()[0].starts_with("Recreating: "), "{:?}", fixture.waits());
}

#[rstest]
#[case::smaller(|claim: &mut Value| claim["spec"]["resources"]["requests"]["storage"] = json!("512Mi"),
    "VolumeShrinkRefused!: claim template mysql-data asks for 512Mi, and its volumes have 1Gi")]
#[case::one_more(|claim: &mut Value| claim["metadata"]["name"] = json!("mysql-data2"), "InvalidSpec!")]
fn what_cannot_be_is_refused_and_the_rest_goes_on(#[case] change: fn(&mut Value), #[case] expected: &str) {
    let mut fixture = Fixture::healthy(3);
    ask(&mut fixture, change);
    assert_eq!(fixture.steps(), Vec::<String>::new());
    assert!(fixture.waits()[0].starts_with(expected), "{:?}", fixture.waits());
}

#[test]
fn volumes_are_not_added_to_instances_that_are_there() {
    let mut fixture = Fixture::healthy(3);
    let mut claims = serde_json::to_value(&fixture.resource.spec.volume_claim_templates).unwrap();
    let mut more = claims[0].clone();
    more["metadata"]["name"] = json!("scratch");
    claims.as_array_mut().unwrap().push(more);
    fixture.resource.spec.volume_claim_templates = serde_json::from_value(claims).unwrap();
    assert_eq!(fixture.steps(), Vec::<String>::new());
    let expected = "VolumesFixed!: spec.volumeClaimTemplates names mysql-data, scratch, and the instances have mysql-data";
    assert!(fixture.waits()[0].starts_with(expected), "{:?}", fixture.waits());
}

#[rstest]
#[case::in_other_words(|claim: &mut Value| claim["spec"]["resources"]["requests"]["storage"] = json!("1024Mi"), false)]
#[case::another_class(|claim: &mut Value| claim["spec"]["storageClassName"] = json!("slow"), true)]
#[case::another_label(|claim: &mut Value| claim["metadata"]["labels"] = json!({ "team": "quay" }), true)]
fn the_set_is_made_again_for_what_it_does_not_say(#[case] change: fn(&mut Value), #[case] again: bool) {
    let mut fixture = Fixture::healthy(3);
    ask(&mut fixture, change);
    assert_eq!(fixture.steps() == [RECREATE], again, "{:?}", fixture.steps());
    for _ in 0..3 {
        fixture.carry_out();
    }
    fixture.settle("r1");
    assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()), "it ends");
}

/// Another operator's templates, and those of another release, stay as they are.
#[rstest]
#[case::other_labels(|claim: &mut Value| claim["metadata"]["labels"] = json!({ "app.kubernetes.io/created-by": "moco" }))]
#[case::another_owner_version(|claim: &mut Value| claim["metadata"]["ownerReferences"][0]["apiVersion"] = json!("moco.cybozu.com/v1beta1"))]
#[case::no_owner(|claim: &mut Value| drop(claim["metadata"].as_object_mut().unwrap().remove("ownerReferences")))]
#[case::more_than_is_asked_for(|claim: &mut Value| claim["spec"]["volumeAttributesClassName"] = json!("gold"))]
fn claim_templates_of_somebody_else_are_no_reason_to_make_a_set_again(#[case] change: fn(&mut Value)) {
    let mut fixture = Fixture::healthy(3);
    made_by_another(&mut fixture, change);
    let before = fixture.set().object.spec.value();
    assert_eq!(fixture.steps(), ["apply StatefulSet moco-harbour"], "it is noted what they were made for");
    fixture.carry_out();
    fixture.settle("r1");
    assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()));
    assert_eq!(fixture.set().object.spec.value(), before, "{SET}");
}

#[test]
fn claims_grow_whatever_other_objects_wait_for() {
    let mut fixture = asking("2Gi");
    fixture.children.secrets.clear();
    fixture.logbook.mysql.as_mut().unwrap().has_credentials = false;
    assert!(fixture.waits().iter().any(|it| it.starts_with("CredentialsLost!")), "{:?}", fixture.waits());
    assert_eq!(fixture.steps().len(), 3, "{:?}", fixture.steps());
}
