//! A table of runs on Cronken nodes. It is separate because these runs have no number and cannot be controlled here.

use std::io::{self, Write};

use cronhold_api::{PeerRun, PeerState};
use cronhold_schedule::Span;

use super::{CellColour, LocalTimeFormat, TableCell, TextTable, rounded, took};

/// Heading of the table below Cronhold's own runs.
const HEADING: &str = "Runs on Cronken nodes:";

/// Prints the table.
pub(crate) fn table(runs: &[PeerRun], clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["JOB", "ID", "STATE", "HOST", "STARTED", "TOOK"]);
    for run in runs {
        let took = match (run.took_ms, run.state) {
            (Some(millis), _) => took(Span::from_millis(millis)),
            (None, PeerState::Running) => format!("{} so far", rounded(clock.now.since(run.started))),
            (None, _) => String::new(),
        };
        table.row([
            TableCell::from(run.job.clone()),
            TableCell::from(run.id.clone()),
            TableCell::new(run.state.name(), colour(run.state)),
            TableCell::from(run.host.clone()),
            TableCell::from(clock.at(run.started)),
            TableCell::from(took),
        ]);
    }
    table.write(colours, out)
}

/// Prints the table under a heading, or nothing if there are no runs.
pub(crate) fn below(runs: &[PeerRun], clock: &LocalTimeFormat, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", CellColour::Bold.paint(HEADING, colours))?;
    table(runs, clock, colours, out)
}

/// Prints that there are no runs.
pub(crate) fn none(err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "no runs on Cronken nodes")
}

fn colour(state: PeerState) -> CellColour {
    match state {
        PeerState::Running => CellColour::Cyan,
        PeerState::Success => CellColour::Green,
        PeerState::Failure | PeerState::Frozen => CellColour::Red,
    }
}

#[cfg(test)]
mod tests {
    use super::super::jobs::tests::clock;
    use super::*;

    fn shown(runs: &[PeerRun]) -> String {
        let mut out = Vec::new();
        below(runs, &clock(), false, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn peer_runs_are_shown_in_a_table() {
        let run = |job: &str, state, took_ms| PeerRun {
            id: "5f0c".to_owned(),
            job: job.to_owned(),
            state,
            host: "draco".to_owned(),
            started: clock().now.minus(Span::from_secs(65)),
            took_ms,
            exit_code: None,
            signal: None,
            tail: Vec::new(),
        };
        let runs = [
            run("a/report", PeerState::Running, None),
            run("backup", PeerState::Success, Some(1_250)),
            run("two\nlines", PeerState::Failure, Some(3)),
            run("lost", PeerState::Frozen, None),
        ];
        insta::assert_snapshot!(shown(&runs));
        assert_eq!(shown(&[]), "");
    }
}
