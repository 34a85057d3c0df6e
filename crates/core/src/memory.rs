//! What the operator remembers of a cluster, and whether that memory can be trusted.
//!
//! *New*, *known*, *lost*, *stale* and *contradicted* are told apart. What is lost or stale is never guessed: its entries are
//! marked as unproven, and irreversible steps wait until observation proves each one again, or the user says what it was.

use std::collections::BTreeMap;

use jiff::Timestamp;
use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr};
use windlass_api::logbook::{LogbookSpec, Override, Unproven};

use crate::adoption::is_adopted;
use crate::bookkeeping::speaks_of_data;
use crate::labels::{LOGBOOK_EDITION, OVERRIDE_PREFIX};
use crate::views::Children;

/// The entries that irreversible steps rest upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Entry {
    /// How many members hold data.
    Counts,
    /// Which histories the cluster had.
    Histories,
    /// Which irreversible steps were announced.
    Intents,
}

impl Entry {
    /// What a user writes to say what the entry was.
    fn form(self) -> &'static str {
        match self {
            Self::Counts => "NUMBER",
            Self::Histories => "HISTORY,...|none",
            Self::Intents => "none",
        }
    }

    /// Takes what the user said in. False when it has not the right form.
    fn accept(self, value: &str, entries: &mut LogbookSpec) -> bool {
        match self {
            Self::Counts => {
                let Ok(count) = value.parse() else { return false };
                entries.counts.restore = count;
                entries.counts.largest = entries.counts.largest.max(count);
            }
            Self::Histories if value == "none" => entries.histories.clear(),
            Self::Histories => entries.histories = value.split(',').map(|it| it.trim().to_owned()).collect(),
            Self::Intents if value == "none" => entries.intents.clear(),
            Self::Intents => return false,
        }
        true
    }
}

/// A logbook as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its content.
    pub logbook: &'a LogbookSpec,
    /// Its own UID.
    pub uid: &'a str,
}

/// The state of the logbook of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Memory {
    /// Nothing of the cluster exists yet: an empty logbook is the truth.
    New,
    /// The logbook speaks of this cluster.
    Known(Box<LogbookSpec>),
    /// Entries of it are unproven. What they say is at best a part of the truth.
    Doubted(Box<LogbookSpec>),
}

impl Memory {
    /// Judges what was found.
    pub fn judge(found: Option<Found<'_>>, cluster_uid: &str, children: &Children) -> Self {
        let past = children.tell_of_a_past();
        let Some(Found { logbook, uid }) = found else {
            return if past {
                Self::doubt(LogbookSpec::default(), "", "the logbook is missing beside members or volumes of the cluster")
            } else {
                Self::New
            };
        };
        if logbook.cluster_uid != cluster_uid {
            if !past && logbook.cluster_uid.is_empty() {
                return Self::New;
            }
            let of = &logbook.cluster_uid;
            let why = format!("the logbook speaks of a cluster with UID {of:?}, this one has {cluster_uid:?}");
            // Who looks after the cluster is true all the same.
            return Self::doubt(LogbookSpec { claim: logbook.claim.clone(), ..LogbookSpec::default() }, uid, &why);
        }
        if !logbook.own_uid.is_empty() && logbook.own_uid != uid {
            return Self::doubt(logbook.clone(), uid, "the logbook is a copy that was put back from a backup");
        }
        let noted = noted_edition(children);
        if logbook.edition < noted {
            let why = format!("the logbook is older than the cluster: edition {}, but {noted} was noted", logbook.edition);
            return Self::doubt(LogbookSpec { edition: noted, ..logbook.clone() }, uid, &why);
        }
        let adopted = children.stateful_sets.values().any(is_adopted);
        // A set alone has no data.
        let has_data = !(children.pods.is_empty() && children.claims.is_empty());
        if adopted && has_data && logbook.unproven.is_empty() && !speaks_of_data(logbook) {
            let why = "the cluster was taken over from another operator, and what that one did is not on record";
            return Self::doubt(logbook.clone(), uid, why);
        }
        let entries = Box::new(LogbookSpec { own_uid: uid.to_owned(), ..logbook.clone() });
        if logbook.unproven.is_empty() { Self::Known(entries) } else { Self::Doubted(entries) }
    }

    fn doubt(mut entries: LogbookSpec, uid: &str, why: &str) -> Self {
        entries.unproven = Entry::iter().map(|entry| Unproven { entry: entry.to_string(), why: why.to_owned() }).collect();
        uid.clone_into(&mut entries.own_uid);
        if let Some(claim) = &mut entries.claim {
            // Its epoch may be older than what members were told since: whoever acts takes the claim anew.
            claim.holder.clear();
        }
        Self::Doubted(Box::new(entries))
    }

