//! The time that a node uses: its own clock if it is alone, the store's time if nodes share the store.

use cronhold_schedule::{Instant, Span};

use crate::clock_watch::{ClockStep, ClockWatch};
use crate::ports::MachineClock;
use crate::store_clock::StoreClock;

/// The time that a node uses.
#[derive(Debug)]
pub(crate) struct NodeClock {
    source: TimeSource,
    /// Whether the clock was set back, and the node has not checked its cursors since.
    has_stepped_back: bool,
    /// Whether the clock was ever set back.
    was_set_back: bool,
}

#[derive(Debug)]
enum TimeSource {
    /// The system clock, watched for steps.
    System(ClockWatch),
    /// The store's time.
    Store(StoreClock),
}

impl NodeClock {
    /// The clock of a node whose store is shared or not.
    pub(crate) fn new(is_shared: bool) -> Self {
        let source = match is_shared {
            true => TimeSource::Store(StoreClock::default()),
            false => TimeSource::System(ClockWatch::default()),
        };
        Self { source, has_stepped_back: false, was_set_back: false }
    }

    /// The current time, and the step of the clock since the last call, if there was one.
    pub(crate) fn read(&mut self, clock: &dyn MachineClock) -> (Instant, Option<ClockStep>) {
        let (now, step) = match &mut self.source {
            TimeSource::System(watch) => {
                let now = clock.now();
                (now, watch.check(now, clock.uptime()))
            }
            TimeSource::Store(store) => store.read(clock.uptime()),
        };
        let is_step_back = step.is_some_and(|step| !step.forward);
        self.has_stepped_back |= is_step_back;
        self.was_set_back |= is_step_back;
        (now, step)
    }

    /// Records the store's time, which was requested and received at two uptimes.
    pub(crate) fn record_store_time(&mut self, requested: Span, received: Span, time: Instant) {
        if let TimeSource::Store(store) = &mut self.source {
            store.record(requested, received, time);
        }
    }

    /// How long the node may not claim anything; `None` if it may.
    pub(crate) fn hold(&mut self, uptime: Span) -> Option<Span> {
        match &mut self.source {
            TimeSource::System(watch) => watch.hold(uptime),
            TimeSource::Store(store) => store.hold(uptime),
        }
    }

    /// Whether the clock was set back and cursors may be too far ahead.
    pub(crate) fn has_stepped_back(&self) -> bool {
        self.has_stepped_back
    }

    /// Whether the clock was set back since the node has started, so that a time in a record may be from before.
    pub(crate) fn was_set_back(&self) -> bool {
        self.was_set_back
    }

    /// Records that the node has checked its cursors.
    pub(crate) fn clear_step_back(&mut self) {
        self.has_stepped_back = false;
    }
}
