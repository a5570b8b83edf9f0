//! What happens while a plug-in is tried.

use cronhold_core::plugin::{PluginMessage, ReaderEvent};
use serde::Serialize;

/// An event of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum PluginTrialEvent {
    /// The executable was started and has this message on its standard input.
    Started { message: String },
    /// It gets a further line.
    Sent { text: String },
    /// It has written a message.
    Message {
        /// The number of the line, from 1.
        line: u64,
        /// `output`, `progress` or `result`.
        kind: &'static str,
        text: String,
    },
    /// It has written a line that is not a message.
    Malformed {
        /// The number of the line, from 1.
        line: u64,
        problem: String,
        /// The beginning of the line.
        quote: String,
    },
    /// It has written a line to its standard error.
    Stderr { text: String },
    /// It was sent a signal.
    Signalled { signal: String },
    /// It has ended.
    Ended {
        /// How, such as `exit code 0`.
        exit: String,
        /// What that means for a run.
        meaning: String,
    },
    /// Something that is wrong beside single lines.
    Problem { problem: String },
    /// Something that the author should know.
    Note { text: String },
}

impl PluginTrialEvent {
    /// Whether it makes the check fail.
    pub fn is_problem(&self) -> bool {
        matches!(self, Self::Malformed { .. } | Self::Problem { .. })
    }
}

impl From<ReaderEvent> for PluginTrialEvent {
    fn from(event: ReaderEvent) -> Self {
        match event {
            ReaderEvent::Message { line, message } => {
                let (kind, text) = match message {
                    PluginMessage::Output(text) => ("output", text.trim_end_matches('\n').to_owned()),
                    PluginMessage::Progress(progress) => ("progress", progress.to_string()),
                    PluginMessage::Result(result) if result.message.is_empty() => {
                        ("result", result.outcome.name().to_owned())
                    }
                    PluginMessage::Result(result) => {
                        ("result", format!("{}: {}", result.outcome.name(), result.message))
                    }
                };
                Self::Message { line, kind, text }
            }
            ReaderEvent::Problem { line, message, quote } => Self::Malformed { line, problem: message, quote },
            ReaderEvent::Text(text) => {
                Self::Stderr { text: String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned() }
            }
        }
    }
}
