//! What holds for every single plan, whatever the view.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::ordinals::{Layout, Ordinal, Ordinals};

fn ordinals() -> impl Strategy<Value = Ordinals> {
    btree_set(0_u16..14, 0..6).prop_map(|numbers| numbers.into_iter().collect())
}

fn layout() -> impl Strategy<Value = Layout> {
    (0_u16..9, prop_oneof![Just(Ordinals::new()), ordinals()]).prop_map(|(replicas, slots)| Layout::with_slots(replicas, slots))
}

/// Mostly told and mostly known, so that most views leave something to decide.
fn drains() -> impl Strategy<Value = BTreeMap<Ordinal, Drain>> {
    let drain = prop_oneof![
        8 => Just(Some(Drain::NotStarted)),
        3 => Just(Some(Drain::Draining)),
        6 => Just(Some(Drain::Finished)),
        1 => Just(Some(Drain::Unknown)),
        1 => Just(None),
    ];
    vec(drain, 14).prop_map(|drains| {
        (0..).map(Ordinal::new).zip(drains).filter_map(|(ordinal, drain)| drain.map(|drain| (ordinal, drain))).collect()
    })
}

/// Everybody who drains or may be draining; written apart from the planner's own count.
fn busy(view: &View) -> u16 {
    let strays = view.drains.keys().copied();
    let everybody: Ordinals = view.actual.members().iter().chain(strays).collect();
    let busy = everybody.iter().filter(|ordinal| !matches!(view.drain(*ordinal), Drain::NotStarted | Drain::Finished));
    u16::try_from(busy.count()).unwrap()
}

prop_compose! {
    fn view()(
        actual in layout(), desired in layout(), drains in drains(),
        prepared in ordinals(), joining in ordinals(),
    ) -> View {
        View { actual, desired, drains, prepared, joining }
    }
}

