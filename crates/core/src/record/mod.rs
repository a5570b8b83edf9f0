//! What stores keep: typed records, each with a version that every commit compares. Records are small, so that a unit
//! of work is a handful of them. Everything that a decision needs to know about a *set* is a record of its own.

mod action;
mod actor;
mod backlog;
mod blocker;
mod claimed_ranges;
mod cursor;
mod foreign;
mod identity;
mod job;
mod job_state;
mod lock;
mod node;
mod pause;
mod pool;
mod probe;
mod queued;
mod request;
mod run;
mod skip_span;
mod task_program;
mod trigger;

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

pub use action::{ActionId, ActionRecord, ActionStatus, ResolvedAction, ResolvedWebhook};
pub use actor::Actor;
pub use backlog::Backlog;
pub use blocker::{Blocker, WakeGroup};
pub use claimed_ranges::ClaimedRanges;
pub use cursor::{Cursor, SkipStreak};
pub use foreign::ForeignRun;
pub use identity::{Identity, LatestOutcome, LatestOutcomes, OutcomeStreak};
pub use job::{JobRecord, JobSource, ScheduleId};
pub use job_state::{ActiveRun, JobState, KeptCounts, LatestRun, RenameProgress};
pub use lock::{LockName, LockState};
pub use node::{NodeRecord, RunOwner};
pub use pause::{ActivePause, PauseState};
pub use pool::{Pool, PoolName};
pub use probe::{ProbeAnswer, ProbeLease, ProbeState, ResolvedProbe};
pub use queued::QueuedRun;
pub use request::{
    RequestBody, ResolvedHeader, ResolvedHttp, ResolvedRemote, ResolvedRequest, ResponseSummary, RunProgress,
    ServiceState, url_origin,
};
pub use run::{
    CommandLine, EnvText, ExecutionPolicy, OutputSummary, ProgramExit, ResolvedProcess, ResolvedProgram, Run,
    StderrParts, StdinText, Transition, TransitionKind,
};
pub use skip_span::SkipSpan;
pub use task_program::ResolvedTask;
pub use trigger::{
    PendingTrigger, RunTrigger, TriggerCounts, TriggerDecision, TriggerId, TriggerMessage, TriggerOutcome, TriggerSet,
};

use crate::args::Args;
use crate::ids::{JobId, NodeId, RunId};

/// Identifies the write that produced a record: the number of the writer, which is unique, and the number of its unit.
/// So a writer knows the versions of its records before the commit, and recognises its own write afterwards if the
/// reply to the commit was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordVersion(u64);

impl RecordVersion {
    /// Bits for the number of a unit; the rest are for the writer. 2^40 units last a year at 30,000 per second.
    const UNIT_BITS: u32 = 40;
    /// Bits for the writer, whose numbers may be larger.
    const WRITER_BITS: u32 = 23;
    /// The units of writers that have these bits in common begin at different multiples of this power of two.
    const FIRST_UNIT_BITS: u32 = 32;

    /// Writer numbers are below this. Stores start over when they reach it: at one new writer per second, after 68
    /// years. An equal version then means nothing, because no commit of the earlier writer is under way.
    pub const WRITERS: u32 = 1 << (63 - Self::FIRST_UNIT_BITS);

    /// The version of records that `writer` writes in its unit number `unit`.
    pub const fn new(writer: u32, unit: u64) -> Self {
        assert!(writer < Self::WRITERS && unit < 1 << Self::UNIT_BITS, "writers and units are counted from 0");
        let number = writer as u64 % (1 << Self::WRITER_BITS);
        let first = (writer as u64 >> Self::WRITER_BITS) << Self::FIRST_UNIT_BITS;
        Self((number << Self::UNIT_BITS) | ((first + unit) % (1 << Self::UNIT_BITS)))
    }

    /// The number of the writer, of which larger ones keep only the lower bits.
    pub const fn writer(self) -> u32 {
        (self.0 >> Self::UNIT_BITS) as u32
    }

