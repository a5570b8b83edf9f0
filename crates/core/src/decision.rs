//! Decisions: a command needs more records, is rejected, or is decided.

use cronhold_schedule::{Instant, Span};

use crate::args::ArgErrors;
use crate::ids::{JobId, NodeId, RunId, RunNumber};
use crate::job::{Feature, STORE_WITHOUT_TASKS, TASKS_HINT};
use crate::record::{
    ActionId, ActionRecord, JobSource, JobState, LockName, Pool, PoolName, Record, RecordKey, Run, ScheduleId,
    TriggerId, TriggerMessage, TriggerSet,
};
use crate::run;
use crate::signal::Signal;
use crate::task::TaskAlias;
use crate::when::When;
use std::sync::Arc;

/// The result of deciding a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The caller has to load these records and decide the command again.
    Need(Vec<RecordKey>),
    /// The command is rejected.
    Reject(Rejection),
    /// The command is decided. The caller commits the unit and performs its effects.
    Done(DecidedUnit),
}

/// What a decision writes, and the effects that follow the commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecidedUnit {
    /// Records that are written or deleted, all or none. Each key occurs once.
    pub changes: Vec<RecordChange>,
    /// Locks that are taken in the same commit.
    pub take: Vec<LockTake>,
    /// Locks that are released in the same commit.
    pub free: Vec<LockRelease>,
    /// Effects that are performed after the commit, in addition to those that the new records owe. It is harmless to
    /// lose them in a crash.
    pub effects: Vec<Effect>,
    /// The reply to the caller.
    pub answer: CommandReply,
}

/// A change of one record.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordChange {
    /// Write the record.
    Put(Record),
    /// Delete the record.
    Delete(RecordKey),
}

impl RecordChange {
    /// The key of the record.
    pub fn key(&self) -> RecordKey {
        match self {
            Self::Put(record) => record.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

/// A lock that a unit takes. The whole unit fails if another holder has the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTake {
    /// The name of the lock.
    pub lock: LockName,
    /// The run that holds it.
    pub holder: RunId,
    /// Time after which the lock expires unless it is renewed; `None` if it never expires.
    pub ttl: Option<Span>,
}

/// A lock that a unit releases, if the run still holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRelease {
    /// The name of the lock.
    pub lock: LockName,
    /// The run that held it.
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
    /// Plan the end of a pause that ends by itself.
    EndPause {
        /// The job; all jobs if `None`.
        job: Option<JobId>,
        at: Instant,
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
        /// The run, in state `starting`.
        run: Arc<Run>,
    },
    /// Adopt a program that an earlier process of this node started, or find out how it ended.
    Adopt { run: Arc<Run> },
    /// Stop a run's program: send its stop signal.
    Stop { run: Arc<Run> },
    /// Send a run's program a signal.
    Signal {
        run: RunId,
        /// The signal to send.
        signal: Signal,
    },
    /// Plan the next attempt to deliver an action.
    PlanDelivery {
        action: ActionId,
        /// When to try it; `Never` cancels a planned attempt.
        at: When,
    },
    /// Make the attempt to deliver an action that this node has begun.
    Deliver { action: Arc<ActionRecord> },
    /// Plan the next decision about the pending triggers of a job.
    PlanBatch {
        job: JobId,
        /// When to decide; `Never` cancels a planned decision.
        at: When,
    },
    /// Carry out a check that a waiting run has asked this node for.
    Probe {
        /// The run.
        run: Arc<Run>,
        /// The number of the attempt, which is one of the run's.
        attempt: u32,
    },
    /// Plan a check whether a job has more finished runs than it retains.
    Prune {
        /// The job whose runs to check.
        job: JobId,
    },
}

/// The reply to the caller of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CommandReply {
    /// The command was carried out.
    #[default]
    Done,
    /// There was nothing to change.
    Unchanged,
    /// The run that the command created, or had created before.
    Run {
        /// The id of the run.
        id: RunId,
        /// The number of the run within its job.
        number: RunNumber,
    },
    /// What became of a trigger.
    Trigger {
        status: TriggerStatus,
        /// The run that stands for it, if there is one and it is known.
        run: Option<(RunId, RunNumber)>,
    },
    /// How many triggers were removed.
    Removed { triggers: u32 },
}

