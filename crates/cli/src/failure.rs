//! The errors of commands, each with a hint.

use std::collections::BTreeMap;
use std::io;

use cronhold_jobfile::Mistake;
use cronhold_schedule::TextError;

use crate::ExitStatus;

/// Why a command failed.
#[derive(Debug)]
pub enum CliError {
    /// Invalid command line.
    Usage {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// The request was refused, or an object does not exist.
    Refused {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The daemon is unreachable or not ready.
    Unreachable {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A schedule or job file is invalid.
    Mistakes {
        /// All errors found.
        mistakes: Vec<Mistake>,
        /// The text of each file; a file that could not be read has none.
        texts: BTreeMap<String, String>,
        /// Whether the text was an argument of the command line.
        typed: bool,
    },
    /// The output could not be written.
    Output(io::Error),
}

impl CliError {
    /// An invalid command line, with a hint.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// An option or argument whose value is invalid.
    pub fn flag(flag: &str, error: TextError) -> Self {
        Self::Usage { message: format!("{flag}: {}", error.message), hint: error.hint }
    }

    /// A refused request, with a hint.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    /// The exit status of the process.
    pub fn exit(&self) -> ExitStatus {
        match self {
            Self::Usage { .. } | Self::Mistakes { typed: true, .. } => ExitStatus::Usage,
            Self::Refused { .. } | Self::Mistakes { typed: false, .. } | Self::Output(_) => ExitStatus::Refused,
            Self::Unreachable { .. } => ExitStatus::Unreachable,
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
