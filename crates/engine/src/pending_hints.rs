//! Records that other nodes have changed and that this node has not reloaded yet. Change notifications may be lost, and
//! too many of them are dropped: the watchdog finds what they would have shown.

use std::collections::BTreeSet;

use cronhold_core::record::{RecordKey, RecordKind};

/// Records that are reloaded at once.
const RELOAD_MAX: usize = 1_000;
/// Records that may wait to be reloaded. If there are more, the node reads everything again.
const PENDING_MAX: usize = 50_000;

/// Records that other nodes have changed.
#[derive(Debug, Default)]
pub(crate) struct PendingHints {
    keys: BTreeSet<RecordKey>,
    has_overflowed: bool,
}

impl PendingHints {
    /// Adds a record, if changes of its kind concern the plan of a node.
    pub(crate) fn insert(&mut self, key: RecordKey) {
        if !matches!(
            key.kind(),
            RecordKind::Cursor
                | RecordKind::Backlog
                | RecordKind::Run
                | RecordKind::Action
                | RecordKind::Triggers
                | RecordKind::JobState
                | RecordKind::Pause
                | RecordKind::Node
        ) {
            return;
        }
        self.keys.insert(key);
        if self.keys.len() > PENDING_MAX {
            self.keys.clear();
            self.has_overflowed = true;
        }
    }

    /// The records to reload next. They stay until [`Self::remove`].
    pub(crate) fn next_batch(&self) -> Vec<RecordKey> {
        self.keys.iter().take(RELOAD_MAX).cloned().collect()
    }

    /// Removes a record that was reloaded.
    pub(crate) fn remove(&mut self, key: &RecordKey) {
        self.keys.remove(key);
    }

    /// Whether a record waits to be reloaded.
    pub(crate) fn contains(&self, key: &RecordKey) -> bool {
        self.keys.contains(key)
    }

    /// Whether no record waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether so many records have changed that the node has to read everything again.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }

    /// Records that the node has read everything again.
    pub(crate) fn clear_overflow(&mut self) {
        self.has_overflowed = false;
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::RunId;
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn too_many_changes_are_replaced_by_one_full_read() {
        let mut hints = PendingHints::default();
        let key = |number: usize| RecordKey::Run(RunId::from_key(Instant::from_secs(1), &number.to_string()));
        (0..PENDING_MAX).for_each(|number| hints.insert(key(number)));
        assert_eq!((hints.next_batch().len(), hints.has_overflowed()), (RELOAD_MAX, false));
        hints.insert(key(PENDING_MAX));
        assert!(hints.is_empty() && hints.has_overflowed());
    }
}