    /// A version that a store returned.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The version as a number; it fits into a signed integer of 64 bits.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> Self::UNIT_BITS, self.0 & ((1 << Self::UNIT_BITS) - 1))
    }
}

impl fmt::Debug for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    /// The pause of all jobs.
    Pause,
    /// A job's definition.
    Job(JobId),
    /// The set of a job's runs.
    JobState(JobId),
    /// How far a schedule of a job has come.
    Cursor(JobId, ScheduleId),
    /// The missed occurrences of a schedule that are still to be run.
    Backlog(JobId, ScheduleId),
    /// The latest outcomes of a job with certain args.
    Identity(JobId, Args),
    Run(RunId),
    /// A span of skipped occurrences. Its id differs from the ids of all runs.
    SkipSpan(RunId),
    /// A lock. Locks are taken and released, never written by a put.
    Lock(LockName),
    Node(NodeId),
    /// The latest run of a job on a foreign node. It is read and compared, never written.
    Foreign(JobId),
    /// What a transition of a run owes to the outside.
    Action(ActionId),
    /// The active runs of a pool.
    Pool(PoolName),
    /// The pending triggers of a job.
    Triggers(JobId),
}

/// A record. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The pause of all jobs.
    Pause(Arc<PauseState>),
    /// A job's definition.
    Job(Arc<JobRecord>),
    /// The set of a job's runs.
    JobState(Arc<JobState>),
    /// How far a schedule of a job has come.
    Cursor(Arc<Cursor>),
    /// The missed occurrences of a schedule that are still to be run.
    Backlog(Arc<Backlog>),
    /// The latest outcomes of a job with certain args.
    Identity(Arc<Identity>),
    Run(Arc<Run>),
    /// A span of skipped occurrences.
    SkipSpan(Arc<SkipSpan>),
    /// A lock and its holder.
    Lock(Arc<LockState>),
    Node(Arc<NodeRecord>),
    /// The latest run of a job on a foreign node.
    Foreign(Arc<ForeignRun>),
    /// What a transition of a run owes to the outside.
    Action(Arc<ActionRecord>),
    /// The active runs of a pool.
    Pool(Arc<Pool>),
    /// The pending triggers of a job.
    Triggers(Arc<TriggerSet>),
}

impl Record {
    /// The key of the record.
    pub fn key(&self) -> RecordKey {
        match self {
            Self::Pause(_) => RecordKey::Pause,
            Self::Job(job) => RecordKey::Job(job.id.clone()),
            Self::JobState(state) => RecordKey::JobState(state.job.clone()),
            Self::Cursor(cursor) => RecordKey::Cursor(cursor.job.clone(), cursor.schedule.clone()),
            Self::Backlog(backlog) => RecordKey::Backlog(backlog.job.clone(), backlog.schedule.clone()),
            Self::Identity(identity) => RecordKey::Identity(identity.job.clone(), identity.args.clone()),
            Self::Run(run) => RecordKey::Run(run.id),
            Self::SkipSpan(span) => RecordKey::SkipSpan(span.id),
            Self::Lock(lock) => RecordKey::Lock(lock.name.clone()),
            Self::Node(node) => RecordKey::Node(node.id),
            Self::Foreign(run) => RecordKey::Foreign(run.job.clone()),
            Self::Action(action) => RecordKey::Action(action.id),
            Self::Pool(pool) => RecordKey::Pool(pool.name.clone()),
            Self::Triggers(set) => RecordKey::Triggers(set.job.clone()),
        }
    }

    /// When the record has to be processed next; `None` if never. Stores index this time.
    pub fn due(&self) -> Option<Instant> {
        match self {
            Self::Cursor(cursor) => cursor.wake,
            Self::Backlog(backlog) => Some(backlog.due),
            Self::Run(run) => run.next_check(),
            Self::Action(action) => action.due(),
            Self::Triggers(set) => set.due,
            _ => None,
        }
    }
}

