//! Why a verb did not do what it was asked: one closed set, each with what to do about it.

use std::collections::BTreeMap;
use std::io;

use cronhold_jobfile::Mistake;
use cronhold_schedule::TextError;

use crate::Exit;

/// Why a verb gave no answer.
#[derive(Debug)]
pub enum Failure {
    /// What was given on the command line does not make sense.
    Usage {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// What was asked for cannot be had.
    Refused {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The daemon cannot be reached, or cannot answer now.
    Unreachable {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Texts that were given have mistakes.
    Mistakes {
        /// The mistakes.
        mistakes: Vec<Mistake>,
        /// The texts they point into, by file; a file that could not be read has none.
        texts: BTreeMap<String, String>,
        /// Whether the text came from the command line itself.
        typed: bool,
    },
    /// The answer could not be written.
    Output(io::Error),
}

impl Failure {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// A flag whose value cannot be read.
    pub fn flag(flag: &str, error: TextError) -> Self {
        Self::Usage { message: format!("{flag}: {}", error.message), hint: error.hint }
    }

    /// A refusal.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    /// What the process exits with.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } | Self::Mistakes { typed: true, .. } => Exit::Usage,
            Self::Refused { .. } | Self::Mistakes { typed: false, .. } | Self::Output(_) => Exit::Refused,
            Self::Unreachable { .. } => Exit::Unreachable,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
