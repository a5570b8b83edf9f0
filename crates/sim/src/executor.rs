//! The executor: a list of tasks, of which the random stream picks the next ready one. Everything runs on one thread,
//! so that the seed decides the order of all events.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::random::SimRandom;
use cronhold_store::lock_mutex;

type ExecutorTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The owner of a task, which decides what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskOwner {
    /// The daemon process of a machine.
    Daemon { machine: usize },
    /// A program on a machine.
    Program { machine: usize },
    /// No owner: calls in transit and background tasks, which no crash ends.
    Detached,
}

/// The tasks of a simulation. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimExecutor(Arc<ExecutorState>);

#[derive(Default)]
struct ExecutorState {
    tasks: Mutex<TaskSlots>,
    /// Ready tasks, each at most once, in arbitrary order.
    ready: Arc<Mutex<Vec<ExecutorTaskId>>>,
}

/// The slot of a task, and the number of the task, because slots are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExecutorTaskId {
    slot: usize,
    count: u64,
}

/// Slots of tasks, which are reused when tasks end.
#[derive(Default)]
struct TaskSlots {
    slots: Vec<Option<TaskSlot>>,
    free: Vec<usize>,
    count: u64,
    /// Machines whose daemons are paused, each with its ready tasks.
    held: BTreeMap<usize, Vec<ExecutorTaskId>>,
}

struct TaskSlot {
    owner: TaskOwner,
    work: ExecutorTask,
    waker: Arc<TaskWaker>,
}

/// Marks a task as ready.
struct TaskWaker {
    id: ExecutorTaskId,
    is_ready: AtomicBool,
    ready: Arc<Mutex<Vec<ExecutorTaskId>>>,
}

impl SimExecutor {
    pub(crate) fn spawn(&self, owner: TaskOwner, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock_mutex(&self.0.tasks);
        let id = tasks.reserve();
        let waker = Arc::new(TaskWaker { id, is_ready: AtomicBool::new(false), ready: Arc::clone(&self.0.ready) });
        tasks.slots[id.slot] = Some(TaskSlot { owner, work: Box::pin(work), waker: Arc::clone(&waker) });
        drop(tasks);
        waker.wake();
    }

    /// Polls one ready task and returns its owner; `None` if no task is ready.
    pub(crate) fn step(&self, rng: &SimRandom) -> Option<TaskOwner> {
        loop {
            let id = {
                let mut ready = lock_mutex(&self.0.ready);
                if ready.is_empty() {
                    return None;
                }
                let index = rng.index(ready.len());
                ready.swap_remove(index)
            };
            let Some(mut task) = self.take(id) else { continue };
            task.waker.is_ready.store(false, Ordering::Relaxed);
            let owner = task.owner;
            let waker = Waker::from(Arc::clone(&task.waker));
            match task.work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => lock_mutex(&self.0.tasks).slots[id.slot] = Some(task),
                Poll::Ready(()) => lock_mutex(&self.0.tasks).free.push(id.slot),
            }
            return Some(owner);
        }
    }

    /// Pauses all tasks of the daemon of a machine.
    pub(crate) fn pause(&self, machine: usize) {
        lock_mutex(&self.0.tasks).held.entry(machine).or_default();
    }

    /// Resumes the tasks of the daemon of a machine.
    pub(crate) fn resume(&self, machine: usize) {
        let held = lock_mutex(&self.0.tasks).held.remove(&machine);
        lock_mutex(&self.0.ready).extend(held.into_iter().flatten());
    }

    /// Drops all tasks of an owner.
    pub(crate) fn end(&self, owner: TaskOwner) {
        self.end_all(|task| task.owner == owner);
    }

    /// Drops all tasks. They hold references to each other and would leak otherwise.
    pub(crate) fn clear(&self) {
        self.end_all(|_| true);
    }

    /// Takes a ready task out of its slot; `None` if it has ended or its daemon is paused.
    fn take(&self, id: ExecutorTaskId) -> Option<TaskSlot> {
        let mut tasks = lock_mutex(&self.0.tasks);
        let TaskSlots { slots, held, .. } = &mut *tasks;
        let slot = &mut slots[id.slot];
        let task = slot.as_ref().filter(|task| task.waker.id == id)?;
        if let TaskOwner::Daemon { machine } = task.owner
            && let Some(held) = held.get_mut(&machine)
        {
            held.push(id);
            return None;
        }
        slot.take()
    }

    fn end_all(&self, is_meant: impl Fn(&TaskSlot) -> bool) {
        let mut tasks = lock_mutex(&self.0.tasks);
        let TaskSlots { slots, free, .. } = &mut *tasks;
        let mut ended = Vec::new();
        for (slot, task) in slots.iter_mut().enumerate() {
            if let Some(task) = task.take_if(|task| is_meant(task)) {
                ended.push(task);
                free.push(slot);
            }
        }
        drop(tasks);
        // Dropping a task may wake others, which locks the list. So tasks are dropped after it is unlocked.
        drop(ended);
    }
}

