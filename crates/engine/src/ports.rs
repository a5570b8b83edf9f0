//! What a node needs from the world around it.

use std::fmt;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::Stamp;
use cronhold_core::decision::Done;
use cronhold_core::record::{Key, Run};
use cronhold_core::signal::Signal;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Pending, Store};

/// Everything that a node waits on or talks to.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// Who does what effects ask for.
    pub outside: Arc<dyn Outside>,
    /// Who wants to know what happened.
    pub feed: Arc<dyn Feed>,
}

/// Time, twice: what the clock on the wall says, which someone may set, and how long the machine has been up, which
/// nobody can.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Time of day.
    fn now(&self) -> Instant;

    /// Time since the machine was started, suspended time included. It never steps.
    fn uptime(&self) -> Span;

    /// Waits for a span of uptime.
    fn sleep(&self, span: Span) -> Pending<'_, ()>;
}

/// Chance.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// Bits that nobody can guess and that never come twice.
    fn bits(&self) -> u128;
}

/// The world that runs programs. It answers only with reports.
pub trait Outside: Send + Sync + fmt::Debug {
    /// Takes on a task. Waits when there is too much to do; it must not wait for its own reports to be taken.
    fn perform(&self, task: Task) -> Pending<'_, ()>;
}

/// What the world is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Start a run's program, unless it was asked before.
    Launch {
        /// The run.
        run: Arc<Run>,
        /// The fence of its lock.
        fence: Option<u64>,
        /// After this uptime it must not be started any more: somebody may believe that it is lost.
        launch_by: Span,
        /// By this uptime it must be dead unless that is extended; no limit, when absent.
        kill_at: Option<Span>,
    },
    /// Programs may live until these uptimes, unless that is extended again. A program that is told an earlier one than
    /// before keeps the later.
    Extend {
        /// Which, and until when.
        leases: Vec<(RunId, Span)>,
    },
    /// Say what became of a program that an earlier life of this node has started.
    Adopt {
        /// The run.
        run: Arc<Run>,
    },
    /// Ask a run's program to end.
    Stop {
        /// The run.
        run: Arc<Run>,
    },
    /// Send a run's program a signal.
    Signal {
        /// The run.
        run: RunId,
        /// Which signal.
        signal: Signal,
    },
}

/// Who wants to know what happened. Must not block.
pub trait Feed: Send + Sync + fmt::Debug {
    /// Takes note.
    fn tell(&self, news: &News<'_>);
}

/// What happened.
#[derive(Debug)]
pub enum News<'a> {
    /// The node has taken up everything that was stored.
    Ready {
        /// Occurrences that it waits for.
        planned: usize,
        /// Runs that were not finished.
        unfinished: usize,
        /// How long that took.
        took: Span,
    },
    /// Something was committed.
    Committed {
        /// When, by whom and where.
        stamp: &'a Stamp,
        /// What.
        done: &'a Done,
    },
    /// The store fails.
    StoreAway(&'a Fault),
    /// The store works again.
    StoreBack,
    /// The clock was set by that much, forward or back; nothing is claimed for a while.
    ClockStep {
        /// Whether it was set forward.
        forward: bool,
        /// By how much.
        by: Span,
    },
    /// The clock on the node's wall is off by that much from the store's time, or is not any more.
    Skew {
        /// Whether it is off.
        is_off: bool,
        /// Whether it is ahead.
        is_ahead: bool,
        /// By how much.
        by: Span,
    },
    /// The watchdog found something that nobody had done in time.
    Repaired {
        /// To which record.
        key: &'a Key,
        /// How late it was.
        late: Span,
    },
    /// Schedules were computed with newer zone data than this node has. On a store of its own they are computed again;
    /// on a shared one they are left to the nodes that have it.
    OlderZones {
        /// The version of the data here.
        ours: &'a str,
        /// The version it was computed with.
        theirs: &'a str,
        /// Whether the store is this node's own.
        is_alone: bool,
    },
    /// Another node is there.
    NodeCame(&'a str),
    /// Another node was not heard of for a while.
    NodeGone(&'a str),
    /// This node starts nothing any more, or starts things again.
    Draining(bool),
    /// Another daemon has started with the identity of this node, which stops.
    Replaced,
    /// A report was taken that changed nothing: what became of the program is known already.
    Known(RunId),
    /// What a command asked for could not be done and nobody waits for an answer.
    Dropped(&'a str),
}
