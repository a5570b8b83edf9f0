//! Output of `cronhold lint`.

use std::io::{self, Write};

use cronhold_schedule::LintWarning;
use serde_json::{Value, json};

use super::{counted, owner_note};
use crate::resolved_schedule::{ResolvedSchedule, ScheduleOwner};

/// A warning and its schedule.
#[derive(Debug)]
pub(crate) struct FoundWarning<'a> {
    pub(crate) asked: &'a ResolvedSchedule,
    pub(crate) warning: LintWarning,
}

/// Prints the warnings and the number of schedules.
pub(crate) fn text(
    found: &[FoundWarning<'_>],
    looked_at: &[&ResolvedSchedule],
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (yellow, bold, off) = if colours { ("\x1b[1;33m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    for FoundWarning { asked, warning } in found {
        let job = if asked.owner == ScheduleOwner::NoJob { String::new() } else { format!("{}: ", asked.owner.id()) };
        writeln!(out, "{yellow}warning[{}]{off}: {bold}{job}{}{off}", warning.lint.name(), warning.message)?;
        writeln!(out, "  in   {}", asked.written.spec)?;
        writeln!(out, "  hint {}", warning.hint)?;
    }
    // All schedules belong to one job, or to jobs of a directory, whose ids are known.
    if let Some(owner_note) = looked_at.iter().find_map(|asked| owner_note(asked)) {
        writeln!(out, "{owner_note}")?;
    }
    let schedules = counted(looked_at.len(), "schedule");
    match found.len() {
        0 => writeln!(out, "{schedules}, no warnings"),
        count => writeln!(out, "{schedules}, {}", counted(count, "warning")),
    }
}

/// The warnings as JSON.
pub(crate) fn value(found: &[FoundWarning<'_>]) -> Value {
    let warnings = found.iter().map(|FoundWarning { asked, warning }| {
        json!({
            "job": (asked.owner != ScheduleOwner::NoJob).then(|| asked.owner.id()),
            "schedule": asked.written.spec.to_string(),
            "lint": warning.lint.name(),
            "message": warning.message,
            "hint": warning.hint,
        })
    });
    Value::Array(warnings.collect())
}
