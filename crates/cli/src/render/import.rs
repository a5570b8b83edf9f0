//! What became of the definitions of another scheduler: a line for each, and how many came.

use std::io::{self, Write};

use super::{Cell, Colour, Table, counted};
use crate::verbs::import::{Imported, Outcome};

/// What came and what did not, with why.
pub(crate) fn table(all: &[Imported], colours: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["JOB", "OUTCOME", "NOTES"]);
    for one in all {
        let outcome = match one.outcome {
            Outcome::Imported => Cell::new("imported", Colour::Green),
            Outcome::WouldCome => Cell::new("would come", Colour::Green),
            Outcome::Same => Cell::new("there already", Colour::Plain),
            Outcome::Left => Cell::new("left", Colour::Red),
        };
        table.row([one.job.as_str().into(), outcome, one.notes.join("; ").into()]);
    }
    table.write(colours, out)?;
    out.flush()?;
    let count = |outcome| all.iter().filter(|one| one.outcome == outcome).count();
    let parts = [
        (Outcome::Imported, "imported"),
        (Outcome::WouldCome, "would come"),
        (Outcome::Same, "there already"),
        (Outcome::Left, "left"),
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
    fn says_what_came_and_what_not() {
        let one = |job: &str, outcome, note: &str| {
            let notes = if note.is_empty() { Vec::new() } else { vec![note.to_owned()] };
            Imported { job: job.to_owned(), outcome, notes }
        };
        let all = [
            one("a", Outcome::Imported, ""),
            one("b", Outcome::Same, "paused"),
            one("c", Outcome::Left, "cron_args: `cron_args` is missing"),
        ];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        table(&all, false, &mut out, &mut err).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"), @r"
        JOB  OUTCOME        NOTES
        a    imported
        b    there already  paused
        c    left           cron_args: `cron_args` is missing
        ");
        let err = String::from_utf8(err).expect("UTF-8");
        assert_eq!(err, "3 definitions found: 1 imported, 1 there already, 1 left\n");
    }
}
