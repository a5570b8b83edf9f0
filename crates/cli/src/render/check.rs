//! Output of `cronhold check`, in the form of compiler errors.

use std::io::{self, Write};
use std::path::Path;

use cronhold_jobfile::directory::{Directory, DirectoryReport};
use cronhold_jobfile::line_column;
use serde_json::{Value, json};

use super::{counted, in_file, lines};

pub(crate) fn text(directory: &Directory, dir: &Path, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let report = &directory.report;
    for mistake in &report.mistakes {
        lines(&in_file(mistake, report.text_of(mistake), colours), out)?;
        writeln!(out)?;
    }
    let jobs = directory.jobs.len();
    let calendars = counted(report.calendars.names().count(), "calendar");
    match report.mistakes.len() {
        0 if jobs == 0 => {
            writeln!(out, "{}: 0 jobs, {calendars}: no *.yaml or *.yml files found", dir.display())
        }
        0 => writeln!(out, "{}: {}, {calendars}, no errors", dir.display(), counted(jobs, "job")),
        count => writeln!(out, "{}: {}, {}", dir.display(), counted(count, "error"), counted(jobs, "valid job")),
    }
}

/// The errors as JSON.
pub(crate) fn value(report: &DirectoryReport) -> Value {
    let mistakes = report.mistakes.iter().map(|mistake| {
        let (line, column) = line_column(report.text_of(mistake), mistake.at.start);
        json!({
            "file": mistake.file,
            "line": line,
            "column": column,
            "message": mistake.message,
            "hint": mistake.hint,
        })
    });
    Value::Array(mistakes.collect())
}
