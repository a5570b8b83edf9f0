//! What can be said about a job: a closed list, so that a page can show each kind in its own way and a test can name it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_schedule::{CompileError, Instant};

use crate::ids::{NodeId, RunId};
use crate::record::{ActivePause, Backlog, ForeignRun, LockName, NodeRecord, Run, ScheduleId, SkipSpan};

/// One thing that is so.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// There is no such job.
    NoJob,
    /// Everything is paused.
    AllPaused(ActivePause),
    /// The job is paused.
    JobPaused(ActivePause),
    /// No node has been heard of lately; this one was the last.
    NoNode(Arc<NodeRecord>),
    /// None of the nodes that are there may start it. It asks for these labels; without any, all nodes are draining.
    NoEligibleNode(BTreeSet<String>),
    /// A run that is not finished, and what is in the way of one that has not started.
    OnItsWay(Arc<Run>, Option<Hindrance>),
    /// So many more runs are not finished.
    MoreOnTheirWay(usize),
    /// The run that ended last.
    LastRun(Arc<Run>),
    /// What was missed is being caught up.
    CatchingUp {
        /// What is left.
        backlog: Arc<Backlog>,
        /// How many are left, if the schedule can be asked; `COUNT_MAX` means that many or more.
        left: Option<u32>,
    },
    /// It has no schedule.
    NoSchedule,
    /// What a schedule does next.
    Schedule(ScheduleId, Prospect),
    /// Nothing was to happen at the time that was asked about; the nearest occurrences follow.
    NoOccurrence(Instant),
    /// What became of an occurrence, or of a run that no schedule made.
    Occurrence {
        /// The schedule; none when someone asked for the run.
        schedule: Option<ScheduleId>,
        /// Its nominal time.
        nominal: Instant,
        /// Where it lies from the time that was asked about.
        place: TimePosition,
        /// What became of it.
        outcome: OccurrenceOutcome,
    },
}

/// What is in the way of a run that has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// The job or everything is paused.
    Pause,
    /// No node that is there may start it.
    Nodes,
    /// The only node that may start it cannot.
    Target(NodeId, Unable),
    /// Another run holds its lock.
    Lock(LockName, RunId),
    /// A foreign node holds its lock, with that node's run of the job if it is known.
    ForeignLock(LockName, Option<Arc<ForeignRun>>),
    /// It waits in a row: the run right before it, and how many are before it in all.
    Queue(RunId, usize),
    /// Another run of the job has not ended: one of them, and how many there are.
    Active(RunId, usize),
    /// Its conditions do not hold yet, as far as anyone knows.
    Conditions,
}

/// Why the only node that may start a run cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unable {
    /// It is not there.
    Gone,
    /// It is being drained.
    Draining,
    /// It does not have the labels any more.
    Labels,
}

/// What a schedule does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Prospect {
    /// It does not count.
    Disabled,
    /// It cannot be asked: its zone or calendar is not there.
    CannotAsk(CompileError),
    /// It is enabled and has no cursor: nothing will claim its occurrences. A defect.
    NoCursor,
    /// It never runs by time.
    NotByTime,
    /// It runs when a node starts.
    AtStart,
    /// It counts from the end of a run that has not ended.
    AfterRun(RunId),
    /// It has no occurrence any more; the last one was this.
    Over(Option<Instant>),
    /// Its next occurrence comes then.
    Next {
        /// Its nominal time.
        nominal: Instant,
        /// When it is due: its nominal time and its jitter.
        wake: Instant,
    },
    /// Its next occurrence is due, and no node has claimed it yet.
    Due {
        /// Its nominal time.
        nominal: Instant,
        /// Since when it is due.
        wake: Instant,
    },
    /// Its next occurrence is this one, and it rests while the job or everything is paused.
    Rests(Instant),
}

/// Where an occurrence lies from the time that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimePosition {
    /// It is the one that was asked about.
    Exact,
    /// It is the nearest before.
    Before,
    /// It is the nearest after.
    After,
}

/// What became of an occurrence.
#[derive(Debug, Clone, PartialEq)]
pub enum OccurrenceOutcome {
    /// It became a run: all its attempts in their order, at least one; node by node, for a job that runs on each.
    Runs(Vec<Arc<Run>>),
    /// It was skipped together with others.
    Span(Arc<SkipSpan>),
    /// It was missed and is still to be caught up.
    Backlog {
        /// What it is in.
        backlog: Arc<Backlog>,
        /// How many come before it; `COUNT_MAX` means that many or more.
        ahead: u32,
    },
    /// It is still to come, and whether its schedule rests at the moment.
    Coming {
        /// Whether the job or everything is paused.
        paused: bool,
    },
    /// Its time has passed while the job or everything is paused.
    Resting,
    /// It is due, and no node has claimed it yet.
    Due,
    /// Its schedule does not count.
    Disabled,
    /// Its schedule has counted only since then: it was made, enabled again or changed.
    BeforeSchedule(Instant),
    /// Runs before this are not kept any longer.
    NotKept(Instant),
    /// Its schedule is enabled and has no cursor. A defect.
    NoCursor,
    /// There is no record of it. A defect.
    Hole,
}
