//! The executor: a list of tasks, of which chance picks the next one that can go on. Everything happens on one thread,
//! so a seed decides the order of all events.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::chance::Chance;

/// What can be run.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whose a task is, and so what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
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
pub(crate) struct Executor(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tasks: Mutex<BTreeMap<u64, Task>>,
    /// Tasks that can go on, each once, in the order in which they were woken.
    ready: Arc<Mutex<Vec<u64>>>,
    count: Mutex<u64>,
}

struct Task {
    whose: Whose,
    work: Work,
    bell: Arc<Bell>,
}

/// Notes that a task can go on.
struct Bell {
    id: u64,
    has_rung: AtomicBool,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Executor {
    /// Adds a task.
    pub(crate) fn spawn(&self, whose: Whose, work: impl Future<Output = ()> + Send + 'static) {
        let id = {
            let mut count = lock(&self.0.count);
            *count += 1;
            *count
        };
        let bell = Arc::new(Bell { id, has_rung: AtomicBool::new(false), ready: Arc::clone(&self.0.ready) });
        let task = Task { whose, work: Box::pin(work), bell: Arc::clone(&bell) };
        lock(&self.0.tasks).insert(id, task);
        bell.wake();
    }

    /// Lets one task that can go on do so, and says whose it was; nothing, when none can.
    pub(crate) fn step(&self, chance: &Chance) -> Option<Whose> {
        loop {
            let id = {
                let mut ready = lock(&self.0.ready);
                if ready.is_empty() {
                    return None;
                }
                let place = chance.index(ready.len());
                ready.remove(place)
            };
            // A task that was ended may still have been woken.
            let Some(mut task) = lock(&self.0.tasks).remove(&id) else { continue };
            task.bell.has_rung.store(false, Ordering::Relaxed);
            let whose = task.whose;
            let waker = Waker::from(Arc::clone(&task.bell));
            if task.work.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
                lock(&self.0.tasks).insert(id, task);
            }
            return Some(whose);
        }
    }

    /// Ends all tasks of somebody at once, wherever they are.
    pub(crate) fn end(&self, whose: Whose) {
        let mut tasks = lock(&self.0.tasks);
        let ids: Vec<u64> = tasks.iter().filter(|(_, task)| task.whose == whose).map(|(id, _)| *id).collect();
        let ended: Vec<Task> = ids.iter().filter_map(|id| tasks.remove(id)).collect();
        drop(tasks);
        // What a task holds may wake others, so it is let go of after the list.
        drop(ended);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::Relaxed) {
            lock(&self.ready).push(self.id);
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks", lock(&self.tasks).len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::{Instant, Span};

    use super::*;
    use crate::time::Time;

    /// Lets everything happen and tells in which order it did.
    fn order(seed: u64) -> Vec<u64> {
        let (executor, time, chance) = (Executor::default(), Time::new(Instant::EPOCH), Chance::new(seed));
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        for number in 0..5 {
            let (seen, time) = (Arc::clone(&seen), time.clone());
            let whose = if number == 4 { Whose::Program { machine: 0 } } else { Whose::Nobody };
            executor.spawn(whose, async move {
                // Two wait for one moment, two for a later one, and one does not live to see its own.
                time.sleep(Span::from_secs(1 + number / 2)).await;
                lock(&seen).push(number);
            });
        }
        loop {
            while executor.step(&chance).is_some() {}
            executor.end(Whose::Program { machine: 0 });
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
}
