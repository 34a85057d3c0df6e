//! One small table per rule: each fails when its rule is broken.

use std::num::NonZeroU16;

use rstest::rstest;

use super::*;
use crate::ordinals::{Layout, Ordinal, Ordinals};

fn limits(scale_in: u16, scale_out: u16) -> Limits {
    Limits {
        scale_in_parallelism: NonZeroU16::new(scale_in).unwrap(),
        scale_out_parallelism: NonZeroU16::new(scale_out).unwrap(),
        guard: Guard::Open,
        unguarded: Ordinals::new(),
    }
}

fn view(actual: Layout, desired: Layout, drains: &[(u16, Drain)]) -> View {
    let mut view = View::at_rest(actual, desired);
    view.drains.extend(drains.iter().map(|(number, drain)| (Ordinal::new(*number), *drain)));
    view
}

fn slots(replicas: u16, slots: &[u16]) -> Layout {
    Layout::with_slots(replicas, slots.iter().copied().collect())
}

fn hold(scale: &Scale, number: u16) -> Option<&Hold> {
    scale.held.get(&Ordinal::new(number))
}

#[rstest]
#[case(Layout::plain(0))]
#[case(Layout::plain(3))]
#[case(slots(3, &[1, 9]))]
fn settled_cluster_has_an_empty_plan(#[case] layout: Layout) {
    let scale = plan(&view(layout.clone(), layout, &[]), &limits(2, 2));
    assert!(scale.is_empty(), "{scale:?}");
    assert_eq!(scale.direction, Direction::Settled);
}

#[test]
fn drains_start_from_the_highest_up_to_the_parallelism() {
    let scale = plan(&view(Layout::plain(6), Layout::plain(2), &[]), &limits(2, 1));
    assert_eq!(scale.start, Ordinals::from([4, 5]));
    assert_eq!(scale.write, None);
    assert_eq!(scale.direction, Direction::In);
    let parallelism = NonZeroU16::new(2).unwrap();
    assert_eq!(hold(&scale, 3), Some(&Hold::NoPlace { parallelism }));
    assert_eq!(hold(&scale, 2), Some(&Hold::NoPlace { parallelism }));
    assert_eq!(hold(&scale, 1), None);
}

#[rstest]
// Nothing above the finished one: it goes at once, although 3 still drains.
#[case(&[(5, Drain::Finished), (4, Drain::Finished), (3, Drain::Draining)], Some(4))]
#[case(&[(5, Drain::Finished), (4, Drain::Draining), (3, Drain::Finished)], Some(5))]
#[case(&[(5, Drain::Draining), (4, Drain::Finished), (3, Drain::Finished)], None)]
#[case(&[(5, Drain::Unknown), (4, Drain::Finished), (3, Drain::Finished)], None)]
#[case(&[(4, Drain::Finished)], None)]
#[case(&[(5, Drain::Finished), (4, Drain::Finished), (3, Drain::Finished)], Some(3))]
fn only_the_finished_prefix_from_the_top_is_written(#[case] drains: &[(u16, Drain)], #[case] replicas: Option<u16>) {
    let scale = plan(&view(Layout::plain(6), Layout::plain(3), drains), &limits(1, 1));
    assert_eq!(scale.write, replicas.map(Layout::plain));
}

#[test]
fn finished_member_that_waits_frees_its_place() {
    let drains = [(5, Drain::Draining), (4, Drain::Finished)];
    let scale = plan(&view(Layout::plain(6), Layout::plain(2), &drains), &limits(2, 1));
    assert_eq!(scale.start, Ordinals::from([3]));
    assert_eq!(scale.keep, Ordinals::from([5]));
    assert_eq!(hold(&scale, 4), Some(&Hold::Behind(Ordinal::new(5))));
}

#[test]
fn finished_member_names_the_highest_that_it_waits_for() {
    let drains = [(5, Drain::Draining), (4, Drain::Draining), (3, Drain::Finished)];
    let scale = plan(&view(Layout::plain(6), Layout::plain(2), &drains), &limits(2, 1));
    assert_eq!(hold(&scale, 3), Some(&Hold::Behind(Ordinal::new(5))));
}

#[test]
fn drained_member_that_is_gone_is_prepared_and_not_replaced() {
    let scale = plan(&view(Layout::plain(2), Layout::plain(3), &[(2, Drain::Finished)]), &limits(1, 1));
    assert!(scale.replace.is_empty());
    assert_eq!(scale.prepare, Ordinals::from([2]));
}

#[test]
fn draining_members_hold_their_places() {
    let drains = [(5, Drain::Draining), (4, Drain::Draining)];
    let scale = plan(&view(Layout::plain(6), Layout::plain(2), &drains), &limits(2, 1));
    assert!(scale.start.is_empty());
    assert_eq!(scale.keep, Ordinals::from([4, 5]));
}

#[test]
fn fewer_places_than_drains_under_way_starts_nothing_and_cancels_nothing() {
    let drains = [(5, Drain::Draining), (4, Drain::Draining)];
    let scale = plan(&view(Layout::plain(6), Layout::plain(2), &drains), &limits(1, 1));
    assert!(scale.start.is_empty() && scale.cancel.is_empty());
    assert_eq!(scale.keep, Ordinals::from([4, 5]));
}

