//! Triggers of a job: requests, the pending ones, and the decisions about them.

use std::collections::BTreeMap;

use cronhold_core::decision::TriggerStatus;
use cronhold_core::record;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Parameters of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerBody {
    /// Id of the trigger, 1 to 200 bytes; default: a new one. Within 24 hours, a job receives each id once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, min_length = 1)]
    pub id: Option<String>,
    /// Args of the run by name.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

/// What became of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerReceipt {
    /// Id of the trigger.
    pub id: String,
    /// Job id.
    pub job: String,
    /// `run` if it created a run, `pending` if it waits for one, `duplicate` if the job has received its id before.
    #[schema(example = "pending")]
    pub status: String,
    /// Id of the run that stands for it; `null` if there is none, and for a duplicate also if the run is not known.
    pub run: Option<String>,
    /// Number of that run within the job.
    pub number: Option<u64>,
}

/// Pending triggers of a job, and the decisions about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerList {
    /// Job id.
    pub job: String,
    /// Name of its batching policy; `null` if each trigger creates a run at once.
    #[schema(example = "greedy")]
    pub policy: Option<String>,
    /// Pending triggers, the oldest first.
    pub pending: Vec<PendingTriggerSummary>,
    /// Number of triggers since the job has a policy, by what became of them.
    pub counts: TriggerCountSummary,
    /// Latest decisions, the latest first.
    pub decisions: Vec<TriggerDecisionSummary>,
}

/// A pending trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PendingTrigger)]
pub struct PendingTriggerSummary {
    /// Id of the trigger.
    pub id: String,
    /// When it was received.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Who or what sent it.
    pub by: String,
    /// Args of its run by name.
    pub args: BTreeMap<String, String>,
    /// Channel of the message that it stands for; missing if it did not come from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The message, if it came from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Numbers of triggers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TriggerCounts)]
pub struct TriggerCountSummary {
    /// Triggers that were received, without duplicates.
    pub received: u64,
    /// Triggers that runs stand for.
    pub consumed: u64,
    /// Triggers that were dropped because they had become too old.
    pub expired: u64,
    /// Triggers that were removed on request.
    pub removed: u64,
}

/// A decision about the triggers of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TriggerDecision)]
pub struct TriggerDecisionSummary {
    /// When it was made last.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// When it was made first.
    #[schema(value_type = String, format = DateTime)]
    pub since: Instant,
    /// How often it was made in a row.
    pub times: u32,
    /// Kind of the decision: `run`, `busy`, `paused`, `no_node`, `expired` or `removed`.
    pub kind: String,
    /// The decision in words.
    pub message: String,
    /// Id of the run that was created; `null` if none was.
    pub run: Option<String>,
    /// Number of triggers that it concerns: of the run, or those that were dropped or removed; `null` if they wait.
    pub triggers: Option<u32>,
    /// Number of triggers that were pending afterwards.
    pub pending: u32,
}

/// A trigger that a run stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunTrigger)]
pub struct RunTriggerSummary {
    /// Id of the trigger.
    pub id: String,
    /// When it was received.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Who or what sent it.
    pub by: String,
    /// Channel of the message that it stands for; missing if it did not come from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The message, if it came from a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Response to a removal of triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedTriggers {
    /// Number of triggers that were removed.
    pub removed: u32,
}

impl TriggerReceipt {
    /// Status of a trigger that created a run.
    pub const RUN: &str = "run";
    /// Status of a trigger that waits for a run.
    pub const PENDING: &str = "pending";
    /// Status of a trigger whose id the job has received before.
    pub const DUPLICATE: &str = "duplicate";

    /// The name of a status.
    pub const fn status_name(status: TriggerStatus) -> &'static str {
        match status {
            TriggerStatus::Run => Self::RUN,
            TriggerStatus::Pending => Self::PENDING,
            TriggerStatus::Duplicate => Self::DUPLICATE,
        }
    }
}

impl TriggerList {
    /// The triggers of a job with this policy.
    pub fn new(set: &record::TriggerSet, policy: Option<&str>) -> Self {
        let record::TriggerCounts { received, consumed, expired, removed } = set.counts;
        Self {
            job: set.job.to_string(),
            policy: policy.map(str::to_owned),
            pending: set.pending.iter().map(PendingTriggerSummary::from).collect(),
            counts: TriggerCountSummary { received, consumed, expired, removed },
            decisions: set.decisions.iter().rev().map(TriggerDecisionSummary::from).collect(),
        }
    }
}

impl From<&record::PendingTrigger> for PendingTriggerSummary {
    fn from(trigger: &record::PendingTrigger) -> Self {
        let record::PendingTrigger { id, at, by, args, message } = trigger;
        let channel = message.as_ref().map(|message| message.channel.to_string());
        let message = message.as_ref().map(|message| message.message.value());
        let args = args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { id: id.to_string(), at: *at, by: by.to_string(), args, channel, message }
    }
}

impl From<&record::RunTrigger> for RunTriggerSummary {
    fn from(trigger: &record::RunTrigger) -> Self {
        let record::RunTrigger { id, at, by, message } = trigger;
        let channel = message.as_ref().map(|message| message.channel.to_string());
        let message = message.as_ref().map(|message| message.message.value());
        Self { id: id.to_string(), at: *at, by: by.to_string(), channel, message }
    }
}

impl From<&record::TriggerDecision> for TriggerDecisionSummary {
    fn from(decision: &record::TriggerDecision) -> Self {
        let record::TriggerDecision { since, at, times, outcome, pending } = decision;
        let (kind, run, triggers) = match outcome {
            record::TriggerOutcome::Run { run, triggers, .. } => ("run", Some(run.to_string()), Some(*triggers)),
            record::TriggerOutcome::Busy { .. } => ("busy", None, None),
            record::TriggerOutcome::Paused => ("paused", None, None),
            record::TriggerOutcome::NoNode => ("no_node", None, None),
            record::TriggerOutcome::Expired { triggers } => ("expired", None, Some(*triggers)),
            record::TriggerOutcome::Removed { triggers, .. } => ("removed", None, Some(*triggers)),
        };
        let (kind, message) = (kind.to_owned(), outcome.to_string());
        Self { at: *at, since: *since, times: *times, kind, message, run, triggers, pending: *pending }
    }
}
