//! Mistakes of a directory, as compilers show them.

use std::io::{self, Write};
use std::path::Path;

use cronhold_jobfile::directory::Directory;
use cronhold_jobfile::{line_column, render};
use serde_json::{Value, json};

use super::{counted, json as write_json, style};

pub(crate) fn text(directory: &Directory, dir: &Path, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    for mistake in &directory.mistakes {
        writeln!(out, "{}\n", render(mistake, directory.text_of(mistake), style(colours)))?;
    }
    let jobs = counted(directory.jobs.len(), "good job");
    match directory.mistakes.len() {
        0 => {
            let calendars = counted(directory.calendars.names().count(), "calendar");
            writeln!(out, "{}: {}, {calendars}, no mistakes", dir.display(), counted(directory.jobs.len(), "job"))
        }
        count => writeln!(out, "{}: {}, {jobs}", dir.display(), counted(count, "mistake")),
    }
}

pub(crate) fn json(directory: &Directory, out: &mut dyn Write) -> io::Result<()> {
    let mistakes = directory.mistakes.iter().map(|mistake| {
        let (line, column) = line_column(directory.text_of(mistake), mistake.at.start);
        json!({
            "file": mistake.file,
            "line": line,
            "column": column,
            "message": mistake.message,
            "hint": mistake.hint,
        })
    });
    write_json(&Value::Array(mistakes.collect()), out)
}
