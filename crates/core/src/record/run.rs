//! A run as it is stored.

use std::collections::BTreeMap;

use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{Actor, LockName, Owner, ScheduleId};
use crate::args::Args;
use crate::ids::{JobId, JobUid, NodeId, RunId, RunNumber};
use crate::job::{Limits, StopPolicy};
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
    /// The only node that may start it: its job has a run on each.
    pub target: Option<NodeId>,
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
    /// What its program wrote; known when it has ended.
    pub written: Option<Written>,
    /// Every state it entered.
    pub log: Vec<Transition>,
    /// The occurrences it stands for, when it is not one run but a span of skips.
    pub span: Option<Stretch>,
}

/// An entry of a run's log. Almost all of them are states that the run entered; [`Self::kind`] tells the others apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When it happened, by the clock of the decision.
    pub at: Instant,
    /// The run's state from then on.
    pub state: State,
    /// Who or what caused it.
    pub actor: Actor,
    /// An explanation for people; empty when there is nothing to explain. No code may depend on its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the entry records.
    #[serde(default, skip_serializing_if = "TransitionKind::is_default")]
    pub kind: TransitionKind,
}

/// What an entry of a run's log records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransitionKind {
    /// The run entered the entry's state.
    #[default]
    Entered,
    /// The program of a run that was declared lost reported its result afterwards. The run's state did not change.
    LateResult,
}

/// What a run does. Everything is bound: nothing depends on the job any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Nothing, for as long as it says.
    Noop(Span),
    /// A process.
    Process(Box<Process>),
    /// A kind of program that this version describes but cannot run.
    Unsupported(String),
}

/// A process that a run starts. Secrets are named, not held: they are read when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// What is executed.
    pub command: CommandLine,
    /// What the job adds to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, EnvText>,
    /// Where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its file mode mask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Exit codes that mean success.
    #[serde(default = "only_zero", skip_serializing_if = "is_only_zero")]
    pub success_codes: Vec<u8>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
}

/// What is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandLine {
    /// A text for a shell; `/bin/bash`, else `/bin/sh`, when none is named.
    Shell {
        /// The text.
        text: String,
        /// The shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shell: Option<String>,
    },
    /// A program and its arguments; never empty.
    Exec(Vec<String>),
}

/// The value of an environment variable, or where it is to be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvText {
    /// The value.
    Text(String),
    /// In a file on the node.
    File(String),
    /// In a variable of the daemon.
    Env(String),
}

/// How much a program wrote, and its last lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// The last lines, as text.
    pub tail: Vec<String>,
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
    /// How long its program may live without its node being heard of, on a store that nodes share; without end when
    /// absent. What must not run beside something else has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
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

impl Transition {
    /// A run entered a state, and there is nothing to explain.
    pub const fn entered(at: Instant, state: State, actor: Actor) -> Self {
        Self { at, state, actor, message: String::new(), kind: TransitionKind::Entered }
    }

    /// The same entry with an explanation.
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Whether the entry records the late result of a program whose run had been declared lost.
    pub fn is_late_result(&self) -> bool {
        self.kind == TransitionKind::LateResult
    }
}

impl TransitionKind {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Terms {
    fn default() -> Self {
        let StopPolicy { signal, grace } = StopPolicy::default();
        Self { timeout: None, stop_at: None, signal, grace, lease: None }
    }
}

impl Process {
    /// A process of which nothing more is said than what is executed.
    pub fn plain(command: CommandLine) -> Self {
        Self {
            command,
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            umask: None,
            success_codes: only_zero(),
            limits: Limits::default(),
        }
    }
}

impl Run {
    /// A run that waits and of which nothing else is known yet; not even who made it.
    pub fn blank(id: RunId, number: RunNumber, job: JobId, uid: JobUid, nominal: Instant) -> Self {
        Self {
            id,
            number,
            job,
            uid,
            args: Args::new(),
            schedule: None,
            nominal,
            state: State::Waiting,
            reason: None,
            attempt: 1,
            retry_of: None,
            retried_by: None,
            rerun_of: None,
            owner: None,
            target: None,
            work: None,
            lock: None,
            terms: Terms::default(),
            ending: None,
            due: None,
            exit: None,
            written: None,
            log: Vec::new(),
            span: None,
        }
    }

    /// When it entered a state last.
    pub fn entered(&self, state: State) -> Option<Instant> {
        self.log.iter().rev().find(|transition| transition.state == state).map(|transition| transition.at)
    }

    /// When it ended. That it was marked as something else later makes it no longer.
    pub fn finished(&self) -> Option<Instant> {
        self.log.iter().find(|transition| transition.state.is_finished()).map(|transition| transition.at)
    }

    /// Who made it.
    pub fn creator(&self) -> Option<&Actor> {
        self.log.first().map(|transition| &transition.actor)
    }

    /// Whether someone asked for it by name: made it, or told it to start. Such a run starts even while its job is
    /// paused.
    pub fn is_by_operator(&self) -> bool {
        let before_program = |state| matches!(state, State::Scheduled | State::Waiting | State::Starting);
        self.log.iter().any(|entry| before_program(entry.state) && entry.actor.is_explicit())
    }
}

fn only_zero() -> Vec<u8> {
    vec![0]
}

fn is_only_zero(codes: &[u8]) -> bool {
    codes == [0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_does_not_move_the_end() {
        let uid = JobUid::from_bits(1);
        let job = JobId::parse("j").expect("a name");
        let id = RunId::from_random(Instant::EPOCH, [0; 10]);
        let mut run = Run::blank(id, RunNumber(1), job, uid, Instant::EPOCH);
        let mut enter = |at, state| {
            run.state = state;
            run.log.push(Transition::entered(Instant::from_secs(at), state, Actor::Program));
            run.finished()
        };
        assert_eq!(enter(1, State::Running), None);
        assert_eq!(enter(2, State::Failure), Some(Instant::from_secs(2)));
        assert_eq!(enter(9, State::Success), Some(Instant::from_secs(2)));
    }
}
