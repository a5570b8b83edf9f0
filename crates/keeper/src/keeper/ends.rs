//! Bringing programs to their end: stops, signals, leases, and the kill of everything that belongs to a run. Whatever may
//! end a process comes after a look at all of them: what has lost its parent can be found by nobody who did not know it
//! before. All runs that have to be looked at in a turn share one look.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group};

use super::Keeper;
use crate::ending::Step;
use crate::protocol::RunKey;
use crate::table::Living;
use crate::tree::{self, Snapshot};
use crate::{clock, log};

/// A look at all processes may take one part in so many of our time.
const LOOK_SHARE: u64 = 4;

impl Keeper {
    /// Asks a program to end.
    pub(super) fn stop(&mut self, run: RunKey, signal: i32, grace: u64) {
        self.take_back(run, "it was stopped before it was started");
        // The signal that nobody survives leaves nothing to wait for.
        let grace = if signal == Signal::KILL.as_raw() { 0 } else { grace };
        if let Some(living) = self.table.living_mut(run) {
            living.ending.stop(signal, grace, clock::now());
            self.table.reschedule(run);
        }
    }

    /// Sends a program a signal. One that kills is meant for all that belongs to it.
    pub(super) fn signal(&mut self, run: RunKey, signal: i32) {
        if signal != Signal::KILL.as_raw() {
            return send_group(self.table.living(run).and_then(Living::group), signal);
        }
        self.take_back(run, "it was killed before it was started");
        if let Some(living) = self.table.living_mut(run) {
            living.ending.kill();
            self.table.reschedule(run);
        }
    }

    /// A lease ends later than was said.
    pub(super) fn extend(&mut self, run: RunKey, kill_at: u64) {
        self.extend_queued(run, kill_at);
        if let Some(living) = self.table.living_mut(run) {
            living.ending.extend(kill_at, clock::now());
            self.table.reschedule(run);
        }
    }

    /// We were told to end: all programs are asked to, each as its job says, and we end with the last.
    pub(super) fn end_everything(&mut self) {
        log::line("told to end; all programs are stopped");
        self.is_retiring = true;
        let queued: Vec<RunKey> = self.queued.iter().copied().collect();
        queued.into_iter().for_each(|run| self.take_back(run, "the keeper was told to end"));
        let all: Vec<_> = self.table.all_living().map(|(run, living)| (run, living.ending.terms())).collect();
        all.into_iter().for_each(|(run, (signal, grace))| self.stop(run, signal, grace));
    }

    /// Does what is due for programs on their way to their end.
    pub(super) fn end_due(&mut self) {
        let now = clock::now();
        let must_wait = now < self.look_after;
        let mut looks = Vec::new();
        for run in self.table.due(now) {
            let Some(living) = self.table.living_mut(run) else { continue };
            match living.ending.step(now) {
                Step::Wait => {}
                step @ (Step::Ask | Step::Kill | Step::Drain) => {
                    if step == Step::Kill {
                        // Nothing has left a control group. What else is found without a look does nothing more from
                        // now on, and dies with the rest.
                        self.cgroups.kill(run);
                        send_group(living.group(), Signal::STOP.as_raw());
                    }
                    if step != Step::Ask && must_wait {
                        living.ending.postpone(self.look_after);
                    } else {
                        looks.push((run, step));
                    }
                }
            }
            self.table.reschedule(run);
        }
        if looks.is_empty() {
            return;
        }
        let snapshot = self.freeze(&looks);
        if let Err(error) = &snapshot {
            log::line(&format!("processes cannot be looked at: {error}"));
        }
        for (run, step) in looks {
            self.look(run, step, snapshot.as_ref().ok());
            self.table.reschedule(run);
        }
        // Invariant: whoever was put off has been looked at when others are put off further, so that a stop now and then
        // does not keep those waiting who have to be killed.
        if !must_wait {
            let after = clock::now();
            self.look_after = after + (after - now) * (LOOK_SHARE - 1);
        }
    }

    /// Looks at all processes, after all that is to be killed was made to stand still.
    fn freeze(&mut self, looks: &[(RunKey, Step)]) -> io::Result<Snapshot> {
        let kills: Vec<RunKey> = looks.iter().filter(|(_, step)| *step == Step::Kill).map(|(run, _)| *run).collect();
        tree::freeze(|snapshot| {
            let trees = kills.iter().filter_map(|run| Some(self.table.living_mut(*run)?.tree.members(snapshot)));
            trees.flatten().collect()
        })
    }

    /// Looks what lives of a run that has to end. Without a look that is unknown, and not nothing.
    fn look(&mut self, run: RunKey, step: Step, snapshot: Option<&Snapshot>) {
        let Some(living) = self.table.living_mut(run) else { return };
        let members = snapshot.map(|snapshot| living.tree.members(snapshot));
        if step == Step::Ask {
            return send_group(living.group(), living.ending.signal());
        }
        let exit = living.ending.exit();
        if members.as_ref().is_some_and(Vec::is_empty)
            && let Some(exit) = exit
        {
            return self.finish(run, exit);
        }
        let members = members.unwrap_or_default();
        if step == Step::Kill {
            send_group(living.group(), Signal::KILL.as_raw());
            members.iter().for_each(|process| tree::send(process, Signal::KILL));
        } else if snapshot.is_some()
            && !std::mem::replace(&mut living.ending.strays_told, true)
            && let Some(signal) = Signal::from_named_raw(living.ending.signal())
        {
            // Those in the group had the signal with it.
            let strays = members.iter().filter(|process| process.group != living.pid);
            strays.for_each(|process| tree::send(process, signal));
        }
        if !living.ending.looked(clock::now())
            && let Some(exit) = exit
        {
            log::line(&format!("{} processes of run {run} do not die", members.len()));
            self.finish(run, exit);
        }
    }
}

/// Signals a group, if it can be.
fn send_group(pid: Option<i32>, signal: i32) {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return };
    match Signal::from_named_raw(signal) {
        // It may be dead already, which we shall hear of.
        Some(signal) => drop(kill_process_group(pid, signal)),
        None => log::line(&format!("there is no signal {signal} that could be sent")),
    }
}
