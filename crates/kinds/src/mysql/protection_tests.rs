use rstest::rstest;
use windlass_api::mysql::keys;
use windlass_core::step::Act;

use super::super::facts::News;
use super::super::fixture::{Fixture, pod_name};
use super::super::instance::Known;
use super::bonds;

/// A healthy cluster in which replicas may be this far behind.
fn cluster(most: i64) -> Fixture {
    let mut fixture = Fixture::healthy(3);
    fixture.resource.spec.max_delay_seconds_for_pod_deletion = Some(most);
    fixture
}

/// An instance says something else from now on.
fn say(fixture: &mut Fixture, number: u16, change: impl FnOnce(&mut Known)) {
    let pod = fixture.pod(number).clone();
    let mut known = fixture.facts.of(&pod).unwrap().known.clone().unwrap();
    change(&mut known);
    fixture.hear(number, News::Seen(Box::new(known)));
}

fn lag(fixture: &mut Fixture, number: u16, behind: Option<u64>) {
    say(fixture, number, |known| known.replication.as_mut().unwrap().behind = behind);
}

fn protect(fixture: &mut Fixture, number: u16) {
    fixture.pod(number).meta.annotations.insert(keys::PREVENT_DELETE.into(), "true".into());
}

/// The changes of the annotation, as `number=value`, `number-` when it is taken away.
fn changes(fixture: &Fixture) -> Vec<String> {
    let of = |act: &Act<_>| match act {
        Act::Label { object, annotations, .. } => {
            let number = object.name.rsplit('-').next()?;
            let value = annotations.get(keys::PREVENT_DELETE)?;
            Some(value.as_ref().map_or(format!("{number}-"), |value| format!("{number}={value}")))
        }
        _ => None,
    };
    fixture.plan().steps.iter().filter_map(|step| of(&step.act)).collect()
}

#[rstest]
#[case::off(0, Some(9_999), &[])]
#[case::at_the_limit(10, Some(10), &[])]
#[case::over_it(10, Some(11), &["0=true"])]
#[case::unknown(10, None, &[])]
fn the_primary_alone_is_protected_when_a_replica_is_too_far_behind(
    #[case] most: i64,
    #[case] behind: Option<u64>,
    #[case] expected: &[&str],
) {
    let mut fixture = cluster(most);
    lag(&mut fixture, 2, behind);
    assert_eq!(changes(&fixture), expected);
}

#[rstest]
#[case::still_over(Some(11), &[])]
#[case::between(Some(6), &[])]
#[case::half(Some(5), &["0-"])]
#[case::unknown(None, &[])]
fn a_protection_ends_at_half_of_the_limit_and_not_while_nothing_is_known(
    #[case] behind: Option<u64>,
    #[case] expected: &[&str],
) {
    let mut fixture = cluster(10);
    protect(&mut fixture, 0);
    lag(&mut fixture, 1, behind);
    assert_eq!(changes(&fixture), expected);
}

#[rstest]
#[case::it_broke(|it: &mut Fixture| say(it, 1, |known| {
    let replication = known.replication.as_mut().unwrap();
    (replication.behind, replication.error) = (None, Some("duplicate key".into()));
}))]
#[case::somebody_stopped_it(|it: &mut Fixture| say(it, 1, |known| {
    let replication = known.replication.as_mut().unwrap();
    (replication.behind, replication.applies) = (None, false);
}))]
#[case::it_is_lost(|it: &mut Fixture| drop(it.children.pods.remove(&pod_name(1))))]
#[case::it_is_errant(|it: &mut Fixture| say(it, 1, |known| {
    known.replication.as_mut().unwrap().behind = Some(99);
    known.executed = "00000000-0000-0000-0000-000000000099:1".parse().unwrap();
}))]
#[case::the_cluster_is_stopped(|it: &mut Fixture| {
    lag(it, 1, Some(99));
    it.resource.spec.offline = true;
})]
#[case::it_is_switched_off(|it: &mut Fixture| {
    lag(it, 1, Some(99));
    it.resource.spec.max_delay_seconds_for_pod_deletion = None;
})]
fn nobody_who_will_not_catch_up_protects_for_ever(#[case] change: fn(&mut Fixture)) {
    let mut fixture = cluster(10);
    protect(&mut fixture, 0);
    change(&mut fixture);
    assert_eq!(changes(&fixture), ["0-"]);
}

#[test]
fn with_the_office_the_protection_moves() {
    let mut fixture = cluster(10);
    protect(&mut fixture, 1);
    lag(&mut fixture, 2, Some(99));
    assert_eq!(changes(&fixture), ["0=true", "1-"]);
    assert_eq!(bonds(&fixture.children).len(), 1);
}

#[test]
fn what_changes_on_a_pod_changes_in_one_step() {
    let mut fixture = cluster(10);
    protect(&mut fixture, 1);
    fixture.pod(1).meta.labels.remove(keys::ROLE);
    let steps: Vec<_> = fixture.steps().into_iter().filter(|step| step.contains(&pod_name(1))).collect();
    assert_eq!(steps, [format!("label Pod {} moco.cybozu.com/role=replica,moco.cybozu.com/prevent-delete-", pod_name(1))]);
}

#[rstest]
fn a_switchover_waits_and_says_so(#[values(true, false)] by_wish: bool) {
    let mut fixture = cluster(10);
    if by_wish {
        fixture.pod(0).meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    } else {
        fixture.pod(0).meta.deleting = true;
    }
    let closes =
        |fixture: &Fixture| fixture.steps().iter().any(|step| step.contains("CloseToWrites") || step.contains("close"));
    let waits = |fixture: &Fixture| fixture.waits().iter().any(|it| it.starts_with("PrimaryProtected"));
    assert!(closes(&fixture) && !waits(&fixture), "{:?}", fixture.steps());
    lag(&mut fixture, 2, Some(11));
    assert!(!closes(&fixture) && waits(&fixture), "{:?}", fixture.steps());
    // One that has begun goes on: clients wait already.
    say(&mut fixture, 0, |known| (known.read_only, known.super_read_only) = (true, true));
    assert!(!waits(&fixture));
    assert!(!fixture.steps().iter().any(|step| step.contains("open")), "{:?}", fixture.steps());
}
