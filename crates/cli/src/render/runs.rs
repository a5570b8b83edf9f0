//! A table of runs, latest first.

use std::io::{self, Write};

use cronhold_api::RunSummary;
use cronhold_schedule::Instant;

use super::run::{args, name, started, took, why};
use super::{LocalTimeFormat, TableCell, TextTable};

/// Maximum length of a reason in the table; `cronhold runs RUN` prints all of it.
const WHY_MOST: usize = 80;
/// Maximum length of the args in the table.
const ARGS_MOST: usize = 60;

/// Prints the table.
pub(crate) fn table(
    runs: &[RunSummary],
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&["RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "NODE", "WHY", "ARGS"]);
    for run in runs {
        table.row([
            TableCell::from(name(run)),
            TableCell::state(run.state),
            TableCell::from(clock.at(run.nominal_time)),
            TableCell::from(started(run).map(|at| beside(at, run.nominal_time, clock)).unwrap_or_default()),
            TableCell::from(took(run, clock.now).unwrap_or_default()),
            TableCell::from(run.node.clone().unwrap_or_default()),
            TableCell::from(why(run, clock)).cut(WHY_MOST),
            TableCell::from(args(run)).cut(ARGS_MOST),
        ]);
    }
    table.write(colours, out)
}

/// A time, without its date if `other` is on the same day.
fn beside(at: Instant, other: Instant, clock: &LocalTimeFormat) -> String {
    let (at, other) = (clock.at(at), clock.at(other));
    match (at.split_once(' '), other.split_once(' ')) {
        (Some((day, time)), Some((same, _))) if day == same => time.to_owned(),
        _ => at,
    }
}

/// Prints that there are no runs.
pub(crate) fn none(is_narrowed: bool, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}", if is_narrowed { "no matching runs" } else { "nothing has run yet" })
}

/// Prints that there are older runs.
pub(crate) fn more(shown: usize, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "showing the latest {shown}; `--limit {}` shows more", shown.saturating_mul(10))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cronhold_core::run::State;

    use super::super::run::tests::{at, clock, run, skipped};
    use super::*;

    #[test]
    fn runs_are_shown_in_a_table() {
        let runs = [
            RunSummary { number: 46, ..run(State::Running) },
            RunSummary { number: 45, from: Some(at(-600_000)), to: Some(at(0)), count: Some(11), ..skipped("missed") },
            RunSummary {
                number: 44,
                reason: Some("exit code 3".to_owned()),
                exit_code: Some(3),
                node: Some("lyra".to_owned()),
                ..run(State::Failure)
            },
            RunSummary {
                job: "reports/prices".to_owned(),
                number: 7,
                args: BTreeMap::from([("region".to_owned(), "us".to_owned())]),
                exit_code: Some(0),
                ..run(State::Success)
            },
        ];
        let mut shown = Vec::new();
        table(&runs, &clock(90_000), false, &mut shown).expect("written");
        insta::assert_snapshot!(String::from_utf8(shown).expect("text"));
    }
}
