//! A backfill: what it would run, what came of each occurrence, and how far it is.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cronhold_api::{BackfillItem, Run};
use cronhold_core::run::State;
use cronhold_schedule::Instant;
use serde::Serialize;

use super::{Colour, Table, Wall, counted};
use crate::Session;

/// Signs of a progress bar.
const BAR: usize = 30;

/// What came of one occurrence.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    /// The instant.
    pub(crate) at: Instant,
    schedule: String,
    args: BTreeMap<String, String>,
    /// What had become of it before.
    before: Option<String>,
    /// The run that was made for it.
    run: Option<String>,
    /// How it ended; nothing, when no run could be made.
    pub(crate) state: Option<State>,
    /// Why it ended so.
    reason: Option<String>,
    #[serde(skip)]
    took: Option<String>,
}

impl Outcome {
    /// Of an occurrence whose run is over.
    pub(crate) fn of(item: BackfillItem, run: &Run) -> Self {
        let took = run.times.running.zip(run.times.finished).map(|(from, to)| super::took(to.since(from)));
        Self {
            run: Some(format!("{}#{}", run.job, run.number)),
            state: Some(run.state),
            reason: run.reason.clone(),
            took,
            ..Self::refused(item, String::new())
        }
    }

    /// Of an occurrence for which no run could be made.
    pub(crate) fn refused(item: BackfillItem, why: String) -> Self {
        let BackfillItem { at, schedule, args, state: before, .. } = item;
        Self { at, schedule, args, before, run: None, state: None, reason: Some(why), took: None }
    }
}

/// What would be run.
pub(crate) fn plan(
    wanted: &[BackfillItem],
    left: usize,
    cut: bool,
    wall: &Wall,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = Table::new(&["OCCURRENCE", "SCHEDULE", "ARGS", "UP TO NOW"]);
    for item in wanted {
        let args: Vec<String> = item.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let before = item.state.clone().unwrap_or_else(|| "nothing is known".to_owned());
        // Which schedule it is, is only worth a column when there are several.
        let several = wanted.iter().any(|other| other.schedule != item.schedule);
        let schedule = if several { item.schedule.as_str() } else { "" };
        table.row([wall.at(item.at).into(), schedule.into(), args.join(" ").into(), before.into()]);
    }
    table.write(false, out)?;
    writeln!(out, "would run {}{}", counted(wanted.len(), "occurrence"), rest(left, cut))
}

/// What is said while it goes on: a line for each occurrence, and a bar on a terminal.
pub(crate) struct Progress<'a> {
    all: usize,
    done: usize,
    bad: usize,
    wall: Wall,
    bar: bool,
    colours: bool,
    lines: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl<'a> Progress<'a> {
    /// The beginning; `lines` says whether there is to be a line for each occurrence.
    pub(crate) fn new(
        all: usize,
        session: &Session<'_>,
        wall: Wall,
        lines: bool,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        let (bar, colours) = (session.progress, session.colours);
        Self { all, done: 0, bad: 0, wall, bar, colours, lines, out, err }
    }

    /// Tells what came of one occurrence, and gives it back.
    pub(crate) fn tell(&mut self, outcome: Outcome) -> io::Result<Outcome> {
        self.done += 1;
        self.bad += usize::from(outcome.state != Some(State::Success));
        self.clear()?;
        if self.lines {
            let state = outcome.state.map_or("refused", State::name);
            let colour = outcome.state.map_or(Colour::Red, Colour::of);
            let mut line = format!("{}  {}", self.wall.at(outcome.at), colour.paint(state, self.colours));
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

    /// The end, with what is to be said of the whole.
    pub(crate) fn end(mut self, left: usize, cut: bool) -> io::Result<()> {
        self.clear()?;
        if !self.lines {
            return Ok(());
        }
        let bad = if self.bad == 0 { String::new() } else { format!(", {} not with success", self.bad) };
        writeln!(self.out, "ran {}{bad}{}", counted(self.done, "occurrence"), rest(left, cut))
    }

    fn draw(&mut self) -> io::Result<()> {
        if !self.bar {
            return Ok(());
        }
        let bad = if self.bad == 0 { String::new() } else { format!(", {} not with success", self.bad) };
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

/// What is not run, and why.
fn rest(left: usize, cut: bool) -> String {
    let mut text = String::new();
    if left > 0 {
        let are = if left == 1 { "is" } else { "are" };
        text.push_str(&format!("; {left} {are} done or under way"));
    }
    if cut {
        text.push_str("; there are more in this time: give the command again, or a later --from");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_schedule::Zones;

    use super::super::jobs::tests::{run, wall};
    use super::*;
    use crate::{Place, Surroundings};

    fn item(state: Option<&str>) -> BackfillItem {
        let args = BTreeMap::from([("region".to_owned(), "us".to_owned())]);
        let at = Instant::parse("2026-11-01T02:30:00Z").expect("a time");
        BackfillItem { at, schedule: "nightly".to_owned(), args, state: state.map(str::to_owned), key: "k".to_owned() }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn plans() {
        let mut out = Vec::new();
        let weekly = BackfillItem { schedule: "weekly".to_owned(), ..item(None) };
        plan(&[item(None), weekly], 3, false, &wall(), &mut out).expect("written");
        plan(&[item(None), item(Some("failure"))], 0, false, &wall(), &mut out).expect("written");
        plan(&[], 0, true, &wall(), &mut out).expect("written");
        insta::assert_snapshot!(text(out));
    }

    #[test]
    fn progress_is_a_line_and_a_bar() {
        let zones = Arc::new(Zones::bundled());
        let (place, surroundings) = (Place::default(), Surroundings::default());
        let mut all = String::new();
        for bar in [false, true] {
            let session = Session {
                now: wall().now,
                zones: &zones,
                colours: false,
                progress: bar,
                place: &place,
                surroundings: &surroundings,
                stores: &crate::NoStores,
                end_with_reader: || (),
            };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut progress = Progress::new(3, &session, wall(), true, &mut out, &mut err);
            for (state, reason) in [("success", None), ("failure", Some("exit code 3"))] {
                let run: Run = serde_json::from_value(run("backup", state, reason)).expect("a run");
                progress.tell(Outcome::of(item(None), &run)).expect("written");
            }
            progress.tell(Outcome::refused(item(None), "the param `x` needs a value".to_owned())).expect("written");
            progress.end(1, false).expect("written");
            all += &format!("{}err| {:?}\n", text(out), text(err));
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn bars_are_full_at_the_end() {
        assert_eq!(bar(0, 7), format!("[{}] 0/7", ".".repeat(BAR)));
        assert_eq!(bar(7, 7), format!("[{}] 7/7", "#".repeat(BAR)));
        assert_eq!(bar(0, 0), format!("[{}] 0/0", "#".repeat(BAR)));
    }
}
