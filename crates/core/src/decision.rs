//! What a decision can be: it needs to know more, it says no, or it is made.

use cronhold_schedule::{Instant, Span};

use crate::args::ArgErrors;
use crate::ids::{JobId, NodeId, RunId, RunNumber};
use crate::record::{JobState, Key, LockName, Record, Run, ScheduleId, Source};
use crate::run;
use crate::signal::Signal;
use crate::when::When;
use std::sync::Arc;

/// What the core says to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It has to know these records first.
    Need(Vec<Key>),
    /// No, and why.
    Reject(Rejection),
    /// Yes, and what is to be written and done.
    Done(Done),
}

/// What is written and done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done {
    /// Records that are written or deleted, all or none; each key once.
    pub changes: Vec<Change>,
    /// Locks that are taken with it.
    pub take: Vec<Take>,
    /// Locks that are freed with it.
    pub free: Vec<Free>,
    /// What is done afterwards, beside what the new records owe: things that are lost without harm when a node dies.
    pub effects: Vec<Effect>,
    /// What whoever asked is told.
    pub answer: Answer,
}

/// One record that changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is this from now on.
    Put(Record),
    /// It is no more.
    Delete(Key),
}

impl Change {
    /// The record's name.
    pub fn key(&self) -> Key {
        match self {
            Self::Put(record) => record.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

/// A lock that a unit takes. The unit fails as a whole when someone else holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Which.
    pub lock: LockName,
    /// For which run.
    pub holder: RunId,
    /// How long it is held without being renewed; without end when absent.
    pub ttl: Option<Span>,
}

/// A lock that a unit frees, if the run still holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free {
    /// Which.
    pub lock: LockName,
    /// By which run.
    pub holder: RunId,
}

/// What a node does after a commit: change its plan, or submit a request to the program runner.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Plan the claim of a schedule's next occurrence, and cancel the one that was planned.
    Plan {
        /// The job of the schedule.
        job: JobId,
        /// The schedule, within its job.
        schedule: ScheduleId,
        /// The nominal time of the occurrence and the time to claim it at; `None` if there is no next occurrence.
        next: Option<(Instant, Instant)>,
    },
    /// The job, or all jobs, are paused: claim this occurrence when the pause ends.
    Rest {
        /// The job of the schedule.
        job: JobId,
        /// The schedule, within its job.
        schedule: ScheduleId,
        /// The nominal time of the occurrence.
        nominal: Instant,
    },
    /// Plan the next step through a backlog.
    CatchUp {
        /// The job of the backlog.
        job: JobId,
        /// The schedule whose occurrences were missed.
        schedule: ScheduleId,
        /// When to take the step; `Never` cancels a planned one.
        at: When,
    },
    /// Plan the next check of a run.
    Wake {
        /// The run to check.
        run: RunId,
        /// When to check it; `Never` cancels a planned check.
        at: When,
    },
    /// Start a run's program.
    Launch {
        /// The run.
        run: Arc<Run>,
    },
    /// Find out what became of a program that an earlier life of this node has started.
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
    /// Plan a check whether finished runs of a job exceed what the job retains.
    Prune {
        /// The job whose runs to check.
        job: JobId,
    },
}

/// What whoever asked is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer {
    /// It is done.
    #[default]
    Done,
    /// It was so already.
    Unchanged,
    /// This run was made, or was there already.
    Run {
        /// Its id.
        id: RunId,
        /// Its number.
        number: RunNumber,
    },
}

