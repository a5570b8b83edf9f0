//! Output of `cronhold backfill`: the plan, the progress and the result of each occurrence.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cronhold_api::{BackfillItem, RunSummary};
use cronhold_core::run::State;
use cronhold_schedule::Instant;
use serde::Serialize;

use super::{CellColour, LocalTimeFormat, TextTable, counted};
use crate::CliSession;

/// Width of the progress bar in characters.
const BAR: usize = 30;

/// The result of one occurrence.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BackfillOutcome {
    /// Instant of the occurrence.
    pub(crate) at: Instant,
    schedule: String,
    args: BTreeMap<String, String>,
    /// Its state before the backfill, or `None` if it had no run.
    before: Option<String>,
    /// The run that was created.
    run: Option<String>,
    /// Final state of the run, or `None` if no run could be created.
    pub(crate) state: Option<State>,
    /// Reason of the state, or of the refusal.
    reason: Option<String>,
    #[serde(skip)]
    took: Option<String>,
}

impl BackfillOutcome {
    /// The result of a finished run.
    pub(crate) fn of(item: BackfillItem, run: &RunSummary) -> Self {
        let took = run.times.running.zip(run.times.finished).map(|(from, to)| super::took(to.since(from)));
        Self {
            run: Some(format!("{}#{}", run.job, run.number)),
            state: Some(run.state),
            reason: run.reason.clone(),
            took,
            ..Self::refused(item, String::new())
        }
    }

    /// The result if no run could be created.
    pub(crate) fn refused(item: BackfillItem, why: String) -> Self {
        let BackfillItem { at, schedule, args, state: before, .. } = item;
        Self { at, schedule, args, before, run: None, state: None, reason: Some(why), took: None }
    }
}

/// Prints what would run.
pub(crate) fn plan(
    wanted: &[BackfillItem],
    left: usize,
    cut: bool,
    clock: &LocalTimeFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&["OCCURRENCE", "SCHEDULE", "ARGS", "STATE"]);
    for item in wanted {
        let args: Vec<String> = item.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let before = item.state.clone().unwrap_or_else(|| "no run".to_owned());
        // Show the schedule only if there are several.
        let several = wanted.iter().any(|other| other.schedule != item.schedule);
        let schedule = if several { item.schedule.as_str() } else { "" };
        table.row([clock.at(item.at).into(), schedule.into(), args.join(" ").into(), before.into()]);
    }
    table.write(false, out)?;
    writeln!(out, "would run {}{}", counted(wanted.len(), "occurrence"), rest(left, cut))
}

/// Prints a line for each finished occurrence, and a progress bar on a terminal.
pub(crate) struct BackfillProgress<'a> {
    all: usize,
    done: usize,
    bad: usize,
    clock: LocalTimeFormat,
    bar: bool,
    colours: bool,
    lines: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl<'a> BackfillProgress<'a> {
    /// Starts with `all` occurrences. `lines` says whether to print a line for each.
    pub(crate) fn new(
        all: usize,
        session: &CliSession<'_>,
        clock: LocalTimeFormat,
        lines: bool,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        let (bar, colours) = (session.progress, session.colours);
        Self { all, done: 0, bad: 0, clock, bar, colours, lines, out, err }
    }

    /// Prints the result of one occurrence and returns it.
    pub(crate) fn report(&mut self, outcome: BackfillOutcome) -> io::Result<BackfillOutcome> {
        self.done += 1;
        self.bad += usize::from(outcome.state != Some(State::Success));
        self.clear()?;
        if self.lines {
            let state = outcome.state.map_or("refused", State::name);
            let colour = outcome.state.map_or(CellColour::Red, CellColour::of);
            let mut line = format!("{}  {}", self.clock.at(outcome.at), colour.paint(state, self.colours));
            let rest = [&outcome.run, &outcome.took, &outcome.reason];
            for part in rest.into_iter().flatten().filter(|part| !part.is_empty()) {
                line.push_str("  ");
                line.push_str(part);
            }
            writeln!(self.out, "{line}")?;
            self.out.flush()?;
        }
        self.draw()?;
        Ok(outcome)
    }

    /// Prints the summary.
    pub(crate) fn end(mut self, left: usize, cut: bool) -> io::Result<()> {
        self.clear()?;
        if !self.lines {
            return Ok(());
        }
        let bad = if self.bad == 0 { String::new() } else { format!(", {} not successful", self.bad) };
        writeln!(self.out, "ran {}{bad}{}", counted(self.done, "occurrence"), rest(left, cut))
    }

    fn draw(&mut self) -> io::Result<()> {
        if !self.bar {
            return Ok(());
        }
        let bad = if self.bad == 0 { String::new() } else { format!(", {} not successful", self.bad) };
        write!(self.err, "\r{}{bad}", bar(self.done, self.all))?;
        self.err.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.bar { write!(self.err, "\r\x1b[K") } else { Ok(()) }
    }
}

