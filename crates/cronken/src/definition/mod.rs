//! Cronken's form of a job: the JSON in its job hash, with `cron_args`, `job_args` and `job_state`. `castle` has the form
//! of castle-cron, which is used instead on ZooKeeper.
//!
//! Other programs write that hash too. The reader therefore accepts fields that it does not know, and the writer changes
//! only the fields that have to change.

mod castle;
mod read;
#[cfg(test)]
mod tests;
mod timing;
mod write;

use cronhold_core::{Job, JobId};
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
    /// The form of castle-cron, with cron's rules.
    Castle,
}

impl Dialect {
    /// The dialect by which nodes of the same system may have read a definition.
    pub const fn other(self) -> Self {
        match self {
            Self::Castle => Self::Castle,
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

/// Writes a job in the form of the dialect, without errors that a validation has noted. `found` is the present form.
pub(crate) fn write_valid(
    id: &JobId,
    job: &Job,
    found: Option<&ForeignForm>,
    options: &ReadOptions<'_>,
) -> ForeignForm {
    match options.dialect {
        Dialect::Castle => castle::write(id, job, found),
        Dialect::Cron | Dialect::Cronken => without_errors(write(job, found, options).form),
    }
}

/// The text of a form.
pub(crate) fn to_text(form: &ForeignForm, options: &ReadOptions<'_>) -> String {
    match options.dialect {
        Dialect::Castle => cronhold_jobfile::foreign::castle::to_text(form),
        Dialect::Cron | Dialect::Cronken => form.to_string(),
    }
}

/// Reads the definition of a job, which has to name that job if its form has a name.
pub(crate) fn read_of(id: &JobId, text: &str, options: &ReadOptions<'_>) -> ParsedDefinition {
    let read = read(text, options);
    match castle::name_mistake(id, &read.form).filter(|_| options.dialect == Dialect::Castle) {
        Some(mistake) => {
            let mistakes = read.mistakes.into_iter().chain([mistake]).collect();
            ParsedDefinition { job: None, mistakes, ..read }
        }
        None => read,
    }
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
