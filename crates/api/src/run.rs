//! Runs in responses.

use std::collections::BTreeMap;

use cronhold_core::plugin::PluginProgress;
use cronhold_core::record;
use cronhold_core::run::State;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RunTriggerSummary, UnreadableItem};

/// A run, or a span of skipped occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
pub struct RunSummary {
    /// Run id.
    pub id: String,
    /// Number within the job.
    pub number: u64,
    /// Job id.
    pub job: String,
    /// Args of the run.
    pub args: BTreeMap<String, String>,
    /// State of the run.
    #[schema(value_type = String, example = "success")]
    pub state: State,
    /// Reason of the state, in words.
    pub reason: Option<String>,
    /// Nominal time.
    #[schema(value_type = String, format = DateTime)]
    pub nominal_time: Instant,
    /// 1 for the first attempt, increased by each retry.
    pub attempt: u32,
    /// Id of the run that this run retries.
    pub retry_of: Option<String>,
    /// Id of the run that retries this run.
    #[serde(default)]
    pub retried_by: Option<String>,
    /// When a scheduled run starts: its nominal time, or the time of the retry; `null` in other states.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due: Option<Instant>,
    /// What a waiting run waits for, in words; missing in other states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,
    /// Id of the run that this run repeats.
    pub rerun_of: Option<String>,
    /// Node that runs or ran the program.
    pub node: Option<String>,
    /// Exit code; `null` if a signal ended the program.
    pub exit_code: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<String>,
    /// When the run entered its states.
    pub times: RunTimes,
    /// Size of the output in bytes, once the run has ended.
    pub output_bytes: u64,
    /// Last lines of the output, once the run has ended.
    pub tail: Vec<String>,
    /// First occurrence of a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Instant>,
    /// Last occurrence of a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Instant>,
    /// Number of occurrences in a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// When a run entered its states.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunTimes {
    /// When it was scheduled for a later time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub scheduled: Option<Instant>,
    /// When it began to wait for its conditions.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub waiting: Option<Instant>,
    /// When the launch of its program was requested.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub starting: Option<Instant>,
    /// When its program started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub running: Option<Instant>,
    /// When a stop was requested.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub stopping: Option<Instant>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Instant>,
}

/// A run in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// The fields of the list.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Id of the schedule that created it; `null` if no schedule did.
    pub schedule: Option<String>,
    /// Its program as text; `null` until the program is resolved.
    pub command: Option<String>,
    /// Name of its lock; `null` if it has none.
    pub lock: Option<String>,
    /// All state changes.
    pub log: Vec<RunStep>,
    /// Actions that its state changes have caused.
    #[serde(default)]
    pub actions: Vec<ActionSummary>,
    /// Triggers that it stands for, the oldest first; missing if no trigger created it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<RunTriggerSummary>,
    /// The JSON text by which a remote service identifies the task of the run; `null` if it has not started one.
    #[serde(default)]
    pub task: Option<String>,
    /// Which parts of the output are standard error; `null` while the run is active, and if its job does not have
    /// `stderr: separate`.
    #[serde(default)]
    pub stderr: Option<StderrRanges>,
    /// The response of the service that its program used; `null` for other programs, and before there is one.
    #[serde(default)]
    pub response: Option<ServiceResponse>,
    /// The latest progress that a plug-in has reported, stored every few seconds; `null` for other programs.
    #[serde(default)]
    pub progress: Option<ProgressSummary>,
}

/// How far the program of a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressSummary {
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Percent of the work that is done, 0 to 100; `null` if it is unknown.
    pub percent: Option<u8>,
    /// What the program does; may be empty.
    pub text: String,
}

impl From<&record::RunProgress> for ProgressSummary {
    fn from(progress: &record::RunProgress) -> Self {
        let PluginProgress { percent, text } = progress.reported.clone();
        Self { at: progress.at, percent, text }
    }
}

/// Which parts of an output are standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StderrRanges {
    /// The parts in their order.
    pub ranges: Vec<OutputRange>,
    /// Whether there were more parts than are recorded. Then what follows the last one is not told apart.
    pub partial: bool,
}

/// A part of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputRange {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset after the last byte.
    pub until: u64,
}

impl From<&record::StderrParts> for StderrRanges {
    fn from(stderr: &record::StderrParts) -> Self {
        let ranges = stderr.parts.iter().map(|(from, until)| OutputRange { from: *from, until: *until });
        Self { ranges: ranges.collect(), partial: stderr.is_partial }
    }
}

/// The status and the headers of a response. Its body is the output of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceResponse {
    /// Status code.
    pub status: u16,
    /// Headers in their order, without cookies; at most 32.
    pub headers: Vec<ResponseHeader>,
    /// Number of redirects that led to it.
    pub redirects: u32,
}

/// A header of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResponseHeader {
    /// Name in lower case.
    pub name: String,
    /// Value, of which at most 256 characters are kept.
    pub value: String,
}

