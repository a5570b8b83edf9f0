//! The ports of a node: everything that it waits on or talks to.

use std::fmt;
use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::decision::DecidedUnit;
use cronhold_core::record::{ActionRecord, RecordKey, ResolvedProbe, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Pending, Store, UnreadableRecord};

/// The ports of a node.
#[derive(Debug, Clone)]
pub struct NodePorts {
    /// The system clock and the uptime.
    pub clock: Arc<dyn MachineClock>,
    /// The source of random bits.
    pub entropy: Arc<dyn EntropySource>,
    /// The store of all records.
    pub store: Arc<dyn Store>,
    /// Starts and stops programs, delivers actions, and reports their results.
    pub programs: Arc<dyn ProgramRunner>,
    /// Receives the events of the node.
    pub feed: Arc<dyn EngineObserver>,
}

/// Two clocks: the time of day, which can be set, and the uptime, which cannot.
pub trait MachineClock: Send + Sync + fmt::Debug {
    /// The time of day.
    fn now(&self) -> Instant;

    /// The time since the machine was started, including suspended time. It never steps.
    fn uptime(&self) -> Span;

    /// Waits for a span of uptime.
    fn sleep(&self, span: Span) -> Pending<'_, ()>;
}

/// A source of random bits.
pub trait EntropySource: Send + Sync + fmt::Debug {
    /// Bits that cannot be predicted and do not repeat.
    fn bits(&self) -> u128;
}

/// Runs the programs of a node and delivers actions. It answers only with reports ([`crate::NodeHandle::report`]).
///
/// The methods return at once: they queue the request, and another task carries it out.
pub trait ProgramRunner: Send + Sync + fmt::Debug {
    /// Starts a run's program. A run that was launched before is left as it is.
    fn launch(&self, request: LaunchRequest);

    /// Reports what became of a program that an earlier process of this node started.
    fn adopt(&self, run: Arc<Run>);

    /// Extends leases: each program may live until this uptime. A lease is never shortened.
    fn extend(&self, leases: &[(RunId, Span)]);

    /// Requests the end of a run's program, with the signal and the grace period of its job.
    fn stop(&self, run: &Run);

    /// Leaves a run's program to another node, which has taken the run over. Nothing is reported about it any more.
    fn release(&self, run: RunId);

    /// Sends a signal to a run's program.
    fn signal(&self, run: RunId, signal: Signal);

    /// Makes an attempt to deliver an action, and reports its result ([`crate::NodeHandle::report_delivery`]). An attempt
    /// that cannot begin in time, or does not end in time, has failed.
    fn deliver(&self, action: Arc<ActionRecord>);

    /// Carries out a check of a waiting run, and reports the answer ([`crate::NodeHandle::report_probe`]). A check that
    /// cannot begin in time, or does not end in time, has not succeeded.
    fn probe(&self, request: ProbeRequest);
}

/// A check of something outside, for a waiting run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRequest {
    pub run: Arc<Run>,
    /// The number of the attempt, which no other attempt of the run has.
    pub attempt: u32,
    pub probe: ResolvedProbe,
}

/// A program to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchRequest {
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
    fn release(&self, _: RunId) {}
    fn signal(&self, _: RunId, _: Signal) {}
    fn deliver(&self, _: Arc<ActionRecord>) {}
    fn probe(&self, _: ProbeRequest) {}
}

/// Receives the events of a node.
pub trait EngineObserver: Send + Sync + fmt::Debug {
    /// Handles an event. It is called in the loop of the node, so it must not block.
    fn on_event(&self, news: &EngineEvent<'_>);
}

/// An event of a node.
#[derive(Debug)]
pub enum EngineEvent<'a> {
    /// The node has recovered from the store, and starts to work.
    Ready {
        /// Items in its plan.
        planned: usize,
        /// Runs that are not finished.
        unfinished: usize,
        /// How long the recovery took.
        took: Span,
    },
    /// The walk over all jobs has met a job with triggers.
    TriggersChecked(&'a JobId),
    /// A command was committed.
    Committed {
        /// When the command was requested, by which actor, and on which node.
        stamp: &'a CommandStamp,
        /// What was written.
        done: &'a DecidedUnit,
    },
    /// The store has begun to fail.
    StoreUnavailable(&'a Fault),
    /// The store works again.
    StoreAvailable,
    /// The clock that the node uses was set. The node claims nothing for a while.
    ClockStep {
        /// Whether it was set forward.
        forward: bool,
        /// The size of the step.
        by: Span,
    },
    /// The system clock of the node began or ceased to differ from the store's time.
    Skew {
        /// Whether it differs.
        is_off: bool,
        /// Whether it is ahead of the store.
        is_ahead: bool,
        /// How far it is off.
        by: Span,
    },
    /// The watchdog found something that should have been done and was not planned, and planned it.
    Repaired {
        /// The record that owed it.
        key: &'a RecordKey,
        /// How late it was.
        late: Span,
    },
    /// The watchdog is not done with everything after its period. What it still has to check is repaired later.
    WatchdogDelayed {
        /// How long it has been at it.
        took: Span,
        /// How many records it has checked so far.
        checked: usize,
    },
    /// Schedules were computed with newer time zone data than this node has. Where both differ, their next
    /// occurrences are left to nodes that have the newer data. If there are none, they are claimed as they are
    /// stored.
    OlderZones {
        /// The release of this node's data.
        ours: &'a str,
        /// The release that the schedules were computed with.
        theirs: &'a str,
    },
    /// The live nodes whose time zone data is of another release than this node's have changed.
    ZonesDiffer {
        /// The release of this node's data.
        ours: &'a str,
        /// The names of the other nodes with the releases of their data; empty if all agree again.
        others: &'a [(String, String)],
    },
    /// Another node has joined; its name.
    NodeJoined(&'a str),
    /// Another node is gone; its name.
    NodeGone(&'a str),
    /// Whether this node drains has changed.
    Draining(bool),
    /// Whether the keeper can start programs has changed. While it cannot, the node claims nothing.
    Keeper {
        /// Why it cannot; `None` if it can.
        problem: Option<&'a str>,
    },
    /// Another process has started with the identity of this node, which stops.
    Replaced,
    /// The report of a program changed nothing, because the end of the run was known.
    ReportIgnored(RunId),
    /// A stored record cannot be read. What depends on it is not done until the record is repaired.
    RecordUnreadable(&'a UnreadableRecord),
    /// A part of the store is damaged. What needs it is not done until the store is restored; everything else is.
    StoreDamaged(&'a Fault),
    /// A command that no request waits for was not carried out, because it was rejected or the store refused it for good.
    CommandDropped {
        command: &'a Command,
        /// Why it was not carried out.
        reason: &'a str,
    },
}
