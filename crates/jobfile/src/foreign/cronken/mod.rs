//! Cronken's form of a job: the JSON that stands in its job hash, with `cron_args`, `job_args` and `job_state`.
//!
//! Other programs write that hash as well, so that reading is tolerant about what it does not know and writing changes
//! only what has to change.

mod read;
#[cfg(test)]
mod tests;
mod timing;
mod write;

use cronhold_core::Job;
use cronhold_schedule::Zones;

use super::{FieldMistake, Form, Note};

pub use read::{read, read_form};
pub use write::{with_errors, without_errors, write};

/// How a `cronstring` is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// As cron does: weekday 0 is Sunday, and when both days are restricted either matches.
    #[default]
    Cron,
    /// As Cronken's own nodes do, for a namespace shared with them: weekday 0 is Monday, and all fields must match.
    Cronken,
}

impl Dialect {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Cron => Self::Cronken,
            Self::Cronken => Self::Cron,
        }
    }
}

/// What a reading depends on besides the form.
#[derive(Debug, Clone, Copy)]
pub struct Options<'z> {
    /// Zones that can be named.
    pub zones: &'z Zones,
    /// How a `cronstring` is understood.
    pub dialect: Dialect,
}

impl Options<'_> {
    /// The same with the other dialect.
    pub const fn otherwise(self) -> Self {
        Self { dialect: self.dialect.other(), ..self }
    }
}

/// What came of reading one form.
#[derive(Debug, Clone, PartialEq)]
pub struct CronkenRead {
    /// The job. Invariant: it is there exactly when there is no mistake.
    pub job: Option<Job>,
    /// All mistakes.
    pub mistakes: Vec<FieldMistake>,
    /// What may surprise.
    pub notes: Vec<Note>,
    /// Whether its time is another one in the other dialect.
    pub depends_on_dialect: bool,
    /// What Cronken's own validation said of the form.
    pub validation_errors: Option<String>,
    /// The form as it was found, which writing starts from.
    pub form: Form,
}

/// The @-words of a `cronstring`, with the expression that each stands for. `@never` has none.
const WORDS: [(&str, Option<&str>); 8] = [
    ("@yearly", Some("0 0 1 1 *")),
    ("@annually", Some("0 0 1 1 *")),
    ("@monthly", Some("0 0 1 * *")),
    ("@weekly", Some("0 0 * * 0")),
    ("@daily", Some("0 0 * * *")),
    ("@hourly", Some("0 * * * *")),
    ("@minutely", Some("* * * * *")),
    ("@never", None),
];

/// The schedule of a job that Cronken must not run by itself.
const NEVER: &str = "@never";

/// Keys of `cron_args` beside the cron fields.
const MORE_CRON_ARGS: [&str; 5] = ["cronstring", "start_date", "end_date", "timezone", "jitter"];

const CRON_ARGS: &str = "cron_args";
const JOB_ARGS: &str = "job_args";
const JOB_STATE: &str = "job_state";