/// An action of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Action)]
pub struct ActionSummary {
    /// Id of the action, which is its idempotency key.
    pub id: String,
    /// State that the run entered, `finished`, `late` or `missed`.
    pub event: String,
    /// `run`, `webhook`, `email` or `command`.
    pub kind: String,
    /// Job, server or receivers; empty for a command.
    pub target: String,
    /// `pending`, `done` or `failed`. A pending action is tried again; a failed one was given up.
    pub status: String,
    /// Number of attempts that were begun.
    pub attempts: u32,
    /// Why the last failed attempt failed.
    pub error: Option<String>,
    /// When its event happened.
    #[schema(value_type = String, format = DateTime)]
    pub created: Instant,
    /// When a pending action is tried next, or the attempt under way is given up; `null` if it is not pending.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due: Option<Instant>,
    /// When it was delivered or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended: Option<Instant>,
    /// Id of the run that an action of kind `run` has created.
    pub created_run: Option<String>,
    /// Id of the trigger that an action of kind `run` has become, because the job has a batching policy; missing otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
}

/// A state change of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStep {
    /// Time of the change.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// The new state.
    #[schema(value_type = String)]
    pub state: State,
    /// Who or what caused it.
    pub actor: String,
    /// Reason or note; may be empty.
    pub message: String,
}

/// A run, and the runs that depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunChain {
    /// The runs; each comes after those that it depends on.
    pub runs: Vec<ChainLink>,
}

/// A run of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainLink {
    /// The run.
    pub run: RunSummary,
    /// Runs of the chain that it has waited for.
    pub after: Vec<ChainDependency>,
    /// Id of the run whose action has created it; `null` if no action of the chain did.
    pub by_action_of: Option<String>,
}

/// A run that another run has waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainDependency {
    /// Id of the run.
    pub run: String,
    /// States that the condition accepts.
    #[schema(value_type = Vec<String>)]
    pub states: Vec<State>,
    /// Whether the other run cannot start without it; false for a condition inside `any`.
    pub required: bool,
}

/// A page of runs, latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Value of `before` for the next page; `null` on the last page.
    pub next: Option<String>,
    /// Stored runs that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableItem>,
}

impl From<&record::Run> for RunSummary {
    fn from(run: &record::Run) -> Self {
        let (exit_code, signal) = match run.exit {
            Some(record::ProgramExit::Code(code)) => (Some(code), None),
            Some(record::ProgramExit::Signal(signal)) => (None, Some(signal.to_string())),
            None => (None, None),
        };
        Self {
            id: run.id.to_string(),
            number: run.number.0,
            job: run.job.to_string(),
            args: run.args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            state: run.state,
            reason: run.reason.as_ref().map(ToString::to_string),
            nominal_time: run.nominal,
            attempt: run.attempt,
            retry_of: run.retry_of.map(|id| id.to_string()),
            retried_by: run.retried_by.map(|id| id.to_string()),
            due: run.due.filter(|_| run.state == State::Scheduled),
            waiting_for: run.blockers.iter().map(ToString::to_string).collect(),
            rerun_of: run.rerun_of.map(|id| id.to_string()),
            node: run.owner.map(|owner| owner.node.to_string()),
            exit_code,
            signal,
            times: RunTimes::from(run),
            output_bytes: run.written.as_ref().map_or(0, |written| written.bytes),
            tail: run.written.as_ref().map(|written| written.tail.clone()).unwrap_or_default(),
            from: None,
            to: None,
            count: None,
        }
    }
}

impl From<&record::ResponseSummary> for ServiceResponse {
    fn from(response: &record::ResponseSummary) -> Self {
        let header = |(name, value): &(String, String)| ResponseHeader { name: name.clone(), value: value.clone() };
        Self {
            status: response.status,
            headers: response.headers.iter().map(header).collect(),
            redirects: response.redirects,
        }
    }
}

impl From<&record::ActionRecord> for ActionSummary {
    fn from(action: &record::ActionRecord) -> Self {
        let (ended, is_done) = match action.status {
            record::ActionStatus::Pending { .. } => (None, false),
            record::ActionStatus::Done { at } => (Some(at), true),
            record::ActionStatus::Failed { at } => (Some(at), false),
        };
        Self {
            id: action.id.to_string(),
            event: action.event.to_string(),
            kind: action.work.kind().name().to_owned(),
            target: action.work.target(),
            status: action.status.name().to_owned(),
            attempts: action.attempts,
            error: action.error.clone(),
            created: action.created,
            due: action.due(),
            ended,
            created_run: action.created_run().filter(|_| is_done).map(|run| run.to_string()),
            trigger: match &action.work {
                record::ResolvedAction::Run { trigger, .. } => trigger.as_ref().map(ToString::to_string),
                _ => None,
            },
        }
    }
}

impl From<&record::SkipSpan> for RunSummary {
    fn from(span: &record::SkipSpan) -> Self {
        let (from, to, count) = (Some(span.range.from), Some(span.range.to), Some(span.range.count));
        Self { from, to, count, ..Self::from(&span.to_listed_run()) }
    }
}

impl From<&record::Run> for RunTimes {
    fn from(run: &record::Run) -> Self {
        Self {
            scheduled: run.entered(State::Scheduled),
            waiting: run.entered(State::Waiting),
            starting: run.entered(State::Starting),
            running: run.entered(State::Running),
            stopping: run.entered(State::Stopping),
            finished: run.finished(),
        }
    }
}
