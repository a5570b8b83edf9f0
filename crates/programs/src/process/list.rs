//! Comparing what the keeper has with what the node knows: at each connection the keeper lists all that it began and
//! was not told to forget.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::command::Report;
use cronhold_keeper::{Program, Stage};

use super::{At, Finish, Known, Processes, Want, run_id};

impl Processes {
    /// The whole list has come.
    pub(super) fn compare(&mut self, list: Vec<Program>) {
        let listed = list.into_iter().filter_map(|program| Some((run_id(program.run)?, program.stage)));
        let mut listed: BTreeMap<RunId, Stage> = listed.collect();
        let known: Vec<RunId> = self.known.keys().copied().collect();
        for run in known {
            let stage = listed.remove(&run);
            self.found(run, stage);
        }
        self.strays = listed;
        if self.is_ready {
            self.take_stock();
        }
    }

    /// A run that was asked for is found with the keeper like this, or not at all.
    pub(super) fn found(&mut self, run: RunId, stage: Option<Stage>) {
        let Some(known) = self.known.get_mut(&run) else { return };
        match (known.at, stage) {
            // The last word was spoken; nothing that comes later changes it.
            (At::Ended(_) | At::Lost | At::Told, _) => {}
            (before, Some(Stage::Running { .. })) => {
                self.deadlines.remove(&(known.launch_by, run));
                known.at = At::Running;
                // What was to be said before it ran, or on a line that broke, is said again.
                if known.stop.is_some() {
                    self.wants.push_back(Want::Stop(run));
                }
                // One that was asked for and started went with its lease.
                if known.kill_at.is_some() && before != At::Asked {
                    self.leases.insert(run);
                }
                if before != At::Running {
                    self.report(run, Report::Launched);
                }
            }
            (_, Some(Stage::Ended(end))) => {
                self.deadlines.remove(&(known.launch_by, run));
                known.at = At::Ended(end);
                self.finishing.push_back(Finish { run, output: Some(end.output) });
            }
            (_, Some(Stage::Lost)) => {
                self.deadlines.remove(&(known.launch_by, run));
                known.at = At::Lost;
                self.finishing.push_back(Finish { run, output: None });
            }
            // Nobody waits for it any longer.
            (_, None) if known.is_settled => drop(self.known.remove(&run)),
            // It was not begun, so it can be asked for again. When it is too late for that, the deadline says so.
            (At::Unsure, None) => {
                known.at = At::Waiting;
                let launch_by = known.launch_by;
                self.await_launch(run, launch_by);
            }
            (At::Waiting | At::Asked, None) => {}
            // There is nothing to be remembered of it: who asks again hears the same.
            (At::Sought | At::Running, None) => {
                self.known.remove(&run);
                self.report(run, Report::Lost);
            }
        }
    }

    /// The node has asked for all that it wants: what else the keeper has is of runs that are over, or of none.
    pub(super) fn take_stock(&mut self) {
        if !std::mem::replace(&mut self.has_said, true) {
            let running = self.known.values().filter(|known| known.at == At::Running).count();
            let ended = self.known.values().filter(|known| matches!(known.at, At::Ended(_))).count();
            if running + ended > 0 {
                let text = format!("programs of the keeper: {running} running, {ended} ended meanwhile");
                self.words.push((false, text));
            }
        }
        for (run, stage) in std::mem::take(&mut self.strays) {
            self.take_in(run, stage);
        }
    }

    /// The keeper has a program that no run has asked for. Before the node is ready a run may still do so. After that
    /// the node is told of it: it has one stopped that had to be alone, and notes how any other ends.
    pub(super) fn stray(&mut self, run: RunId, stage: Stage) {
        if self.is_ready {
            self.take_in(run, stage);
        } else {
            self.strays.insert(run, stage);
        }
    }

    fn take_in(&mut self, run: RunId, stage: Stage) {
        if let Stage::Running { pid } = stage {
            let text = format!("the keeper runs a program (pid {pid}) of run {run}, which is over or unknown");
            self.words.push((true, format!("{text}; it goes on unless it has to be alone")));
        }
        self.known.insert(run, Known { is_settled: true, ..Known::new(At::Sought) });
        self.found(run, Some(stage));
    }
}
