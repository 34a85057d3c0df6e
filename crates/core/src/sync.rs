//! What is copied to the metadata of a cluster's `StatefulSet`s: the custom resource's labels, so that every component finds
//! its own objects by selector, and the logbook's edition. Never to the template of pods: that would restart them.
//!
//! Applied by a field manager of its own, unforced: a label that somebody else set stays hers, and the conflict is told. Labels are copied
//! under a pause as well. The edition is not, when both lanes are closed: nothing is done then that would rest upon the logbook.

use std::collections::BTreeMap;

use windlass_api::logbook::LogbookSpec;

use crate::bookkeeping::speaks_of_data;
use crate::gate::Gate;
use crate::labels::{LOGBOOK_EDITION, SYNCED_LABELS, is_reserved};
use crate::likeness::short_hash;
use crate::step::{Act, Action, ObjectKind, ObjectRef, Step};
use crate::views::{Children, Meta};

/// The steps that make the copies so.
pub fn steps<A: Action>(
    labels: Option<&BTreeMap<String, String>>,
    stored: Option<&LogbookSpec>,
    gate: &Gate,
    children: &Children,
) -> Vec<Step<A>> {
    let labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !is_reserved(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let hash = (!labels.is_empty()).then(|| short_hash(&format!("{labels:?}")));
    let edition = stored.filter(|stored| speaks_of_data(stored)).map(|stored| stored.edition.to_string());
    let annotations = |meta: &Meta| {
        let noted = || meta.annotations.get(LOGBOOK_EDITION).map(str::to_owned);
        let edition = if gate.is_shut() { noted() } else { edition.clone() };
        let pairs = [(SYNCED_LABELS, hash.clone()), (LOGBOOK_EDITION, edition)];
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    };
    let sets = children.stateful_sets.values().map(|set| &set.object.meta).filter(|meta| !meta.deleting);
    sets.map(|meta| (meta, annotations(meta)))
        .filter(|(meta, annotations)| !is_so(meta, &labels, annotations))
        .map(|(meta, annotations)| step(meta, labels.clone(), annotations))
        .collect()
}

/// The hash tells whether a label has to go as well.
fn is_so(meta: &Meta, labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> bool {
    let same = |key: &str| meta.annotations.get(key) == annotations.get(key).map(String::as_str);
    labels.iter().all(|(key, value)| meta.labels.get(key) == Some(value.as_str()))
        && same(SYNCED_LABELS)
        && same(LOGBOOK_EDITION)
}

fn step<A: Action>(meta: &Meta, labels: BTreeMap<String, String>, annotations: BTreeMap<String, String>) -> Step<A> {
    let act = Act::Sync { object: named(ObjectKind::StatefulSet, meta), over: meta.as_judged(), labels, annotations };
    Step::new(act, "labels of the custom resource and the logbook's edition are copied to it")
}

/// A note on an object that has no other copies.
pub(crate) fn note<A: Action>(kind: ObjectKind, meta: &Meta, note: (String, String)) -> Step<A> {
    let (labels, annotations) = (BTreeMap::new(), BTreeMap::from([note]));
    let act = Act::Sync { object: named(kind, meta), over: meta.as_judged(), labels, annotations };
    Step::new(act, "what was announced for it is withdrawn")
}

fn named(kind: ObjectKind, meta: &Meta) -> ObjectRef {
    ObjectRef { kind, namespace: meta.namespace.clone(), name: meta.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Door;
    use crate::step::no_action::NoAction;
    use crate::views::StatefulSetView;
    use rstest::rstest;

    static OPEN: std::sync::LazyLock<Gate> = std::sync::LazyLock::new(|| Gate::new(Door::Open, Door::Open));

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn children(meta: Meta) -> Children {
        let mut set = StatefulSetView::default();
        set.object.meta = meta;
        Children { stateful_sets: [("rss-a".to_owned(), set)].into(), ..Children::default() }
    }

    /// What the next copy wishes, if there is one.
    fn wish(
        labels: &BTreeMap<String, String>,
        stored: Option<&LogbookSpec>,
        children: &Children,
    ) -> Option<(Vec<String>, Vec<String>)> {
        let step = steps::<NoAction>(Some(labels), stored, &OPEN, children).pop()?;
        let Act::Sync { labels, annotations, .. } = step.act else { return None };
        Some((labels.into_keys().collect(), annotations.into_keys().collect()))
    }

    /// The set after a copy was made.
    fn copied(wanted: &BTreeMap<String, String>, stored: Option<&LogbookSpec>) -> Children {
        let mut meta = Meta::default();
        if let Some(Act::Sync { labels, annotations, .. }) =
            steps::<NoAction>(Some(wanted), stored, &OPEN, &children(Meta::default())).pop().map(|step| step.act)
        {
            meta.labels = labels.into();
            meta.annotations = annotations.into();
        }
        children(meta)
    }

    #[test]
    fn labels_are_copied_once_and_reserved_ones_never() {
        let wanted = labels(&[("track", "canary"), (INSTANCE_LABEL, "x"), ("app", "x"), ("rss-active-member", "true")]);
        let first = wish(&wanted, None, &children(Meta::default()));
        assert_eq!(first, Some((vec!["track".to_owned()], vec![SYNCED_LABELS.to_owned()])));
        assert_eq!(wish(&wanted, None, &copied(&wanted, None)), None);
    }

    const INSTANCE_LABEL: &str = crate::labels::INSTANCE;

    #[rstest]
    #[case::another_value(&[("track", "stable")])]
    #[case::one_more(&[("track", "canary"), ("tier", "a")])]
    #[case::one_less(&[])]
    fn every_change_is_copied(#[case] now: &[(&str, &str)]) {
        let before = copied(&labels(&[("track", "canary")]), None);
        assert!(wish(&labels(now), None, &before).is_some());
    }

    #[test]
    fn the_edition_is_noted_when_there_is_data_and_not_before() {
        let empty = LogbookSpec { edition: 4, ..LogbookSpec::default() };
        assert_eq!(wish(&labels(&[]), Some(&empty), &children(Meta::default())), None);
        let full = LogbookSpec { histories: vec!["h".into()], ..empty };
        assert_eq!(
            wish(&labels(&[]), Some(&full), &children(Meta::default())),
            Some((vec![], vec![LOGBOOK_EDITION.to_owned()]))
        );
        assert_eq!(wish(&labels(&[]), Some(&full), &copied(&labels(&[]), Some(&full))), None);
    }

    /// What the cluster's members tell goes on being remembered while everything is paused.
    #[test]
    fn under_a_pause_of_both_lanes_labels_are_copied_and_the_edition_is_not() {
        let (none, before) = (labels(&[]), LogbookSpec { edition: 4, histories: vec!["h".into()], ..LogbookSpec::default() });
        let (sets, now) = (copied(&none, Some(&before)), LogbookSpec { edition: 5, ..before });
        let wish = |wanted, gate: &Gate| steps::<NoAction>(Some(wanted), Some(&now), gate, &sets).pop().map(|step| step.act);
        let shut = Gate::new(Door::Closed, Door::Opening);
        assert_eq!(wish(&none, &shut), None);
        let moved = labels(&[("track", "canary")]);
        let Some(Act::Sync { annotations, .. }) = wish(&moved, &shut) else { panic!("labels are not copied") };
        assert_eq!(annotations[LOGBOOK_EDITION], "4");
        let closing = Door::Closing { awaiting: vec!["a change of the primary".into()] };
        for half in [Gate::new(Door::Closed, Door::Open), Gate::new(Door::Open, Door::Closed), Gate::new(Door::Closed, closing)]
        {
            let Some(Act::Sync { annotations, .. }) = wish(&none, &half) else { panic!("{half:?}") };
            assert_eq!(annotations[LOGBOOK_EDITION], "5");
        }
    }
}
