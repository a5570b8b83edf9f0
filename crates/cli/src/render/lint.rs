//! Warnings about schedules.

use std::io::{self, Write};

use cronhold_schedule::Warning;
use serde_json::{Value, json};

use super::{counted, doubt};
use crate::asked::{Asked, Owner};

/// A warning and the schedule it is about.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) warning: Warning,
}

/// Warnings, and of how many schedules they are.
pub(crate) fn text(found: &[Found<'_>], looked_at: &[&Asked], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let (yellow, bold, off) = if colours { ("\x1b[1;33m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    for Found { asked, warning } in found {
        let job = if asked.owner == Owner::Nobody { String::new() } else { format!("{}: ", asked.owner.id()) };
        writeln!(out, "{yellow}warning[{}]{off}: {bold}{job}{}{off}", warning.lint.name(), warning.message)?;
        writeln!(out, "  in   {}", asked.written.spec)?;
        writeln!(out, "  hint {}", warning.hint)?;
    }
    // Either all of them belong to one job, or to jobs of a directory, whose ids are known.
    if let Some(doubt) = looked_at.iter().find_map(|asked| doubt(asked)) {
        writeln!(out, "{doubt}")?;
    }
    let schedules = counted(looked_at.len(), "schedule");
    match found.len() {
        0 => writeln!(out, "{schedules}, nothing to warn about"),
        count => writeln!(out, "{schedules}, {}", counted(count, "warning")),
    }
}

/// The same for programs.
pub(crate) fn value(found: &[Found<'_>]) -> Value {
    let warnings = found.iter().map(|Found { asked, warning }| {
        json!({
            "job": (asked.owner != Owner::Nobody).then(|| asked.owner.id()),
            "schedule": asked.written.spec.to_string(),
            "lint": warning.lint.name(),
            "message": warning.message,
            "hint": warning.hint,
        })
    });
    Value::Array(warnings.collect())
}