/// Kinds of records. Stores keep each kind separately, except that spans of skips are stored with the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    Pause,
    Job,
    JobState,
    Cursor,
    Backlog,
    Identity,
    Run,
    SkipSpan,
    Lock,
    Node,
    Foreign,
    Action,
    Pool,
    Triggers,
}

impl RecordKey {
    /// The kind of the record.
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Pause => RecordKind::Pause,
            Self::Job(_) => RecordKind::Job,
            Self::JobState(_) => RecordKind::JobState,
            Self::Cursor(..) => RecordKind::Cursor,
            Self::Backlog(..) => RecordKind::Backlog,
            Self::Identity(..) => RecordKind::Identity,
            Self::Run(_) => RecordKind::Run,
            Self::SkipSpan(_) => RecordKind::SkipSpan,
            Self::Lock(_) => RecordKind::Lock,
            Self::Node(_) => RecordKind::Node,
            Self::Foreign(_) => RecordKind::Foreign,
            Self::Action(_) => RecordKind::Action,
            Self::Pool(_) => RecordKind::Pool,
            Self::Triggers(_) => RecordKind::Triggers,
        }
    }

    /// The job to which the record belongs; `None` if the key does not say.
    pub const fn job(&self) -> Option<&JobId> {
        match self {
            Self::Job(job)
            | Self::JobState(job)
            | Self::Cursor(job, _)
            | Self::Backlog(job, _)
            | Self::Identity(job, _)
            | Self::Foreign(job)
            | Self::Triggers(job) => Some(job),
            Self::Pause | Self::Run(_) | Self::SkipSpan(_) | Self::Lock(_) => None,
            Self::Node(_) | Self::Action(_) | Self::Pool(_) => None,
        }
    }

    /// The id by which lists of runs are ordered: that of a run or of a span of skips; `None` for other kinds.
    pub const fn run_list_id(&self) -> Option<RunId> {
        match self {
            Self::Run(id) | Self::SkipSpan(id) => Some(*id),
            _ => None,
        }
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause => write!(f, "pause"),
            Self::Job(job) => write!(f, "job {job}"),
            Self::JobState(job) => write!(f, "state of {job}"),
            Self::Cursor(job, schedule) => write!(f, "cursor of {job} {schedule}"),
            Self::Backlog(job, schedule) => write!(f, "backlog of {job} {schedule}"),
            Self::Identity(job, args) => write!(f, "identity {job} {args}"),
            Self::Run(run) => write!(f, "run {run}"),
            Self::SkipSpan(span) => write!(f, "span of skips {span}"),
            Self::Lock(lock) => write!(f, "lock {lock}"),
            Self::Node(node) => write!(f, "node {node}"),
            Self::Foreign(job) => write!(f, "foreign run of {job}"),
            Self::Action(action) => write!(f, "action {action}"),
            Self::Pool(pool) => write!(f, "pool {pool}"),
            Self::Triggers(job) => write!(f, "triggers of {job}"),
        }
    }
}

/// A record as a store has it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// The version that the last write gave it.
    pub version: RecordVersion,
    pub record: Record,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn versions_of_writers_differ() {
        assert_eq!(RecordVersion::new(5, 7).bits(), 5 << 40 | 7);
        let step = 1 << RecordVersion::WRITER_BITS;
        let writers = (0..256).map(|turn| turn * step + 3).chain([RecordVersion::WRITERS - 1]);
        let versions: BTreeSet<RecordVersion> = writers
            .clone()
            .flat_map(|writer| [0, 1, (1 << 32) - 1].map(|unit| RecordVersion::new(writer, unit)))
            .collect();
        assert_eq!(versions.len(), 3 * writers.count());
        assert!(versions.iter().all(|version| i64::try_from(version.bits()).is_ok()));
        // The last unit of a writer does not change the bits of the writer.
        let last = RecordVersion::new(RecordVersion::WRITERS - 1, (1 << 40) - 1);
        assert_eq!(last.bits() >> 40, (1 << 23) - 1);
    }
}
