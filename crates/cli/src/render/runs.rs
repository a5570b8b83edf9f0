//! A table of runs, latest first.

use std::io::{self, Write};

use cronhold_api::Run;
use cronhold_schedule::Instant;

use super::run::{args, name, printable, started, took, why};
use super::{Cell, LocalTimeFormat, Table};

/// Maximum length of a reason in the table; `cronhold runs RUN` prints all of it.
const WHY_MOST: usize = 80;
/// Maximum length of the args in the table.
const ARGS_MOST: usize = 60;

/// Prints the table.
pub(crate) fn table(runs: &[Run], clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "NODE", "WHY", "ARGS"]);
    for run in runs {
        table.row([
            Cell::from(name(run)),
            Cell::state(run.state),
            Cell::from(clock.at(run.nominal_time)),
            Cell::from(started(run).map(|at| beside(at, run.nominal_time, clock)).unwrap_or_default()),
            Cell::from(took(run, clock.now).unwrap_or_default()),
            Cell::from(run.node.clone().unwrap_or_default()),
            Cell::from(why(run, clock)).cut(WHY_MOST),
            Cell::from(args(run)).cut(ARGS_MOST),
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

/// Prints a warning for each unreadable run.
pub(crate) fn unreadable(mistakes: &[String], err: &mut dyn Write) -> io::Result<()> {
    mistakes.iter().try_for_each(|mistake| writeln!(err, "warning: unreadable run: {}", printable(mistake)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cronhold_core::run::State;

    use super::super::run::tests::{at, clock, run, skipped};
    use super::*;

    #[test]
    fn a_row_for_each_run() {
        let runs = [
            Run { number: 46, ..run(State::Running) },
            Run { number: 45, from: Some(at(-600_000)), to: Some(at(0)), count: Some(11), ..skipped("missed") },
            Run {
                number: 44,
                reason: Some("exit code 3".to_owned()),
                exit_code: Some(3),
                node: Some("lyra".to_owned()),
                ..run(State::Failure)
            },
            Run {
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
