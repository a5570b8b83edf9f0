//! Warnings about schedules.

use std::io::{self, Write};

use cronhold_schedule::Warning;
use serde_json::{Value, json};

use super::{counted, json as write_json};
use crate::input::Asked;

/// A warning and the schedule it is about.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) warning: Warning,
}

pub(crate) fn text(found: &[Found<'_>], looked_at: usize, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let (yellow, bold, off) = if colours { ("\x1b[1;33m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    for Found { asked, warning } in found {
        let job = if asked.job.is_empty() { String::new() } else { format!("{}: ", asked.job) };
        writeln!(out, "{yellow}warning[{}]{off}: {bold}{job}{}{off}", warning.lint.name(), warning.message)?;
        writeln!(out, "  in   {}", asked.spec)?;
        writeln!(out, "  hint {}", warning.hint)?;
    }
    let schedules = counted(looked_at, "schedule");
    match found.len() {
        0 => writeln!(out, "{schedules}, nothing to warn about"),
        count => writeln!(out, "{schedules}, {}", counted(count, "warning")),
    }
}

pub(crate) fn json(found: &[Found<'_>], out: &mut dyn Write) -> io::Result<()> {
    let warnings = found.iter().map(|Found { asked, warning }| {
        json!({
            "job": (!asked.job.is_empty()).then_some(&asked.job),
            "schedule": asked.spec.to_string(),
            "lint": warning.lint.name(),
            "message": warning.message,
            "hint": warning.hint,
        })
    });
    write_json(&Value::Array(warnings.collect()), out)
}
