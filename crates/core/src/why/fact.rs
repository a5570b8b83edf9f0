//! Facts about a job: a closed list, so that a page can show each kind in its own way and a test can match it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::{CompileError, Instant};

use crate::ids::{NodeId, RunId};
use crate::record::{ActivePause, Backlog, ForeignRun, LockName, NodeRecord, Run, ScheduleId, SkipSpan, TriggerSet};

/// One fact about a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// There is no such job.
    NoJob,
    /// All jobs are paused.
    AllPaused(ActivePause),
    /// The job is paused.
    JobPaused(ActivePause),
    /// No node is alive; this one sent the last heartbeat.
    NoNode(Arc<NodeRecord>),
    /// No live node may start it. It requires these labels; if there are none, all nodes are draining.
    NoEligibleNode(BTreeSet<String>),
    /// No live node may start it. This one could, but its keeper cannot start programs.
    KeeperFails(Arc<NodeRecord>),
    /// A run that is not finished, and what blocks it.
    OnItsWay(Arc<Run>, Option<Hindrance>),
    /// The number of further runs that are not finished.
    MoreOnTheirWay(usize),
    /// The run that ended last.
    LastRun(Arc<Run>),
    /// Missed occurrences are being caught up.
    CatchingUp {
        /// The occurrences that are left.
        backlog: Arc<Backlog>,
        /// How many are left; `COUNT_MAX` means that many or more. `None` if the schedule does not compile.
        left: Option<u32>,
    },
    /// Triggers are pending, or were decided about.
    Triggers(Arc<TriggerSet>),
    /// It has no schedule.
    NoSchedule,
    /// What a schedule does next.
    Schedule(ScheduleId, Prospect),
    /// There is no occurrence at the requested time; the nearest occurrences follow.
    NoOccurrence(Instant),
    /// The outcome of an occurrence, or of a run that no schedule created.
    Occurrence {
        /// The schedule; `None` if an operator or a client requested the run.
        schedule: Option<ScheduleId>,
        /// Its nominal time.
        nominal: Instant,
        /// Its position relative to the requested time.
        place: TimePosition,
        outcome: OccurrenceOutcome,
    },
}

/// What blocks a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// The job, or all jobs, are paused.
    Pause,
    /// No live node may start it.
    Nodes,
    /// The only node that may start it cannot.
    Target(NodeId, Unable),
    /// Another run holds its lock.
    Lock(LockName, RunId),
    /// A foreign node holds its lock, with that node's run of the job if it is known.
    ForeignLock(LockName, Option<Arc<ForeignRun>>),
    /// Other runs are before it in the queue: the one right before it, and their number.
    Queue(RunId, usize),
    /// Other runs of the job have not ended: one of them, and their number.
    Active(RunId, usize),
    /// Its conditions do not hold yet, as far as the records show.
    Conditions,
    /// It has to be started or stopped by the keeper of this node, which fails.
    Keeper(Arc<NodeRecord>),
}

/// Why the only node that may start a run cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unable {
    /// It is not alive.
    Gone,
    /// It is draining.
    Draining,
    /// It no longer has the labels.
    Labels,
    /// Its keeper cannot start programs.
    Keeper,
}

/// What a schedule does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Prospect {
    /// It is disabled.
    Disabled,
    /// It does not compile: its zone or calendar does not exist.
    CannotAsk(CompileError),
    /// It is enabled and has no cursor: nothing will claim its occurrences. A defect.
    NoCursor,
    /// It never runs by time.
    NotByTime,
    /// It runs when a node starts.
    AtStart,
    /// It counts from the end of a run that has not ended.
    AfterRun(RunId),
    /// It has no further occurrence; the last one was this.
    Over(Option<Instant>),
    /// Its next occurrence is in the future.
    Next {
        /// Its nominal time.
        nominal: Instant,
        /// When it is due: its nominal time plus its jitter.
        wake: Instant,
    },
    /// Its next occurrence is due, and no node has claimed it yet.
    Due {
        /// Its nominal time.
        nominal: Instant,
        /// Since when it is due.
        wake: Instant,
    },
    /// Its next occurrence is this one, and nothing claims it while the job, or all jobs, are paused.
    Rests(Instant),
}

/// The position of an occurrence relative to the requested time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimePosition {
    /// It is at the requested time.
    Exact,
    /// It is the nearest one before.
    Before,
    /// It is the nearest one after.
    After,
}

/// The outcome of an occurrence, or why it has none.
#[derive(Debug, Clone, PartialEq)]
pub enum OccurrenceOutcome {
    /// It became a run: all attempts in order, at least one. For a job with `nodes: each` they are ordered by node
    /// first.
    Runs(Vec<Arc<Run>>),
    /// It was skipped together with others.
    Span(Arc<SkipSpan>),
    /// It was missed and is still to be caught up.
    Backlog {
        /// The backlog that it is in.
        backlog: Arc<Backlog>,
        /// How many come before it; `COUNT_MAX` means that many or more.
        ahead: u32,
    },
    /// It is in the future.
    Coming {
        /// Whether the job, or all jobs, are paused now.
        paused: bool,
    },
    /// It was due during a pause that is still in effect.
    Resting,
    /// It is due, and no node has claimed it yet.
    Due,
    /// Its schedule is disabled.
    Disabled,
    /// Its schedule has been in effect only since this time, when it was created, enabled again or changed.
    BeforeSchedule(Instant),
    /// Runs before this time are no longer stored.
    NotKept(Instant),
    /// Its schedule is enabled and has no cursor. A defect.
    NoCursor,
    /// There is no record of it. A defect.
    Hole,
}