impl TaskSlots {
    /// Reserves a slot for a new task.
    fn reserve(&mut self) -> ExecutorTaskId {
        self.count += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        ExecutorTaskId { slot, count: self.count }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            lock_mutex(&self.ready).push(self.id);
        }
    }
}

impl fmt::Debug for ExecutorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = lock_mutex(&self.tasks);
        write!(f, "{} tasks", tasks.slots.len() - tasks.free.len())
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::{Instant, Span};

    use super::*;
    use crate::time::SimTime;

    /// Runs all tasks and returns the order in which they finished.
    fn order(seed: u64) -> Vec<u64> {
        let (executor, time, rng) = (SimExecutor::default(), SimTime::new(Instant::EPOCH), SimRandom::new(seed));
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        for number in 0..5 {
            let (seen, time) = (Arc::clone(&seen), time.clone());
            let owner = if number == 4 { TaskOwner::Program { machine: 0 } } else { TaskOwner::Detached };
            executor.spawn(owner, async move {
                // Two tasks wait for one moment, two for a later one, and the last is ended before its own.
                time.sleep(Span::from_secs(1 + number / 2)).await;
                lock_mutex(&seen).push(number);
            });
        }
        loop {
            while executor.step(&rng).is_some() {}
            executor.end(TaskOwner::Program { machine: 0 });
            match time.next() {
                Some(next) => time.advance(next),
                None => break,
            }
        }
        assert_eq!(time.now(), Span::from_secs(2), "the alarm of the ended task is gone");
        std::mem::take(&mut *lock_mutex(&seen))
    }

    #[test]
    fn seed_orders_tasks_of_one_moment() {
        let orders: Vec<Vec<u64>> = (0..50).map(order).collect();
        for expected in [[0, 1, 2, 3], [0, 1, 3, 2], [1, 0, 2, 3], [1, 0, 3, 2]] {
            assert!(orders.contains(&expected.to_vec()), "{expected:?} never occurs");
        }
        assert!(orders.iter().all(|order| order[..2].iter().sum::<u64>() == 1 && order.len() == 4), "{orders:?}");
        assert_eq!(orders[7], order(7), "a seed gives one order");
    }

    #[test]
    fn pause_holds_only_the_tasks_of_its_daemon() {
        let (executor, rng) = (SimExecutor::default(), SimRandom::new(1));
        let seen: Arc<Mutex<Vec<&str>>> = Arc::default();
        executor.pause(0);
        for (owner, name) in [
            (TaskOwner::Daemon { machine: 0 }, "paused"),
            (TaskOwner::Daemon { machine: 1 }, "other"),
            (TaskOwner::Program { machine: 0 }, "program"),
        ] {
            let seen = Arc::clone(&seen);
            executor.spawn(owner, async move { lock_mutex(&seen).push(name) });
        }
        while executor.step(&rng).is_some() {}
        lock_mutex(&seen).sort_unstable();
        assert_eq!(*lock_mutex(&seen), ["other", "program"]);
        executor.resume(0);
        while executor.step(&rng).is_some() {}
        assert_eq!(*lock_mutex(&seen), ["other", "program", "paused"]);
    }
}
