//! Many runs: a table for people, the latest first.

use std::io::{self, Write};

use cronhold_api::Run;
use cronhold_schedule::Instant;

use super::run::{args, name, printable, started, took, why};
use super::{Cell, Table, Wall};

/// How much of a reason a row has room for. The whole of it is shown with the run alone.
const WHY_MOST: usize = 80;
/// How much of a run's args a row has room for.
const ARGS_MOST: usize = 60;

/// A row for each run.
pub(crate) fn table(runs: &[Run], wall: &Wall, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "NODE", "WHY", "ARGS"]);
    for run in runs {
        table.row([
            Cell::from(name(run)),
            Cell::state(run.state),
            Cell::from(wall.at(run.nominal_time)),
            Cell::from(started(run).map(|at| beside(at, run.nominal_time, wall)).unwrap_or_default()),
            Cell::from(took(run, wall.now).unwrap_or_default()),
            Cell::from(run.node.clone().unwrap_or_default()),
            Cell::from(why(run, wall)).cut(WHY_MOST),
            Cell::from(args(run)).cut(ARGS_MOST),
        ]);
    }
    table.write(colours, out)
}

/// A time beside another one: without its day when it is the same.
fn beside(at: Instant, other: Instant, wall: &Wall) -> String {
    let (at, other) = (wall.at(at), wall.at(other));
    match (at.split_once(' '), other.split_once(' ')) {
        (Some((day, time)), Some((same, _))) if day == same => time.to_owned(),
        _ => at,
    }
}

/// Says that there is nothing to show.
pub(crate) fn none(is_narrowed: bool, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}", if is_narrowed { "no run is like that" } else { "nothing has run yet" })
}

/// Says that older runs were left out.
pub(crate) fn more(shown: usize, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "these are the latest {shown}; `--limit {}` shows more", shown.saturating_mul(10))
}

/// Says what is wrong with runs that belong here.
pub(crate) fn unreadable(mistakes: &[String], err: &mut dyn Write) -> io::Result<()> {
    mistakes.iter().try_for_each(|mistake| writeln!(err, "warning: a run cannot be read: {}", printable(mistake)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cronhold_core::run::State;

    use super::super::run::tests::{at, run, skipped, wall};
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
        table(&runs, &wall(90_000), false, &mut shown).expect("written");
        insta::assert_snapshot!(String::from_utf8(shown).expect("text"));
    }
}
