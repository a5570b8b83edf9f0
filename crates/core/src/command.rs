//! Commands: the closed list of everything that can change jobs and runs. Every input of a node becomes one of these,
//! stamped with time, actor and node, because a decision may not read a clock or know where it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use crate::ids::{JobId, JobUid, NodeId, RunId};
use crate::job::Job;
use crate::plugin::PluginProgress;
use crate::record::{
    ActionId, Actor, JobSource, LockName, OutputSummary, PoolName, ProgramExit, Record, RecordKey, RecordVersion,
    ResponseSummary, RunOwner, ScheduleId, StoredRecord, TriggerId, TriggerMessage,
};
use crate::run::{Reason, State};
use crate::signal::Signal;

/// The time, the actor and the node of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStamp {
    /// The time of the decision, by the node's estimate of the store's clock.
    pub at: Instant,
    /// Who or what issued the command.
    pub actor: Actor,
    /// The node that decides, with its incarnation. It owns the runs that the decision starts.
    pub owner: RunOwner,
}

/// A request to change jobs or runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Claim an occurrence that is due.
    Fire {
        job: JobId,
        /// The schedule that has the occurrence.
        schedule: ScheduleId,
        /// The nominal time of the occurrence.
        nominal: Instant,
        /// Whether the occurrence is the start of a node rather than a time. The schedule may have changed since.
        at_start: bool,
    },
    /// Start the next occurrence of a backlog, if nothing blocks it.
    CatchUp {
        job: JobId,
        /// The schedule that has the backlog.
        schedule: ScheduleId,
    },
    /// Recompute the next occurrences of a job, because zone data or calendars have changed or a cursor is too far
    /// ahead.
    Replan { job: JobId },
    /// Repair the records of a job if they contradict each other: sets that name runs which are gone, and cursors that
    /// are missing or do not belong to the job as it is. A store that loses some of its last writes leaves such
    /// records.
    RepairJob {
        /// The job.
        job: JobId,
    },
    /// Repair a pool that names runs which are gone or have ended.
    RepairPool { pool: PoolName },
    /// Create a run that an operator or a client requested.
    Run {
        job: JobId,
        /// The args by name.
        args: BTreeMap<String, String>,
        /// The id of the new run, from an idempotency key or random. A second command with the same id creates nothing.
        id: RunId,
        /// When the run starts; now if `None`.
        at: Option<Instant>,
        /// When its program is stopped; `None` if it may run until its timeout.
        stop: Option<StopTime>,
    },
    /// Create a run of a job that is not among the stored jobs. Its definition is stored for this run alone, under
    /// [`JobId::of_ad_hoc_run`].
    RunAdHoc {
        /// The definition. It must have neither schedules nor triggers.
        job: Arc<Job>,
        /// The args by name.
        args: BTreeMap<String, String>,
        /// The id of the new run, from an idempotency key or random. A second command with the same id creates nothing.
        id: RunId,
        /// When the run starts; now if `None`.
        at: Option<Instant>,
        /// When its program is stopped; `None` if it may run until its timeout.
        stop: Option<StopTime>,
    },
    /// Receive a trigger of a job, which may become a run at once or later.
    Trigger {
        job: JobId,
        /// The args by name.
        args: BTreeMap<String, String>,
        trigger: TriggerId,
        /// The message that it stands for, which gives it the args that the job has for its channel. `None` if it does
        /// not come from a channel.
        message: Option<Box<TriggerMessage>>,
        /// The id of the run that the trigger creates if the job has no batching policy. It also identifies the
        /// command: a second one with the same id gets the same reply.
        id: RunId,
    },
    /// Create the runs that the batching policy of a job allows for its pending triggers.
    Batch { job: JobId },
    /// Remove pending triggers of a job.
    RemoveTriggers {
        job: JobId,
        /// The trigger; all pending ones if `None`.
        trigger: Option<TriggerId>,
    },
    /// Check a run: it may be due, or nothing may block it any longer.
    Wake { run: RunId },
    /// A run's program has changed its state.
    Report {
        run: RunId,
        /// What happened to the program.
        report: ProgramReport,
    },
    /// A check that a waiting run has asked for has an answer.
    ReportProbe {
        run: RunId,
        /// The number of the attempt.
        attempt: u32,
        result: ProbeResult,
    },
    /// Start a scheduled or waiting run now.
    Start { run: RunId },
    /// Skip a run that has not started.
    Skip {
        run: RunId,
        /// The operator's reason; may be empty.
        why: String,
    },
    /// Stop a run's program.
    Stop { run: RunId },
    /// Send a signal to a run's program. SIGKILL marks the run as killed.
    Signal { run: RunId, signal: Signal },
    /// Change the state of a finished run by hand.
    Mark {
        run: RunId,
        /// Its new state.
        state: State,
        /// The operator's reason; may be empty.
        why: String,
    },
    /// End a run whose record cannot be read: replace the record by one in a finished state.
    EndUnreadable {
        /// The job that counts the run as active or waiting.
        job: JobId,
        run: RunId,
        /// Its new state.
        state: State,
        /// The operator's reason; may be empty.
        why: String,
    },
    /// Run a finished run again.
    Rerun {
        /// The finished run.
        run: RunId,
        /// The id of the new run. A second command with the same id creates nothing.
        id: RunId,
        /// Whether the program is bound again from the job's current definition instead of copied from the run.
        current: bool,
    },
    /// Pause a job, or all jobs. If it is paused already, this changes when the pause ends.
    Pause {
        /// The job; all jobs if `None`.
        job: Option<JobId>,
        /// The operator's reason; may be empty.
        why: String,
        /// When the pause ends by itself; `None` if only a resume ends it.
        until: Option<Instant>,
    },
    /// End a pause whose time has passed.
    EndPause {
        /// The job; all jobs if `None`.
        job: Option<JobId>,
    },
    /// Resume a job, or all jobs.
    Resume {
        /// The job; all jobs if `None`.
        job: Option<JobId>,
    },
    /// Create or change a job.
    PutJob {
        /// The job's id.
        id: JobId,
        job: Arc<Job>,
        /// Where the definition comes from. Only the same source may change the job later.
        source: JobSource,
        /// The uid of the job, if it is new.
        uid: JobUid,
        /// What must be stored now, so that the command does not overwrite a change that the caller has not seen.
        provided: Precondition,
    },
    /// Remove a job.
    RemoveJob {
        /// The job's id.
        id: JobId,
        /// The source that removes it; only the source of a job may remove it.
        source: JobSource,
        /// What must be stored now, so that the command does not remove a job that the caller has not seen.
        provided: Precondition,
    },
    /// Rename a job. Its finished runs follow by [`Self::MoveHistory`].
    RenameJob {
        from: JobId,
        to: JobId,
        /// Its runs with a later time, as the store listed them.
        scheduled: Vec<RunId>,
        /// The number of its next run before they were listed. If a run was created since, the command is rejected.
        next_number: u64,
    },
    /// Move finished runs and outcomes of a job that was renamed. Without keys, the rename is complete.
    MoveHistory {
        /// The new name.
        to: JobId,
        /// Keys of runs, spans of skips and identities under the old name.
        keys: Vec<RecordKey>,
    },
    /// Declare a run lost, because its node has sent no heartbeat for too long.
    Reap {
        run: RunId,
        /// The last heartbeat that the observer saw. If the node has sent another one since, the run is not lost.
        beat: Instant,
    },
    /// Drain a node, or let it start runs again.
    Drain {
        node: NodeId,
        /// Whether it drains from now on.
        on: bool,
    },
    /// Acquire a lock for a node rather than for a run, such as that of a job file loader. The node renews it with each
    /// heartbeat.
    AcquireLock {
        /// The name of the lock.
        lock: LockName,
        /// The holder's token.
        holder: RunId,
        /// How long the lock is held without being renewed.
        ttl: Span,
    },
    /// Release a lock that [`Self::AcquireLock`] acquired.
    ReleaseLock {
        /// The name of the lock.
        lock: LockName,
        /// The holder's token.
        holder: RunId,
    },
    /// Carry out a command that all nodes have received as an event. The first node does it; the others do nothing.
    Event {
        /// The lock that the first node takes; see [`LockName::of_event`].
        once: LockName,
        /// The token of this node, which no other node uses.
        holder: RunId,
        /// The command of the event.
        command: Box<Command>,
    },
    /// Carry out a command that creates a run, unless a run was created under the same key in the last 24 hours.
    Keyed {
        /// The mark of the key; see [`LockName::of_request`].
        key: LockName,
        /// The command: [`Self::Run`], [`Self::RunAdHoc`] or [`Self::Rerun`].
        command: Box<Command>,
    },
    /// Delete records that have expired. Those that have not, or no longer, are kept.
    Expire {
        /// Keys of identities, of nodes that own no run, of ad hoc jobs whose runs have ended, and of the states of removed
        /// jobs that have no runs.
        keys: Vec<RecordKey>,
        /// Records that have not been used since then are deleted.
        before: Instant,
    },
    /// Delete finished runs and spans of skips that the job no longer retains.
    Prune {
        job: JobId,
        /// What the store lists as the oldest. Records that have changed since or must not be deleted yet, and those that
        /// the job retains, are kept.
        records: Vec<PrunableRecord>,
    },
    /// Try an action of a run that is not done, if it is due.
    Deliver { action: ActionId },
    /// An attempt to deliver an action has ended.
    ReportDelivery {
        action: ActionId,
        /// The number of the attempt; the first is 1.
        attempt: u32,
        result: DeliveryResult,
    },
}

