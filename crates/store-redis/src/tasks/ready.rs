//! Finds ready tasks at the end of a queue, and tasks whose time has come.

use cronhold_core::task::{ClassName, QueueName, TaskId, TaskRecord};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::{TaskEffects, TaskRows};

use super::RedisTaskError;
use super::changes::{DirectChange, ParsedEntries, TaskRowSet};
use super::facts::TaskFact;
use super::texts::{QueueEntry, seconds_text};

/// Entries that are read from the end of a queue at first. If all of them are for other workers, more are read.
pub(super) const FIRST_DEPTH: usize = 128;

/// The deepest place in a queue that is looked at.
const DEPTH_MAX: usize = 1 << 17;

/// How long a task waits whose lock is held by another client.
const LOCKED_WAIT: Span = Span::from_secs(1);

/// A sorted set of entries by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DueSet {
    Retry,
    Schedule,
}

/// What an entry at the end of a queue means now.
enum EntryUse {
    /// The task can be leased.
    Ready,
    /// It is for another worker, or its step has not ended yet.
    Keep,
    /// Nothing remains to be done.
    Drop,
}

impl DueSet {
    pub(super) const ALL: [Self; 2] = [Self::Retry, Self::Schedule];

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Schedule => "schedule",
        }
    }
}

impl TaskRowSet {
    /// An entry at the end of a queue, counted from the next one. More are read if `index` is beyond those that are known.
    pub(super) fn queue_entry_at(&mut self, queue: &QueueName, index: usize) -> Option<(QueueEntry, Vec<u8>)> {
        let mut depth = FIRST_DEPTH;
        while depth <= DEPTH_MAX {
            let entries = self.queue_entries(queue, depth)?;
            if let Some(entry) = entries.get(index) {
                return Some(entry.clone());
            }
            if entries.len() < depth {
                return None;
            }
            depth *= 8;
        }
        None
    }

    /// The last entries of a queue, the next one first. Each is parsed once.
    fn queue_entries(&mut self, queue: &QueueName, depth: usize) -> Option<&ParsedEntries> {
        let key = (queue.clone(), depth);
        if !self.queue_entries.contains_key(&key) {
            let values = self.fact(&TaskFact::Queue(queue.clone(), depth))?;
            let entries = values.iter().rev().map(|text| (QueueEntry::parse(text), text.clone())).collect();
            self.queue_entries.insert(key.clone(), entries);
        }
        self.queue_entries.get(&key)
    }

    /// The first ready task of a class, with its distance from the end of the queue.
    pub(super) fn first_ready_entry(
        &mut self,
        queue: &QueueName,
        class: &ClassName,
    ) -> Result<Option<(u64, TaskId)>, RedisTaskError> {
        let start = self.ready_from.get(&(queue.clone(), class.clone())).copied().unwrap_or(0);
        for index in start.. {
            let Some((entry, text)) = self.queue_entry_at(queue, index) else {
                return Ok(self.first_new_entry(queue, class).map(|id| (index as u64, id)));
            };
            self.ready_from.insert((queue.clone(), class.clone()), index);
            // The tasks of other classes are not even read.
            let id = match entry {
                QueueEntry::Task { id, class: of } if of == class.as_str() => id,
                _ => continue,
            };
            match self.use_of_entry(queue, class, id, &text)? {
                EntryUse::Ready => return Ok(Some((index as u64, id))),
                EntryUse::Keep => {}
                EntryUse::Drop => self.direct.put(DirectChange::DropEntry(queue.clone(), text), ()),
            }
        }
        Ok(None)
    }

    /// A task that has got its place in this batch, behind all that are stored.
    fn first_new_entry(&mut self, queue: &QueueName, class: &ClassName) -> Option<TaskId> {
        let is_new = |task: &TaskRecord| task.is_ready() && task.queue == *queue && task.class == *class;
        let new = self.new_ready.iter().filter(|(_, is_ready)| **is_ready).map(|(id, _)| *id);
        let new: Vec<TaskId> =
            new.filter(|id| matches!(self.tasks.get(id), Some(Some(task)) if is_new(task))).collect();
        new.into_iter().find(|id| {
            let stored = self.stored_task(*id).ok().flatten();
            stored.is_none_or(|stored| stored.task.entry.is_none() && stored.lock_is_free_or_own())
        })
    }

    fn use_of_entry(
        &mut self,
        queue: &QueueName,
        class: &ClassName,
        id: TaskId,
        text: &[u8],
    ) -> Result<EntryUse, RedisTaskError> {
        if self.direct.get(&DirectChange::DropEntry(queue.clone(), text.to_vec())).is_some() {
            return Ok(EntryUse::Keep);
        }
        // A damaged task does not stop the others.
        let Ok(stored) = self.stored_task(id) else { return Ok(EntryUse::Keep) };
        let is_locked = stored.is_some_and(|stored| stored.has_waiting_worker || !stored.lock_is_free_or_own());
        let Some(task) = self.task(id)? else {
            // Incomplete, or deleted.
            return Ok(EntryUse::Drop);
        };
        if task.queue != *queue || !task.status.is_pending() {
            let waits = task.lease.is_some() && task.entry.is_some();
            return Ok(if waits { EntryUse::Keep } else { EntryUse::Drop });
        }
        if task.lease.is_some() {
            return Ok(if task.entry.is_some() { EntryUse::Keep } else { EntryUse::Drop });
        }
        if task.class != *class {
            return Ok(EntryUse::Keep);
        }
        if is_locked {
            let run_at = Some(self.now.plus(LOCKED_WAIT));
            self.put_task(&TaskRecord { entry: None, run_at, ..task })?;
            return Ok(EntryUse::Drop);
        }
        // Its lease takes the entry out of the queue.
        self.ready_texts.insert(id, text.to_vec());
        Ok(EntryUse::Ready)
    }

    /// Tasks in a sorted set whose time has come. Entries of other clients are moved to their queues.
    pub(super) fn due_tasks(
        &mut self,
        set: DueSet,
        until: Instant,
        limit: usize,
    ) -> Result<Vec<TaskId>, RedisTaskError> {
        let mut due = Vec::new();
        let values = self.fact(&TaskFact::Scheduled(set.key(), seconds_text(until), limit)).cloned();
        for member in values.unwrap_or_default() {
            if let QueueEntry::Task { id, .. } = QueueEntry::parse(&member)
                && let Some(task) = self.task(id).ok().flatten()
                && task.run_at.is_some()
            {
                if task.run_at.is_some_and(|at| at <= until) {
                    due.push(id);
                }
                continue;
            }
            self.direct.put(DirectChange::MoveDue(set.key(), member), ());
        }
        Ok(due)
    }

    /// Lets those look again who wait for a queue into which this batch may have moved entries. The entries are not
    /// among those that the batch has read.
    pub(super) fn effects_of_moves(&self, queue: &QueueName) -> TaskEffects {
        let has_moved = self.direct.iter().any(|(change, ())| matches!(change, DirectChange::MoveDue(..)));
        let arrivals = has_moved.then(|| queue.clone()).into_iter().collect();
        TaskEffects { arrivals, messages: Vec::new() }
    }
}