    /// What is remembered; nothing when new.
    pub fn entries(&self) -> LogbookSpec {
        match self {
            Self::Known(logbook) | Self::Doubted(logbook) => (**logbook).clone(),
            Self::New => LogbookSpec::default(),
        }
    }

    /// Whether irreversible steps must wait, and why.
    pub fn lost(&self) -> Option<&str> {
        match self {
            Self::Doubted(logbook) => logbook.unproven.first().map(|unproven| unproven.why.as_str()),
            Self::New | Self::Known(_) => None,
        }
    }
}

/// The newest edition of the logbook that was noted on the cluster's objects.
pub fn noted_edition(children: &Children) -> u64 {
    let sets = children.stateful_sets.values();
    sets.filter_map(|set| set.object.meta.annotations.get(LOGBOOK_EDITION)?.parse().ok()).max().unwrap_or(0)
}

/// Proves entries again by observation.
pub fn reprove(entries: &mut LogbookSpec, proven: &[Entry]) {
    entries.unproven.retain(|unproven| !proven.iter().any(|entry| entry.to_string() == unproven.entry));
}

/// Takes in what the user said of unproven entries: each bound to this very logbook, and used once.
pub fn take_overrides(entries: &mut LogbookSpec, annotations: Option<&BTreeMap<String, String>>, now: Timestamp) {
    let logbook_uid = entries.own_uid.clone();
    for entry in Entry::iter() {
        let name = entry.to_string();
        let said = annotations.and_then(|all| all.get(&format!("{OVERRIDE_PREFIX}{name}")));
        let Some((value, uid)) = said.and_then(|said| said.rsplit_once('@')) else { continue };
        let unproven = entries.unproven.iter().any(|it| it.entry == name);
        let used = entries.overrides.iter().any(|it| it.entry == name && it.uid == uid);
        if unproven && !used && uid == logbook_uid && !uid.is_empty() && entry.accept(value, entries) {
            let (value, uid) = (value.to_owned(), uid.to_owned());
            entries.overrides.push(Override { entry: name, value, uid, used: now, ..Override::default() });
            reprove(entries, &[entry]);
        }
    }
}