/// What became of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerStatus {
    /// A run stands for it.
    Run,
    /// It is pending.
    Pending,
    /// The job has received a trigger with its id in the last 24 hours, so it has no effect.
    Duplicate,
}

/// Why a command is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such job.
    #[error("there is no job `{0}`")]
    NoJob(JobId),
    /// The command was to create a job that already exists.
    #[error("the job `{0}` already exists")]
    JobThere(JobId),
    /// The job has changed since the caller read it.
    #[error("the job `{job}` has changed since it was read; its current revision is {revision}")]
    JobChanged {
        job: JobId,
        /// Its revision now.
        revision: u32,
    },
    /// There is no such run.
    #[error("there is no run {0}")]
    NoRun(RunId),
    /// No trigger with this id is pending.
    #[error("`{job}` has no pending trigger `{trigger}`")]
    NoTrigger { job: JobId, trigger: TriggerId },
    /// So many triggers of the job are pending that there is no room for another one.
    #[error(
        "too many triggers of `{0}` are pending; at most {most} with {kib} KiB of ids, args and messages are allowed",
        most = TriggerSet::PENDING_MAX,
        kib = TriggerSet::BYTES_MAX / 1024
    )]
    TooManyTriggers(JobId),
    /// There is no such node.
    #[error("there is no node {0}")]
    NoNode(NodeId),
    /// The run's state does not allow it.
    #[error(transparent)]
    State(#[from] run::TransitionRejection),
    /// The args do not match the params of the job.
    #[error(transparent)]
    Args(#[from] ArgErrors),
    /// Another run holds the lock.
    #[error("the lock `{lock}` is held by run {holder}")]
    Locked {
        lock: LockName,
        /// The run that holds it.
        holder: RunId,
    },
    /// A run was created under the idempotency key, and is no longer stored.
    #[error("the run {0} was created with this idempotency key, and is no longer kept")]
    KeyUsed(RunId),
    /// A foreign node holds the lock for a run of its own.
    #[error("the lock `{0}` is held by a foreign node")]
    LockedElsewhere(LockName),
    /// The node does not have the labels that the job requires.
    #[error("this node does not have the labels that `{0}` requires")]
    NotHere(JobId),
    /// The node is draining.
    #[error("this node is draining and does not start runs")]
    Draining,
    /// The keeper of the node cannot start programs, for this reason.
    #[error("this node cannot start programs: {0}")]
    KeeperFails(String),
    /// The command was decided on a store without a daemon.
    #[error("a run cannot be started without a daemon")]
    NotANode,
    /// Only another node may start the run.
    #[error("only node {0} may start this run")]
    OtherNode(NodeId),
    /// The run's program is on another node, and only that node can reach it.
    #[error("the program of this run is on node {0}")]
    RunsElsewhere(NodeId),
    /// The job has as many active runs as are possible.
    #[error("`{0}` already has {most} active runs, which is the maximum", most = JobState::ACTIVE_MAX)]
    TooManyActive(JobId),
    /// The pool has as many active runs as are possible.
    #[error("the pool `{0}` already has {most} active runs, which is the maximum", most = Pool::ACTIVE_MAX)]
    PoolFull(PoolName),
    /// The job belongs to another source.
    #[error("the job `{job}` {}", source_of_job.words())]
    OtherSource {
        job: JobId,
        /// The source of the job.
        source_of_job: JobSource,
    },
    /// A schedule of the job does not compile.
    #[error("the schedule of `{job}` cannot be used: `{key}`: {message}")]
    Schedule {
        job: JobId,
        /// The key of the schedule that is invalid.
        key: &'static str,
        /// Why it is invalid.
        message: String,
    },
    /// The name of the job's lock is empty or too long.
    #[error("the name of the lock of `{job}` has {length} bytes; 1 to {} are allowed", LockName::MAX)]
    Lock {
        job: JobId,
        /// The length of the name in bytes.
        length: usize,
    },
    /// The name of the job's lock is reserved for Cronhold.
    #[error(
        "the lock of `{job}` cannot be named `{lock}`: names that begin with `{}` are reserved",
        LockName::RESERVED
    )]
    ReservedLock {
        job: JobId,
        /// The name of the lock.
        lock: LockName,
    },
    /// The store cannot keep a definition of this size.
    #[error("the definition of `{job}` has {size} bytes; this store keeps at most {limit}")]
    JobTooLarge {
        job: JobId,
        /// The size of the definition in bytes, as the store encodes it.
        size: u64,
        /// The size that the store keeps at most.
        limit: u64,
    },
    /// Two schedules of the job have the same id.
    #[error("two schedules of `{job}` have the same id `{schedule}`")]
    SameSchedule {
        job: JobId,
        /// The id of both.
        schedule: ScheduleId,
    },
    /// The runs of the job are published on a channel that it names.
    #[error("the runs of `{job}` are published on `{channel}`, so it would start itself")]
    TriggersItself { job: JobId, channel: String },
    /// The id of a job with triggers is too long for the alias of its task.
    #[error("the id `{0}` is too long for a job with `triggers`; at most {most} bytes are allowed", most = TaskAlias::TRIGGER_JOB_MAX)]
    TriggerName(JobId),
    /// The args of a trigger cannot be bound to its message.
    #[error("the arg `{name}` of the trigger of `{job}` does not fit the message: {message}")]
    TriggerArg { job: JobId, name: String, message: String },
    /// A message is too large for a trigger.
    #[error("a message for `{job}` has {bytes} bytes; at most {} are allowed", TriggerMessage::BYTES_MAX)]
    MessageTooLarge { job: JobId, bytes: usize },
    /// The job uses something that needs tasks, and the store does not keep any.
    #[error("{} of `{job}` need tasks, and {STORE_WITHOUT_TASKS}", feature.noun())]
    NeedsTasks {
        job: JobId,
        /// What needs tasks.
        feature: Feature,
    },
    /// An ad hoc run was requested with a key that starts further runs.
    #[error("an ad hoc run cannot have `{0}`")]
    AdHocKey(&'static str),
    /// The id belongs to the job of an ad hoc run, which cannot be changed.
    #[error("the job `{0}` belongs to an ad hoc run and cannot be created or changed")]
    AdHocJob(JobId),
    /// The job comes from a job file, so its name is that of the file.
    #[error("the job `{job}` {} and cannot be renamed by a command", source_of_job.words())]
    RenameOfFile {
        job: JobId,
        /// The source of the job.
        source_of_job: JobSource,
    },
    /// The job was renamed, and its runs have not all moved yet.
    #[error("runs of `{0}` are being moved to its new name")]
    Renaming(JobId),
    /// There is no job of the new name, but runs of an earlier one.
    #[error("runs of a removed job `{0}` are still kept")]
    NameHasRuns(JobId),
    /// Programs of the job run.
    #[error("`{job}` has {count} active {}", if *count == 1 { "run" } else { "runs" })]
    HasActiveRuns { job: JobId, count: usize },
    /// The records that the change writes together are too large for one commit.
    #[error("the change writes {count} records with {size} bytes; this store writes at most {limit} bytes together")]
    ChangeTooLarge {
        count: usize,
        /// The size of the records in bytes, as the store encodes them.
        size: u64,
        /// The size that the store writes at most.
        limit: u64,
    },
    /// More runs wait to start than one commit can rename.
    #[error(
        "`{job}` has {count} runs that have not started; at most {} can be renamed",
        crate::decide::RENAMED_PENDING_MAX
    )]
    TooManyPending { job: JobId, count: usize },
    /// Runs of the job were created while it was being renamed.
    #[error("runs of `{0}` were created in the meantime")]
    RunsCreated(JobId),
    /// A run would be stopped before it starts.
    #[error("a run cannot be stopped at {0}, which is not after its start")]
    StopBeforeStart(Instant),
    /// A pause would end before it begins.
    #[error("a pause cannot end at {0}, which has passed")]
    PauseUntil(Instant),
    /// The job, or all jobs for `None`, are already paused.
    #[error("{} is already paused", pause_target(.0.as_ref()))]
    Paused(Option<JobId>),
    /// The job, or all jobs for `None`, are not paused.
    #[error("{} is not paused", pause_target(.0.as_ref()))]
    NotPaused(Option<JobId>),
}

