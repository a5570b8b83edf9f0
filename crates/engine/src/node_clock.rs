//! What time it is for a node: its own clock where it is alone, the store's where it is not.

use cronhold_schedule::{Instant, Span};

use crate::clock_watch::{ClockWatch, Step};
use crate::ports::Clock;
use crate::store_clock::StoreClock;

/// The time that a node goes by.
#[derive(Debug)]
pub(crate) enum NodeClock {
    /// The clock on its wall, watched for steps.
    Own(ClockWatch),
    /// The store's.
    Store(StoreClock),
}

impl NodeClock {
    /// The time of a node whose store is shared or not.
    pub(crate) fn new(is_shared: bool) -> Self {
        if is_shared { Self::Store(StoreClock::default()) } else { Self::Own(ClockWatch::default()) }
    }

    /// What time it is, and whether the time has made a step.
    pub(crate) fn look(&mut self, clock: &dyn Clock) -> (Instant, Option<Step>) {
        match self {
            Self::Own(watch) => {
                let now = clock.now();
                (now, watch.look(now, clock.uptime()))
            }
            Self::Store(store) => store.look(clock.uptime()),
        }
    }

    /// The store has said its time.
    pub(crate) fn answered(&mut self, asked: Span, heard: Span, time: Instant) {
        if let Self::Store(store) = self {
            store.answered(asked, heard, time);
        }
    }

    /// How long nothing may be claimed; nothing, when all is well.
    pub(crate) fn hold(&mut self, uptime: Span) -> Option<Span> {
        match self {
            Self::Own(watch) => watch.hold(uptime),
            Self::Store(store) => store.hold(uptime),
        }
    }
}
