//! Cronken's form of a job: the JSON in its job hash, with `cron_args`, `job_args` and `job_state`.
//!
//! Other programs write that hash too. The reader therefore accepts fields that it does not know, and the writer changes
//! only the fields that have to change.

mod read;
#[cfg(test)]
mod tests;
mod timing;
mod write;

use cronhold_core::Job;
use cronhold_jobfile::foreign::{FieldMistake, ForeignForm, FormNote};
use cronhold_schedule::ZoneRegistry;

pub use read::{read, read_form};
pub use write::{with_errors, without_errors, write};

/// The rules by which a `cronstring` is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Cron's rules: weekday 0 is Sunday, and if both days are restricted, either may match.
    #[default]
    Cron,
    /// The rules of Cronken's own nodes, for a namespace shared with them: weekday 0 is Monday, and all fields must match.
    Cronken,
}

impl Dialect {
    pub const fn other(self) -> Self {
        match self {
            Self::Cron => Self::Cronken,
            Self::Cronken => Self::Cron,
        }
    }
}

/// Settings for reading and writing a definition.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'z> {
    /// Time zones that a definition can name.
    pub zones: &'z ZoneRegistry,
    /// The rules by which a `cronstring` is read.
    pub dialect: Dialect,
}

impl ReadOptions<'_> {
    /// The same settings with the other dialect.
    pub const fn with_other_dialect(self) -> Self {
        Self { dialect: self.dialect.other(), ..self }
    }
}

/// A definition that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDefinition {
    /// The job. Invariant: it is `Some` exactly when there are no mistakes.
    pub job: Option<Job>,
    /// All mistakes in the definition.
    pub mistakes: Vec<FieldMistake>,
    /// Notes about parts that may surprise its author.
    pub notes: Vec<FormNote>,
    /// Whether the other dialect reads different times.
    pub depends_on_dialect: bool,
    /// Errors that a validation has recorded in the definition; `None` if it has none.
    pub validation_errors: Option<String>,
    /// The form as it was found. Writing starts from it.
    pub form: ForeignForm,
}

/// The macros of a `cronstring`, with the expression of each. `@never` has none.
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

/// The schedule of a job that Cronken's nodes must not run.
const NEVER: &str = "@never";

/// Keys of `cron_args` beside the cron fields.
const MORE_CRON_ARGS: [&str; 5] = ["cronstring", "start_date", "end_date", "timezone", "jitter"];

const CRON_ARGS: &str = "cron_args";
const JOB_ARGS: &str = "job_args";
const JOB_STATE: &str = "job_state";
