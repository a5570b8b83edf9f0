//! A table of changes whose latest ones can be undone.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Changes by key.
#[derive(Debug)]
pub(super) struct UndoTable<K, V> {
    rows: BTreeMap<K, V>,
    /// What was there before each change since the last [`Self::keep`].
    before: Vec<(K, Option<V>)>,
}

impl<K: Ord + Clone, V> UndoTable<K, V> {
    pub(super) const fn new() -> Self {
        Self { rows: BTreeMap::new(), before: Vec::new() }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        let before = self.rows.insert(key.clone(), value);
        self.before.push((key, before));
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn range(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        self.rows.range(keys)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    /// Keeps the changes so far.
    pub(super) fn keep(&mut self) {
        self.before.clear();
    }

    /// The number of changes that can be undone.
    pub(super) const fn depth(&self) -> usize {
        self.before.len()
    }

    /// Undoes the changes until this many remain.
    pub(super) fn undo_to(&mut self, depth: usize) {
        while self.before.len() > depth {
            let Some((key, before)) = self.before.pop() else { break };
            match before {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}
