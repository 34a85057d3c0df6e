use serde_json::{Value, json};
use windlass_core::labels::{ADOPTED, AS_GOOD_AS, CLAIM_INPUTS, DESIRED_HASH, TEMPLATE_INPUTS};
use windlass_core::views::Compact;

use super::super::fixture::{Fixture, SET, claim_name, pod_name};
use super::*;

/// A cluster whose set another operator made, right after the set was taken over: its template is not ours, and neither are the labels of
/// its claim templates. Pods and claims are seen.
fn taken_over() -> Fixture {
    let mut fixture = Fixture::healthy(3);
    fixture.children.templates.clear();
    let set = fixture.set();
    let mut spec = set.object.spec.value();
    spec["template"] = json!({
        "metadata": { "labels": { "app.kubernetes.io/name": "mysql" } },
        "spec": { "containers": [{ "name": "mysqld", "image": "mysql:8.4" }, { "name": "agent", "image": "moco-agent:0.16" }] },
    });
    spec["volumeClaimTemplates"][0]["metadata"]["labels"] = json!({ "app.kubernetes.io/created-by": "moco" });
    set.object.spec = Compact::of(&spec);
    let annotations = &mut set.object.meta.annotations;
    for key in [TEMPLATE_INPUTS, CLAIM_INPUTS, DESIRED_HASH] {
        annotations.remove(key);
    }
    annotations.insert(ADOPTED.into(), "true".into());
    fixture
}

fn template(fixture: &mut Fixture) -> Value {
    fixture.set().object.spec.value()["template"].clone()
}

/// Passes until nothing is to be done; the controller of sets finds another revision whenever the template changes.
fn settle(fixture: &mut Fixture) {
    let before = template(fixture);
    for _ in 0..4 {
        fixture.carry_out();
    }
    let changed = template(fixture) != before;
    let revision = fixture.set().update_revision.clone().unwrap();
    fixture.settle(&if changed { format!("{revision}+") } else { revision });
}

#[test]
fn a_template_of_another_operator_is_kept_gets_our_labels_and_nothing_restarts() {
    let mut fixture = taken_over();
    let before = template(&mut fixture);
    settle(&mut fixture);
    assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()));
    let after = template(&mut fixture);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["labels"]["app.kubernetes.io/managed-by"], "windlass", "pods that are made of it are found");
    assert_eq!(fixture.set().object.meta.annotations.get(AS_GOOD_AS), Some("r1"));
}

#[test]
fn our_own_template_comes_with_the_first_change_that_reaches_it() {
    let mut fixture = taken_over();
    settle(&mut fixture);
    fixture.resource.spec.startup_wait_seconds = Some(7200);
    settle(&mut fixture);
    let containers = template(&mut fixture)["spec"]["containers"].to_string();
    assert!(!containers.contains("moco-agent:0.16"), "{containers}");
    assert_eq!(fixture.steps(), [format!("delete Pod {}", pod_name(2))]);
}

#[test]
fn another_size_or_another_service_is_no_change_that_reaches_it() {
    let mut fixture = taken_over();
    settle(&mut fixture);
    let before = template(&mut fixture);
    fixture.resource.spec.primary_service_template =
        serde_json::from_value(json!({ "spec": { "type": "LoadBalancer" } })).unwrap();
    settle(&mut fixture);
    assert_eq!(template(&mut fixture), before);
    assert_eq!(fixture.steps(), Vec::<String>::new());
}

#[test]
fn what_was_kept_of_our_own_before_is_not_put_in_its_place() {
    // The cluster was refused for a while: what is kept then is our rendering of the same spec.
    let kept = Fixture::healthy(3).children.templates;
    let mut fixture = taken_over();
    fixture.children.templates = kept;
    settle(&mut fixture);
    assert!(template(&mut fixture).to_string().contains("moco-agent:0.16"));
    assert_eq!(fixture.children.templates.len(), 1);
    assert_eq!(fixture.steps(), Vec::<String>::new());
}

#[test]
fn larger_volumes_do_not_restart_it_either() {
    let mut fixture = taken_over();
    settle(&mut fixture);
    let mut claims = serde_json::to_value(&fixture.resource.spec.volume_claim_templates).unwrap();
    claims[0]["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
    fixture.resource.spec.volume_claim_templates = serde_json::from_value(claims).unwrap();
    let before = template(&mut fixture);
    for _ in 0..2 {
        fixture.carry_out();
    }
    assert!(fixture.children.stateful_sets.is_empty());
    fixture.carry_out();
    fixture.settle("r1+");
    assert_eq!(template(&mut fixture), before);
    assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_not_seen_is_taken_over_by_name() {
    let mut fixture = taken_over();
    settle(&mut fixture);
    fixture.children.pods.remove(&pod_name(1));
    fixture.children.claims.remove(&claim_name(2));
    fixture.children.secrets.remove(SET);
    let plan = fixture.plan();
    let taken: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.act {
            Act::TakeOver { object, controller, labels } => {
                assert_eq!(labels["windlass.dev/kind"], "mysql");
                assert_eq!((labels.len(), object.namespace.as_str()), (3, "shop"));
                Some((object.name.clone(), controller.clone()))
            }
            _ => None,
        })
        .collect();
    let set = format!("uid-{SET}");
    assert_eq!(taken, [(SET.into(), None), (pod_name(1), Some(set)), (claim_name(2), None)]);
}

#[test]
fn what_was_made_here_is_never_taken_over() {
    let mut fixture = Fixture::healthy(3);
    fixture.children.pods.remove(&pod_name(1));
    assert!(!fixture.steps().iter().any(|step| step.starts_with("take over")), "{:?}", fixture.steps());
}
