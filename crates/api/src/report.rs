//! Responses that explain something in sentences, with fields for programs.

use std::collections::BTreeMap;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A line of an explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerLine {
    /// `answer`, `detail` or `advice`.
    pub tone: String,
    /// A sentence, with code in backticks.
    pub text: String,
}

/// Why a job runs or does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyReport {
    /// Job id.
    pub job: String,
    /// Time of the request.
    #[schema(value_type = String, format = DateTime)]
    pub now: Instant,
    /// The time that is explained; `null` for now.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// The explanation, most important line first.
    pub lines: Vec<AnswerLine>,
}

/// Occurrences without an outcome. There should be none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HolesReport {
    /// Start of the period.
    #[schema(value_type = String, format = DateTime)]
    pub from: Instant,
    /// End of the period.
    #[schema(value_type = String, format = DateTime)]
    pub to: Instant,
    /// Number of jobs that were checked.
    pub jobs: u64,
    /// Number of occurrences without an outcome.
    pub found: u64,
    /// The occurrences in words.
    pub lines: Vec<AnswerLine>,
    /// Records that cannot be read. The occurrences of their jobs could not be checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableItem>,
    /// Value of `after` for the remaining jobs; absent if all were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A stored record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableItem {
    /// The record, such as `job backup`; `null` if not even its key can be read.
    pub record: Option<String>,
    /// The job to which it belongs, if that is known.
    pub job: Option<String>,
    /// Where it is stored, and why it cannot be read.
    pub reason: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Occurrences that a backfill can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPlan {
    /// The occurrences in order of time.
    pub items: Vec<BackfillItem>,
    /// Whether the period has more occurrences.
    pub cut: bool,
}

/// An occurrence in the period of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillItem {
    /// Instant of the occurrence.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Id of the schedule.
    pub schedule: String,
    /// Args of the run.
    pub args: BTreeMap<String, String>,
    /// State of the latest run; `null` if there is none.
    pub state: Option<String>,
    /// Idempotency key for the run.
    pub key: String,
}

/// The result of rereading the job files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReloadReport {
    /// Summary in words.
    pub summary: String,
    /// Number of errors in job files.
    pub mistakes: u64,
}
