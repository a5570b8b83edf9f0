//! The options of the log, which the daemon and its keeper share.

use clap::{Args, ValueEnum};

/// What a process logs, and in which form.
#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
    /// Filter of the log: LEVEL, or TARGET=LEVEL for a part, separated by commas, such as
    /// `info,cronhold_store_redis=debug`; levels are off, error, warn, info, debug and trace [default:
    /// $CRONHOLD_LOG, or info]
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Form of log lines: `text` for people, or `json` with one object per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub log_format: LogFormat,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level, event, message and fields, for people
    #[default]
    Text,
    /// One JSON object per line, for programs
    Json,
}

impl LogFormat {
    /// The value as it is written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}
