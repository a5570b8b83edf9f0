//! Request bodies, and short responses.

use std::collections::BTreeMap;

use cronhold_core::run::State;
use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Creates a run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBody {
    /// Args of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Start time; default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// When its program is stopped; default: only by its timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub stop_at: Option<Instant>,
    /// Time from its start time to the stop, such as `2h`, instead of `stop_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "2h")]
    pub stop_after: Option<Span>,
}

/// Creates a run of a job that is not stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdHocRunBody {
    /// Job with the keys of a job file.
    #[schema(value_type = Object)]
    pub job: Map<String, Value>,
    /// Args of the run, for the job's `params`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Start time; default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// When its program is stopped; default: only by its timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub stop_at: Option<Instant>,
    /// Time from its start time to the stop, such as `2h`, instead of `stop_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "2h")]
    pub stop_after: Option<Span>,
}

/// Pauses a job, or everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// Reason, kept with the record.
    #[serde(default)]
    pub why: String,
    /// When the pause ends by itself; default: only when it is resumed. For a job that is paused already, this changes
    /// the end of the pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Instant>,
}

/// Skips a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipBody {
    /// Reason, kept with the record.
    #[serde(default)]
    pub why: String,
}

/// Sends a signal to a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    /// Signal, such as `SIGHUP` or `HUP`.
    pub signal: String,
}

/// Marks a finished run with another state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkBody {
    /// New state.
    #[schema(value_type = String, example = "success")]
    pub state: State,
    /// Reason, kept with the record.
    #[serde(default)]
    pub why: String,
}

/// Runs a finished run again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunBody {
    /// Whether to use the job's current definition instead of the original one.
    #[serde(default)]
    pub current: bool,
}

/// Renames a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameBody {
    /// New job id.
    pub to: String,
}

/// A job that was renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenamedJob {
    /// New job id.
    pub job: String,
    /// How many finished runs, spans of skips and outcomes have moved to the new name.
    pub moved: u64,
    /// Jobs that still name the old id in a condition or an action.
    pub named_by: Vec<JobUse>,
}

/// A place where a job names another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobUse {
    /// Id of the job that names the other one.
    pub job: String,
    /// Key in its definition, such as `conditions[0].after`.
    pub key: String,
}

/// A run that was created, or that already existed for the idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedRun {
    /// Run id.
    pub id: String,
    /// Job id.
    pub job: String,
    /// Number within the job.
    pub number: u64,
}

/// A control event of Cronken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlEvent {
    /// Action: `pause`, `resume`, `terminate_run`, `kill_run`, `add`, `remove`, `reload`, `trigger`, `validate`,
    /// `drain_nodes`.
    pub action: String,
    /// Names of jobs or nodes, run ids, or a job definition.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub args: Value,
}
