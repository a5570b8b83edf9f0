//! Threads for work that blocks, such as requests: they are started when there is something to do, and end when there is
//! not. Work belongs to a group, such as the server of a request. A group that hangs holds its own share of the threads
//! and no more.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cronhold_store::lock_mutex;

/// A thread without work ends after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// The limits of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolLimits {
    /// Threads in all.
    pub(crate) threads: usize,
    /// Tasks of one group at a time.
    pub(crate) per_group: usize,
}

/// Carries out a task. It may block.
type WorkFn<T> = Box<dyn Fn(T) + Send + Sync>;

/// The threads and what waits for them. Clones share them.
pub(crate) struct WorkerPool<T>(Arc<WorkerPoolShared<T>>);

struct WorkerPoolShared<T> {
    name: &'static str,
    limits: PoolLimits,
    work: WorkFn<T>,
    state: Mutex<WorkerPoolState<T>>,
    wakeup: Condvar,
}

struct WorkerPoolState<T> {
    queue: VecDeque<QueuedTask<T>>,
    /// Tasks under way, by group.
    busy: BTreeMap<String, usize>,
    threads: usize,
    idle: usize,
}

struct QueuedTask<T> {
    group: String,
    task: T,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// A pool whose threads have a name and carry out tasks with `work`.
    pub(crate) fn new(name: &'static str, limits: PoolLimits, work: WorkFn<T>) -> Self {
        let state = WorkerPoolState { queue: VecDeque::new(), busy: BTreeMap::new(), threads: 0, idle: 0 };
        Self(Arc::new(WorkerPoolShared { name, limits, work, state: Mutex::new(state), wakeup: Condvar::new() }))
    }

    /// Queues a task of a group.
    pub(crate) fn submit(&self, group: String, task: T) {
        let mut state = lock_mutex(&self.0.state);
        state.queue.push_back(QueuedTask { group, task });
        let needs_thread = state.idle < state.queue.len() && state.threads < self.0.limits.threads;
        state.threads += usize::from(needs_thread);
        drop(state);
        if needs_thread {
            let shared = Arc::clone(&self.0);
            let spawned = std::thread::Builder::new().name(self.0.name.to_owned()).spawn(move || shared.work());
            if spawned.is_err() {
                // Another thread carries the task out, or the next task starts one.
                lock_mutex(&self.0.state).threads -= 1;
            }
        }
        self.0.wakeup.notify_one();
    }
}

impl<T> WorkerPoolShared<T> {
    /// The loop of a thread.
    fn work(&self) {
        while let Some(QueuedTask { group, task }) = self.next() {
            (self.work)(task);
            self.finish(&group);
        }
    }

    /// Waits for a task whose group has room; `None` if there was none for a while.
    fn next(&self) -> Option<QueuedTask<T>> {
        let mut state = lock_mutex(&self.state);
        loop {
            if let Some(task) = state.take(self.limits.per_group) {
                return Some(task);
            }
            state.idle += 1;
            let (woken, timeout) =
                self.wakeup.wait_timeout(state, IDLE_MAX).unwrap_or_else(std::sync::PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn finish(&self, group: &str) {
        let mut state = lock_mutex(&self.state);
        if let Some(busy) = state.busy.get_mut(group) {
            *busy -= 1;
            if *busy == 0 {
                state.busy.remove(group);
            }
        }
    }
}

impl<T> WorkerPoolState<T> {
    /// Takes the first task whose group has room.
    fn take(&mut self, per_group: usize) -> Option<QueuedTask<T>> {
        let has_room = |queued: &QueuedTask<T>| self.busy.get(&queued.group).is_none_or(|busy| *busy < per_group);
        let place = self.queue.iter().position(has_room)?;
        let queued = self.queue.remove(place)?;
        *self.busy.entry(queued.group.clone()).or_default() += 1;
        Some(queued)
    }
}

impl<T> Clone for WorkerPool<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for WorkerPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock_mutex(&self.0.state);
        f.debug_struct("WorkerPool")
            .field("name", &self.0.name)
            .field("queued", &state.queue.len())
            .field("busy", &state.busy)
            .field("threads", &state.threads)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_that_hangs_does_not_hold_up_the_others() {
        let queue = (0..10).map(|number| ("hangs", number)).chain((10..12).map(|number| ("works", number)));
        let queue = queue.map(|(group, task)| QueuedTask { group: group.to_owned(), task }).collect();
        let mut state = WorkerPoolState { queue, busy: BTreeMap::new(), threads: 0, idle: 0 };
        let taken: Vec<String> = std::iter::from_fn(|| state.take(4)).map(|queued| queued.group).collect();
        assert_eq!(taken, ["hangs", "hangs", "hangs", "hangs", "works", "works"]);
        assert_eq!(state.queue.len(), 6);
        state.busy.insert("hangs".to_owned(), 3);
        assert_eq!(state.take(4).map(|queued| queued.task), Some(4));
        assert!(state.take(4).is_none());
    }
}
