//! All output of the command line: one file per kind of result, and the formats, tables and times that they use. This
//! file prints errors.

pub(crate) mod backfill;
pub(crate) mod bench;
pub(crate) mod bulk;
pub(crate) mod channels;
pub(crate) mod check;
pub(crate) mod coming;
pub(crate) mod explain;
pub(crate) mod explanation;
mod format;
pub(crate) mod import;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod lint;
mod local_clock;
pub(crate) mod next;
pub(crate) mod nodes;
pub(crate) mod peers;
pub(crate) mod plugin;
pub(crate) mod pools;
pub(crate) mod queues;
pub(crate) mod run;
pub(crate) mod runs;
mod table;
pub(crate) mod task;
pub(crate) mod tasks;
mod terminal;
pub(crate) mod triggers;
pub(crate) mod watch;

use std::io::{self, Write};

use cronhold_jobfile::{Mistake, Style, render};
use cronhold_schedule::{Instant, Schedule};

use crate::CliError;
use crate::resolved_schedule::{ResolvedSchedule, ScheduleOwner};

pub(crate) use cronhold_schedule::text::visible;
pub(crate) use format::{MachineFormat, OutputFormat, TimeDisplayFlags};
pub(crate) use local_clock::{LocalTimeFormat, rounded, took};
pub(crate) use table::{CellColour, TableCell, TextTable};
pub(crate) use terminal::TerminalWriter;

/// Prints an error.
pub(crate) fn failure(failure: &CliError, colours: bool, err: &mut dyn Write) -> io::Result<()> {
    match failure {
        CliError::Usage { message, hint }
        | CliError::Refused { message, hint }
        | CliError::Unreachable { message, hint } => lines(&error(message, hint.as_deref(), colours), err),
        CliError::Mistakes { mistakes, texts, typed } => {
            let shown = mistakes.iter().map(|mistake| match texts.get(&mistake.file) {
                Some(text) if *typed => render(mistake, text, style(colours)),
                text => in_file(mistake, text.map_or("", String::as_str), colours),
            });
            lines(&shown.collect::<Vec<_>>().join("\n\n"), err)
        }
        CliError::Output(fault) => lines(&error(&format!("cannot write the output: {fault}"), None, colours), err),
    }
}

/// An error in a file with the lines around it, or without them if the file could not be read.
fn in_file(mistake: &Mistake, text: &str, colours: bool) -> String {
    if text.is_empty() {
        let message = format!("{}: {}", mistake.file, mistake.message);
        return error(&message, mistake.hint.as_deref(), colours);
    }
    render(mistake, text, style(colours))
}

fn error(message: &str, hint: Option<&str>, colours: bool) -> String {
    let (red, cyan, off) = if colours { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
    let hint = hint.map(|hint| format!("\n  {cyan}hint{off}: {}", hint.replace('\n', "\n    "))).unwrap_or_default();
    format!("{red}error{off}: {}{hint}", visible(message))
}

fn style(colours: bool) -> Style {
    if colours { Style::Coloured } else { Style::Plain }
}

/// A schedule's name, words and args on one line.
fn heading(asked: &ResolvedSchedule) -> String {
    let name = asked.written.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let disabled = if asked.written.enabled { "" } else { " (disabled)" };
    format!("{name}{}{}{disabled}", asked.words(), args(asked))
}

/// The args of a schedule in parentheses, if it has any.
fn args(asked: &ResolvedSchedule) -> String {
    let args: Vec<String> = asked.written.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if args.is_empty() { String::new() } else { format!(" ({})", args.join(" ")) }
}

/// A note on which job id was assumed, if the result depends on it and it is not known for certain.
fn owner_note(asked: &ResolvedSchedule) -> Option<String> {
    let note = match &asked.owner {
        ScheduleOwner::Guessed(id) => format!("for the job id `{id}`; pass --root or --job if it differs"),
        ScheduleOwner::Known(_) | ScheduleOwner::NoJob => {
            "without a job id, on which `H` and jitter depend; pass --job".to_owned()
        }
    };
    asked.depends_on_unknown_job().then_some(note)
}

/// An instant in the schedule's zone, with its offset.
fn local(schedule: &Schedule, at: Instant) -> String {
    at.with_offset(schedule.zone().offset_at(at.secs()))
}

/// Prints a text of several lines. Values of others in it must not contain line ends.
pub(crate) fn lines(text: &str, out: &mut dyn Write) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "{line}"))
}

/// Prints one line.
pub(crate) fn line(text: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{text}")
}

/// A count with its noun: `1 job`, `2 jobs`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
