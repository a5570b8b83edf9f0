//! The executor: a list of tasks, of which chance picks the next one that can go on. Everything happens on one thread,
//! so a seed decides the order of all events.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::chance::SimRandom;

/// What can be run.
type ExecutorTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whose a task is, and so what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskOwner {
    /// One life of the daemon of a machine.
    Daemon {
        /// Which machine.
        machine: usize,
    },
    /// A program on a machine.
    Program {
        /// Which machine.
        machine: usize,
    },
    /// What is on its way to the store or waits beside everything: no crash ends it.
    Nobody,
}

/// The tasks of a simulation. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimExecutor(Arc<ExecutorState>);

#[derive(Default)]
struct ExecutorState {
    tasks: Mutex<TaskSlots>,
    /// Tasks that can go on, each once, in no order that matters.
    ready: Arc<Mutex<Vec<TaskId>>>,
}

/// Where a task is, and which of those that have been there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TaskId {
    place: usize,
    count: u64,
}

/// Tasks in places, which are used again when tasks have ended.
#[derive(Default)]
struct TaskSlots {
    places: Vec<Option<TaskSlot>>,
    free: Vec<usize>,
    count: u64,
    /// Machines whose daemons are paused, each with what of it could go on.
    held: BTreeMap<usize, Vec<TaskId>>,
}

struct TaskSlot {
    whose: TaskOwner,
    work: ExecutorTask,
    bell: Arc<TaskWaker>,
}

/// Notes that a task can go on.
struct TaskWaker {
    id: TaskId,
    has_rung: AtomicBool,
    ready: Arc<Mutex<Vec<TaskId>>>,
}

impl SimExecutor {
    /// Adds a task.
    pub(crate) fn spawn(&self, whose: TaskOwner, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0.tasks);
        let id = tasks.room();
        let bell = Arc::new(TaskWaker { id, has_rung: AtomicBool::new(false), ready: Arc::clone(&self.0.ready) });
        tasks.places[id.place] = Some(TaskSlot { whose, work: Box::pin(work), bell: Arc::clone(&bell) });
        drop(tasks);
        bell.wake();
    }

    /// Lets one task that can go on do so, and says whose it was; nothing, when none can.
    pub(crate) fn step(&self, chance: &SimRandom) -> Option<TaskOwner> {
        loop {
            let id = {
                let mut ready = lock(&self.0.ready);
                if ready.is_empty() {
                    return None;
                }
                let place = chance.index(ready.len());
                ready.swap_remove(place)
            };
            let Some(mut task) = self.take(id) else { continue };
            task.bell.has_rung.store(false, Ordering::Relaxed);
            let whose = task.whose;
            let waker = Waker::from(Arc::clone(&task.bell));
            match task.work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => lock(&self.0.tasks).places[id.place] = Some(task),
                Poll::Ready(()) => lock(&self.0.tasks).free.push(id.place),
            }
            return Some(whose);
        }
    }

    /// Holds all tasks of the daemon of a machine where they are.
    pub(crate) fn pause(&self, machine: usize) {
        lock(&self.0.tasks).held.entry(machine).or_default();
    }

    /// Lets them go on.
    pub(crate) fn resume(&self, machine: usize) {
        let held = lock(&self.0.tasks).held.remove(&machine);
        lock(&self.0.ready).extend(held.into_iter().flatten());
    }

    /// Ends all tasks of somebody at once, wherever they are.
    pub(crate) fn end(&self, whose: TaskOwner) {
        self.end_all(|task| task.whose == whose);
    }

    /// Ends all tasks. They hold each other, so nobody would let go of them otherwise.
    pub(crate) fn clear(&self) {
        self.end_all(|_| true);
    }

    /// Takes out a task that can go on; nothing, if it was ended meanwhile or is held.
    fn take(&self, id: TaskId) -> Option<TaskSlot> {
        let mut tasks = lock(&self.0.tasks);
        let TaskSlots { places, held, .. } = &mut *tasks;
        let place = &mut places[id.place];
        let task = place.as_ref().filter(|task| task.bell.id == id)?;
        if let TaskOwner::Daemon { machine } = task.whose
            && let Some(held) = held.get_mut(&machine)
        {
            held.push(id);
            return None;
        }
        place.take()
    }

    fn end_all(&self, is_meant: impl Fn(&TaskSlot) -> bool) {
        let mut tasks = lock(&self.0.tasks);
        let TaskSlots { places, free, .. } = &mut *tasks;
        let mut ended = Vec::new();
        for (place, task) in places.iter_mut().enumerate() {
            if let Some(task) = task.take_if(|task| is_meant(task)) {
                ended.push(task);
                free.push(place);
            }
        }
        drop(tasks);
        // What a task holds may wake others, so it is let go of after the list.
        drop(ended);
    }
}