/// What a person may type to say what unproven entries were.
pub fn ways_out(entries: &LogbookSpec) -> String {
    let logbook_uid = &entries.own_uid;
    let open = Entry::iter().filter(|entry| entries.unproven.iter().any(|it| it.entry == entry.to_string()));
    let ways: Vec<String> = open.map(|entry| format!("{OVERRIDE_PREFIX}{entry}={}@{logbook_uid}", entry.form())).collect();
    ways.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::ADOPTED;
    use crate::views::{ClaimView, StatefulSetView};
    use rstest::rstest;

    fn with_a_claim() -> Children {
        Children { claims: [("data-0".to_owned(), ClaimView::default())].into(), ..Children::default() }
    }

    fn with_edition(edition: u64) -> Children {
        let mut set = StatefulSetView::default();
        set.object.meta.annotations.insert(LOGBOOK_EDITION.into(), edition.to_string());
        Children { stateful_sets: [("rss-a".to_owned(), set)].into(), ..with_a_claim() }
    }

    fn logbook(uid: &str) -> LogbookSpec {
        LogbookSpec { cluster_uid: uid.into(), own_uid: "book".into(), edition: 3, ..LogbookSpec::default() }
    }

    fn judge(logbook: &LogbookSpec, children: &Children) -> Memory {
        Memory::judge(Some(Found { logbook, uid: "book" }), "u1", children)
    }

    #[test]
    fn absent_beside_nothing_is_new() {
        assert_eq!(Memory::judge(None, "u1", &Children::default()), Memory::New);
    }

    #[test]
    fn absent_beside_a_volume_is_lost() {
        let memory = Memory::judge(None, "u1", &with_a_claim());
        assert!(memory.lost().unwrap().contains("missing"));
        assert_eq!(memory.entries().unproven.len(), 3);
    }

    #[test]
    fn another_uid_is_lost_even_beside_nothing() {
        assert!(judge(&logbook("u0"), &Children::default()).lost().unwrap().contains("u0"));
    }

    #[rstest]
    #[case(&with_a_claim())]
    #[case(&with_edition(3))]
    #[case(&with_edition(2))]
    fn the_same_uid_is_known(#[case] children: &Children) {
        assert_eq!(judge(&logbook("u1"), children), Memory::Known(Box::new(logbook("u1"))));
    }

    #[test]
    fn an_edition_below_the_noted_one_is_stale_and_the_next_one_is_higher() {
        let memory = judge(&logbook("u1"), &with_edition(4));
        assert!(memory.lost().unwrap().contains("older"));
        assert_eq!(memory.entries().edition, 4);
    }

    #[rstest]
    #[case::beside_data(&with_a_claim(), LogbookSpec::default(), true)]
    #[case::a_set_alone_has_none(&Children::default(), LogbookSpec::default(), false)]
    #[case::what_was_proven_since(&with_a_claim(), LogbookSpec { histories: vec!["h".into()], ..LogbookSpec::default() }, false)]
    fn nothing_is_known_of_what_another_operator_did(
        #[case] members: &Children,
        #[case] entries: LogbookSpec,
        #[case] lost: bool,
    ) {
        let entries = LogbookSpec { histories: entries.histories, ..logbook("u1") };
        let mut set = StatefulSetView::default();
        set.object.meta.annotations.insert(ADOPTED.into(), "true".into());
        let children = Children { stateful_sets: [("rss-a".to_owned(), set)].into(), ..members.clone() };
        assert_eq!(judge(&entries, &children).lost().is_some_and(|why| why.contains("taken over")), lost);
    }

    #[test]
    fn a_copy_is_known_by_its_own_uid() {
        let copy = LogbookSpec { own_uid: "another".into(), ..logbook("u1") };
        assert!(judge(&copy, &with_a_claim()).lost().unwrap().contains("backup"));
    }

    #[test]
    fn the_claim_of_a_copy_is_held_by_no_process() {
        let claim = windlass_api::logbook::Claim { release: "a/b".into(), holder: "me".into(), epoch: 3, ..Default::default() };
        let copy = LogbookSpec { own_uid: "another".into(), claim: Some(claim.clone()), ..logbook("u1") };
        let entries = judge(&copy, &with_a_claim()).entries();
        assert_eq!(entries.claim, Some(windlass_api::logbook::Claim { holder: String::new(), ..claim }));
    }

    #[test]
    fn what_is_unproven_stays_so_until_it_is_proven() {
        let mut doubted = Memory::judge(None, "u1", &with_a_claim()).entries();
        doubted.cluster_uid = "u1".into();
        assert!(judge(&doubted, &with_a_claim()).lost().is_some());
        reprove(&mut doubted, &[Entry::Counts, Entry::Histories]);
        assert!(judge(&doubted, &with_a_claim()).lost().is_some());
        reprove(&mut doubted, &[Entry::Intents]);
        assert!(judge(&doubted, &with_a_claim()).lost().is_none());
    }

    fn doubted() -> LogbookSpec {
        LogbookSpec { own_uid: "book".into(), ..Memory::judge(None, "u1", &with_a_claim()).entries() }
    }

    fn said(entry: &str, value: &str) -> BTreeMap<String, String> {
        [(format!("{OVERRIDE_PREFIX}{entry}"), value.to_owned())].into()
    }

    #[rstest]
    #[case::another_logbook("counts", "3@old")]
    #[case::no_uid("counts", "3")]
    #[case::no_number("counts", "three@book")]
    #[case::an_unknown_entry("pause", "none@book")]
    #[case::intents_cannot_be_made_up("intents", "Seed@book")]
    fn an_override_that_does_not_fit_changes_nothing(#[case] entry: &str, #[case] value: &str) {
        let mut entries = doubted();
        take_overrides(&mut entries, Some(&said(entry, value)), Timestamp::UNIX_EPOCH);
        assert_eq!(entries, doubted());
    }

    #[test]
    fn an_override_is_taken_once_for_one_entry() {
        let mut entries = doubted();
        take_overrides(&mut entries, Some(&said("counts", "3@book")), Timestamp::UNIX_EPOCH);
        assert_eq!((entries.counts.restore, entries.unproven.len(), entries.overrides.len()), (3, 2, 1));
        // Doubted again, for another reason: the same words are not taken a second time.
        let mut again = LogbookSpec { overrides: entries.overrides, ..doubted() };
        take_overrides(&mut again, Some(&said("counts", "3@book")), Timestamp::UNIX_EPOCH);
        assert_eq!((again.counts.restore, again.unproven.len()), (0, 3));
    }

    #[test]
    fn the_ways_out_name_what_is_open() {
        let mut entries = doubted();
        reprove(&mut entries, &[Entry::Counts]);
        assert_eq!(
            ways_out(&entries),
            "windlass.dev/override.histories=HISTORY,...|none@book windlass.dev/override.intents=none@book"
        );
    }
}
