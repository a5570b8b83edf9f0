//! A run as it is stored.

use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Actor, LockName, Owner, ScheduleId};
use crate::args::Args;
use crate::ids::{JobId, JobUid, RunId, RunNumber};
use crate::job::StopPolicy;
use crate::policy::catch_up::Stretch;
use crate::run::{Reason, State};
use crate::signal::Signal;

/// One run of a job, or one record that stands for many occurrences that were skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Its number in its job.
    pub number: RunNumber,
    /// The job.
    pub job: JobId,
    /// Which of the jobs of that name.
    pub uid: JobUid,
    /// Its args.
    pub args: Args,
    /// The schedule that made it; none when someone asked for it.
    pub schedule: Option<ScheduleId>,
    /// The instant it is for.
    pub nominal: Instant,
    /// Where it stands.
    pub state: State,
    /// Why it ended so.
    pub reason: Option<Reason>,
    /// 1, and one more with each retry.
    pub attempt: u32,
    /// The failed run that it tries again.
    pub retry_of: Option<RunId>,
    /// The run that tries it again.
    pub retried_by: Option<RunId>,
    /// The run that someone wanted again.
    pub rerun_of: Option<RunId>,
    /// The node that has its program, from `starting` on.
    pub owner: Option<Owner>,
    /// What it does, with everything bound; none when it was never to start.
    pub work: Option<Work>,
    /// The lock it holds while it has a program.
    pub lock: Option<LockName>,
    /// How long it may take and how it is stopped.
    pub terms: Terms,
    /// Why it was told to end, when it was.
    pub ending: Option<Reason>,
    /// By when something has to happen: its time comes, it is looked at again, it is stopped or killed.
    pub due: Option<Instant>,
    /// How its program ended.
    pub exit: Option<Exit>,
    /// Every state it entered.
    pub log: Vec<Transition>,
    /// The occurrences it stands for, when it is not one run but a span of skips.
    pub span: Option<Stretch>,
}

/// One state that a run entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When.
    pub at: Instant,
    /// Which.
    pub state: State,
    /// Who made it so.
    pub actor: Actor,
    /// What there was to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a run does. Everything is bound: nothing depends on the job any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Nothing, for as long as it says.
    Noop(Span),
    /// A command line for a shell.
    Shell(String),
    /// A program and its arguments.
    Exec(Vec<String>),
    /// A kind of program that this version describes but cannot run.
    Unsupported(String),
}

/// How long a run may take and how it is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// How long its program may run.
    pub timeout: Option<Span>,
    /// When it is stopped in any case.
    pub stop_at: Option<Instant>,
    /// The first signal.
    pub signal: Signal,
    /// Time between that and SIGKILL.
    pub grace: Span,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(Signal),
}

impl Default for Terms {
    fn default() -> Self {
        let StopPolicy { signal, grace } = StopPolicy::default();
        Self { timeout: None, stop_at: None, signal, grace }
    }
}

impl Run {
    /// When it entered a state last.
    pub fn entered(&self, state: State) -> Option<Instant> {
        self.log.iter().rev().find(|transition| transition.state == state).map(|transition| transition.at)
    }

    /// When it ended.
    pub fn finished(&self) -> Option<Instant> {
        self.log.last().filter(|_| self.state.is_finished()).map(|transition| transition.at)
    }

    /// Who made it.
    pub fn creator(&self) -> Option<&Actor> {
        self.log.first().map(|transition| &transition.actor)
    }

    /// Whether someone asked for it by name. Such a run starts even while its job is paused.
    pub fn is_by_operator(&self) -> bool {
        self.creator().is_some_and(Actor::is_operator)
    }
}
