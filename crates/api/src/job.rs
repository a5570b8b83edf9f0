//! Jobs in responses.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{RunSummary, UnreadableItem};

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Job)]
pub struct JobSummary {
    /// Job id.
    pub id: String,
    /// First line of the description.
    pub description: String,
    /// Schedules on one line; empty if there are none.
    pub schedule: String,
    /// Whether the schedules of the job are in effect: `enabled` of its definition.
    #[serde(default = "is_true")]
    pub enabled: bool,
    /// Next due time; `null` if unknown or never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next: Option<Instant>,
    /// Whether the job or everything is paused.
    pub paused: bool,
    /// The current pause; `null` if the job is not paused.
    pub pause: Option<PauseSummary>,
    /// Labels of the job.
    pub labels: Vec<String>,
    /// Errors in the job's file; the last valid version is in use.
    pub errors: Vec<FileMistake>,
    /// Source: `api`, `foreign`, or `directory:` and a prefix; empty if only an invalid file defines the job.
    pub source: String,
    /// Revision of the definition, starting at 1.
    pub revision: u32,
    /// Number of unfinished runs.
    pub active: u64,
    /// Latest run; `null` if the job has no runs.
    pub last: Option<RunSummary>,
}

/// A job in detail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// The fields of the list.
    #[serde(flatten)]
    pub job: JobSummary,
    /// The description, with all of its lines.
    pub text: String,
    /// All schedules.
    pub schedules: Vec<ScheduleSummary>,
    /// Definition with the keys of a job file.
    #[schema(value_type = Object)]
    pub definition: Value,
    /// Definition as the text of a job file.
    pub yaml: String,
}

/// A schedule of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleSummary {
    /// Id within the job.
    pub id: String,
    /// Definition as text.
    pub text: String,
    /// Description in words.
    pub words: String,
    /// Whether the schedule is active.
    pub enabled: bool,
    /// Next due time; `null` if there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next: Option<Instant>,
    /// Why the schedule cannot be evaluated; `null` if it can.
    pub error: Option<String>,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pause)]
pub struct PauseSummary {
    /// Start of the pause.
    #[schema(value_type = String, format = DateTime)]
    pub since: Instant,
    /// When the pause ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Instant>,
    /// Author of the pause.
    pub by: String,
    /// Reason; may be empty.
    pub why: String,
    /// Whether everything is paused, not only this job.
    pub everything: bool,
}

/// An error in a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMistake {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u64,
    /// Column, counted from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// A page of jobs, ordered by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Value of `after` for the next page; `null` on the last page.
    pub next: Option<String>,
    /// The pause of everything, if there is one.
    pub pause: Option<PauseSummary>,
    /// Errors in files that define no job.
    pub errors: Vec<FileMistake>,
    /// Stored jobs, and records of the listed jobs, that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableItem>,
}

/// An occurrence of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Occurrence)]
pub struct UpcomingRun {
    /// Nominal time.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// Due time: the nominal time plus jitter.
    #[schema(value_type = String, format = DateTime)]
    pub due: Instant,
    /// Id of the schedule.
    pub schedule: String,
    /// Nominal time in the schedule's zone.
    pub local: String,
}

/// A run that is about to come: an occurrence of a schedule, or a run that waits for its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComingRun {
    /// Job id.
    pub job: String,
    /// Nominal time.
    #[schema(value_type = String, format = DateTime)]
    pub nominal: Instant,
    /// Due time: the nominal time plus jitter.
    #[schema(value_type = String, format = DateTime)]
    pub due: Instant,
    /// Id of the schedule; `null` for a run that was created otherwise.
    pub schedule: Option<String>,
    /// Run id; `null` for an occurrence that has no run yet.
    pub run: Option<String>,
}

/// Coming runs of all jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComingList {
    /// Runs by due time.
    pub items: Vec<ComingRun>,
    /// Whether there are more in the window.
    pub cut: bool,
}

/// An older daemon has no disabled jobs.
const fn is_true() -> bool {
    true
}
