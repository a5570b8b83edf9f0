//! Output formats: a table for people, JSON or YAML for programs; and the options for them, which all commands share.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use cronhold_jobfile::{escape_unprintable, to_yaml};
use serde::Serialize;

use crate::render::LocalTimeFormat;
use crate::{CliError, CliSession};

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    // No doc comments here: clap would add them to the help of every command.
    Table,
    Json,
    Yaml,
}

/// Output format for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MachineFormat {
    Json,
    Yaml,
}

impl OutputFormat {
    /// The format for programs, or `None` for a table.
    pub(crate) fn encoding(self) -> Option<MachineFormat> {
        match self {
            Self::Table => None,
            Self::Json => Some(MachineFormat::Json),
            Self::Yaml => Some(MachineFormat::Yaml),
        }
    }
}

impl MachineFormat {
    /// Writes a value as one document.
    pub(crate) fn write(self, value: &(impl Serialize + ?Sized), out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Json => write_json(&serde_json::to_string_pretty(value)?, out),
            Self::Yaml => out.write_all(to_yaml(value)?.as_bytes()),
        }
    }

    /// Writes one value of a stream: a line of JSON, or a YAML document.
    pub(crate) fn write_item(self, value: &(impl Serialize + ?Sized), out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Json => write_json(&serde_json::to_string(value)?, out),
            Self::Yaml => {
                writeln!(out, "---")?;
                out.write_all(to_yaml(value)?.as_bytes())
            }
        }
    }
}

/// Writes JSON in which all characters that cannot be seen are escaped. Its value stays the same.
fn write_json(json: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(escape_unprintable(json).as_bytes())?;
    out.write_all(b"\n")
}

/// Options of commands whose output contains times.
#[derive(Debug, Args)]
pub(crate) struct TimeDisplayFlags {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OutputFormat,
    /// Time zone of displayed times, and of times without an offset
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
}

impl TimeDisplayFlags {
    /// The format for programs, or `None` for a table.
    pub(crate) fn encoding(&self) -> Option<MachineFormat> {
        self.output.encoding()
    }

    /// The zone and the current time, for displaying and reading times.
    pub(crate) fn clock(&self, session: &CliSession<'_>) -> Result<LocalTimeFormat, CliError> {
        let zone = session.zones.get(&self.timezone).map_err(|error| CliError::flag("--timezone", error))?;
        Ok(LocalTimeFormat { zone, now: session.now })
    }
}
