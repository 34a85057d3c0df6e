//! Labels and annotations of objects that are kept, as one text.
//!
//! A quiet cluster is hardly more than the labels and annotations of its twenty objects. A map of them takes an allocation for each key
//! and each value and has room for eleven of them, however few there are; this takes two allocations. It is made to be read: to change
//! one is to make it anew.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Texts by text, in the order of their keys.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// Key, value, key, value.
    text: Box<str>,
    /// Where each of them ends. No object is so large that this would not do.
    ends: Box<[u32]>,
}

impl Pairs {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(has, _)| *has == key).map(|(_, value)| value)
    }

    /// Whether there is a value of this key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ends.chunks_exact(2).scan(0, |begin, ends| {
            let mut part = |end: u32| {
                let end = usize::try_from(end).unwrap_or(usize::MAX);
                self.text.get(std::mem::replace(begin, end)..end)
            };
            let [key, value] = ends else { return None };
            Some((part(*key)?, part(*value)?))
        })
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(_, value)| value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The same as a map.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Gives a key a value.
    pub fn insert(&mut self, key: String, value: String) {
        self.extend([(key, value)]);
    }

    /// Takes a key away.
    pub fn remove(&mut self, key: &str) {
        let mut map = self.to_map();
        map.remove(key);
        *self = map.into();
    }

    /// Takes all of them away.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl From<BTreeMap<String, String>> for Pairs {
    fn from(map: BTreeMap<String, String>) -> Self {
        let mut text = String::with_capacity(map.iter().map(|(key, value)| key.len() + value.len()).sum());
        let mut ends = Vec::with_capacity(map.len() * 2);
        for part in map.iter().flat_map(|(key, value)| [key, value]) {
            text.push_str(part);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { text: text.into(), ends: ends.into() }
    }
}

impl FromIterator<(String, String)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        pairs.into_iter().collect::<BTreeMap<_, _>>().into()
    }
}

impl<const N: usize> From<[(String, String); N]> for Pairs {
    fn from(pairs: [(String, String); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl Extend<(String, String)> for Pairs {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, pairs: I) {
        let mut map = self.to_map();
        map.extend(pairs);
        *self = map.into();
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_in_comes_out(map in proptest::collection::btree_map(".{0,5}", ".{0,9}", 0..9), asked in ".{0,2}") {
            let pairs = Pairs::from(map.clone());
            prop_assert_eq!(&pairs.to_map(), &map);
            prop_assert_eq!(pairs.is_empty(), map.is_empty());
            for key in map.keys().chain([&asked]) {
                prop_assert_eq!(pairs.get(key), map.get(key).map(String::as_str));
            }
        }

        #[test]
        fn changes_are_those_of_a_map(
            map in proptest::collection::btree_map("[a-c]{0,2}", ".{0,3}", 0..5),
            key in "[a-c]{0,2}",
            value in ".{0,3}",
        ) {
            let (mut map, mut pairs) = (map.clone(), Pairs::from(map));
            map.insert(key.clone(), value.clone());
            pairs.insert(key.clone(), value);
            prop_assert_eq!(&pairs, &Pairs::from(map.clone()));
            map.remove(&key);
            pairs.remove(&key);
            prop_assert_eq!(&pairs, &Pairs::from(map));
        }
    }

    #[test]
    fn a_value_that_ends_where_a_key_begins_is_another_one() {
        let pair = |key: &str, value: &str| Pairs::from([(key.to_owned(), value.to_owned())]);
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
        assert_eq!(pair("a", "bc").get("ab"), None);
    }
}
