//! How an answer is shown: a table for people, JSON or YAML for programs and files. And the flags for it, which are the
//! same for all verbs.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use cronhold_jobfile::to_yaml;
use serde::Serialize;

use crate::render::Wall;
use crate::{Failure, Session};

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // Doc comments here would become half of every verb's help.
    Table,
    Json,
    Yaml,
}

/// How an answer is written for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

impl Format {
    /// How it is written for programs; nothing, when it is for people.
    pub(crate) fn encoding(self) -> Option<Encoding> {
        match self {
            Self::Table => None,
            Self::Json => Some(Encoding::Json),
            Self::Yaml => Some(Encoding::Yaml),
        }
    }
}

impl Encoding {
    /// Writes a value as a whole document.
    pub(crate) fn write(self, value: &(impl Serialize + ?Sized), out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, value)?;
                writeln!(out)
            }
            Self::Yaml => out.write_all(to_yaml(value)?.as_bytes()),
        }
    }

    /// Writes one of a stream of values that does not end: a line of JSON, or a document of YAML.
    pub(crate) fn write_item(self, value: &(impl Serialize + ?Sized), out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Json => {
                serde_json::to_writer(&mut *out, value)?;
                writeln!(out)
            }
            Self::Yaml => {
                writeln!(out, "---")?;
                out.write_all(to_yaml(value)?.as_bytes())
            }
        }
    }
}

/// The flags that say how an answer with times is shown.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
    /// Zone of times in tables, and of times that are given without an offset
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
}

impl Shown {
    /// How it is written for programs; nothing, when it is for people.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        self.output.encoding()
    }

    /// The clock that times are read from.
    pub(crate) fn wall(&self, session: &Session<'_>) -> Result<Wall, Failure> {
        let zone = session.zones.get(&self.timezone).map_err(|error| Failure::flag("--timezone", error))?;
        Ok(Wall { zone, now: session.now })
    }
}
