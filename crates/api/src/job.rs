//! Jobs as they are told.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Run;

/// A job, as a list has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// What it is for: the first line of its description.
    pub description: String,
    /// Its schedules as they are written, in one line; empty when it has none.
    pub schedule: String,
    /// When it is due next; nothing, when that is not known or never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next: Option<Instant>,
    /// Whether it or everything is paused.
    pub paused: bool,
    /// The pause that holds.
    pub pause: Option<Pause>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What is wrong with its file. What the job does then is what its last good file says.
    pub errors: Vec<FileMistake>,
    /// Where it comes from: `api`, `foreign`, or `directory:` and a prefix; empty when only a file with mistakes has it.
    pub source: String,
    /// How often it was put.
    pub revision: u32,
    /// Runs that are not finished.
    pub active: u64,
    /// Its latest run.
    pub last: Option<Run>,
}

/// A job with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// What a list has.
    #[serde(flatten)]
    pub job: Job,
    /// Its whole description.
    pub text: String,
    /// Its schedules one by one.
    pub schedules: Vec<Schedule>,
    /// What it is, with the keys of a job file.
    #[schema(value_type = Object)]
    pub definition: Value,
    /// The same as the text of a job file.
    pub yaml: String,
}

/// A schedule of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its id in the job.
    pub id: String,
    /// As it is written.
    pub text: String,
    /// In words.
    pub words: String,
    /// Whether it counts.
    pub enabled: bool,
    /// When it is due next.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next: Option<Instant>,
    /// Why it cannot be asked, when it cannot.
    pub error: Option<String>,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pause {
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Instant,
    /// By whom.
    pub by: String,
    /// Why, if they said so.
    pub why: String,
    /// Whether it is everything that is paused, and not only this job.
    pub everything: bool,
}

/// Something that is wrong with a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMistake {
    /// The file.
    pub file: String,
    /// Its line, counted from 1.
    pub line: u64,
    /// The column, counted from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// A page of jobs by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What to give as `after` for the next page; nothing, when this was the last.
    pub next: Option<String>,
    /// The pause of everything, when it holds.
    pub pause: Option<Pause>,
    /// Mistakes that belong to no job.
    pub errors: Vec<FileMistake>,
    /// What is wrong with stored jobs that belong here and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A time at which a job is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Occurrence {
    /// The instant it is for.
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    /// When it is due, if there is jitter.
    #[schema(value_type = String, format = DateTime)]
    pub due: Instant,
    /// The schedule it belongs to.
    pub schedule: String,
    /// On the clock of the schedule's zone.
    pub local: String,
}