#[test]
fn draining_member_that_is_wanted_again_is_called_off_and_holds_its_place() {
    let drains = [(5, Drain::Draining), (3, Drain::Draining)];
    let scale = plan(&view(Layout::plain(6), Layout::plain(4), &drains), &limits(2, 1));
    assert_eq!(scale.cancel, Ordinals::from([3]));
    assert_eq!(scale.keep, Ordinals::from([5]));
    assert!(scale.start.is_empty(), "3 drains until it is seen to stop");
}

#[test]
fn finished_member_that_is_wanted_again_is_replaced_in_its_place() {
    let scale = plan(&view(Layout::plain(4), Layout::plain(4), &[(3, Drain::Finished), (2, Drain::Draining)]), &limits(2, 2));
    assert_eq!(scale.replace, Ordinals::from([3]));
    assert_eq!(scale.cancel, Ordinals::from([2]));
    assert_eq!(scale.write, None);
    assert!(!scale.is_empty());
}

#[test]
fn member_that_was_not_observed_is_neither_started_nor_removed_and_holds_a_place() {
    let mut view = view(Layout::plain(4), Layout::plain(1), &[]);
    view.drains.remove(&Ordinal::new(3));
    let scale = plan(&view, &limits(2, 1));
    assert_eq!(hold(&scale, 3), Some(&Hold::ProgressUnknown));
    assert_eq!(scale.start, Ordinals::from([2]));
    assert_eq!(scale.write, None);

    view.drains.insert(Ordinal::new(0), Drain::Unknown);
    assert!(plan(&view, &limits(2, 1)).start.is_empty(), "a wanted member may be draining too");
}

#[rstest]
#[case(0, &[])]
#[case(1, &[5])]
#[case(2, &[4, 5])]
#[case(9, &[3, 4, 5])]
fn guard_bounds_the_drains_that_start(#[case] more: u16, #[case] started: &[u16]) {
    let limits = Limits { guard: Guard::AtMost { more, because: "3 stores must stay up".to_owned() }, ..limits(3, 1) };
    let scale = plan(&view(Layout::plain(6), Layout::plain(1), &[]), &limits);
    assert_eq!(scale.start, started.iter().copied().collect());
    if more < 3 {
        let held = hold(&scale, 2).unwrap().to_string();
        assert_eq!(held, "may not leave now: 3 stores must stay up");
    }
}

#[rstest]
#[case(0, &[4])]
#[case(1, &[4, 5])]
fn a_member_that_gives_nothing_leaves_past_the_guard(#[case] more: u16, #[case] started: &[u16]) {
    let guard = Guard::AtMost { more, because: "3 stores must stay up".to_owned() };
    let limits = Limits { guard, unguarded: Ordinals::from([4]), ..limits(3, 1) };
    let scale = plan(&view(Layout::plain(6), Layout::plain(3), &[]), &limits);
    assert_eq!(scale.start, started.iter().copied().collect());
    assert!(matches!(hold(&scale, 3), Some(Hold::Guarded { .. })));
}

#[test]
fn closed_guard_does_not_stop_a_finished_member_from_leaving() {
    let limits = Limits { guard: Guard::AtMost { more: 0, because: "3 stores must stay up".to_owned() }, ..limits(3, 1) };
    let scale = plan(&view(Layout::plain(4), Layout::plain(2), &[(3, Drain::Finished)]), &limits);
    assert_eq!(scale.write, Some(Layout::plain(3)));
}

#[rstest]
#[case(&[], None, &[2, 3])]
#[case(&[2], Some(3), &[3, 4])]
#[case(&[3], None, &[2, 4])]
#[case(&[2, 3], Some(4), &[4, 5])]
#[case(&[2, 4], Some(3), &[3, 5])]
// A write adds no more members than may join at once.
#[case(&[2, 3, 4, 5], Some(4), &[])]
fn only_the_prepared_prefix_from_the_lowest_is_added(
    #[case] prepared: &[u16],
    #[case] replicas: Option<u16>,
    #[case] prepare: &[u16],
) {
    let mut view = view(Layout::plain(2), Layout::plain(6), &[]);
    view.prepared = prepared.iter().copied().collect();
    let scale = plan(&view, &limits(1, 2));
    assert_eq!(scale.write, replicas.map(Layout::plain));
    assert_eq!(scale.prepare, prepare.iter().copied().collect());
    assert_eq!(scale.direction, Direction::Out);
}

#[test]
fn prepared_member_waits_for_the_lower_one_by_name() {
    let mut view = view(Layout::plain(2), Layout::plain(4), &[]);
    view.prepared = Ordinals::from([3]);
    let scale = plan(&view, &limits(1, 1));
    assert_eq!(hold(&scale, 3), Some(&Hold::Behind(Ordinal::new(2))));
    assert_eq!(hold(&scale, 3).unwrap().to_string(), "is ready and waits for member 2");
}

