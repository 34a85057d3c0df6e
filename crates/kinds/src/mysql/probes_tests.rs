use jiff::Timestamp;
use rstest::rstest;
use windlass_api::logbook::mysql::{CouncilEntry, VoterEntry};
use windlass_core::kind::Kind as _;

use super::super::MySql;
use super::super::facts::{Fact, News, Silence};
use super::super::fixture::{Fixture, NOW, known, pod_name, server};
use super::super::instance::Known;
use super::*;

/// A cluster of three that is at rest: it is settled who acknowledges.
fn at_rest() -> Fixture {
    let mut fixture = Fixture::healthy(3);
    fixture.logbook.mysql.as_mut().unwrap().floor = Some(String::new());
    fixture
}

/// An instance said how it is so many milliseconds ago.
fn hear(fixture: &mut Fixture, number: u16, ago: i64) {
    let place = fixture.place(number);
    let heard = Timestamp::from_millisecond(NOW * 1000 - ago).unwrap();
    MySql::learn(&mut fixture.facts, Fact { place, news: News::Seen(Box::new(known(3, number))) }, heard);
}

#[rstest]
#[case::nobody([3900, 3000, 100], &[])]
#[case::all_of_a_pass([5000, 4990, 4950], &[0, 1, 2])]
#[case::a_pass_that_comes_a_little_early([4900, 4800, 4700], &[0, 1, 2])]
#[case::not_who_was_asked_a_moment_ago([5000, 3900, 100], &[0])]
fn who_is_due_soon_is_asked_with_who_is_due_now(#[case] ago: [i64; 3], #[case] asked: &[u16]) {
    let mut fixture = at_rest();
    for (number, ago) in (0..).zip(ago) {
        hear(&mut fixture, number, ago);
    }
    let looks = fixture.watched(due).into_iter().filter_map(|probe| match probe {
        Probe::Look(place) => Some(place.pod),
        _ => None,
    });
    assert_eq!(looks.collect::<Vec<_>>(), asked.iter().map(|it| pod_name(*it)).collect::<Vec<_>>());
}

/// Until it is settled who acknowledges, a primary that is lost may have nobody who may replace it.
#[test]
fn instances_are_asked_often_until_it_is_settled_who_acknowledges() {
    let mut fixture = at_rest();
    let due_after = |fixture: &mut Fixture, ago: i64| {
        (0..3).for_each(|number| hear(fixture, number, ago));
        fixture.watched(|observed| (due(observed).len(), look_again(observed)))
    };
    // Of a quiet cluster only the primary is watched.
    assert_eq!(due_after(&mut fixture, 2000), (1, Duration::from_secs(3)));
    let entries = fixture.logbook.mysql.as_mut().unwrap();
    let former = CouncilEntry { voters: vec![VoterEntry { ordinal: 0, server: server(0).to_string() }], count: 1 };
    entries.councils.insert(0, former);
    assert_eq!(due_after(&mut fixture, 2000).0, 4);
    assert_eq!(due_after(&mut fixture, 300), (1, Duration::from_millis(700)));
}

#[rstest]
#[case::the_same(|_: &mut Fixture| (), |_: &mut Known| (), false)]
#[case::it_is_further(|_: &mut Fixture| (), |known: &mut Known| known.executed = "".parse().unwrap(), false)]
#[case::an_older_sign_of_life(|_: &mut Fixture| (), |known: &mut Known| quiet(known, 900), false)]
#[case::no_sign_of_life(|_: &mut Fixture| (), |known: &mut Known| quiet(known, 4000), true)]
#[case::it_receives_nothing(|_: &mut Fixture| (), |known: &mut Known| known.replication.as_mut().unwrap().receives = false, true)]
#[case::it_acknowledges_nothing(|_: &mut Fixture| (), |known: &mut Known| known.acknowledges = false, true)]
#[case::it_was_silent(|fixture: &mut Fixture| fixture.silence(1), |_: &mut Known| (), true)]
#[case::it_was_restarted(|fixture: &mut Fixture| fixture.pod(1).process = Some("another".into()), |_: &mut Known| (), true)]
#[case::its_pod_is_another(|fixture: &mut Fixture| fixture.pod(1).meta.uid = "another".into(), |_: &mut Known| (), true)]
fn an_answer_that_says_what_was_said_is_not_new(
    #[case] before: fn(&mut Fixture),
    #[case] change: fn(&mut Known),
    #[case] is_new: bool,
) {
    let mut fixture = Fixture::healthy(3);
    before(&mut fixture);
    let mut seen = known(3, 1);
    change(&mut seen);
    let fact = Fact { place: fixture.place(1), news: News::Seen(Box::new(seen)) };
    assert_eq!(MySql::learn(&mut fixture.facts, fact, Timestamp::from_second(NOW).unwrap()), is_new);
}

fn quiet(known: &mut Known, millis: u64) {
    known.replication.as_mut().unwrap().quiet = Some(Duration::from_millis(millis));
}

#[test]
fn silence_is_always_new() {
    let mut fixture = Fixture::healthy(3);
    fixture.silence(1);
    let news = News::Silent { how: Silence::Closed, why: "no answer".into() };
    let fact = Fact { place: fixture.place(1), news };
    assert!(MySql::learn(&mut fixture.facts, fact, Timestamp::from_second(NOW).unwrap()));
}
