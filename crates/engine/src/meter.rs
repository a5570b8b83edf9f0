//! Counters of a node. They only grow, and anyone may read them at any time.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! meter {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a node.
        #[derive(Debug, Default)]
        pub struct Meter {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
        }

        /// What the counters said at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Reading {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Meter {
            /// Reads all of them.
            pub fn read(&self) -> Reading {
                Reading { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

meter! {
    /// Turns taken.
    turns,
    /// Commands carried out in them.
    commands,
    /// Programs that were asked to be started.
    launched,
    /// Runs that finished here.
    finished,
    /// Occurrences that were claimed more than a second after they were due.
    late,
    /// How late the latest of them was, in milliseconds.
    latest_ms,
    /// Commands that the store failed.
    faults,
    /// Obligations that the watchdog repaired.
    repaired,
    /// Steps of the clock.
    clock_steps,
}

impl Meter {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn raise(counter: &AtomicU64, to: u64) {
        counter.fetch_max(to, Ordering::Relaxed);
    }
}