impl TaskSlots {
    /// A place for a new task.
    fn room(&mut self) -> TaskId {
        self.count += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        TaskId { place, count: self.count }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::Relaxed) {
            lock(&self.ready).push(self.id);
        }
    }
}

impl fmt::Debug for ExecutorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = lock(&self.tasks);
        write!(f, "{} tasks", tasks.places.len() - tasks.free.len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::{Instant, Span};

    use super::*;
    use crate::time::SimTime;

    /// Lets everything happen and tells in which order it did.
    fn order(seed: u64) -> Vec<u64> {
        let (executor, time, chance) = (SimExecutor::default(), SimTime::new(Instant::EPOCH), SimRandom::new(seed));
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        for number in 0..5 {
            let (seen, time) = (Arc::clone(&seen), time.clone());
            let whose = if number == 4 { TaskOwner::Program { machine: 0 } } else { TaskOwner::Nobody };
            executor.spawn(whose, async move {
                // Two wait for one moment, two for a later one, and one does not live to see its own.
                time.sleep(Span::from_secs(1 + number / 2)).await;
                lock(&seen).push(number);
            });
        }
        loop {
            while executor.step(&chance).is_some() {}
            executor.end(TaskOwner::Program { machine: 0 });
            match time.next() {
                Some(next) => time.advance(next),
                None => break,
            }
        }
        assert_eq!(time.now(), Span::from_secs(2), "the alarm of a task that was ended is gone");
        std::mem::take(&mut *lock(&seen))
    }

    #[test]
    fn chance_orders_what_happens_at_one_moment_and_time_the_rest() {
        let orders: Vec<Vec<u64>> = (0..50).map(order).collect();
        for expected in [[0, 1, 2, 3], [0, 1, 3, 2], [1, 0, 2, 3], [1, 0, 3, 2]] {
            assert!(orders.contains(&expected.to_vec()), "{expected:?} never happens");
        }
        assert!(orders.iter().all(|order| order[..2].iter().sum::<u64>() == 1 && order.len() == 4), "{orders:?}");
        assert_eq!(orders[7], order(7), "a seed means one order");
    }

    #[test]
    fn a_daemon_that_is_paused_goes_on_later_and_others_at_once() {
        let (executor, chance) = (SimExecutor::default(), SimRandom::new(1));
        let seen: Arc<Mutex<Vec<&str>>> = Arc::default();
        executor.pause(0);
        for (whose, name) in [
            (TaskOwner::Daemon { machine: 0 }, "paused"),
            (TaskOwner::Daemon { machine: 1 }, "other"),
            (TaskOwner::Program { machine: 0 }, "program"),
        ] {
            let seen = Arc::clone(&seen);
            executor.spawn(whose, async move { lock(&seen).push(name) });
        }
        while executor.step(&chance).is_some() {}
        lock(&seen).sort_unstable();
        assert_eq!(*lock(&seen), ["other", "program"]);
        executor.resume(0);
        while executor.step(&chance).is_some() {}
        assert_eq!(*lock(&seen), ["other", "program", "paused"]);
    }
}