/// Why the core says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such job.
    #[error("there is no job `{0}`")]
    NoJob(JobId),
    /// There is a job of that name, and a new one was wanted.
    #[error("there is a job `{0}` already")]
    JobThere(JobId),
    /// The job is not as it was when whoever asks looked at it.
    #[error("the job `{job}` was changed meanwhile, and is now in revision {revision}")]
    JobChanged {
        /// Which job.
        job: JobId,
        /// What it is in now.
        revision: u32,
    },
    /// There is no such run.
    #[error("there is no run {0}")]
    NoRun(RunId),
    /// There is no such node.
    #[error("there is no node {0}")]
    NoNode(NodeId),
    /// The run's state does not allow it.
    #[error(transparent)]
    State(#[from] run::Rejection),
    /// The args do not fit the job.
    #[error(transparent)]
    Args(#[from] ArgErrors),
    /// Someone holds the lock.
    #[error("the lock `{lock}` is held by run {holder}")]
    Locked {
        /// Which lock.
        lock: LockName,
        /// Who holds it.
        holder: RunId,
    },
    /// A node of another kind holds the lock: its run is none of ours.
    #[error("the lock `{0}` is held by a node of Cronken")]
    LockedElsewhere(LockName),
    /// The node that was asked may not run the job.
    #[error("this node does not have the labels that `{0}` asks for")]
    NotHere(JobId),
    /// The node that was asked starts nothing any more.
    #[error("this node is being drained and starts nothing")]
    Draining,
    /// Whoever was asked is no node.
    #[error("nothing can be started here, because no daemon was asked")]
    NotANode,
    /// The run belongs to another node.
    #[error("only node {0} may start this run")]
    OtherNode(NodeId),
    /// The run's program is on another node, and only that node can reach it.
    #[error("the program of this run is on node {0}")]
    RunsElsewhere(NodeId),
    /// No more runs of the job can be active at once.
    #[error("{most} runs of `{0}` are active already, and no more can be", most = JobState::ACTIVE_MAX)]
    TooManyActive(JobId),
    /// The job belongs to another source.
    #[error("the job `{job}` {}", source_of_job.words())]
    OtherSource {
        /// Which job.
        job: JobId,
        /// Whose it is.
        source_of_job: Source,
    },
    /// A schedule of the job cannot be asked.
    #[error("the schedule of `{job}` cannot be used: `{key}`: {message}")]
    Schedule {
        /// Which job.
        job: JobId,
        /// Which key of the schedule.
        key: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The name of the job's lock cannot be one.
    #[error("the lock of `{job}` has a name of {length} bytes, and 1 to {} are possible", LockName::MAX)]
    Lock {
        /// Which job.
        job: JobId,
        /// How long the name is.
        length: usize,
    },
    /// The name of the job's lock is for Cronhold itself.
    #[error(
        "the lock of `{job}` cannot be called `{lock}`: names that begin with `{}` are Cronhold's own",
        LockName::RESERVED
    )]
    ReservedLock {
        /// Which job.
        job: JobId,
        /// The name.
        lock: LockName,
    },
    /// Two schedules of the job cannot be told apart.
    #[error("two schedules of `{job}` have the same id `{schedule}`")]
    SameSchedule {
        /// Which job.
        job: JobId,
        /// Their id.
        schedule: ScheduleId,
    },
    /// It is paused already.
    #[error("{} is paused already", what(.0.as_ref()))]
    Paused(Option<JobId>),
    /// It is not paused.
    #[error("{} is not paused", what(.0.as_ref()))]
    NotPaused(Option<JobId>),
    /// The run stands for many occurrences that were skipped.
    #[error("run {0} stands for occurrences that were skipped, and is not one run")]
    Span(RunId),
}

impl Rejection {
    /// Whether what was asked for is so already, so that whoever only wants it to be so has it.
    pub fn is_so_already(&self) -> bool {
        matches!(self, Self::Paused(_) | Self::NotPaused(_))
    }

    /// What can be done instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoJob(_) => Some("`cronhold list` shows the jobs"),
            Self::JobThere(_) => Some("choose another name, or change the job: `cronhold upd`"),
            Self::JobChanged { .. } => Some("look at it again: `cronhold show`"),
            Self::NoRun(_) => Some("`cronhold runs` shows the runs; old ones are not kept"),
            Self::NoNode(_) => Some("`cronhold nodes` shows the nodes"),
            Self::State(rejection) => rejection.hint(),
            Self::Locked { .. } => Some("stop that run, or wait until it ends"),
            Self::LockedElsewhere(_) => {
                Some("wait until its run ends; `cronhold runs --peers` shows what Cronken runs")
            }
            Self::NotHere(_) => Some("ask a node that has them; `cronhold nodes` shows the labels"),
            Self::Draining => {
                Some("ask another node, or let this one start things again; `cronhold nodes` shows the nodes")
            }
            Self::NotANode => Some("ask a daemon; what waits is started by itself when its time has come"),
            Self::OtherNode(_) => Some("ask that node; `cronhold nodes` shows the nodes"),
            Self::RunsElsewhere(_) => {
                Some("ask that node; a run can be stopped and killed from everywhere: `cronhold stop`, `cronhold kill`")
            }
            Self::TooManyActive(_) => Some("wait until one of them ends"),
            Self::OtherSource { source_of_job: Source::Directory(_), .. } => Some("change or remove its job file"),
            Self::OtherSource { .. } => Some("change it where it was made, or choose another name"),
            Self::Lock { .. } => Some("give it a short name"),
            Self::ReservedLock { .. } => Some("give it another name"),
            Self::SameSchedule { .. } => Some("give one of them a `name`"),
            Self::Span(_) => Some("`cronhold backfill` runs a stretch of occurrences"),
            Self::Args(_) | Self::Schedule { .. } | Self::Paused(_) | Self::NotPaused(_) => None,
        }
    }
}

fn what(job: Option<&JobId>) -> String {
    job.map_or_else(|| "everything".to_owned(), |job| format!("the job `{job}`"))
}
