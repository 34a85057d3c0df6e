//! Objects of one kind by name, each of them shared.
//!
//! It is read like a map. Whoever holds a copy of it shares the objects with it, so one object that moves costs the copy of that one, and
//! not of the cluster. And it has no empty places: a map that has room for eleven pods takes kilobytes for the three that there are.
//!
//! A shelf that nobody changes can be packed: then it is a tenth as large, and each copy of it is unpacked when somebody looks into it,
//! for as long as that copy is held.

use std::fmt;
use std::ops::Index;
use std::slice;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::packing::{pack, unpack};

/// Names and values, in the order of the names.
type Values<V> = Vec<(String, Arc<V>)>;

/// Values by name, in the order of their names.
pub struct Shelf<V> {
    /// Nothing while they are packed.
    loose: Values<V>,
    packed: Option<Box<Packed<V>>>,
}

/// Values that are packed. There is at least one.
struct Packed<V> {
    bytes: Arc<[u8]>,
    unpack: fn(&[u8]) -> Values<V>,
    /// What is in there, once somebody looked.
    unpacked: OnceLock<Values<V>>,
}

impl<V> Packed<V> {
    fn all(&self) -> &Values<V> {
        self.unpacked.get_or_init(|| (self.unpack)(&self.bytes))
    }
}

impl<V> Default for Shelf<V> {
    fn default() -> Self {
        Self { loose: Vec::new(), packed: None }
    }
}

impl<V> Clone for Shelf<V> {
    /// A copy of what is packed is packed, whoever looked into the original.
    fn clone(&self) -> Self {
        let packed = self
            .packed
            .as_ref()
            .map(|it| Box::new(Packed { bytes: Arc::clone(&it.bytes), unpack: it.unpack, unpacked: OnceLock::new() }));
        Self { loose: self.loose.clone(), packed }
    }
}

impl<V: PartialEq> PartialEq for Shelf<V> {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl<V: Eq> Eq for Shelf<V> {}

impl<V> Shelf<V> {
    fn all(&self) -> &Values<V> {
        self.packed.as_ref().map_or(&self.loose, |packed| packed.all())
    }

    /// Whoever changes something changes loose values.
    fn all_mut(&mut self) -> &mut Values<V> {
        if let Some(packed) = self.packed.take() {
            packed.all();
            self.loose = packed.unpacked.into_inner().unwrap_or_default();
        }
        &mut self.loose
    }

    /// Whether it is as small as it can be: empty, or packed, and nobody looked into it.
    pub fn is_closed(&self) -> bool {
        self.packed.as_ref().map_or(self.loose.is_empty(), |packed| packed.unpacked.get().is_none())
    }

    /// Whether it is packed, looked into or not.
    pub fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.all().binary_search_by(|(has, _)| has.as_str().cmp(name))
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&V> {
        let place = self.place(name).ok()?;
        self.all().get(place).map(|(_, value)| &**value)
    }

    /// Whether there is a value of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// All names and values.
    pub fn iter(&self) -> Iter<'_, V> {
        Iter(self.all().iter())
    }

    /// All names.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + Clone {
        self.all().iter().map(|(name, _)| name)
    }

    /// All values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.all().iter().map(|(_, value)| &**value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packed.is_none() && self.loose.is_empty()
    }

    /// Gives a name this value.
    pub fn insert(&mut self, name: String, value: V) {
        match self.place(&name) {
            Ok(place) => self.all_mut()[place].1 = Arc::new(value),
            Err(place) => {
                let all = self.all_mut();
                // Room for one more, and not for as many again: most clusters never have more than they begin with.
                all.reserve_exact(1);
                all.insert(place, (name, Arc::new(value)));
            }
        }
    }

    /// Takes away all that are not wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&String, &V) -> bool) {
        self.all_mut().retain(|(name, value)| wanted(name, value));
    }

    /// Takes all of them away.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<V: Clone> Shelf<V> {
    /// Takes a name away. What others share is copied.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let place = self.place(name).ok()?;
        Some(Arc::unwrap_or_clone(self.all_mut().remove(place).1))
    }

    /// The value of this name, to be changed. Others who share it keep it as it is.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        let place = self.place(name).ok()?;
        self.all_mut().get_mut(place).map(|(_, value)| Arc::make_mut(value))
    }

    /// The value of this name, to be changed, which is made when there is none.
    pub fn get_or_insert_with(&mut self, name: String, make: impl FnOnce() -> V) -> &mut V {
        let place = self.place(&name);
        let all = self.all_mut();
        let place = place.unwrap_or_else(|place| {
            all.reserve_exact(1);
            all.insert(place, (name, Arc::new(make())));
            place
        });
        Arc::make_mut(&mut all[place].1)
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.all_mut().iter_mut().map(|(_, value)| Arc::make_mut(value))
    }
}

impl<V: Serialize + DeserializeOwned + PartialEq> Shelf<V> {
    /// Makes it as small as it can be. Nothing is packed that would not come out again as it went in.
    pub fn pack(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.unpacked = OnceLock::new();
            return;
        }
        let loose: Vec<(&str, &V)> = self.loose.iter().map(|(name, value)| (name.as_str(), &**value)).collect();
        let bytes = if loose.is_empty() { None } else { pack(&loose) };
        if let Some(bytes) = bytes.filter(|bytes| unpack_all(bytes) == self.loose) {
            self.loose = Vec::new();
            self.packed = Some(Box::new(Packed { bytes: bytes.into(), unpack: unpack_all, unpacked: OnceLock::new() }));
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "it was unpacked once before it was kept; to believe that everything is gone would be worse"
)]
fn unpack_all<V: DeserializeOwned>(bytes: &[u8]) -> Values<V> {
    let all: Vec<(String, V)> = unpack(bytes).expect("what was packed can be unpacked");
    all.into_iter().map(|(name, value)| (name, Arc::new(value))).collect()
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
        fn it_is_read_as_a_map_is_packed_or_not(
            changes in proptest::collection::vec(("[a-d]{1,2}", any::<u8>(), any::<bool>(), any::<bool>()), 0..20)
        ) {
            let (mut shelf, mut map) = (Shelf::default(), BTreeMap::new());
            for (name, value, is_put, is_packed) in changes {
                if is_packed {
                    shelf.pack();
                    prop_assert!(shelf.is_closed());
                    shelf = shelf.clone();
                }
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
    fn what_is_packed_is_small_until_somebody_looks_and_a_copy_of_it_is_small_again() {
        let text = "the same words in every object, ".repeat(100);
        let mut shelf: Shelf<String> = (0..9).map(|number| (number.to_string(), text.clone())).collect();
        assert!(!shelf.is_closed());
        shelf.pack();
        let packed = shelf.packed.as_ref().unwrap();
        assert!(packed.bytes.len() < 300, "{}", packed.bytes.len());
        assert_eq!(shelf["3"], text);
        assert!(!shelf.is_closed() && shelf.clone().is_closed());
        shelf.pack();
        assert!(shelf.is_closed() && !shelf.is_empty());
    }

    #[test]
    fn a_value_is_made_only_when_there_is_none() {
        let mut shelf = Shelf::default();
        *shelf.get_or_insert_with("a".into(), || 1) += 1;
        *shelf.get_or_insert_with("a".into(), || 7) += 1;
        assert_eq!(shelf["a"], 3);
    }
}