#[test]
fn joining_members_hold_a_place_of_the_scale_out() {
    let mut view = view(Layout::plain(3), Layout::plain(5), &[]);
    view.prepared = Ordinals::from([3, 4]);
    view.joining = Ordinals::from([2]);
    assert_eq!(plan(&view, &limits(1, 1)).write, None);
    assert_eq!(plan(&view, &limits(1, 2)).write, Some(Layout::plain(4)));
    // 7 is not there: an old observation must not count.
    view.joining = Ordinals::from([7]);
    assert_eq!(plan(&view, &limits(1, 1)).write, Some(Layout::plain(4)));
}

#[test]
fn member_that_never_joins_can_be_exchanged_for_another() {
    // 2 is stuck; the user puts it in a slot. 3 must come first, and 2 must not hold it up.
    let mut view = view(Layout::plain(3), slots(3, &[2]), &[]);
    view.joining = Ordinals::from([2]);
    view.prepared = Ordinals::from([3]);
    assert_eq!(plan(&view, &limits(1, 1)).write, Some(Layout::plain(4)));
}

#[test]
fn out_comes_before_in() {
    let drains = [(4, Drain::Finished), (3, Drain::Draining), (2, Drain::NotStarted)];
    let mut view = view(slots(4, &[1]), Layout::plain(2), &drains);
    let scale = plan(&view, &limits(3, 3));
    assert_eq!(scale.direction, Direction::Out);
    assert_eq!(scale.prepare, Ordinals::from([1]));
    assert!(scale.start.is_empty());
    assert_eq!(scale.write, None);
    assert_eq!(scale.keep, Ordinals::from([3]), "a drain under way is not undone");
    assert_eq!(hold(&scale, 4), Some(&Hold::OutFirst));
    assert_eq!(hold(&scale, 2), Some(&Hold::OutFirst));

    view.prepared = Ordinals::from([1]);
    assert_eq!(plan(&view, &limits(3, 3)).write, Some(Layout::plain(5)));
}

#[rstest]
// A slot takes its member away, and only when everything above that leaves is finished.
#[case(slots(5, &[]), slots(3, &[1]), &[(4, Drain::Finished)], Some(slots(4, &[])))]
#[case(slots(5, &[]), slots(3, &[1]), &[(1, Drain::Finished)], None)]
#[case(slots(4, &[]), slots(3, &[1]), &[(1, Drain::Finished)], Some(slots(3, &[1])))]
// A member that stays above the leaving one does not hold it up.
#[case(slots(5, &[]), slots(4, &[0]), &[(0, Drain::Finished)], Some(slots(4, &[0])))]
// Slots that change nothing are not written while nothing moves, but are there at the end.
#[case(slots(4, &[]), slots(3, &[9]), &[], None)]
#[case(slots(4, &[]), slots(3, &[9]), &[(3, Drain::Finished)], Some(slots(3, &[9])))]
#[case(slots(3, &[9]), slots(3, &[]), &[], Some(slots(3, &[])))]
fn slots_follow_the_same_prefix(
    #[case] actual: Layout,
    #[case] desired: Layout,
    #[case] drains: &[(u16, Drain)],
    #[case] write: Option<Layout>,
) {
    let scale = plan(&view(actual, desired, drains), &limits(1, 1));
    assert_eq!(scale.write, write);
}

#[test]
fn filled_slot_comes_back_before_the_spare_member_leaves() {
    let mut view = view(slots(3, &[1]), Layout::plain(3), &[]);
    view.prepared = Ordinals::from([1]);
    assert_eq!(plan(&view, &Limits::default()).write, Some(Layout::plain(4)));
    view.actual = Layout::plain(4);
    assert!(plan(&view, &Limits::default()).start.is_empty(), "the new member was not observed yet and holds the only place");
    view.drains.insert(Ordinal::new(1), Drain::NotStarted);
    assert_eq!(plan(&view, &Limits::default()).start, Ordinals::from([3]), "now 3 is too many");
}

#[test]
fn drain_without_a_pod_is_kept_and_holds_a_place() {
    let scale = plan(&view(Layout::plain(4), Layout::plain(2), &[(7, Drain::Draining)]), &limits(1, 1));
    assert_eq!(scale.keep, Ordinals::from([7]));
    assert!(scale.start.is_empty());
}

#[test]
fn members_that_hold_nothing_leave_and_come_at_once() {
    let shrink = View::without_drain(Layout::plain(5), Layout::plain(2));
    assert_eq!(plan(&shrink, &Limits::default()).write, Some(Layout::plain(2)));
    let grow = View::without_drain(Layout::plain(2), Layout::plain(5));
    assert_eq!(plan(&grow, &limits(1, 3)).write, Some(Layout::plain(5)));
    let stay = View::without_drain(Layout::plain(3), Layout::plain(3));
    assert!(plan(&stay, &Limits::default()).is_empty());
}

#[test]
fn every_hold_reads_as_a_sentence_about_a_member() {
    let parallelism = NonZeroU16::MIN;
    let said: Vec<String> =
        [Hold::OutFirst, Hold::NoPlace { parallelism }, Hold::ProgressUnknown].iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["waits until the missing members are added", "waits for a place, at most 1 may be under way", "could not be observed"]
    );
}
