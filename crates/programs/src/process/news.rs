//! What the keeper, and whoever stores outputs, tells of processes.

use cronhold_core::RunId;
use cronhold_core::command::Report;
use cronhold_core::record::Written;
use cronhold_keeper::{FromKeeper, RunKey, Stage};

use super::{At, Line, Processes, Succession, run_id, verdict};

impl Processes {
    /// There is a line, to a keeper of the daemon's version or another. The list comes next.
    pub fn connected(&mut self, is_other: bool) {
        self.line = Line::Listing(Vec::new());
        if self.succession != Succession::Done {
            self.succession = if is_other { Succession::Due } else { Succession::None };
        }
    }

    /// There is no line; the words go on after `the keeper`. Answers whether that is news.
    pub fn away(&mut self, why: &str) -> bool {
        let is_news = match &self.line {
            Line::Down(before) => before != why,
            Line::Listing(_) | Line::Up => true,
            Line::Leaving => false,
        };
        for known in self.known.values_mut().filter(|known| known.at == At::Asked) {
            known.at = At::Unsure;
        }
        self.line = Line::Down(why.to_owned());
        is_news
    }

    /// The keeper said something.
    pub fn hear(&mut self, said: FromKeeper) {
        match said {
            FromKeeper::Hello { .. } => {}
            FromKeeper::Listed { programs, is_last } => {
                let Line::Listing(list) = &mut self.line else { return };
                list.extend(programs);
                if is_last {
                    let list = std::mem::take(list);
                    self.line = Line::Up;
                    self.compare(list);
                }
            }
            FromKeeper::Started { run, pid } => self.happened(run, Stage::Running { pid }),
            FromKeeper::Ended { run, end } => self.happened(run, Stage::Ended(end)),
            FromKeeper::Refused { run, why } => {
                if let Some(run) = run_id(run) {
                    self.unlaunchable(run, why);
                }
            }
        }
    }

    /// A run's program cannot be started.
    pub fn unlaunchable(&mut self, run: RunId, why: String) {
        if self.known.get(&run).is_some_and(|known| matches!(known.at, At::Asked | At::Unsure)) {
            self.tell(run, Report::NotLaunched(why));
        }
    }

    /// The output of a program that has ended or was lost is stored.
    pub fn written(&mut self, run: RunId, written: Written) {
        let Some(known) = self.known.get(&run) else { return };
        match known.at {
            At::Ended(end) => self.tell(run, verdict::ended(known.run.as_deref(), end, written)),
            At::Lost => self.tell(run, Report::KeeperLost),
            At::Waiting | At::Asked | At::Unsure | At::Sought | At::Running | At::Told => {}
        }
    }

    fn happened(&mut self, run: RunKey, stage: Stage) {
        let Some(run) = run_id(run) else { return };
        if self.known.contains_key(&run) {
            self.found(run, Some(stage));
        } else {
            self.stray(run, stage);
        }
    }
}
