//! Waiting for children. Everything that descends from us comes to us in the end, programs and the orphans that they
//! leave; orphans are waited for and otherwise of no interest.

use rustix::process::{WaitOptions, WaitStatus};

use super::Keeper;
use crate::journal::Entry;
use crate::protocol::{End, Exit, FromKeeper, RunKey};
use crate::spawn::{READY, REPORT_MAX};
use crate::table::{Living, Over};
use crate::{clock, fail};

/// Children that are waited for in one turn; the signal of the rest is taken up again in the next.
const REAPS_MAX: usize = 4_096;

/// Why a program was not started whose second stage said nothing.
const KILLED: &str = "what was to become the program was killed before that";

/// What a second stage has said.
enum Said {
    /// Nothing yet.
    Nothing,
    /// It is the program now, or was stopped before that.
    Began,
    /// Why it could not become the program.
    Failed(String),
}

impl Keeper {
    /// Waits for all children that have ended.
    pub(super) fn reap(&mut self) {
        for _ in 0..REAPS_MAX {
            let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) else { return };
            let pid = pid.as_raw_nonzero().get();
            if let Some(run) = self.table.of_pid(pid)
                && let Some(exit) = exit_of(status)
            {
                self.ended(run, pid, exit);
            }
        }
        // There may be more, and their signal was already read.
        self.has_children_left = true;
    }

    /// The first process of a run has ended.
    fn ended(&mut self, run: RunKey, pid: i32, exit: Exit) {
        // A second stage that failed has said so before it ended, and was no program.
        self.hear_stage(pid);
        let now = clock::now();
        tracing::debug!(event = "program_ended", run = %run, pid, "process {pid} of run {run} ended: {exit:?}");
        self.table.release(pid);
        let Some(living) = self.table.living_mut(run) else { return };
        if living.ending.ended(exit, now) {
            self.finish(run, exit);
        } else {
            self.table.reschedule(run);
        }
    }

    /// Hears how the start of a program through a second stage went.
    pub(super) fn hear_stage(&mut self, pid: i32) {
        let Some(run) = self.table.of_pid(pid) else { return };
        let Some(living) = self.table.living_mut(run) else { return };
        match listen(living) {
            Said::Nothing => {}
            Said::Began => {
                living.report = None;
                self.tell_started(run, pid);
            }
            Said::Failed(why) => {
                self.table.remove(run);
                self.journal.add(&Entry::Refused(run));
                self.outputs.remove(run);
                self.cgroups.remove(run);
                self.refuse(run, &why);
            }
        }
    }

    /// A run is over.
    pub(super) fn finish(&mut self, run: RunKey, exit: Exit) {
        let Some(mut living) = self.table.remove(run) else { return };
        self.outputs.look(run, &mut living.growth);
        let output = living.growth.size();
        self.cgroups.remove(run);
        fail::point("keeper-before-exit-written");
        let end = End { exit, output, by_lease: living.ending.is_by_lease(exit) };
        self.journal.add(&Entry::Exit { run, end });
        self.table.finish(run, Over::Ended(end));
        self.news.push(FromKeeper::Ended { run, end });
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Hears what a second stage says: that it is ready, and then nothing more or why it could not go on.
fn listen(living: &mut Living) -> Said {
    let Some(report) = &living.report else { return Said::Nothing };
    let mut words = [0; REPORT_MAX];
    loop {
        let mut said = match rustix::io::read(report, &mut words) {
            // One that is told to end before it is the program ends as the program would.
            Ok(0) if living.is_prepared || living.ending.is_ending() => return Said::Began,
            Ok(0) => return Said::Failed(KILLED.to_owned()),
            Ok(length) => &words[..length],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Said::Nothing,
            Err(_) => return Said::Began,
        };
        if let Some(rest) = said.strip_prefix(&[READY]) {
            living.is_prepared = true;
            said = rest;
        }
        if !said.is_empty() {
            return Said::Failed(String::from_utf8_lossy(said).into_owned());
        }
    }
}
