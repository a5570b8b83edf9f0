//! The record of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::{
    Actor, Blocker, LockName, PoolName, ProbeState, ResolvedHttp, ResolvedRemote, ResolvedTask, RunOwner, RunTrigger,
    ScheduleId, ServiceState,
};
use crate::args::Args;
use crate::ids::{JobId, JobUid, NodeId, RunId, RunNumber};
use crate::job::{IoPriority, ResourceLimits, StopPolicy};
use crate::plugin::PluginKind;
use crate::run::{Reason, State};
use crate::signal::Signal;

/// One run of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Unique among all runs, and derived for runs of a schedule, so that a repeated claim creates the same run.
    pub id: RunId,
    /// Its number within its job, from 1; numbers may have gaps.
    pub number: RunNumber,
    /// The name of its job.
    pub job: JobId,
    /// The uid of its job, which distinguishes jobs of the same name.
    pub uid: JobUid,
    /// The values of the job's params.
    pub args: Args,
    /// The schedule that created it; `None` if an operator did.
    pub schedule: Option<ScheduleId>,
    /// The nominal time: the occurrence that the run is for, or the time that an operator requested.
    pub nominal: Instant,
    /// Its current state.
    pub state: State,
    /// Why it ended in its state; `None` while it has not ended, and for a plain success.
    pub reason: Option<Reason>,
    /// 1 for the first attempt, and one more with each retry.
    pub attempt: u32,
    /// The run that this one retries.
    pub retry_of: Option<RunId>,
    /// The run that retries this one.
    pub retried_by: Option<RunId>,
    /// The finished run that an operator ran again.
    pub rerun_of: Option<RunId>,
    /// The node that has its program; set from `starting` on.
    pub owner: Option<RunOwner>,
    /// The only node that may start it, for a job with `nodes: each`.
    pub target: Option<NodeId>,
    /// Its program with all templates resolved; `None` if it was recorded without being started.
    pub work: Option<ResolvedProgram>,
    /// The lock that it holds while it has a program.
    pub lock: Option<LockName>,
    /// The pools that it has joined; empty before it starts. It leaves them when it ends.
    pub pools: Vec<PoolName>,
    /// How long it may take and how it is stopped.
    pub terms: ExecutionPolicy,
    /// Why a stop was requested; `None` if none was.
    pub ending: Option<Reason>,
    /// When the run has to be checked next: its time comes, its wait is polled, or it is stopped or killed.
    pub due: Option<Instant>,
    /// When the run is late if it has not finished; `None` if its job does not say, after it was noticed, and for
    /// finished runs.
    pub late_at: Option<Instant>,
    /// What a waiting run waits for; empty in other states. At most [`Blocker::MAX`].
    pub blockers: Vec<Blocker>,
    /// What a waiting run asks the outside; empty in other states. At most [`ProbeState::MAX`].
    pub probes: Vec<ProbeState>,
    /// The exit code or signal of its program, once it has ended.
    pub exit: Option<ProgramExit>,
    /// The size and the last lines of its program's output, once it has ended.
    pub written: Option<OutputSummary>,
    /// What is known of the service that its program uses; `None` for other programs, and before there is anything.
    pub service: Option<Box<ServiceState>>,
    /// How many actions it has caused. Their ids follow from it.
    pub actions: u32,
    /// The triggers that it stands for, the oldest first; empty if no trigger created it. At most
    /// [`TriggerSet::PENDING_MAX`](super::TriggerSet::PENDING_MAX). Shared, because attempts and reruns have the same.
    pub triggers: Arc<[RunTrigger]>,
    /// All states that it entered, the oldest first.
    pub log: Vec<Transition>,
}

/// An entry of a run's log. Almost all of them are states that the run entered; [`Self::kind`] marks the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When it happened, by the clock of the decision.
    pub at: Instant,
    /// The run's state from then on.
    pub state: State,
    /// Who or what caused it.
    pub actor: Actor,
    /// An explanation for users; empty when there is nothing to explain. No code may depend on its text.
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
    /// Another node has taken the run over, because its node was lost.
    TakenOver,
    /// The program of a run that was declared lost reported its result afterwards. The run's state did not change.
    LateResult,
    /// The run had not finished when the time `late` of its job had passed. Its state did not change.
    Late,
}

/// The program of a run with all templates resolved: it does not depend on the job any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolvedProgram {
    /// Does nothing for this time.
    Noop(Span),
    /// Runs a process.
    Process(Box<ResolvedProcess>),
    /// Sends one HTTP request.
    Http(Box<ResolvedHttp>),
    /// Starts a task of a remote service and polls it.
    Remote(Box<ResolvedRemote>),
    /// Creates a task, or writes to one.
    Task(Box<ResolvedTask>),
    /// A kind of program that this version describes but cannot run.
    Unsupported(String),
}

/// A process that a run starts. Secrets are named, not held: they are read when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedProcess {
    /// The command line.
    pub command: CommandLine,
    /// Environment variables that the job adds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, EnvText>,
    /// The working directory; the node's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user that it runs as; the daemon's user when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its file mode mask; inherited when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// What it reads from its standard input; nothing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StdinText>,
    /// What it is used for, if it is a plug-in: it writes messages instead of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginKind>,
    /// Whether its standard error can be told apart in the output.
    #[serde(default, skip_serializing_if = "is_false")]
    pub separate_stderr: bool,
    /// Its niceness; the keeper's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// How urgently the disk serves it; as the keeper when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ionice: Option<IoPriority>,
    /// Exit codes that mean success.
    #[serde(default = "only_zero", skip_serializing_if = "is_only_zero")]
    pub success_codes: Vec<u8>,
    /// Resource limits of the program.
    #[serde(default, skip_serializing_if = "ResourceLimits::is_empty")]
    pub limits: ResourceLimits,
}

