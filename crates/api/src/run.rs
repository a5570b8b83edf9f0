//! Runs as they are told.

use std::collections::BTreeMap;

use cronhold_core::record;
use cronhold_core::run::State;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run, or one record that stands for many occurrences that were skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Its number in its job.
    pub number: u64,
    /// The job.
    pub job: String,
    /// Its args.
    pub args: BTreeMap<String, String>,
    /// Where it stands.
    #[schema(value_type = String, example = "success")]
    pub state: State,
    /// Why it ended so, in words.
    pub reason: Option<String>,
    /// The instant it is for.
    #[schema(value_type = String, format = DateTime)]
    pub nominal_time: Instant,
    /// 1, and one more with each retry.
    pub attempt: u32,
    /// The failed run that it tries again.
    pub retry_of: Option<String>,
    /// The run that someone wanted again.
    pub rerun_of: Option<String>,
    /// The node that has or had its program.
    pub node: Option<String>,
    /// How its program ended, when it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<String>,
    /// When it entered its states.
    pub times: Times,
    /// How much its program wrote; known when it has ended.
    pub output_bytes: u64,
    /// The last lines that it wrote; known when it has ended.
    pub tail: Vec<String>,
    /// The first of the occurrences that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Instant>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Instant>,
    /// How many they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// When a run entered its states.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Times {
    /// When it came to wait for its time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub scheduled: Option<Instant>,
    /// When it came to wait for something else.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub waiting: Option<Instant>,
    /// When its program was asked for.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub starting: Option<Instant>,
    /// When its program had started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub running: Option<Instant>,
    /// When it was told to end.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub stopping: Option<Instant>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished: Option<Instant>,
}

/// A run with every step it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// The schedule that made it.
    pub schedule: Option<String>,
    /// What it executes, in one line.
    pub command: Option<String>,
    /// The lock it takes.
    pub lock: Option<String>,
    /// Every state that it entered.
    pub log: Vec<Step>,
}

/// One state that a run entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Which.
    #[schema(value_type = String)]
    pub state: State,
    /// Who made it so.
    pub actor: String,
    /// What there was to say.
    pub message: String,
}

/// A page of runs, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<Run>,
    /// What to give as `before` for the next page; nothing, when this was the last.
    pub next: Option<String>,
    /// What is wrong with records that belong here and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl From<&record::Run> for Run {
    fn from(run: &record::Run) -> Self {
        let (exit_code, signal) = match run.exit {
            Some(record::Exit::Code(code)) => (Some(code), None),
            Some(record::Exit::Signal(signal)) => (None, Some(signal.to_string())),
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
            rerun_of: run.rerun_of.map(|id| id.to_string()),
            node: run.owner.map(|owner| owner.node.to_string()),
            exit_code,
            signal,
            times: Times::from(run),
            output_bytes: run.written.as_ref().map_or(0, |written| written.bytes),
            tail: run.written.as_ref().map(|written| written.tail.clone()).unwrap_or_default(),
            from: run.span.map(|span| span.from),
            to: run.span.map(|span| span.to),
            count: run.span.map(|span| span.count),
        }
    }
}

impl From<&record::Run> for Times {
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
