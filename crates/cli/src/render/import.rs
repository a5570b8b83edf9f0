//! Prints the result of an import: a row for each job, and totals.

use std::io::{self, Write};

use super::{CellColour, TableCell, TextTable, counted};
use crate::verbs::import::{ImportOutcome, ImportedJob};

/// Prints the table to `out` and the totals to `err`.
pub(crate) fn table(all: &[ImportedJob], colours: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["JOB", "OUTCOME", "NOTES"]);
    for one in all {
        let outcome = match one.outcome {
            ImportOutcome::Imported => TableCell::new("imported", CellColour::Green),
            ImportOutcome::WouldImport => TableCell::new("would be imported", CellColour::Green),
            ImportOutcome::Same => TableCell::new("already imported", CellColour::Plain),
            ImportOutcome::NotImported => TableCell::new("not imported", CellColour::Red),
        };
        table.row([one.job.as_str().into(), outcome, one.notes.join("; ").into()]);
    }
    table.write(colours, out)?;
    out.flush()?;
    let count = |outcome| all.iter().filter(|one| one.outcome == outcome).count();
    let parts = [
        (ImportOutcome::Imported, "imported"),
        (ImportOutcome::WouldImport, "would be imported"),
        (ImportOutcome::Same, "already imported"),
        (ImportOutcome::NotImported, "not imported"),
    ];
    let parts = parts.map(|(outcome, words)| (count(outcome), words));
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    writeln!(err, "{} found{parts}", counted(all.len(), "definition"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_each_job_and_totals() {
        let one = |job: &str, outcome, note: &str| {
            let notes = if note.is_empty() { Vec::new() } else { vec![note.to_owned()] };
            ImportedJob { job: job.to_owned(), outcome, notes }
        };
        let all = [
            one("a", ImportOutcome::Imported, ""),
            one("b", ImportOutcome::Same, "paused"),
            one("c", ImportOutcome::NotImported, "cron_args: `cron_args` is missing"),
        ];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        table(&all, false, &mut out, &mut err).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"), @r"
        JOB  OUTCOME           NOTES
        a    imported
        b    already imported  paused
        c    not imported      cron_args: `cron_args` is missing
        ");
        let err = String::from_utf8(err).expect("UTF-8");
        assert_eq!(err, "3 definitions found: 1 imported, 1 already imported, 1 not imported\n");
    }
}
