//! Commands: the closed list of what can happen to jobs and runs. Every input of a node becomes one of these, stamped
//! with time, actor and node, because a decision may not read a clock or know where it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use crate::ids::{JobId, JobUid, NodeId, RunId};
use crate::job::Job;
use crate::record::{Actor, JobSource, LockName, OutputSummary, ProgramExit, RunOwner, ScheduleId};
use crate::run::{Reason, State};
use crate::signal::Signal;

/// When, by whom and on which node a command was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStamp {
    /// The time of the decision, by the node's estimate of the store's clock.
    pub at: Instant,
    /// Who or what gave the command.
    pub actor: Actor,
    /// The node that decides, with its incarnation. It owns the runs that the decision starts.
    pub owner: RunOwner,
}

/// Something that is to be decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Claim an occurrence that is due.
    Fire {
        /// The job.
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
        /// The job.
        job: JobId,
        /// The schedule that has the backlog.
        schedule: ScheduleId,
    },
    /// Compute the next occurrences of a job again, because zone data or calendars have changed or a cursor is too far
    /// ahead.
    Replan {
        /// The job.
        job: JobId,
        /// Whether to do so with zone data that is older than that of the cursors. On a store with one node, no other
        /// node has newer data.
        even_older: bool,
    },
    /// Create a run by hand.
    Run {
        /// The job.
        job: JobId,
        /// The args by name.
        args: BTreeMap<String, String>,
        /// The id of the new run, from an idempotency key or random. A second command with the same id creates nothing.
        id: RunId,
        /// When the run starts; now, when absent.
        at: Option<Instant>,
    },
    /// Check a run: its time may have come, or what blocked it may be gone.
    Wake {
        /// The run.
        run: RunId,
    },
    /// A run's program has changed its state.
    Report {
        /// The run.
        run: RunId,
        /// What happened to the program.
        report: ProgramReport,
    },
    /// Start a scheduled or waiting run now.
    Start {
        /// The run.
        run: RunId,
    },
    /// Skip a run that has not started.
    Skip {
        /// The run.
        run: RunId,
        /// The operator's reason; may be empty.
        why: String,
    },
    /// Stop a run's program.
    Stop {
        /// The run.
        run: RunId,
    },
    /// Send a signal to a run's program. SIGKILL marks the run as killed.
    Signal {
        /// The run.
        run: RunId,
        /// The signal.
        signal: Signal,
    },
    /// Change the state of a finished run by hand.
    Mark {
        /// The run.
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
        /// Whether the program is bound again from the job's current definition.
        anew: bool,
    },
    /// Pause a job, or all jobs.
    Pause {
        /// The job; all jobs, when absent.
        job: Option<JobId>,
        /// The operator's reason; may be empty.
        why: String,
    },
    /// Resume a job, or all jobs.
    Resume {
        /// The job; all jobs, when absent.
        job: Option<JobId>,
    },
    /// Create or change a job.
    PutJob {
        /// The job's id.
        id: JobId,
        /// Its definition.
        job: Arc<Job>,
        /// Where the definition comes from. Only the same source may change the job later.
        source: JobSource,
        /// The uid of the job, if it is new.
        uid: JobUid,
        /// What must be stored now, so that a change that the caller has not seen is not overwritten.
        provided: Precondition,
    },
    /// Remove a job.
    RemoveJob {
        /// The job's id.
        id: JobId,
        /// Who removes it; only the source of a job may remove it.
        source: JobSource,
        /// What must be stored now, so that a change that the caller has not seen is not removed.
        provided: Precondition,
    },
    /// Declare a run lost, because its node has sent no heartbeat for too long.
    Reap {
        /// The run.
        run: RunId,
        /// The last heartbeat that the observer saw. If there was one since, the run is not lost.
        beat: Instant,
    },
    /// Drain a node, or let it start runs again.
    Drain {
        /// The node.
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
    /// Release a lock that was acquired by [`Self::Hold`].
    ReleaseLock {
        /// The name of the lock.
        lock: LockName,
        /// The holder's token.
        holder: RunId,
    },
    /// Carry out a command that all nodes have received as an event. The first node does it; the others do nothing.
    Event {
        /// The lock that says whether another node was first; see [`LockName::of_event`].
        once: LockName,
        /// The token of this node, which no other node uses.
        holder: RunId,
        /// The command of the event.
        command: Box<Command>,
    },
    /// Delete finished runs and spans of skips that are not kept any longer.
    Prune {
        /// The job.
        job: JobId,
        /// The runs. Those that must not be deleted yet stay.
        runs: Vec<RunId>,
        /// The spans of skips. One that may still be extended stays.
        spans: Vec<RunId>,
    },
}

/// What must be stored for a job to be put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precondition {
    /// No requirement.
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
        /// Its revision.
        revision: u32,
    },
}

/// What happened to a run's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramReport {
    /// It has started, or was found running.
    Launched,
    /// It has ended.
    Ended(ExitOutcome),
    /// It could not be started; the reason.
    NotLaunched(String),
    /// The keeper does not know it, so it is gone and its result is unknown.
    Lost,
    /// The keeper that owned it is gone, and has taken the program with it.
    KeeperLost,
    /// Its lock could not be renewed, so it has to end.
    LockLost,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitOutcome {
    /// Whether the program succeeded.
    pub success: bool,
    /// Why it ended so; `None` for a plain success.
    pub reason: Option<Reason>,
    /// The exit code or signal of a process.
    pub exit: Option<ProgramExit>,
    /// The size and the last lines of a process's output.
    pub written: Option<OutputSummary>,
}

impl ExitOutcome {
    /// A plain success.
    pub const SUCCESS: Self = Self { success: true, reason: None, exit: None, written: None };
}
