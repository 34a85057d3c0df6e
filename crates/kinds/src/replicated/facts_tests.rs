use std::time::Duration;

use super::*;
use rstest::rstest;

fn exited(code: i32, output: &str) -> ExecEnd {
    ExecEnd::Exited { code, output: output.into(), errors: String::new() }
}

fn exec(uid: &str, process: &str) -> Exec {
    Exec {
        namespace: "n".into(),
        pod: "rss-a-1".into(),
        pod_uid: uid.into(),
        process: process.into(),
        turn: 0,
        ordinal: Ordinal::new(1),
        container: "c".into(),
        command: vec!["status".into()],
        timeout: Duration::from_secs(1),
    }
}

fn pod(uid: &str, process: &str) -> PodView {
    let mut pod = PodView { process: Some(process.into()), ..PodView::default() };
    pod.meta.uid = uid.into();
    pod
}

#[rstest]
#[case(8, Role::Primary)]
#[case(0, Role::Secondary)]
#[case(7, Role::Stopped)]
#[case(190, Role::Starting)]
#[case(1, Role::Failed { code: 1, said: String::new() })]
fn exit_codes_are_roles(#[case] code: i32, #[case] expected: Role) {
    assert_eq!(role(exited(code, "")), Answer::Known(expected));
}

#[test]
fn what_could_not_be_run_is_unknown_and_not_stopped() {
    assert!(matches!(role(ExecEnd::Unknown { why: "refused".into() }), Answer::Unknown { .. }));
    assert!(matches!(role(ExecEnd::StillRunning { after: Duration::from_secs(3) }), Answer::Unknown { .. }));
}

#[rstest]
#[case("12\n", Position::At { history: None, sequence: 12 })]
#[case(r#"{"history":null,"sequence":null,"safe":false,"kind":"none"}"#, Position::Empty)]
#[case(r#"{"history":"h","sequence":7,"safe":true,"kind":"clean"}"#, Position::At { history: Some("h".into()), sequence: 7 })]
fn positions_are_read(#[case] text: &str, #[case] expected: Position) {
    assert_eq!(position(exited(0, text)), Answer::Known(expected));
}

#[rstest]
#[case("")]
#[case("-1")]
#[case("{}")]
#[case(r#"{"history":null,"sequence":3,"safe":true,"kind":"clean"}"#)]
#[case(r#"{"history":"h","sequence":-1,"safe":true,"kind":"clean"}"#)]
#[case(r#"{"history":"h","sequence":1,"safe":true,"kind":"guessed"}"#)]
fn unreadable_positions_are_unknown_and_never_zero(#[case] text: &str) {
    assert!(matches!(position(exited(0, text)), Answer::Unknown { .. }), "{text}");
}

#[test]
fn a_failed_sequence_hook_is_unknown() {
    assert!(matches!(position(exited(1, "12")), Answer::Unknown { .. }));
}

#[test]
fn an_answer_of_an_earlier_process_counts_for_nothing() {
    let mut facts = Facts::default();
    facts.learn(Fact { exec: exec("u", "c1"), of: Of::Question(About::Status), end: exited(8, "") }, Timestamp::UNIX_EPOCH);
    assert!(facts.of(Ordinal::new(1), &pod("u", "c1")).is_some());
    assert!(facts.of(Ordinal::new(1), &pod("u", "c2")).is_none());
    assert!(facts.of(Ordinal::new(1), &pod("v", "c1")).is_none());
}

#[test]
fn a_deed_makes_what_was_known_unknown_and_failures_count() {
    let mut facts = Facts::default();
    let now = Timestamp::UNIX_EPOCH;
    facts.learn(Fact { exec: exec("u", "c"), of: Of::Question(About::Status), end: exited(7, "") }, now);
    for count in 1..=2 {
        facts.learn(Fact { exec: exec("u", "c"), of: Of::Deed(Deed::Primary), end: exited(3, "") }, now);
        let member = facts.of(Ordinal::new(1), &pod("u", "c")).unwrap();
        assert_eq!(member.role, None);
        assert_eq!(member.failure.as_ref().unwrap().count, count);
    }
    facts.learn(Fact { exec: exec("u", "c"), of: Of::Deed(Deed::Primary), end: exited(0, "") }, now);
    assert_eq!(facts.of(Ordinal::new(1), &pod("u", "c")).unwrap().failure, None);
}

