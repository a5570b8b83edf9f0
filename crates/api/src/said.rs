//! Answers to questions: in words, with what programs need beside them.

use std::collections::BTreeMap;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Line {
    /// `answer`, `detail` or `advice`.
    pub tone: String,
    /// What is said.
    pub text: String,
}

/// Why a job runs or does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Which job.
    pub job: String,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub now: Instant,
    /// About which time, when it was not about the present.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// The answer, the most important first.
    pub lines: Vec<Line>,
}

/// Occurrences without an outcome, which there must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holes {
    /// From when.
    #[schema(value_type = String, format = DateTime)]
    pub from: Instant,
    /// To when it was looked at.
    #[schema(value_type = String, format = DateTime)]
    pub to: Instant,
    /// Jobs that were looked at.
    pub jobs: u64,
    /// How many occurrences without an outcome there are.
    pub found: u64,
    /// What there is to say.
    pub lines: Vec<Line>,
    /// What to give as `after` to look at the jobs that are left; nothing, when all were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a backfill would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backfill {
    /// Occurrences in order of time.
    pub items: Vec<BackfillItem>,
    /// Whether there are more than these.
    pub cut: bool,
}

/// An occurrence in a stretch that someone wants to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillItem {
    /// The instant.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Of which schedule.
    pub schedule: String,
    /// With which args.
    pub args: BTreeMap<String, String>,
    /// What became of it: the state of its latest run; nothing, when nothing is known of it.
    pub state: Option<String>,
    /// The idempotency key of its run: asked for twice, it runs once.
    pub key: String,
}

/// What came of reading the job files anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// In words.
    pub summary: String,
    /// Mistakes that were found.
    pub mistakes: u64,
}
