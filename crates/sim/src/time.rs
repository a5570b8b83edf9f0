//! Virtual time: it stands still while any task is ready, and jumps to the next alarm when none is.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Pending;
use cronhold_store::lock_mutex;

/// The time of a simulation. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimTime {
    /// The true time of day at the start of the simulation.
    start: Instant,
    inner: Arc<Mutex<SimTimeState>>,
}

#[derive(Debug, Default)]
struct SimTimeState {
    now: Span,
    /// Alarms by time. The number makes keys unique.
    alarms: BTreeMap<(Span, u64), Waker>,
    count: u64,
}

/// An alarm that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SimAlarm<'a> {
    time: &'a SimTime,
    key: (Span, u64),
}

impl SimTime {
    /// The time of a simulation that starts at `start`.
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, inner: Arc::default() }
    }

    /// Time since the start of the simulation.
    pub(crate) fn now(&self) -> Span {
        self.lock().now
    }

    /// The true time of day. Clocks of machines may be wrong.
    pub(crate) fn day(&self) -> Instant {
        self.start.plus(self.now())
    }

    pub(crate) async fn sleep(&self, span: Span) {
        let until = self.now().plus(span);
        let mut alarm = None;
        poll_fn(|context| {
            if self.now() >= until {
                return Poll::Ready(());
            }
            alarm = Some(SimAlarm::new(self, until, context.waker()));
            Poll::Pending
        })
        .await;
    }

    /// Registers a waker for a moment and returns the number of the alarm.
    pub(crate) fn wake_at(&self, at: Span, waker: &Waker) -> u64 {
        let mut inner = self.lock();
        inner.count += 1;
        let count = inner.count;
        inner.alarms.insert((at, count), waker.clone());
        count
    }

    /// The time of the next alarm.
    pub(crate) fn next(&self) -> Option<Span> {
        self.lock().alarms.first_key_value().map(|((at, _), _)| *at)
    }

    /// Advances to a moment and wakes all tasks whose alarms are due.
    pub(crate) fn advance(&self, to: Span) {
        let mut woken = Vec::new();
        let mut inner = self.lock();
        inner.now = inner.now.max(to);
        while let Some(alarm) = inner.alarms.first_entry().filter(|alarm| alarm.key().0 <= to) {
            woken.push(alarm.remove());
        }
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, SimTimeState> {
        lock_mutex(&self.inner)
    }
}

impl<'a> SimAlarm<'a> {
    /// Registers a waker for a moment.
    pub(crate) fn new(time: &'a SimTime, at: Span, waker: &Waker) -> Self {
        Self { time, key: (at, time.wake_at(at, waker)) }
    }
}

impl Drop for SimAlarm<'_> {
    fn drop(&mut self) {
        let waker = self.time.lock().alarms.remove(&self.key);
        drop(waker);
    }
}

/// The clock of a machine or of a store. It may be off, and events may set it.
#[derive(Debug)]
pub(crate) struct WallClock {
    time: SimTime,
    /// How far it is ahead of the true time, in microseconds.
    ahead: AtomicI64,
}

impl WallClock {
    /// A clock that is `ahead` microseconds ahead of the true time.
    pub(crate) fn new(time: SimTime, ahead: i64) -> Self {
        Self { time, ahead: AtomicI64::new(ahead) }
    }

    /// Sets the clock to `ahead` microseconds ahead of the true time.
    pub(crate) fn set(&self, ahead: i64) {
        self.ahead.store(ahead, Ordering::Relaxed);
    }
}

impl MachineClock for WallClock {
    fn now(&self) -> Instant {
        Instant::from_micros(self.time.day().micros() + self.ahead.load(Ordering::Relaxed))
    }

    fn uptime(&self) -> Span {
        self.time.now()
    }

    fn sleep(&self, span: Span) -> Pending<'_, ()> {
        Box::pin(self.time.sleep(span))
    }
}
