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
    /// Runs programs.
    pub outside: Arc<dyn ProgramRunner>,
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

/// Runs the programs of a node. It answers only with reports ([`crate::Handle::report`]).
///
/// The methods return at once: they note what is asked for, and something else carries it out.
pub trait ProgramRunner: Send + Sync + fmt::Debug {
    /// Starts a run's program. A run that was launched before is left as it is.
    fn launch(&self, request: LaunchRequest);

    /// Reports what became of a program that an earlier process of this node started.
    fn adopt(&self, run: Arc<Run>);

    /// Extends leases: each program may live until this uptime. A lease is never shortened.
    fn extend(&self, leases: &[(RunId, Span)]);

    /// Asks a run's program to end, with the signal and the grace period of its job.
    fn stop(&self, run: &Run);

    /// Sends a signal to a run's program.
    fn signal(&self, run: RunId, signal: Signal);
}

/// A program to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchRequest {
    /// The run.
    pub run: Arc<Run>,
    /// The fence of its lock.
    pub fence: Option<u64>,
    /// The program must not be started after this uptime, because other nodes may then treat the run as lost.
    pub launch_by: Span,
    /// The program must be dead by this uptime unless its lease is extended. `None` means no limit.
    pub kill_at: Option<Span>,
}

/// A runner that does nothing, for nodes that run no programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrograms;

impl ProgramRunner for NoPrograms {
    fn launch(&self, _: LaunchRequest) {}
    fn adopt(&self, _: Arc<Run>) {}
    fn extend(&self, _: &[(RunId, Span)]) {}
    fn stop(&self, _: &Run) {}
    fn signal(&self, _: RunId, _: Signal) {}
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
