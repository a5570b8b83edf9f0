//! What can be asked of the core: one closed list. Every input of a node becomes one of these, stamped with time, actor
//! and node, because a decision cannot ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use crate::ids::{JobId, JobUid, NodeId, RunId};
use crate::job::Job;
use crate::record::{Actor, Exit, LockName, Owner, ScheduleId, Source, Written};
use crate::run::{Reason, State};
use crate::signal::Signal;

/// When, by whom and where something was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// When.
    pub at: Instant,
    /// By whom.
    pub actor: Actor,
    /// On which node.
    pub owner: Owner,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// An occurrence is due: claim it.
    Fire {
        /// Whose.
        job: JobId,
        /// Of which schedule.
        schedule: ScheduleId,
        /// Which.
        nominal: Instant,
        /// Whether it is the start of a node rather than a time: a schedule may be of the other kind by now.
        at_start: bool,
    },
    /// The next occurrence of a backlog may start.
    CatchUp {
        /// Whose.
        job: JobId,
        /// Of which schedule.
        schedule: ScheduleId,
    },
    /// Compute the next occurrences of a job again: zone data or calendars are others, or a cursor is too far ahead.
    Replan {
        /// Whose.
        job: JobId,
        /// Whether zone data that is older than that of the cursors counts: on a store of one node nobody has newer.
        even_older: bool,
    },
    /// Someone wants a run.
    Run {
        /// Of which job.
        job: JobId,
        /// With which args.
        args: BTreeMap<String, String>,
        /// Its id, from an idempotency key or chance: asked again, it is the same run.
        id: RunId,
        /// Its time, when it is not now.
        at: Option<Instant>,
    },
    /// Look at a run: its time may have come, or nothing may be in its way any longer.
    Wake {
        /// Which.
        run: RunId,
    },
    /// What became of a run's program.
    Report {
        /// Of which run.
        run: RunId,
        /// What.
        report: Report,
    },
    /// Someone wants a run not to wait any longer.
    Start {
        /// Which.
        run: RunId,
    },
    /// Someone wants a run not to start.
    Skip {
        /// Which.
        run: RunId,
        /// Why, if they said so.
        why: String,
    },
    /// Someone wants a run's program to end.
    Stop {
        /// Which.
        run: RunId,
    },
    /// Someone wants to send a signal; SIGKILL is how a run is killed.
    Signal {
        /// Which.
        run: RunId,
        /// What.
        signal: Signal,
    },
    /// Someone wants a finished run to count as something else.
    Mark {
        /// Which.
        run: RunId,
        /// As what.
        state: State,
        /// Why, if they said so.
        why: String,
    },
    /// Someone wants a finished run once more.
    Rerun {
        /// Which.
        run: RunId,
        /// The id of the new one.
        id: RunId,
        /// Whether what it does is bound again from the job as it is now.
        anew: bool,
    },
    /// Start nothing by itself any more.
    Pause {
        /// Which job; everything, when absent.
        job: Option<JobId>,
        /// Why, if they said so.
        why: String,
    },
    /// Start things by itself again.
    Resume {
        /// Which job; everything, when absent.
        job: Option<JobId>,
    },
    /// Make or change a job.
    PutJob {
        /// Its id.
        id: JobId,
        /// What it is.
        job: Arc<Job>,
        /// Where it comes from.
        source: Source,
        /// Its uid, if it is new.
        uid: JobUid,
        /// What must be there now, so that nobody overwrites what they have not seen.
        provided: Provided,
    },
    /// Remove a job.
    RemoveJob {
        /// Its id.
        id: JobId,
        /// Who wants it; only the source of a job may remove it.
        source: Source,
        /// What must be there now, so that nobody removes what they have not seen.
        provided: Provided,
    },
    /// A run's node was not heard of for as long as it takes: the run is lost.
    Reap {
        /// Which.
        run: RunId,
        /// When its node was heard of last, as it was seen all that time. If it was heard of since, nothing is lost.
        beat: Instant,
    },
    /// Someone wants a node to start nothing any more, or to start things again.
    Drain {
        /// Which.
        node: NodeId,
        /// Whether it is to drain.
        on: bool,
    },
    /// A node wants to be the only one that does something, for as long as it is heard of.
    Hold {
        /// What that is called.
        lock: LockName,
        /// In whose name it is held.
        holder: RunId,
        /// How long it is held without being renewed.
        ttl: Span,
    },
    /// What was held is free again.
    LetGo {
        /// What.
        lock: LockName,
        /// In whose name it was held.
        holder: RunId,
    },
    /// Everybody has heard an event that asks for something; whoever comes first does it, and the others leave it.
    Event {
        /// The lock that tells whether somebody was first; see [`LockName::of_event`].
        once: LockName,
        /// In whose name it is taken: something that no other node has.
        holder: RunId,
        /// What the event asks for.
        command: Box<Command>,
    },
    /// Forget finished runs that are not kept any longer.
    Prune {
        /// Of which job.
        job: JobId,
        /// Which; those that must not go yet stay.
        runs: Vec<RunId>,
    },
}

/// What must be there for a job to be put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provided {
    /// Whatever it is.
    #[default]
    Any,
    /// No job of that name.
    New,
    /// A job of that name.
    There,
    /// This job, as it was when someone looked at it.
    As {
        /// Which job of that name.
        uid: JobUid,
        /// In which revision.
        revision: u32,
    },
}

/// What became of a run's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It has started, or is found to be there.
    Launched,
    /// It has ended.
    Ended(Verdict),
    /// It could not be started.
    NotLaunched(String),
    /// Whoever should have it does not know it: it is gone, and nobody can say how it ended.
    Lost,
    /// The keeper that had it was lost, and its program is gone with it.
    KeeperLost,
    /// The lock that it runs under could not be renewed: it has to end.
    LockLost,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it said yes.
    pub success: bool,
    /// What it said; nothing for a plain success.
    pub reason: Option<Reason>,
    /// Its exit, when it was a process.
    pub exit: Option<Exit>,
    /// What it wrote, when it was a process.
    pub written: Option<Written>,
}

impl Verdict {
    /// A plain success.
    pub const SUCCESS: Self = Self { success: true, reason: None, exit: None, written: None };
}