/// What is told of a member after it was asked once a second and this came each time.
fn told(ends: &[ExecEnd]) -> MemberFacts {
    let mut facts = Facts::default();
    for (second, end) in (0..).zip(ends) {
        let turn = facts.of(Ordinal::new(1), &pod("u", "c")).map_or(0, |member| member.turn);
        let asked = Exec { turn, ..exec("u", "c") };
        let fact = Fact { exec: asked, of: Of::Question(About::Status), end: end.clone() };
        facts.learn(fact, Timestamp::from_second(second).unwrap());
    }
    facts.of(Ordinal::new(1), &pod("u", "c")).unwrap().clone()
}

fn unheard(why: &str) -> ExecEnd {
    ExecEnd::Unknown { why: why.into() }
}

/// The server was too busy to answer.
const UNANSWERED: ExecEnd = ExecEnd::Unanswered { after: Duration::from_secs(3) };

#[rstest]
#[case::never_hides_a_cause(&[unheard("refused"), UNANSWERED, UNANSWERED, UNANSWERED, UNANSWERED])]
#[case::gives_way_to_a_cause(&[UNANSWERED, UNANSWERED, unheard("refused")])]
#[case::does_not_delay_another_cause(&[unheard("a"), unheard("refused"), unheard("refused"), UNANSWERED, unheard("refused")])]
fn silence(#[case] ends: &[ExecEnd]) {
    let role = told(ends).role.unwrap();
    assert_eq!(role.answer, Answer::Unknown { why: "refused".into(), silent: false });
    assert_eq!((usize::try_from(role.misses).unwrap(), role.since), (ends.len(), Timestamp::UNIX_EPOCH));
}

fn complained(code: i32, errors: &str) -> ExecEnd {
    ExecEnd::Exited { code, output: String::new(), errors: errors.into() }
}

#[rstest]
#[case::timeout_among_refusals(&[unheard("refused"), unheard("timeout"), unheard("refused")])]
#[case::two_timeouts(&[unheard("refused"), unheard("timeout"), unheard("timeout"), unheard("refused"), unheard("timeout")])]
#[case::a_port_in_the_words(&[unheard("refused"), unheard("port 1"), unheard("port 2"), unheard("port 3"), unheard("port 4")])]
fn why_a_member_is_unknown_keeps_its_words_while_others_come_now_and_then(#[case] ends: &[ExecEnd]) {
    let member = told(ends);
    let role = member.role.unwrap();
    assert_eq!(role.answer, Answer::Unknown { why: "refused".into(), silent: false });
    assert_eq!((usize::try_from(role.misses).unwrap(), role.since), (ends.len(), Timestamp::UNIX_EPOCH));
    assert_eq!(member.turn, told(&ends[..1]).turn, "nothing happened to the member");
}

#[test]
fn words_that_stay_are_told() {
    let member = told(&[unheard("starting"), unheard("no such hook"), unheard("no such hook"), unheard("no such hook")]);
    assert_eq!(member.role.unwrap().answer, Answer::Unknown { why: "no such hook".into(), silent: false });
}

#[test]
fn a_member_that_fails_with_the_time_in_its_words_has_failed_all_along() {
    let role = told(&[complained(1, "12:00:00 no"), complained(1, "12:00:01 no"), complained(1, "12:00:02 no")]).role.unwrap();
    assert_eq!(role.answer, Answer::Known(Role::Failed { code: 1, said: "12:00:00 no".into() }));
    assert_eq!(role.since, Timestamp::UNIX_EPOCH);
}

#[test]
fn another_answer_is_told_at_once() {
    let one_second = Timestamp::from_second(1).unwrap();
    for (end, answer) in [
        (exited(8, ""), Answer::Known(Role::Primary)),
        (complained(2, "no"), Answer::Known(Role::Failed { code: 2, said: "no".into() })),
        (unheard("refused"), Answer::Unknown { why: "refused".into(), silent: false }),
    ] {
        let role = told(&[complained(1, "no"), end]).role.unwrap();
        assert_eq!((role.answer, role.since), (answer, one_second));
    }
}
