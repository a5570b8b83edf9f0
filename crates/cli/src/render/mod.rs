//! The only place that prints. One file per answer, and what answers are made of: formats, tables, times. Failures are
//! shown here.

pub(crate) mod backfill;
pub(crate) mod check;
pub(crate) mod explain;
mod format;
pub(crate) mod import;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod lint;
pub(crate) mod next;
pub(crate) mod nodes;
pub(crate) mod peers;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod said;
mod table;
pub(crate) mod watch;
mod when;

use std::io::{self, Write};

use cronhold_jobfile::{Mistake, Style, render};
use cronhold_schedule::{Instant, Schedule};

use crate::Failure;
use crate::asked::{Asked, Owner};

pub(crate) use format::{Format, Shown};
pub(crate) use table::{Cell, Colour, Table};
pub(crate) use when::{Wall, rounded, took};

/// Shows why there is no answer.
pub(crate) fn failure(failure: &Failure, colours: bool, err: &mut dyn Write) -> io::Result<()> {
    match failure {
        Failure::Usage { message, hint }
        | Failure::Refused { message, hint }
        | Failure::Unreachable { message, hint } => {
            writeln!(err, "{}", error(message, hint.as_deref(), colours))
        }
        Failure::Mistakes { mistakes, texts, typed } => {
            let shown = mistakes.iter().map(|mistake| match texts.get(&mistake.file) {
                Some(text) if *typed => render(mistake, text, style(colours)),
                text => in_file(mistake, text.map_or("", String::as_str), colours),
            });
            writeln!(err, "{}", shown.collect::<Vec<_>>().join("\n\n"))
        }
        Failure::Output(fault) => {
            writeln!(err, "{}", error(&format!("the answer cannot be written: {fault}"), None, colours))
        }
    }
}

/// A mistake with its lines; of a file without any, such as one that cannot be read, there is nothing to show.
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
    format!("{red}error{off}: {message}{hint}")
}

fn style(colours: bool) -> Style {
    if colours { Style::Coloured } else { Style::Plain }
}

/// A schedule's name, words and args on one line.
fn heading(asked: &Asked) -> String {
    let name = asked.written.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let disabled = if asked.written.enabled { "" } else { " (disabled)" };
    format!("{name}{}{}{disabled}", asked.words(), args(asked))
}

/// The args of a schedule in parentheses, if it has any.
fn args(asked: &Asked) -> String {
    let args: Vec<String> = asked.written.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if args.is_empty() { String::new() } else { format!(" ({})", args.join(" ")) }
}

/// For which job the answer is, when it would be another one for another job and nobody said which.
fn doubt(asked: &Asked) -> Option<String> {
    let doubt = match &asked.owner {
        Owner::Guessed(id) => format!("as job `{id}`; give --root or --job if its id differs"),
        Owner::Known(_) | Owner::Nobody => {
            "as no job in particular; give --job, since `H` and jitter depend on its id".to_owned()
        }
    };
    asked.hangs_on_a_guess().then_some(doubt)
}

/// An instant as the schedule's own wall shows it, with its offset.
fn local(schedule: &Schedule, at: Instant) -> String {
    at.with_offset(schedule.zone().offset_at(at.secs()))
}

/// A sentence that says what was done.
pub(crate) fn line(text: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{text}")
}

/// `1 mistake`, `2 mistakes`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
