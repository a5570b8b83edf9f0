//! Counters of a node. They only grow, and any thread may read them at any time.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a node.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
        }

        /// The values of all counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CounterSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Reads all counters.
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Batches of commands that were decided and committed together.
    turns,
    /// Commands in those batches.
    commands,
    /// Commands that have changed something.
    committed,
    /// Commands that were decided again: another node was first, or something that they were based on has changed.
    repeated,
    /// Programs whose start was requested.
    launched,
    /// Runs that finished on this node.
    finished,
    /// Occurrences claimed more than a second after they were due.
    late,
    /// The largest delay of such a claim, in milliseconds.
    latest_ms,
    /// Commands that failed because the store failed.
    faults,
    /// Attempts to read a record that cannot be read.
    unreadable,
    /// Items that the watchdog found missing from the plan and repaired.
    repaired,
    /// Steps of the clock that the node uses.
    clock_steps,
}

impl Counters {
    /// Adds to a counter.
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Raises a counter that keeps a maximum.
    pub(crate) fn raise(counter: &AtomicU64, to: u64) {
        counter.fetch_max(to, Ordering::Relaxed);
    }
}
