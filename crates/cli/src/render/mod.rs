//! The only place that prints. One file per answer; failures and the choice of format are here.

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod lint;
pub(crate) mod next;

use std::io::{self, Write};

use clap::ValueEnum;
use cronhold_jobfile::{Style, render};
use cronhold_schedule::{Instant, Schedule};

use crate::Failure;

/// How an answer is shown: as a table for people or as JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // Doc comments here would become half of every verb's help.
    Table,
    Json,
}

/// Shows why there is no answer.
pub(crate) fn failure(failure: &Failure, colours: bool, err: &mut dyn Write) -> io::Result<()> {
    match failure {
        Failure::Usage { message, hint } | Failure::Refused { message, hint } => {
            let (red, cyan, off) = if colours { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
            writeln!(err, "{red}error{off}: {message}")?;
            hint.iter().try_for_each(|hint| writeln!(err, "  {cyan}hint{off}: {hint}"))
        }
        Failure::Mistakes { mistakes, text, .. } => {
            mistakes.iter().try_for_each(|mistake| writeln!(err, "{}", render(mistake, text, style(colours))))
        }
        Failure::Output(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

fn style(colours: bool) -> Style {
    if colours { Style::Coloured } else { Style::Plain }
}

/// An instant as the schedule's own wall shows it, with its offset.
fn local(schedule: &Schedule, at: Instant) -> String {
    at.with_offset(schedule.zone().offset_at(at.secs()))
}

/// `1 mistake`, `2 mistakes`.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn json(value: &serde_json::Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
