//! Counters of a node. Any thread may read them at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::job::ActionKind;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a node.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
            pub(crate) actions: ActionCounters,
        }

        /// The values of all counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CounterSnapshot {
            $($(#[$doc])* pub $name: u64,)*
            /// Results of attempts to deliver actions, in the order of [`ActionKind::ALL`].
            pub actions: [ActionCount; ActionKind::ALL.len()],
        }

        impl Counters {
            /// Reads all counters.
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    actions: self.actions.snapshot(),
                }
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
    /// Actions in the store that are neither done nor given up, as this node knows them.
    actions_pending,
}

/// Counters of actions by kind.
#[derive(Debug, Default)]
pub(crate) struct ActionCounters([KindCounters; ActionKind::ALL.len()]);

#[derive(Debug, Default)]
pub(crate) struct KindCounters {
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) given_up: AtomicU64,
}

/// Results of attempts to deliver actions of one kind on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionCount {
    /// Actions that were delivered.
    pub delivered: u64,
    /// Attempts that failed and are followed by another one.
    pub failed: u64,
    /// Actions that were given up.
    pub given_up: u64,
}

impl ActionCounters {
    pub(crate) fn of(&self, kind: ActionKind) -> &KindCounters {
        &self.0[kind as usize]
    }

    fn snapshot(&self) -> [ActionCount; ActionKind::ALL.len()] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.0.each_ref().map(|kind| ActionCount {
            delivered: read(&kind.delivered),
            failed: read(&kind.failed),
            given_up: read(&kind.given_up),
        })
    }
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