prop_compose! {
    fn limits()(scale_in in 1_u16..5, scale_out in 1_u16..5, more in 0_u16..6) -> Limits {
        Limits {
            scale_in_parallelism: NonZeroU16::new(scale_in).unwrap(),
            scale_out_parallelism: NonZeroU16::new(scale_out).unwrap(),
            guard: if more == 5 {
                Guard::Open
            } else {
                Guard::AtMost { more, because: "a rule".to_owned() }
            },
            unguarded: Ordinals::new(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_write_moves_one_way_and_only_with_proof(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let (before, wanted) = (view.actual.members(), view.desired.members());
        let after = scale.write.as_ref().map_or_else(|| before.clone(), Layout::members);
        let (added, removed) = (after.without(&before), before.without(&after));
        prop_assert!(added.is_empty() || removed.is_empty());
        for ordinal in &removed {
            prop_assert_eq!(view.drain(ordinal), Drain::Finished);
            prop_assert!(!wanted.contains(ordinal));
        }
        for ordinal in &added {
            prop_assert!(view.prepared.contains(ordinal));
            prop_assert!(wanted.contains(ordinal));
        }
        prop_assert!(added.len() <= usize::from(limits.scale_out_parallelism.get()));
    }

    #[test]
    fn a_write_takes_a_prefix_and_the_whole_of_it(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let (before, wanted) = (view.actual.members(), view.desired.members());
        let after = scale.write.as_ref().map_or_else(|| before.clone(), Layout::members);
        if wanted.without(&before).is_empty() {
            let prefix: Ordinals = before.without(&wanted).iter().rev()
                .take_while(|ordinal| view.drain(*ordinal) == Drain::Finished).collect();
            prop_assert_eq!(before.without(&after), prefix);
        } else {
            let joining = view.joining.shared_with(&before).shared_with(&wanted).len();
            let room = usize::from(limits.scale_out_parallelism.get()).saturating_sub(joining);
            let prefix: Ordinals = wanted.without(&before).iter()
                .take_while(|ordinal| view.prepared.contains(*ordinal)).take(room).collect();
            prop_assert_eq!(after.without(&before), prefix);
        }
    }

    #[test]
    fn drains_started_stay_within_parallelism_and_guard(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let started = u16::try_from(scale.start.len()).unwrap();
        prop_assert!(started <= limits.scale_in_parallelism.get().saturating_sub(busy(&view)));
        prop_assert!(started <= limits.guard.more());
        prop_assert!(scale.prepare.len() <= usize::from(limits.scale_out_parallelism.get()));
        for ordinal in &scale.start {
            prop_assert_eq!(view.drain(ordinal), Drain::NotStarted);
        }
    }

    #[test]
    fn no_free_place_is_left_unused(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let (members, wanted) = (view.actual.members(), view.desired.members());
        if wanted.without(&members).is_empty() {
            let waiting = members.without(&wanted).iter()
                .filter(|ordinal| view.drain(*ordinal) == Drain::NotStarted).count();
            let places = limits.scale_in_parallelism.get()
                .saturating_sub(busy(&view))
                .min(limits.guard.more());
            prop_assert_eq!(scale.start.len(), waiting.min(usize::from(places)));
        } else {
            prop_assert!(scale.start.is_empty());
        }
    }

    #[test]
    fn drains_start_and_ordinals_are_prepared_in_order(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let (members, wanted) = (view.actual.members(), view.desired.members());
        let passed_over = members.without(&wanted).without(&scale.start).iter()
            .rfind(|ordinal| view.drain(*ordinal) == Drain::NotStarted);
        if let (Some(passed), Some(lowest)) = (passed_over, scale.start.lowest()) {
            prop_assert!(passed < lowest);
        }
        let passed_over = wanted.without(&members).without(&scale.prepare).iter()
            .find(|ordinal| !view.prepared.contains(*ordinal));
        if let (Some(passed), Some(highest)) = (passed_over, scale.prepare.highest()) {
            prop_assert!(passed > highest);
        }
    }

    #[test]
    fn every_member_on_its_way_is_accounted_for_once(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let (members, wanted) = (view.actual.members(), view.desired.members());
        let after = scale.write.as_ref().map_or_else(|| members.clone(), Layout::members);
        for ordinal in &members.joined_with(&wanted) {
            if members.contains(ordinal) && wanted.contains(ordinal) {
                continue;
            }
            let named = [&scale.prepare, &scale.start, &scale.keep]
                .iter().filter(|ordinals| ordinals.contains(ordinal)).count()
                + usize::from(scale.held.contains_key(&ordinal))
                + usize::from(members.contains(ordinal) != after.contains(ordinal));
            prop_assert_eq!(named, 1, "member {} in {:?}", ordinal, scale);
        }
    }

    #[test]
    fn what_is_wanted_again_is_called_off_or_replaced(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        let wanted = view.desired.members();
        let that_are = |wanted_drain: Drain| -> Ordinals {
            view.drains.iter().filter(|(_, drain)| **drain == wanted_drain)
                .map(|(ordinal, _)| *ordinal).collect()
        };
        let (draining, finished) = (that_are(Drain::Draining), that_are(Drain::Finished));
        prop_assert_eq!(&scale.cancel, &draining.shared_with(&wanted));
        prop_assert_eq!(&scale.keep, &draining.without(&wanted));
        let members = view.actual.members();
        prop_assert_eq!(&scale.replace, &finished.shared_with(&wanted).shared_with(&members));
    }

    #[test]
    fn a_plan_is_empty_only_at_the_goal(view in view(), limits in limits()) {
        let scale = plan(&view, &limits);
        if scale.is_empty() {
            prop_assert_eq!(&view.actual, &view.desired);
        }
    }

    #[test]
    fn a_plain_set_never_gets_slots(
        actual in 0_u16..9, desired in 0_u16..9, drains in drains(), prepared in ordinals(),
        limits in limits(),
    ) {
        let mut view = View::at_rest(Layout::plain(actual), Layout::plain(desired));
        view.drains = drains;
        view.prepared = prepared;
        if let Some(layout) = plan(&view, &limits).write {
            prop_assert!(layout.slots.is_empty());
        }
    }
}
