//! The threads that deliver actions. They are started when there is something to deliver, and end when there is not.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cronhold_core::command::DeliveryResult;
use cronhold_core::policy::delivery::QUEUE_WAIT;
use cronhold_core::record::ActionRecord;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

use super::{DeliveryReport, Sender};

/// Threads in all.
const THREADS_MAX: usize = 32;
/// Attempts to one receiver at a time.
const PER_RECEIVER_MAX: usize = 4;
/// A thread without work ends after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Receives the results of attempts.
pub(crate) type ReportFn = Arc<dyn Fn(DeliveryReport) + Send + Sync>;

/// The threads and what waits for them. Clones share them.
#[derive(Clone)]
pub(crate) struct DeliveryPool(Arc<PoolShared>);

struct PoolShared {
    sender: Sender,
    clock: Arc<dyn MachineClock>,
    report: ReportFn,
    state: Mutex<PoolState>,
    wakeup: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    queue: VecDeque<QueuedAttempt>,
    /// Attempts under way, by receiver.
    busy: BTreeMap<String, usize>,
    threads: usize,
    idle: usize,
}

#[derive(Debug)]
struct QueuedAttempt {
    action: Arc<ActionRecord>,
    receiver: String,
    /// The uptime after which another node may make the attempt.
    begin_by: Span,
}

impl DeliveryPool {
    pub(crate) fn new(sender: Sender, clock: Arc<dyn MachineClock>, report: ReportFn) -> Self {
        let (state, wakeup) = (Mutex::default(), Condvar::new());
        Self(Arc::new(PoolShared { sender, clock, report, state, wakeup }))
    }

    /// Queues an attempt.
    pub(crate) fn submit(&self, action: Arc<ActionRecord>) {
        let receiver = self.0.sender.receiver(&action);
        let begin_by = self.0.clock.uptime().plus(QUEUE_WAIT);
        let mut state = lock_mutex(&self.0.state);
        state.queue.push_back(QueuedAttempt { action, receiver, begin_by });
        let needs_thread = state.idle < state.queue.len() && state.threads < THREADS_MAX;
        state.threads += usize::from(needs_thread);
        drop(state);
        if needs_thread {
            let shared = Arc::clone(&self.0);
            let spawned = std::thread::Builder::new().name("delivery".to_owned()).spawn(move || shared.work());
            if spawned.is_err() {
                // Another thread makes the attempt, or its lease ends.
                lock_mutex(&self.0.state).threads -= 1;
            }
        }
        self.0.wakeup.notify_one();
    }
}

impl PoolShared {
    /// The loop of a thread.
    fn work(&self) {
        while let Some(attempt) = self.next() {
            let result = if self.clock.uptime() > attempt.begin_by {
                DeliveryResult::Failed("this node was busy with other deliveries".to_owned())
            } else {
                self.sender.send(&attempt.action)
            };
            self.finish(&attempt.receiver);
            let (action, attempt) = (attempt.action.id, attempt.action.attempts);
            (self.report)(DeliveryReport { action, attempt, result });
        }
    }

    /// Waits for an attempt whose receiver has room; `None` if there was none for a while.
    fn next(&self) -> Option<QueuedAttempt> {
        let mut state = lock_mutex(&self.state);
        loop {
            if let Some(attempt) = state.take() {
                return Some(attempt);
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

    fn finish(&self, receiver: &str) {
        let mut state = lock_mutex(&self.state);
        if let Some(busy) = state.busy.get_mut(receiver) {
            *busy -= 1;
            if *busy == 0 {
                state.busy.remove(receiver);
            }
        }
    }
}

impl PoolState {
    /// Takes the first attempt whose receiver has room.
    fn take(&mut self) -> Option<QueuedAttempt> {
        let has_room =
            |attempt: &QueuedAttempt| self.busy.get(&attempt.receiver).is_none_or(|busy| *busy < PER_RECEIVER_MAX);
        let place = self.queue.iter().position(has_room)?;
        let attempt = self.queue.remove(place)?;
        *self.busy.entry(attempt.receiver.clone()).or_default() += 1;
        Some(attempt)
    }
}

impl fmt::Debug for DeliveryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliveryPool({:?})", lock_mutex(&self.0.state))
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::job::{ActionKind, RunEvent};
    use cronhold_core::record::{ActionId, ActionStatus, ResolvedAction};
    use cronhold_core::{JobId, RunId};
    use cronhold_schedule::Instant;

    use super::*;

    fn attempt(receiver: &str, number: u32) -> QueuedAttempt {
        let action = ActionRecord {
            id: ActionId::new(RunId::from_key(Instant::EPOCH, receiver), number),
            job: JobId::parse("j").expect("an id"),
            event: RunEvent::Finished,
            created: Instant::EPOCH,
            work: ResolvedAction::Invalid(ActionKind::Webhook),
            attempts: 1,
            failures: 0,
            error: None,
            status: ActionStatus::Done { at: Instant::EPOCH },
        };
        QueuedAttempt { action: Arc::new(action), receiver: receiver.to_owned(), begin_by: Span::ZERO }
    }

    #[test]
    fn hanging_receiver_does_not_hold_up_the_others() {
        let mut state = PoolState::default();
        state.queue.extend((0..10).map(|number| attempt("hangs", number)));
        state.queue.extend((0..2).map(|number| attempt("works", number)));
        let taken: Vec<String> = std::iter::from_fn(|| state.take()).map(|attempt| attempt.receiver).collect();
        assert_eq!(taken, ["hangs", "hangs", "hangs", "hangs", "works", "works"]);
        assert_eq!(state.queue.len(), 6);
        state.busy.insert("hangs".to_owned(), PER_RECEIVER_MAX - 1);
        assert_eq!(state.take().map(|attempt| attempt.action.id.number), Some(4));
        assert!(state.take().is_none());
    }
}
