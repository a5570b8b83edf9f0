//! Output of operations on many runs: the preview, the result of each run, and the summary.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cronhold_api::RunSummary;

use super::{CellColour, LocalTimeFormat, counted};
use crate::CliSession;
use crate::bulk::BulkOutcome;

/// Number of runs that a preview lists.
const PREVIEW: usize = 20;

/// Prints what would be done.
pub(crate) fn plan(
    verb: &str,
    runs: &[RunSummary],
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !runs.is_empty() {
        super::runs::table(runs, clock, colours, out)?;
    }
    writeln!(out, "would {verb} {}", counted(runs.len(), "run"))
}

/// Prints the first runs, before the confirmation.
pub(crate) fn preview(
    runs: &[RunSummary],
    clock: &LocalTimeFormat,
    colours: bool,
    err: &mut dyn Write,
) -> io::Result<()> {
    super::runs::table(&runs[..runs.len().min(PREVIEW)], clock, colours, err)?;
    match runs.len().saturating_sub(PREVIEW) {
        0 => Ok(()),
        more => writeln!(err, "and {more} more"),
    }
}

/// Prints that no run matches.
pub(crate) fn nothing(verb: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "no matching runs; nothing to {verb}")
}

/// Prints that the person did not confirm.
pub(crate) fn declined(err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "nothing was changed")
}

/// Prints a line for each run, and a counter on a terminal.
pub(crate) struct BulkProgress<'a> {
    all: usize,
    done: usize,
    refusals: BTreeMap<String, usize>,
    has_counter: bool,
    colours: bool,
    lines: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl<'a> BulkProgress<'a> {
    /// Starts with `all` runs. `lines` says whether to print a line for each.
    pub(crate) fn new(
        all: usize,
        session: &CliSession<'_>,
        lines: bool,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        let (has_counter, colours) = (session.progress, session.colours);
        Self { all, done: 0, refusals: BTreeMap::new(), has_counter, colours, lines, out, err }
    }

    /// Prints the result of one run and returns it.
    pub(crate) fn report(&mut self, outcome: BulkOutcome) -> io::Result<BulkOutcome> {
        self.done += 1;
        self.clear()?;
        if let Some(refused) = &outcome.refused {
            *self.refusals.entry(refused.clone()).or_default() += 1;
        }
        if self.lines {
            let text = match (&outcome.result, &outcome.refused) {
                (Some(result), _) if *result != outcome.run => format!("{} → {result}", outcome.run),
                (Some(_), _) => outcome.run.clone(),
                (None, refused) => {
                    let refused = refused.as_deref().unwrap_or_default();
                    format!("{}  {}", outcome.run, CellColour::Red.paint(&format!("refused: {refused}"), self.colours))
                }
            };
            writeln!(self.out, "{text}")?;
            self.out.flush()?;
        }
        if self.has_counter && self.done < self.all {
            write!(self.err, "{} of {}", self.done, self.all)?;
            self.err.flush()?;
        }
        Ok(outcome)
    }

    /// Prints the summary.
    pub(crate) fn end(mut self, done: &str) -> io::Result<()> {
        self.clear()?;
        if !self.lines {
            return Ok(());
        }
        let refused: usize = self.refusals.values().sum();
        let rest = if refused == 0 { String::new() } else { format!(", {refused} refused") };
        writeln!(self.out, "{done} {}{rest}", counted(self.done - refused, "run"))?;
        if self.refusals.len() < refused {
            for (why, count) in &self.refusals {
                writeln!(self.out, "  {count} × {why}")?;
            }
        }
        self.out.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.has_counter {
            write!(self.err, "\r\x1b[K")?;
            self.err.flush()?;
        }
        Ok(())
    }
}
