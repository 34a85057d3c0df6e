//! Which ordinals a `StatefulSet` has.
//!
//! Decides the members that a replica count and a set of delete slots stand for, and the other way
//! round: the count and the slots that stand for given members. It knows nothing of pods that
//! exist; whoever calls it says what was observed. Ordinals are compared as numbers, never as text,
//! so that `Ordinal(10)` comes after `Ordinal(9)`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The number of one member of a `StatefulSet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordinal(u16);

impl Ordinal {
    /// The ordinal with this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number itself.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Splits a pod name like `rss-shop-12` into the name of its `StatefulSet` and its ordinal.
    ///
    /// A name that a `StatefulSet` controller would not give (no number, a leading zero, a number
    /// beyond 65535) has no ordinal.
    pub fn split_pod_name(pod: &str) -> Option<(&str, Self)> {
        let (set, number) = pod.rsplit_once('-')?;
        if set.is_empty() {
            return None;
        }
        number.parse().ok().map(|ordinal| (set, ordinal))
    }

    /// The ordinal of a pod, if it is named as a member of the `StatefulSet` `set`.
    pub fn of_pod(set: &str, pod: &str) -> Option<Self> {
        Self::split_pod_name(pod).filter(|(prefix, _)| *prefix == set).map(|(_, ordinal)| ordinal)
    }

    /// The name of this member's pod in the `StatefulSet` `set`.
    pub fn pod_name(self, set: &str) -> String {
        format!("{set}-{self}")
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u16> for Ordinal {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

/// Text that is no ordinal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no ordinal: expected a whole number from 0 to 65535 without leading zeros")]
pub struct InvalidOrdinal {
    text: String,
}

impl FromStr for Ordinal {
    type Err = InvalidOrdinal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidOrdinal { text: text.to_owned() };
        // The standard parser also takes "+1" and "01", which no StatefulSet ever writes.
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits_only || (text.len() > 1 && text.starts_with('0')) {
            return Err(invalid());
        }
        text.parse().map(Self).map_err(|_| invalid())
    }
}

/// A set of ordinals, in numeric order.
///
/// Kept as a sorted list: clusters are small, and plans compare and copy sets all the time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Ordinal>", into = "Vec<Ordinal>")]
pub struct Ordinals(Vec<Ordinal>);

impl Ordinals {
    /// The empty set.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `ordinal` is one of them.
    pub fn contains(&self, ordinal: Ordinal) -> bool {
        self.0.binary_search(&ordinal).is_ok()
    }

    /// Adds one; tells whether it was new.
    pub fn insert(&mut self, ordinal: Ordinal) -> bool {
        match self.0.binary_search(&ordinal) {
            Ok(_) => false,
            Err(place) => {
                self.0.insert(place, ordinal);
                true
            }
        }
    }

    /// Takes one away; tells whether it was there.
    pub fn remove(&mut self, ordinal: Ordinal) -> bool {
        match self.0.binary_search(&ordinal) {
            Ok(place) => {
                self.0.remove(place);
                true
            }
            Err(_) => false,
        }
    }

    /// The highest.
    pub fn highest(&self) -> Option<Ordinal> {
        self.0.last().copied()
    }

    /// The lowest.
    pub fn lowest(&self) -> Option<Ordinal> {
        self.0.first().copied()
    }

    /// From the lowest to the highest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Ordinal> + '_ {
        self.0.iter().copied()
    }

    /// Those that are not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        self.filtered(|ordinal| !other.contains(ordinal))
    }

    /// Those that are in both.
    pub fn shared_with(&self, other: &Self) -> Self {
        self.filtered(|ordinal| other.contains(ordinal))
    }

    /// Those that are in either.
    pub fn joined_with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend(other.iter());
        all
    }

    /// For people: `member 2`, or `members 2, 5 to 9`.
    pub fn in_words(&self) -> String {
        let mut runs: Vec<(Ordinal, Ordinal)> = Vec::new();
        for ordinal in self {
            match runs.last_mut() {
                Some((_, last)) if last.0 + 1 == ordinal.0 => *last = ordinal,
                _ => runs.push((ordinal, ordinal)),
            }
        }
        let word = if self.len() == 1 { "member" } else { "members" };
        let runs: Vec<String> = runs
            .into_iter()
            .map(|(first, last)| match last.0 - first.0 {
                0 => first.to_string(),
                1 => format!("{first}, {last}"),
                _ => format!("{first} to {last}"),
            })
            .collect();
        format!("{word} {}", runs.join(", "))
    }

    /// Part of a sorted list is sorted, so it need not be sorted again.
    fn filtered(&self, keep: impl Fn(Ordinal) -> bool) -> Self {
        Self(self.iter().filter(|ordinal| keep(*ordinal)).collect())
    }

    /// Reads the annotation form of delete slots: a JSON list like `[1,3]`.
    pub fn from_annotation(text: &str) -> Result<Self, InvalidDeleteSlots> {
        serde_json::from_str(text).map_err(|source| InvalidDeleteSlots { text: text.to_owned(), source })
    }
}

