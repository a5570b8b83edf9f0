//! Bringing programs to their end: stops, signals, leases, and the kill of everything that belongs to a run. All runs
//! that have to be looked at in a turn share one look at all processes.

use rustix::process::{Pid, Signal, kill_process_group};

use super::Keeper;
use crate::ending::Step;
use crate::protocol::RunKey;
use crate::tree::{self, Snapshot};
use crate::{clock, log};

/// A look at all processes may take one part in so many of our time.
const LOOK_SHARE: u64 = 4;

impl Keeper {
    /// Asks a program to end.
    pub(super) fn stop(&mut self, run: RunKey, signal: i32, grace: u64) {
        self.take_back(run, "it was stopped before it was started");
        let now = clock::now();
        let Some(living) = self.table.living_mut(run) else { return };
        living.ending.stop(signal, grace, now);
        let target = living.ending.exit().is_none().then_some(living.pid);
        self.table.reschedule(run);
        send_group(target, signal);
    }

    /// Sends a program a signal. One that kills is meant for all that belongs to it.
    pub(super) fn signal(&mut self, run: RunKey, signal: i32) {
        if signal != Signal::KILL.as_raw() {
            let target = self.table.living(run).filter(|living| living.ending.exit().is_none());
            return send_group(target.map(|living| living.pid), signal);
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
        let mut looks = Vec::new();
        for run in self.table.due(now) {
            let Some(living) = self.table.living_mut(run) else { continue };
            match living.ending.step(now) {
                Step::Wait => {}
                Step::Signal(signal) => send_group(Some(living.pid), signal),
                step @ (Step::Kill | Step::Drain) if now < self.look_after => {
                    if step == Step::Kill {
                        // What is found without a look dies in time; the rest of the tree has to wait for the look.
                        self.cgroups.kill(run);
                        send_group(living.ending.exit().is_none().then_some(living.pid), Signal::KILL.as_raw());
                    }
                    living.ending.postpone(self.look_after);
                }
                step @ (Step::Kill | Step::Drain) => looks.push((run, step)),
            }
            self.table.reschedule(run);
        }
        if looks.is_empty() {
            return;
        }
        let snapshot = Snapshot::take();
        for (run, step) in looks {
            self.look(run, step, &snapshot);
            self.table.reschedule(run);
        }
        let after = clock::now();
        self.look_after = after + (after - now) * (LOOK_SHARE - 1);
    }

    /// Looks what lives of a run that has to end.
    fn look(&mut self, run: RunKey, step: Step, snapshot: &Snapshot) {
        let Some(living) = self.table.living_mut(run) else { return };
        let members = snapshot.members(run, Some((living.pid, living.start)));
        let exit = living.ending.exit();
        if members.is_empty()
            && let Some(exit) = exit
        {
            return self.finish(run, exit);
        }
        if step == Step::Kill {
            self.cgroups.kill(run);
            // Nothing of the group has time to fork between two kills of single processes.
            send_group(exit.is_none().then_some(living.pid), Signal::KILL.as_raw());
            members.iter().for_each(|process| tree::send(process, Signal::KILL));
        } else if !std::mem::replace(&mut living.ending.strays_told, true)
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

/// Signals a group, as long as its first process was not waited for: its number cannot be another's until then.
fn send_group(pid: Option<i32>, signal: i32) {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return };
    match Signal::from_named_raw(signal) {
        // It may be dead already, which we shall hear of.
        Some(signal) => drop(kill_process_group(pid, signal)),
        None => log::line(&format!("there is no signal {signal} that could be sent")),
    }
}