/// When the program of a requested run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopTime {
    At(Instant),
    /// This long after the nominal time of the run.
    After(Span),
}

/// What a check of the outside found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// Whether the condition holds.
    pub holds: bool,
    /// What the check found, for users, if the condition does not hold.
    pub message: String,
}

/// How an attempt to deliver an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The receiver has accepted it.
    Delivered,
    /// It may or may not have been received, for this reason.
    Failed(String),
}

/// A finished run or a span of skips as the store lists it. It need not be loaded to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunableRecord {
    pub key: RecordKey,
    pub version: RecordVersion,
    /// The state as which it is listed.
    pub state: State,
    /// Its occurrence, or the first one of a span.
    pub nominal: Instant,
    /// Its occurrence, or the last one of a span.
    pub until: Instant,
    /// Its next attempt.
    pub retried_by: Option<RunId>,
    /// How many actions it has caused.
    pub actions: u32,
}

impl PrunableRecord {
    /// The entry of a record in a list of finished runs; `None` for records of other kinds.
    pub fn new(stored: &StoredRecord) -> Option<Self> {
        let (key, version) = (stored.record.key(), stored.version);
        match &stored.record {
            Record::Run(run) => {
                let (state, nominal, retried_by) = (run.state, run.nominal, run.retried_by);
                Some(Self { key, version, state, nominal, until: nominal, retried_by, actions: run.actions })
            }
            Record::SkipSpan(span) => {
                let (state, nominal, until) = (State::Skipped, span.nominal(), span.range.to);
                Some(Self { key, version, state, nominal, until, retried_by: None, actions: span.actions })
            }
            _ => None,
        }
    }

