//! Objects of one kind by name, each of them shared.
//!
//! It is read like a map. Whoever holds a copy of it shares the objects with it, so one object that moves costs the copy of that one, and
//! not of the cluster. And it has no empty places: a map that has room for eleven pods takes kilobytes for the three that there are.

use std::fmt;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

/// Values by name, in the order of their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Shelf<V> {
    all: Vec<(String, Arc<V>)>,
}

impl<V> Default for Shelf<V> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<V> Shelf<V> {
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.all.binary_search_by(|(has, _)| has.as_str().cmp(name))
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&V> {
        let place = self.place(name).ok()?;
        self.all.get(place).map(|(_, value)| &**value)
    }

    /// Whether there is a value of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// All names and values.
    pub fn iter(&self) -> Iter<'_, V> {
        Iter(self.all.iter())
    }

    /// All names.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + Clone {
        self.all.iter().map(|(name, _)| name)
    }

    /// All values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.all.iter().map(|(_, value)| &**value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Gives a name this value.
    pub fn insert(&mut self, name: String, value: V) {
        match self.place(&name) {
            Ok(place) => self.all[place].1 = Arc::new(value),
            Err(place) => {
                // Room for one more, and not for as many again: most clusters never have more than they begin with.
                self.all.reserve_exact(1);
                self.all.insert(place, (name, Arc::new(value)));
            }
        }
    }

    /// Takes away all that are not wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&String, &V) -> bool) {
        self.all.retain(|(name, value)| wanted(name, value));
    }

    /// Takes all of them away.
    pub fn clear(&mut self) {
        self.all.clear();
    }
}

impl<V: Clone> Shelf<V> {
    /// Takes a name away. What others share is copied.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let place = self.place(name).ok()?;
        Some(Arc::unwrap_or_clone(self.all.remove(place).1))
    }

    /// The value of this name, to be changed. Others who share it keep it as it is.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        let place = self.place(name).ok()?;
        self.all.get_mut(place).map(|(_, value)| Arc::make_mut(value))
    }

    /// The value of this name, to be changed, which is made when there is none.
    pub fn get_or_insert_with(&mut self, name: String, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&name).unwrap_or_else(|place| {
            self.all.reserve_exact(1);
            self.all.insert(place, (name, Arc::new(make())));
            place
        });
        Arc::make_mut(&mut self.all[place].1)
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.all.iter_mut().map(|(_, value)| Arc::make_mut(value))
    }
}

/// Goes through names and values.
#[derive(Debug)]
pub struct Iter<'a, V>(slice::Iter<'a, (String, Arc<V>)>);

impl<V> Clone for Iter<'_, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a String, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name, &**value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<V> DoubleEndedIterator for Iter<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(name, value)| (name, &**value))
    }
}

impl<V> ExactSizeIterator for Iter<'_, V> {}

impl<'a, V> IntoIterator for &'a Shelf<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Iter<'a, V> {
        self.iter()
    }
}

impl<V> Extend<(String, V)> for Shelf<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, values: I) {
        for (name, value) in values {
            self.insert(name, value);
        }
    }
}

impl<V> FromIterator<(String, V)> for Shelf<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(values: I) -> Self {
        let mut shelf = Self::default();
        shelf.extend(values);
        shelf
    }
}

impl<V, const N: usize> From<[(String, V); N]> for Shelf<V> {
    fn from(values: [(String, V); N]) -> Self {
        values.into_iter().collect()
    }
}

impl<V> Index<&str> for Shelf<V> {
    type Output = V;

    #[expect(clippy::expect_used, reason = "as with a map; for tests, which know what is there")]
    fn index(&self, name: &str) -> &V {
        self.get(name).expect("no value of this name")
    }
}

impl<V: fmt::Debug> fmt::Debug for Shelf<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_read_as_a_map_is(changes in proptest::collection::vec(("[a-d]{1,2}", any::<u8>(), any::<bool>()), 0..20)) {
            let (mut shelf, mut map) = (Shelf::default(), BTreeMap::new());
            for (name, value, is_put) in changes {
                if is_put {
                    shelf.insert(name.clone(), value);
                    map.insert(name, value);
                } else {
                    prop_assert_eq!(shelf.remove(&name), map.remove(&name));
                }
            }
            prop_assert!(shelf.iter().eq(&map));
            prop_assert!(shelf.keys().eq(map.keys()) && shelf.values().eq(map.values()));
            prop_assert_eq!((shelf.len(), shelf.is_empty()), (map.len(), map.is_empty()));
            for name in ["a", "b", "cd"] {
                prop_assert_eq!(shelf.get(name), map.get(name));
            }
            prop_assert_eq!(shelf, map.into_iter().collect());
        }
    }

    #[test]
    fn a_change_is_not_seen_by_whoever_holds_a_copy_and_the_rest_stays_shared() {
        let mut shelf = Shelf::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let before = shelf.clone();
        *shelf.get_mut("a").unwrap() = 3;
        assert_eq!((before["a"], shelf["a"]), (1, 3));
        assert!(std::ptr::eq(&raw const before["b"], &raw const shelf["b"]));
    }

    #[test]
    fn a_value_is_made_only_when_there_is_none() {
        let mut shelf = Shelf::default();
        *shelf.get_or_insert_with("a".into(), || 1) += 1;
        *shelf.get_or_insert_with("a".into(), || 7) += 1;
        assert_eq!(shelf["a"], 3);
    }
}
