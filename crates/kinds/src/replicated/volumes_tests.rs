use rstest::rstest;
use windlass_core::views::{ClaimView, Meta};

use super::super::fixtures::*;
use super::super::hooks::Deed;
use super::super::remember::remember as remember_all;
use super::*;

/// Three members on volumes of their own that serve.
fn on_volumes() -> Fixture {
    let mut fixture = Fixture::serving(3);
    fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
    for ordinal in 0..3 {
        claim(&mut fixture, ordinal, &format!("uid-{ordinal}"));
    }
    fixture
}

fn claim(fixture: &mut Fixture, ordinal: u16, uid: &str) {
    let meta = Meta { uid: uid.to_owned(), ..Meta::default() };
    fixture.children.claims.insert(format!("data-{SET}-{ordinal}"), ClaimView { meta, ..ClaimView::default() });
}

fn remembered(fixture: &Fixture) -> LogbookSpec {
    let mut logbook = fixture.memory.entries();
    remember_all(&fixture.observed(), &mut logbook);
    logbook
}

fn volumes(fixture: &Fixture) -> Vec<String> {
    remembered(fixture).volumes.into_iter().map(|(pod, uid)| format!("{pod} {uid}")).collect()
}

#[test]
fn whoever_serves_is_remembered_with_its_volume_or_its_pod() {
    assert_eq!(volumes(&on_volumes()), ["rss-orders-0 uid-0", "rss-orders-1 uid-1", "rss-orders-2 uid-2"]);
    assert_eq!(volumes(&Fixture::serving(1)), ["rss-orders-0 uid-rss-orders-0-a"]);
    assert!(volumes(&Fixture::stopped(3)).is_empty());
}

#[test]
fn a_volume_that_is_younger_than_the_pod_is_not_the_one_it_serves_from() {
    let before = remembered(&on_volumes()).volumes;
    let mut fixture = on_volumes().logbook(|logbook| logbook.volumes.clone_from(&before));
    let now = fixture.now;
    fixture.pod(2).meta.created = Some(now);
    claim(&mut fixture, 2, "another");
    let later = now.checked_add(jiff::SignedDuration::from_secs(9)).unwrap();
    fixture.children.claims.get_mut("data-rss-orders-2").unwrap().meta.created = Some(later);
    assert_eq!(remembered(&fixture).volumes, before);
}

#[rstest]
#[case::it_is_stopped(|it: Fixture| it.role(1, STOPPED))]
#[case::it_is_silent(|it: Fixture| it.silent(1))]
#[case::it_joins_what_is_believed_to_run(|it: Fixture| it.role(1, STARTING))]
#[case::its_hook_runs(|it: Fixture| it.role(1, STOPPED).runs(1, Deed::Primary))]
fn what_a_member_held_stays_on_record_until_it_serves_again(#[case] change: fn(Fixture) -> Fixture) {
    let before = remembered(&on_volumes()).volumes;
    let fixture = change(on_volumes()).logbook(|logbook| logbook.volumes.clone_from(&before));
    assert_eq!(remembered(&fixture).volumes, before);
}

/// All members are stopped; the last one is on another volume than it served from, and the user said this.
fn lost(said: &str) -> Fixture {
    let before = remembered(&on_volumes()).volumes;
    let mut fixture = (0..3).fold(on_volumes(), |fixture, ordinal| fixture.role(ordinal, STOPPED));
    claim(&mut fixture, 2, "another");
    fixture.resource.metadata.annotations = Some([(format!("{OVERRIDE_PREFIX}member-2"), said.to_owned())].into());
    fixture.logbook(|logbook| logbook.volumes = before)
}

#[rstest]
#[case::bound_to_the_lost_volume("lost@uid-2", 1)]
#[case::another_volume("lost@another", 0)]
#[case::no_volume("lost", 0)]
#[case::another_word("gone@uid-2", 0)]
fn a_loss_is_accepted_by_the_right_words(#[case] said: &str, #[case] taken: usize) {
    let overrides = remembered(&lost(said)).overrides;
    assert_eq!(overrides.len(), taken, "{overrides:?}");
}

#[test]
fn it_is_taken_once_and_spent_when_the_member_serves_again() {
    let used = remembered(&lost("lost@uid-2")).overrides;
    let again = lost("lost@uid-2").logbook(|logbook| logbook.overrides.clone_from(&used));
    assert_eq!(remembered(&again).overrides, used);
    let healed = on_volumes().logbook(|logbook| logbook.overrides.clone_from(&used));
    assert!(remembered(&healed).overrides.iter().all(|it| it.spent));
}

#[test]
fn a_member_of_a_running_cluster_cannot_be_given_up() {
    let mut fixture = on_volumes().role(2, STOPPED);
    fixture.resource.metadata.annotations = Some([(format!("{OVERRIDE_PREFIX}member-2"), "lost@uid-2".to_owned())].into());
    assert!(remembered(&fixture).overrides.is_empty());
}

#[test]
fn a_seed_is_remembered_with_its_volume_when_it_is_announced() {
    let mut fixture = Fixture::stopped(1).holds(0, NO_DATA);
    fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
    claim(&mut fixture, 0, "first");
    let announced = |fixture: &Fixture| {
        let mut logbook = fixture.memory.entries();
        let (act, target, uid) = ("Seed".to_owned(), "rss-orders-0".to_owned(), "uid-rss-orders-0-a".to_owned());
        logbook.intents.push(windlass_api::logbook::Intent { act, target, uid, ..Default::default() });
        super::super::remember::note_intents(&fixture.observed(), &mut logbook);
        logbook.volumes
    };
    let first = announced(&fixture);
    assert_eq!(first["rss-orders-0"], "first");
    claim(&mut fixture, 0, "second");
    assert_eq!(announced(&fixture.logbook(|logbook| logbook.volumes.clone_from(&first))), first);
}
