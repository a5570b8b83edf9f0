//! What can be asked for, and the short answers.

use std::collections::BTreeMap;

use cronhold_core::run::State;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Someone wants a run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBody {
    /// Its args.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Its time; now, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
}

/// Someone wants nothing to be started by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// Someone wants a run not to start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipBody {
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// Someone wants to send a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    /// Which, such as `SIGHUP` or `HUP`.
    pub signal: String,
}

/// Someone wants a finished run to count as something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkBody {
    /// As what.
    #[schema(value_type = String, example = "success")]
    pub state: State,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// Someone wants a finished run once more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunBody {
    /// Whether what it does is taken anew from the job as it is now.
    #[serde(default)]
    pub anew: bool,
}

/// A run that was made, or was there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Made {
    /// Its id.
    pub id: String,
    /// Its job.
    pub job: String,
    /// Its number.
    pub number: u64,
}

/// An event as Cronken's clients send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// What is asked: `pause`, `resume`, `terminate_run`, `kill_run`, `add`, `remove`, `reload`, `trigger`, `validate`,
    /// `drain_nodes`.
    pub action: String,
    /// To whom or what: names of jobs or nodes, ids of runs, or a job's definition.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub args: Value,
}
