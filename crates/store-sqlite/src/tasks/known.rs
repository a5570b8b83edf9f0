//! Tasks that a transaction has read or changed. A unit reads and changes the same task several times; its row is read
//! once, and written once before another query needs it or the unit ends.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{TaskId, TaskRecord};

/// Tasks that are remembered. Further ones replace them all.
const KNOWN_TASKS_MAX: usize = 256;

/// The tasks of one transaction.
#[derive(Debug, Default)]
pub(super) struct KnownTasks {
    tasks: BTreeMap<TaskId, TaskRecord>,
    /// Tasks whose row has not been written.
    changed: BTreeSet<TaskId>,
}

impl KnownTasks {
    pub(super) fn get(&self, id: TaskId) -> Option<&TaskRecord> {
        self.tasks.get(&id)
    }

    /// Whether the changes have to be written before another task is added.
    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= KNOWN_TASKS_MAX
    }

    /// Remembers a task as it is stored.
    pub(super) fn add(&mut self, task: &TaskRecord) {
        if self.is_full() && self.changed.is_empty() {
            self.tasks.clear();
        }
        self.tasks.insert(task.id, task.clone());
    }

    /// Remembers a task whose row has to be written.
    pub(super) fn change(&mut self, task: &TaskRecord) {
        self.add(task);
        self.changed.insert(task.id);
    }

    pub(super) fn forget(&mut self, id: TaskId) {
        self.tasks.remove(&id);
        self.changed.remove(&id);
    }

    /// The tasks whose rows have to be written. They count as written.
    pub(super) fn take_changed(&mut self) -> Vec<TaskRecord> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|id| self.tasks.get(&id).cloned()).collect()
    }
}