/// Delete slots that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("delete slots {text:?} cannot be read: expected a JSON list of whole numbers from 0 to 65535, like \"[1,3]\"")]
pub struct InvalidDeleteSlots {
    text: String,
    source: serde_json::Error,
}

/// The annotation form, `[1,3]`.
impl fmt::Display for Ordinals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, ordinal) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            ordinal.fmt(f)?;
        }
        f.write_str("]")
    }
}

impl From<Vec<Ordinal>> for Ordinals {
    fn from(mut ordinals: Vec<Ordinal>) -> Self {
        ordinals.sort_unstable();
        ordinals.dedup();
        Self(ordinals)
    }
}

impl From<Ordinals> for Vec<Ordinal> {
    fn from(ordinals: Ordinals) -> Self {
        ordinals.0
    }
}

impl FromIterator<Ordinal> for Ordinals {
    fn from_iter<I: IntoIterator<Item = Ordinal>>(ordinals: I) -> Self {
        ordinals.into_iter().collect::<Vec<_>>().into()
    }
}

impl FromIterator<u16> for Ordinals {
    fn from_iter<I: IntoIterator<Item = u16>>(numbers: I) -> Self {
        numbers.into_iter().map(Ordinal).collect()
    }
}

impl<const N: usize> From<[u16; N]> for Ordinals {
    fn from(numbers: [u16; N]) -> Self {
        numbers.into_iter().collect()
    }
}

impl Extend<Ordinal> for Ordinals {
    fn extend<I: IntoIterator<Item = Ordinal>>(&mut self, ordinals: I) {
        self.0.extend(ordinals);
        self.0.sort_unstable();
        self.0.dedup();
    }
}

impl IntoIterator for Ordinals {
    type Item = Ordinal;
    type IntoIter = std::vec::IntoIter<Ordinal>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Ordinals {
    type Item = Ordinal;
    type IntoIter = std::iter::Copied<std::slice::Iter<'a, Ordinal>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied()
    }
}

/// What is written in a `StatefulSet`: how many members, and which ordinals are left out.
///
/// The members are the first `replicas` ordinals, counted up from 0, that are no slot. A plain
/// `StatefulSet` has no slots. A slot beyond the highest member changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    /// How many members there are.
    pub replicas: u16,
    /// The ordinals that are left out.
    pub slots: Ordinals,
}

impl Layout {
    /// The layout of a plain `StatefulSet`.
    pub const fn plain(replicas: u16) -> Self {
        Self { replicas, slots: Ordinals::new() }
    }

    /// The layout of a `StatefulSet` with delete slots.
    pub const fn with_slots(replicas: u16, slots: Ordinals) -> Self {
        Self { replicas, slots }
    }

    /// The members this layout stands for.
    ///
    /// 65535 itself is never handed out: so the number of any set of members fits in `replicas`.
    pub fn members(&self) -> Ordinals {
        let free = |ordinal: &Ordinal| !self.slots.contains(*ordinal);
        let ordinals = (0..u16::MAX).map(Ordinal).filter(free);
        // Counted up, so they are in order already.
        Ordinals(ordinals.take(usize::from(self.replicas)).collect())
    }

    /// The layout that stands for exactly `members`.
    ///
    /// Its slots are the gaps below the highest member, plus those of `slots` that are not members:
    /// they lie in a gap already or beyond the highest member, where they change nothing now and
    /// spare a second write later.
    pub fn of(members: &Ordinals, slots: &Ordinals) -> Self {
        let mut all = slots.without(members);
        if let Some(highest) = members.highest() {
            all.extend((0..highest.get()).map(Ordinal).filter(|ordinal| !members.contains(*ordinal)));
        }
        Self { replicas: u16::try_from(members.len()).unwrap_or(u16::MAX), slots: all }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} replicas", self.replicas)?;
        if self.slots.is_empty() { Ok(()) } else { write!(f, ", delete slots {}", self.slots) }
    }
}
