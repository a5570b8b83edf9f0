//! Jobs in the forms of other systems, which are read into the job type and written back. Unknown fields of a form are
//! kept, and keys that a form cannot express are listed.

pub mod castle;
pub mod gob;
pub mod object;

use std::fmt;

pub use object::ForeignForm;

/// A mistake in a foreign form, by the path of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMistake {
    /// Path such as `cron_args.hour`; empty for the form as a whole.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to write instead, if that is known.
    pub hint: Option<String>,
}

/// Something that is valid but likely to surprise, for lint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormNote {
    /// Path such as `cron_args.cronstring`.
    pub path: String,
    /// What may surprise, and how to write it clearly.
    pub message: String,
}

/// A job in a foreign form.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenForm {
    pub form: ForeignForm,
    /// Keys of a job file that the form cannot express, in order. If there are any, the form marks the job as not
    /// runnable.
    ///
    /// Invariant: if there are none, the form reads back to the same job.
    pub unexpressed: Vec<String>,
}

impl fmt::Display for FieldMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FieldMistake {}

impl fmt::Display for FormNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
