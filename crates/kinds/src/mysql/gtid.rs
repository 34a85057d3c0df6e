//! Sets of global transaction identifiers (GTIDs), as MySQL 8.0 to 9.x has them.
//!
//! Decides what a set holds and how sets compare: who has which transactions, and what one member has that another lacks. It
//! never asks a server, and it holds no position on which difference is harmless.
//!
//! ```text
//! set    = [ group ] { "," [ group ] }
//! group  = uuid { ":" item }
//! item   = tag | number [ "-" number ]
//! uuid   = 32 hex digits, bare or as 8-4-4-4-12; the latter also in braces
//! tag    = a letter or "_", then letters, digits or "_"; at most 32 in all
//! number = 1 to 9223372036854775806
//! ```
//!
//! Blanks, tabs and line ends may stand between any two words. A tag counts for the intervals after it, up to the next tag or
//! group, and need not have any. An interval that ends before it begins holds nothing, as in the server. Upper case is read and
//! lower case is written. This is what 9.7 reads. Older servers take numbers with a leading zero for octal or hexadecimal; no
//! server ever writes one, and here they are decimal.

mod intervals;
mod parse;
mod source;

use std::cmp::Ordering;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use intervals::Interval;
pub use parse::InvalidGtidSet;
pub use source::{Source, Tag, Uuid};

/// The highest number of a transaction.
pub const HIGHEST_NUMBER: u64 = i64::MAX as u64 - 1;

/// A set of GTIDs. There is one form of each set, so equal sets are equal values and print the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GtidSet {
    /// In the order of their sources, one of each source, none of them empty.
    groups: Vec<Group>,
}

/// The transactions of one source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    source: Source,
    intervals: Vec<Interval>,
}

impl GtidSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { groups: Vec::new() }
    }

    /// The transactions of one source with these numbers. Numbers that no transaction can have are left out.
    pub fn of_range(source: Source, numbers: RangeInclusive<u64>) -> Self {
        let (first, last) = numbers.into_inner();
        let interval = Interval { first: first.max(1), last: last.min(HIGHEST_NUMBER) };
        Self::of_groups(vec![Group { source, intervals: vec![interval] }])
    }

    /// Brings groups that come in any order, several of a source, with intervals in any order, into the one form.
    fn of_groups(mut unordered: Vec<Group>) -> Self {
        unordered.sort_by(|one, other| one.source.cmp(&other.source));
        let mut groups: Vec<Group> = Vec::new();
        for group in unordered {
            match groups.last_mut() {
                Some(last) if last.source == group.source => last.intervals.extend(group.intervals),
                _ => groups.push(group),
            }
        }
        for group in &mut groups {
            group.intervals = intervals::in_order(std::mem::take(&mut group.intervals));
        }
        groups.retain(|group| !group.intervals.is_empty());
        Self { groups }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> u128 {
        self.ranges().map(|(_, numbers)| u128::from(numbers.end() - numbers.start()) + 1).sum()
    }

    /// Whether this transaction is one of them.
    pub fn contains(&self, source: &Source, number: u64) -> bool {
        self.groups
            .binary_search_by(|group| group.source.cmp(source))
            .ok()
            .and_then(|place| self.groups.get(place))
            .is_some_and(|group| intervals::contains(&group.intervals, number))
    }

    /// The servers whose transactions these are, whatever their tags, in order.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.groups
            .chunk_by(|one, other| one.source.uuid == other.source.uuid)
            .filter_map(|same| Some(same.first()?.source.uuid))
    }

    /// The transactions as runs of numbers, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (&Source, RangeInclusive<u64>)> + '_ {
        self.groups
            .iter()
            .flat_map(|group| group.intervals.iter().map(|interval| (&group.source, interval.first..=interval.last)))
    }

    /// Those of one server, whatever their tags.
    pub fn of_uuid(&self, uuid: Uuid) -> Self {
        self.filtered(|source| source.uuid == uuid)
    }

    /// Those of all servers but one.
    pub fn without_uuid(&self, uuid: Uuid) -> Self {
        self.filtered(|source| source.uuid != uuid)
    }

    fn filtered(&self, keep: impl Fn(&Source) -> bool) -> Self {
        Self { groups: self.groups.iter().filter(|group| keep(&group.source)).cloned().collect() }
    }

    /// Those that are in either.
    pub fn joined_with(&self, other: &Self) -> Self {
        self.combined(other, intervals::joined)
    }

    /// Those that are not in `other`; the server's `GTID_SUBTRACT`.
    pub fn without(&self, other: &Self) -> Self {
        self.combined(other, intervals::without)
    }

    /// Those that are in both.
    pub fn shared_with(&self, other: &Self) -> Self {
        self.combined(other, intervals::shared)
    }

    /// Whether all of them are in `other`; the server's `GTID_SUBSET`.
    pub fn is_within(&self, other: &Self) -> bool {
        SideBySide { left: &self.groups, right: &other.groups }.all(|(_, left, right)| intervals::is_within(left, right))
    }

    fn combined(&self, other: &Self, combine: impl Fn(&[Interval], &[Interval]) -> Vec<Interval>) -> Self {
        let groups = SideBySide { left: &self.groups, right: &other.groups }
            .map(|(source, left, right)| (source, combine(left, right)))
            .filter(|(_, intervals)| !intervals.is_empty())
            .map(|(source, intervals)| Group { source: source.clone(), intervals })
            .collect();
        Self { groups }
    }
}

/// Walks over two sets at once: each source of either, with its intervals in both.
struct SideBySide<'a> {
    left: &'a [Group],
    right: &'a [Group],
}

impl<'a> Iterator for SideBySide<'a> {
    type Item = (&'a Source, &'a [Interval], &'a [Interval]);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.first(), self.right.first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => left.source.cmp(&right.source),
        };
        let left = if order.is_le() { self.left.split_off_first() } else { None };
        let right = if order.is_ge() { self.right.split_off_first() } else { None };
        let source = &left.or(right)?.source;
        let intervals = |group: Option<&'a Group>| group.map_or(&[][..], |group| group.intervals.as_slice());
        Some((source, intervals(left), intervals(right)))
    }
}

/// As the server writes it: a line for each UUID, with what has no tag first, then tag after tag.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut uuid = None;
        for group in &self.groups {
            if uuid != Some(group.source.uuid) {
                f.write_str(if uuid.is_some() { ",\n" } else { "" })?;
                group.source.uuid.fmt(f)?;
                uuid = Some(group.source.uuid);
            }
            if let Some(tag) = &group.source.tag {
                write!(f, ":{tag}")?;
            }
            for interval in &group.intervals {
                write!(f, ":{interval}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for GtidSet {
    type Err = InvalidGtidSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::set(text)
    }
}

impl TryFrom<String> for GtidSet {
    type Error = InvalidGtidSet;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<GtidSet> for String {
    fn from(set: GtidSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
#[path = "gtid_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gtid_properties.rs"]
mod properties;

#[cfg(test)]
#[path = "gtid_recorded_tests.rs"]
mod recorded_tests;