    /// The entry of a record that cannot be read, listed in a state.
    pub fn unreadable(run: RunId, version: RecordVersion, state: State) -> Self {
        let nominal = run.time();
        Self { key: RecordKey::Run(run), version, state, nominal, until: nominal, retried_by: None, actions: 0 }
    }
}

/// What must be stored for a job to be put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precondition {
    #[default]
    Any,
    /// No job of that name.
    New,
    /// A job of that name.
    There,
    /// The job that the caller has seen.
    As {
        /// Its uid. A job that was removed and created again has another one.
        uid: JobUid,
        revision: u32,
    },
}

/// What happened to a run's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramReport {
    /// It has started, or was found running.
    Launched,
    /// The remote service has started its task, which this JSON text identifies.
    TaskStarted(String),
    /// It has reported how far it is.
    Progress(PluginProgress),
    /// It has ended.
    Ended(ExitOutcome),
    /// It could not be started, for this reason.
    NotLaunched(String),
    /// The keeper has no record of it, so it is gone and its result is unknown.
    Lost,
    /// The keeper that owned it died, and the program with it.
    KeeperLost,
    /// Its lock could not be renewed, so the program must end.
    LockLost,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitOutcome {
    /// Whether the program succeeded.
    pub success: bool,
    /// Why it succeeded or failed; `None` for a plain success.
    pub reason: Option<Reason>,
    /// The exit code or signal of a process.
    pub exit: Option<ProgramExit>,
    /// The size and the last lines of a process's output.
    pub written: Option<OutputSummary>,
    /// The response of the service that the program used.
    pub response: Option<Box<ResponseSummary>>,
}

impl ExitOutcome {
    /// A plain success.
    pub const SUCCESS: Self = Self { success: true, reason: None, exit: None, written: None, response: None };
}
