//! Ends programs that are due to end: the stop signal, the kill of everything that belongs to a run, and the check that
//! nothing of it is left. All processes are scanned before anything is signalled, because a process whose parent has
//! ended cannot be attributed to its run unless it was known before. All runs of a turn share one scan.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cgroups::Cgroups;
use crate::ending::Step;
use crate::protocol::{ProcessExit, RunKey};
use crate::table::ProgramTable;
use crate::tree::{self, ProcessSnapshot};
use crate::{clock, log};

/// Scans of all processes may take one part in this many of the keeper's time.
const SCAN_SHARE: u64 = 4;
/// Processes that are named in a line of the log.
const LOGGED_MAX: usize = 10;

/// Ends programs, and limits how often all processes are scanned for that.
#[derive(Debug, Default)]
pub(super) struct EndingScan {
    /// No scan takes place before this time, except for a stop signal.
    not_before: u64,
}

impl EndingScan {
    /// Does what is due for programs that are to end. Returns those that have ended with everything that belongs to
    /// them.
    pub(super) fn end_due(&mut self, table: &mut ProgramTable, cgroups: &Cgroups) -> Vec<(RunKey, ProcessExit)> {
        let now = clock::now();
        let must_wait = now < self.not_before;
        let steps = self.due_steps(table, cgroups, now, must_wait);
        if steps.is_empty() {
            return Vec::new();
        }
        let snapshot = freeze(table, &steps);
        if let Err(error) = &snapshot {
            log::line(&format!("cannot scan processes: {error}"));
        }
        let mut ended = Vec::new();
        for (run, step) in steps {
            ended.extend(carry_out(table, run, step, snapshot.as_ref().ok()).map(|exit| (run, exit)));
            table.reschedule(run);
        }
        // Invariant: a program that was postponed is scanned before others are postponed further, so that frequent
        // stops do not delay kills.
        if !must_wait {
            let after = clock::now();
            self.not_before = after + (after - now) * (SCAN_SHARE - 1);
        }
        ended
    }

    /// The steps that need a scan now.
    fn due_steps(&self, table: &mut ProgramTable, cgroups: &Cgroups, now: u64, must_wait: bool) -> Vec<(RunKey, Step)> {
        let mut steps = Vec::new();
        for run in table.due(now) {
            let Some(program) = table.running_mut(run) else { continue };
            let step = program.ending.step(now);
            if step == Step::Kill {
                // No process can leave a control group. The rest of the process group stands still from now on, and
                // dies with what the scan finds.
                cgroups.kill(run);
                signal_group(program.group(), Signal::STOP.as_raw());
            }
            match step {
                Step::Wait => {}
                Step::Kill | Step::Drain if must_wait => program.ending.postpone(self.not_before),
                Step::Ask | Step::Kill | Step::Drain => steps.push((run, step)),
            }
            table.reschedule(run);
        }
        steps
    }
}

/// Scans all processes after everything that is to be killed was stopped with SIGSTOP.
fn freeze(table: &mut ProgramTable, steps: &[(RunKey, Step)]) -> io::Result<ProcessSnapshot> {
    let kills: Vec<RunKey> = steps.iter().filter(|(_, step)| *step == Step::Kill).map(|(run, _)| *run).collect();
    tree::freeze(|snapshot| {
        let trees = kills.iter().filter_map(|run| Some(table.running_mut(*run)?.tree.members(snapshot)));
        trees.flatten().collect()
    })
}

/// Carries out a step for one run. Returns how its first process ended if the run is over. Without a snapshot it is
/// unknown what lives, and not nothing.
fn carry_out(
    table: &mut ProgramTable,
    run: RunKey,
    step: Step,
    snapshot: Option<&ProcessSnapshot>,
) -> Option<ProcessExit> {
    let program = table.running_mut(run)?;
    let members = snapshot.map(|snapshot| program.tree.members(snapshot));
    if step == Step::Ask {
        signal_group(program.group(), program.ending.signal());
        return None;
    }
    let exit = program.ending.exit();
    if members.as_ref().is_some_and(Vec::is_empty) && exit.is_some() {
        return exit;
    }
    let members = members.unwrap_or_default();
    if step == Step::Kill {
        signal_group(program.group(), Signal::KILL.as_raw());
        members.iter().for_each(|process| tree::send(process, Signal::KILL));
    } else if snapshot.is_some()
        && !std::mem::replace(&mut program.ending.outsiders_signalled, true)
        && let Some(signal) = Signal::from_named_raw(program.ending.signal())
    {
        // The process group had the signal already.
        let outsiders = members.iter().filter(|process| process.group != program.pid);
        outsiders.for_each(|process| tree::send(process, signal));
    }
    if program.ending.scanned(clock::now()) {
        let pids: Vec<String> = members.iter().take(LOGGED_MAX).map(|process| process.pid.to_string()).collect();
        log::line(&format!(
            "{} processes of run {run} do not die by SIGKILL (pid {}); the run is not over until they are gone",
            members.len(),
            pids.join(", ")
        ));
    }
    None
}

/// Sends a signal to a process group, if there is one.
pub(super) fn signal_group(pid: Option<i32>, signal: i32) {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return };
    match Signal::from_named_raw(signal) {
        // The group may be dead already, which SIGCHLD reports.
        Some(signal) => drop(kill_process_group(pid, signal)),
        None => log::line(&format!("signal {signal} cannot be sent")),
    }
}