impl Rejection {
    /// Whether the command would have changed nothing, so that a caller may treat it as done.
    pub fn is_so_already(&self) -> bool {
        matches!(self, Self::Paused(_) | Self::NotPaused(_) | Self::State(run::TransitionRejection::MarkSame(_)))
    }

    /// What the caller can do instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoJob(_) => Some("`cronhold list` shows the jobs"),
            Self::JobThere(_) => Some("choose another name, or change the existing job with `cronhold upd`"),
            Self::JobChanged { .. } => Some("review the current version with `cronhold show`, then repeat the change"),
            Self::NoRun(_) => Some("`cronhold runs` shows the runs; old ones are not kept"),
            Self::NoNode(_) => Some("`cronhold nodes` shows the nodes"),
            Self::NoTrigger { .. } => Some("`cronhold triggers` shows the pending triggers of a job"),
            Self::TooManyTriggers(_) => {
                Some("wait until runs have taken some of them, or remove them with `cronhold triggers --clear`")
            }
            Self::State(rejection) => rejection.hint(),
            Self::Locked { .. } => Some("stop that run, or wait until it ends"),
            Self::KeyUsed(_) => Some("use another key for another run"),
            Self::LockedElsewhere(_) => {
                Some("wait until its run ends; `cronhold runs --peers` shows the runs of foreign nodes")
            }
            Self::NotHere(_) => Some("send the request to a node that has them; `cronhold nodes` shows the labels"),
            Self::Draining => {
                Some("send the request to another node, or end the draining with `cronhold drain --undo`")
            }
            Self::KeeperFails(_) => {
                Some("send the request to another node; the node starts runs again as soon as its keeper works")
            }
            Self::NotANode => Some("connect to a daemon; a daemon starts waiting runs when they are due"),
            Self::OtherNode(_) => Some("send the request to that node; `cronhold nodes` shows the nodes"),
            Self::RunsElsewhere(_) => {
                Some("send the request to that node; `cronhold stop` and `cronhold kill` work from any node")
            }
            Self::TooManyActive(_) | Self::PoolFull(_) => Some("wait until one of them ends"),
            Self::OtherSource { source_of_job: JobSource::Directory(_), .. } => Some("change or remove its job file"),
            Self::OtherSource { .. } => Some("change it where it was created, or choose another name"),
            Self::Lock { .. } | Self::ReservedLock { .. } => Some("choose another name for the lock"),
            Self::RenameOfFile { .. } => Some("rename its file; the runs under the old name are kept for 30 days"),
            Self::Renaming(_) => Some("try again in a few seconds"),
            Self::NameHasRuns(_) => {
                Some("choose another name, or wait: runs of a removed job are deleted after 30 days")
            }
            Self::HasActiveRuns { .. } => {
                Some("pause the job and wait until its runs have ended, or stop them with `cronhold stop`")
            }
            Self::TooManyPending { .. } => Some("wait until they have started, or skip them with `cronhold skip`"),
            Self::RunsCreated(_) => Some("try again; pause the job if it runs very often"),
            Self::PauseUntil(_) => Some("give a time in the future"),
            Self::StopBeforeStart(_) => Some("give a later time"),
            Self::TriggersItself { .. } => Some("name a channel of another job, such as /cronhold/run/JOB/success"),
            Self::TriggerName(_) => Some("choose a shorter name"),
            Self::TriggerArg { .. } => Some("change the template of the arg, or what is published"),
            Self::MessageTooLarge { .. } => Some("publish where the data is, instead of the data"),
            Self::NeedsTasks { .. } => Some(TASKS_HINT),
            Self::AdHocKey(_) => Some("remove it; a job that runs more than once is created with `cronhold add`"),
            Self::AdHocJob(_) => Some("choose another name"),
            Self::JobTooLarge { .. } => {
                Some("move long scripts and texts into files that the program reads, or use a store without this limit")
            }
            Self::ChangeTooLarge { .. } => Some(
                "wait until waiting runs have started, or skip them with `cronhold skip`; on ZooKeeper, `jute.maxbuffer` of \
                 the servers and `max_bytes` in the URL set the limit",
            ),
            Self::SameSchedule { .. } => Some("give one of them a different `name`"),
            Self::Args(_) | Self::Schedule { .. } | Self::Paused(_) | Self::NotPaused(_) => None,
        }
    }
}

fn pause_target(job: Option<&JobId>) -> String {
    job.map_or_else(|| "everything".to_owned(), |job| format!("the job `{job}`"))
}
