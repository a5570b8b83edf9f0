//! `cronhold plugin`: tools for authors of plug-ins. The binary starts the executable, because only it starts processes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::{Args, Subcommand};
use cronhold_core::plugin::PluginKind;
use cronhold_schedule::Span;

use crate::render::{self, MachineFormat, OutputFormat};
use crate::{CliError, ExitStatus, PluginTrialEvent};

/// Try plug-ins
#[derive(Debug, Args)]
pub struct PluginCommand {
    /// Operation
    #[command(subcommand)]
    pub verb: PluginVerb,
}

/// Operations on plug-ins.
#[derive(Debug, Subcommand)]
pub enum PluginVerb {
    /// Start an executable as a plug-in, and report what is wrong with its messages
    Check(PluginCheckArgs),
}

/// Arguments of `cronhold plugin check`.
#[derive(Debug, Args)]
#[command(after_help = "\
The executable gets an example message on its standard input, and every line that it writes is shown
with its number. Exits with 1 if a line is not a message, if the result is missing or contradicts
the exit code, or if a stop does not end the executable in time.

A program is started a second time and stopped after its first line, to try the stop. So its work is
begun twice; --once leaves out the second start. docs/guide/plugins.md describes the messages.

Examples:
  cronhold plugin check -- ./copy.sh
  cronhold plugin check --with source=/srv/a --with target=/srv/b -- ./copy.py
  cronhold plugin check --condition --with path=/data --with least=10 -- ./free-space.sh")]
pub struct PluginCheckArgs {
    /// Executable, as `command` in a job file, after `--`; further words are its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<String>,
    /// Ask it as a condition, instead of starting it as a program
    #[arg(long)]
    condition: bool,
    /// Setting, as in `settings` of a job file; repeatable
    #[arg(long = "with", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Arg of the example run; repeatable
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// Time after which the executable is stopped
    #[arg(long, value_name = "SPAN", default_value = "1m")]
    timeout: String,
    /// Time between the stop signal and SIGKILL
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    grace: String,
    /// Start the executable only once, so that the stop is not tried
    #[arg(long)]
    pub once: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

/// Prints the events of a check as they happen, or as one document at the end.
pub struct TrialPrinter<'a> {
    out: &'a mut dyn Write,
    format: Option<MachineFormat>,
    events: Vec<PluginTrialEvent>,
}

impl PluginCheckArgs {
    /// What the executable is used for.
    pub fn kind(&self) -> PluginKind {
        if self.condition { PluginKind::Condition } else { PluginKind::Program }
    }

    /// The settings of the first message.
    pub fn settings(&self) -> Result<BTreeMap<String, String>, CliError> {
        named("--with", &self.settings)
    }

    /// The args of the example run.
    pub fn run_args(&self) -> Result<BTreeMap<String, String>, CliError> {
        named("--arg", &self.args)
    }

    /// How long the executable may take.
    pub fn timeout(&self) -> Result<Span, CliError> {
        Span::parse(&self.timeout).map_err(|error| CliError::flag("--timeout", error))
    }

    /// How long it may take to end after the stop signal.
    pub fn grace(&self) -> Result<Span, CliError> {
        Span::parse(&self.grace).map_err(|error| CliError::flag("--grace", error))
    }

    /// Prints events to `out` in the selected format.
    pub fn printer<'a>(&self, out: &'a mut dyn Write) -> TrialPrinter<'a> {
        TrialPrinter::new(out, self.output.encoding())
    }
}

impl<'a> TrialPrinter<'a> {
    /// Prints events to `out`; as one document if a format is given.
    pub(crate) fn new(out: &'a mut dyn Write, format: Option<MachineFormat>) -> Self {
        Self { out, format, events: Vec::new() }
    }
}

impl TrialPrinter<'_> {
    /// Prints an event.
    pub fn event(&mut self, event: PluginTrialEvent) -> io::Result<()> {
        if self.format.is_none() {
            render::plugin::event(&event, self.out)?;
            self.out.flush()?;
        }
        self.events.push(event);
        Ok(())
    }

    /// Prints the result.
    pub fn finish(self) -> Result<ExitStatus, CliError> {
        let problems = self.events.iter().filter(|event| event.is_problem()).count();
        match self.format {
            Some(format) => format.write(&render::plugin::value(&self.events), self.out)?,
            None => render::plugin::result(problems, self.out)?,
        }
        Ok(if problems == 0 { ExitStatus::Done } else { ExitStatus::Refused })
    }
}

impl std::fmt::Debug for TrialPrinter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialPrinter").field("events", &self.events).finish_non_exhaustive()
    }
}

fn named(flag: &str, words: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let mut found = BTreeMap::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(CliError::usage(
                format!("{flag}: `{word}` is not NAME=VALUE"),
                "write NAME=VALUE, such as size=3",
            ));
        };
        if found.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(CliError::usage(format!("{flag}: `{name}` is given twice"), "pass each name once"));
        }
    }
    Ok(found)
}