/// The command line of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandLine {
    /// A script for a shell.
    Shell {
        /// The text that the shell interprets.
        text: String,
        /// The path of the shell; `/bin/bash`, else `/bin/sh`, when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shell: Option<String>,
    },
    /// A program and its arguments; never empty.
    Exec(Vec<String>),
}

/// The value of an environment variable, or the place to read it from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvText {
    /// The value itself.
    Text(String),
    /// The content of a file on the node.
    File(String),
    /// The value of a variable of the daemon's environment.
    Env(String),
}

/// What a process reads from its standard input, or the place to read it from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinText {
    /// The text itself.
    Text(String),
    /// The content of a file on the node.
    File(String),
}

/// How much a program wrote, and its last lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputSummary {
    /// The size of the output in bytes.
    pub bytes: u64,
    /// The last lines, as text.
    pub tail: Vec<String>,
    /// Which parts of the stored output are standard error; `None` if the streams were not told apart.
    pub stderr: Option<StderrParts>,
}

/// Which parts of an output are standard error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StderrParts {
    /// The first offset of each part and the offset after it, in their order.
    pub parts: Vec<(u64, u64)>,
    /// Whether there were more parts than are recorded, so that what follows the last one is not told apart.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_partial: bool,
}

/// How long a run may take and how it is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionPolicy {
    /// How long its program may run; no limit when absent.
    pub timeout: Option<Span>,
    /// When it is stopped by its stop schedule; `None` without one.
    pub stop_at: Option<Instant>,
    /// The signal that requests the program to end.
    pub signal: Signal,
    /// Time between that signal and SIGKILL.
    pub grace: Span,
    /// How long its program may run without a heartbeat of its node, on a shared store; no limit when absent. Every run
    /// that must not overlap with another has a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramExit {
    /// The process exited with this code.
    Code(i32),
    /// The process was ended by this signal.
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

impl Default for ExecutionPolicy {
    fn default() -> Self {
        let StopPolicy { signal, grace } = StopPolicy::default();
        Self { timeout: None, stop_at: None, signal, grace, lease: None }
    }
}

impl ResolvedProcess {
    /// A process with default settings.
    pub fn plain(command: CommandLine) -> Self {
        Self {
            command,
            env: BTreeMap::new(),
            cwd: None,
            user: None,
            umask: None,
            stdin: None,
            plugin: None,
            separate_stderr: false,
            nice: None,
            ionice: None,
            success_codes: only_zero(),
            limits: ResourceLimits::default(),
        }
    }
}

impl Run {
    /// A waiting run with default values and an empty log.
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
            pools: Vec::new(),
            terms: ExecutionPolicy::default(),
            ending: None,
            due: None,
            late_at: None,
            blockers: Vec::new(),
            probes: Vec::new(),
            exit: None,
            written: None,
            service: None,
            actions: 0,
            triggers: Arc::default(),
            log: Vec::new(),
        }
    }

    /// When the run entered a state last; `None` if it never did.
    pub fn entered(&self, state: State) -> Option<Instant> {
        let is_note = |entry: &Transition| matches!(entry.kind, TransitionKind::TakenOver | TransitionKind::Late);
        let is_entry = |entry: &&Transition| entry.state == state && !is_note(entry);
        self.log.iter().rev().find(is_entry).map(|transition| transition.at)
    }

    /// When the run has to be looked at next, whether to go on with it or because it is late.
    pub fn next_check(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.late_at).min()
    }

    /// When the run ended. A later change of its state by an operator does not count.
    pub fn finished(&self) -> Option<Instant> {
        self.log.iter().find(|transition| transition.state.is_finished()).map(|transition| transition.at)
    }

    /// When the run started: it got a node, which launches its program. `None` if it never did.
    pub fn started(&self) -> Option<Instant> {
        self.log.iter().find(|transition| transition.state == State::Starting).map(|transition| transition.at)
    }

    /// Until when the run was unfinished; `None` while it is. A run without a log counts by its nominal time.
    pub fn active_until(&self) -> Option<Instant> {
        self.state.is_finished().then(|| self.finished().unwrap_or(self.nominal))
    }

    /// The actor that created the run.
    pub fn creator(&self) -> Option<&Actor> {
        self.log.first().map(|transition| &transition.actor)
    }

    /// The JSON response that identifies its remote task; `None` if it has not started one.
    pub fn remote_task(&self) -> Option<&str> {
        self.service.as_ref()?.task.as_deref()
    }

    /// Whether another node can continue the program if this run's node is lost: its task runs elsewhere, or its request
    /// may be sent again.
    pub fn can_move(&self) -> bool {
        let is_repeatable = match &self.work {
            Some(ResolvedProgram::Http(http)) => http.is_repeatable,
            Some(ResolvedProgram::Remote(remote)) => remote.is_repeatable,
            // The id of the run is the key of its request, so the request can be sent again.
            Some(ResolvedProgram::Task(_)) => true,
            _ => return false,
        };
        let may_repeat = is_repeatable && matches!(self.state, State::Starting | State::Running);
        self.state.has_program() && (self.remote_task().is_some() || may_repeat)
    }

    /// Whether the run belongs to the active runs of its job: it has a program, or is a retry that has not ended.
    pub fn counts_as_active(&self) -> bool {
        self.state.has_program() || self.retry_of.is_some() && !self.state.is_finished()
    }

    /// Whether an operator created or started the run. Such a run starts even while its job is paused.
    pub fn is_by_operator(&self) -> bool {
        let before_program = |state| matches!(state, State::Scheduled | State::Waiting | State::Starting);
        self.log.iter().any(|entry| before_program(entry.state) && entry.actor.is_explicit())
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
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
    fn mark_does_not_change_when_a_run_finished() {
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
