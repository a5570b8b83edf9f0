//! A map with few entries, ordered by name. A job has several such maps, and there may be a million jobs: a `BTreeMap`
//! with one entry takes the memory of eleven.

use std::fmt;

use serde::{Serialize, Serializer};

/// A map with few entries, ordered by name.
#[derive(Clone, PartialEq, Eq)]
pub struct NameMap<V>(Box<[(String, V)]>);

impl<V> NameMap<V> {
    /// A map without entries.
    pub fn new() -> Self {
        Self(Box::default())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        let place = self.0.binary_search_by(|(own, _)| own.as_str().cmp(name)).ok()?;
        Some(&self.0[place].1)
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &V)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The names in order.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl<V> Default for NameMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Of several values for one name, the last counts.
impl<V> FromIterator<(String, V)> for NameMap<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(entries: I) -> Self {
        let mut entries: Vec<(String, V)> = entries.into_iter().collect();
        // The sort is stable, and the first of equal names is kept.
        entries.reverse();
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        entries.dedup_by(|(later, _), (first, _)| later == first);
        Self(entries.into_boxed_slice())
    }
}

impl<V, const N: usize> From<[(String, V); N]> for NameMap<V> {
    fn from(entries: [(String, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<V> Extend<(String, V)> for NameMap<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, entries: I) {
        *self = std::mem::take(self).0.into_iter().chain(entries).collect();
    }
}

impl<'a, V> IntoIterator for &'a NameMap<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (String, V)>, fn(&'a (String, V)) -> (&'a String, &'a V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl<V: fmt::Debug> fmt::Debug for NameMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<V: Serialize> Serialize for NameMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_ordered_and_the_last_value_of_a_name_counts() {
        let mut map: NameMap<u8> =
            [("b", 1), ("a", 2), ("b", 3)].map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        assert_eq!(format!("{map:?}"), r#"{"a": 2, "b": 3}"#);
        map.extend([("c".to_owned(), 4), ("a".to_owned(), 5)]);
        assert_eq!((map.get("a"), map.get("d"), map.contains_key("c")), (Some(&5), None, true));
        assert_eq!(map.keys().map(String::as_str).collect::<String>(), "abc");
        assert_eq!(serde_json::to_string(&map).expect("JSON"), r#"{"a":5,"b":3,"c":4}"#);
        assert!(NameMap::<u8>::new().is_empty() && !map.is_empty());
    }
}
