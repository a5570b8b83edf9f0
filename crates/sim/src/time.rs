//! Virtual time: it stands still while anything can go on, and jumps to the next moment that somebody waits for when
//! nothing can.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Pending;

/// The time of a simulation. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimTime {
    /// The true time of day at which the simulation begins.
    start: Instant,
    inner: Arc<Mutex<SimTimeState>>,
}

#[derive(Debug, Default)]
struct SimTimeState {
    now: Span,
    /// Who waits for what; the number tells those apart that wait for the same moment.
    alarms: BTreeMap<(Span, u64), Waker>,
    count: u64,
}

/// An alarm that goes with its sleeper.
#[derive(Debug)]
pub(crate) struct SimAlarm<'a> {
    time: &'a SimTime,
    key: (Span, u64),
}

impl SimTime {
    /// A simulation begins at that time of day.
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, inner: Arc::default() }
    }

    /// How long the simulation has lasted.
    pub(crate) fn now(&self) -> Span {
        self.lock().now
    }

    /// The true time of day, which stores have; the clocks of nodes may be wrong.
    pub(crate) fn day(&self) -> Instant {
        self.start.plus(self.now())
    }

    /// Waits.
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

    /// Wakes somebody then, once.
    pub(crate) fn wake_at(&self, at: Span, waker: &Waker) -> u64 {
        let mut inner = self.lock();
        inner.count += 1;
        let count = inner.count;
        inner.alarms.insert((at, count), waker.clone());
        count
    }

    /// The next moment that somebody waits for.
    pub(crate) fn next(&self) -> Option<Span> {
        self.lock().alarms.first_key_value().map(|((at, _), _)| *at)
    }

    /// Goes to a moment and wakes everybody who waits for it.
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
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> SimAlarm<'a> {
    /// Wakes somebody then, unless the alarm is gone by then.
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

/// The clock of a machine or of a store. It may be a little wrong all the time, and somebody may set it.
#[derive(Debug)]
pub(crate) struct WallClock {
    time: SimTime,
    /// How far it is ahead, in microseconds.
    ahead: AtomicI64,
}

impl WallClock {
    /// A clock that is so many microseconds ahead.
    pub(crate) fn new(time: SimTime, ahead: i64) -> Self {
        Self { time, ahead: AtomicI64::new(ahead) }
    }

    /// Sets it, to be so many microseconds ahead.
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