fn bar(done: usize, all: usize) -> String {
    let full = (done * BAR).checked_div(all).unwrap_or(BAR);
    format!("[{}{}] {done}/{all}", "#".repeat(full), ".".repeat(BAR - full))
}

/// The rest of the summary: occurrences that are not run, and why.
fn rest(left: usize, cut: bool) -> String {
    let mut text = String::new();
    if left > 0 {
        let are = if left == 1 { "is" } else { "are" };
        text.push_str(&format!("; {left} {are} done or active"));
    }
    if cut {
        text.push_str("; the period has more occurrences: repeat the command, or use a later --from");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_schedule::ZoneRegistry;

    use super::super::jobs::tests::{clock, run};
    use super::*;
    use crate::{CliEnv, DaemonFlags};

    fn item(state: Option<&str>) -> BackfillItem {
        let args = BTreeMap::from([("region".to_owned(), "us".to_owned())]);
        let at = Instant::parse("2026-11-01T02:30:00Z").expect("a time");
        BackfillItem { at, schedule: "nightly".to_owned(), args, state: state.map(str::to_owned), key: "k".to_owned() }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn plan_is_shown_in_a_table() {
        let mut out = Vec::new();
        let weekly = BackfillItem { schedule: "weekly".to_owned(), ..item(None) };
        plan(&[item(None), weekly], 3, false, &clock(), &mut out).expect("written");
        plan(&[item(None), item(Some("failure"))], 0, false, &clock(), &mut out).expect("written");
        plan(&[], 0, true, &clock(), &mut out).expect("written");
        insta::assert_snapshot!(text(out));
    }

    #[test]
    fn progress_is_shown_as_line_and_bar() {
        let zones = Arc::new(ZoneRegistry::bundled());
        let (place, surroundings) = (DaemonFlags::default(), CliEnv::default());
        let mut all = String::new();
        for bar in [false, true] {
            let session = CliSession {
                now: clock().now,
                zones: &zones,
                colours: false,
                is_terminal: false,
                progress: bar,
                place: &place,
                surroundings: &surroundings,
                stores: &crate::NoStoreServer,
                prompt: None,
                end_with_reader: || (),
            };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut progress = BackfillProgress::new(3, &session, clock(), true, &mut out, &mut err);
            for (state, reason) in [("success", None), ("failure", Some("exit code 3"))] {
                let run: RunSummary = serde_json::from_value(run("backup", state, reason)).expect("a run");
                progress.report(BackfillOutcome::of(item(None), &run)).expect("written");
            }
            progress
                .report(BackfillOutcome::refused(item(None), "the param `x` needs a value".to_owned()))
                .expect("written");
            progress.end(1, false).expect("written");
            all += &format!("{}err| {:?}\n", text(out), text(err));
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn bar_is_full_when_all_are_done() {
        assert_eq!(bar(0, 7), format!("[{}] 0/7", ".".repeat(BAR)));
        assert_eq!(bar(7, 7), format!("[{}] 7/7", "#".repeat(BAR)));
        assert_eq!(bar(0, 0), format!("[{}] 0/0", "#".repeat(BAR)));
    }
}
