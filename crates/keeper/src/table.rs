//! The keeper's table: programs that run, and programs that have ended and are not forgotten yet. It also remembers the
//! last runs that were forgotten or refused, so that a duplicate launch is never carried out twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use crate::ending::Ending;
use crate::journal::JournalEntry;
use crate::output_pipe::ProgramPipes;
use crate::outputs::OutputSize;
use crate::protocol::{ListedProgram, ProgramEnd, ProgramStage, RunKey};
use crate::refusal::Refusal;
use crate::spawn::SpawnedProcess;
use crate::tree::ProcessTree;

/// How many forgotten and refused runs are remembered. A launch is refused as too late some seconds after it was
/// decided, so only launches of the last seconds could come again.
const RECENT_MAX: usize = 65_536;

/// A program that runs.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    pub(crate) pid: i32,
    /// The clock tick at which it began.
    start: u64,
    /// The process and everything that belongs to it.
    pub(crate) tree: ProcessTree,
    /// The pipe of its second stage, until that has become the program.
    pub(crate) report: Option<OwnedFd>,
    /// Whether the second stage is ready to become the program.
    pub(crate) is_prepared: bool,
    pub(crate) output: OutputSize,
    /// The pipes that it writes its output to.
    pub(crate) pipes: Rc<ProgramPipes>,
    pub(crate) ending: Ending,
    /// When the next action for it is due.
    due: Option<u64>,
}

/// A program that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishedProgram {
    Ended(ProgramEnd),
    /// It was lost with an earlier keeper.
    Lost,
}

/// All programs that the keeper knows.
///
/// Invariant: `pids` holds exactly the first processes of `running` that were not waited for; `dues` holds exactly the
/// `due` of `running`; a run is in at most one of `running` and `finished`.
#[derive(Debug, Default)]
pub(crate) struct ProgramTable {
    running: BTreeMap<RunKey, RunningProgram>,
    finished: BTreeMap<RunKey, FinishedProgram>,
    pids: BTreeMap<i32, RunKey>,
    dues: BTreeSet<(u64, RunKey)>,
    /// Forgotten and refused runs, with the reason of the refusal.
    recent: BTreeMap<RunKey, Option<String>>,
    recent_order: VecDeque<RunKey>,
}

impl RunningProgram {
    pub(crate) fn new(
        spawned: SpawnedProcess,
        tree: ProcessTree,
        output: OutputSize,
        pipes: Rc<ProgramPipes>,
        ending: Ending,
    ) -> Self {
        let SpawnedProcess { pid, start, report } = spawned;
        Self { pid, start, tree, report, is_prepared: false, output, pipes, ending, due: None }
    }

    /// Its process group, as long as its first process was not waited for: until then the number cannot be reused.
    pub(crate) fn group(&self) -> Option<i32> {
        self.ending.exit().is_none().then_some(self.pid)
    }
}

impl ProgramTable {
    /// Why a run may not be launched, if it is known.
    pub(crate) fn refusal(&self, run: RunKey) -> Option<Refusal> {
        if let Some(program) = self.running.get(&run) {
            return Some(Refusal::Running(program.pid));
        }
        if self.finished.contains_key(&run) {
            return Some(Refusal::Ended);
        }
        Some(self.recent.get(&run)?.clone().map_or(Refusal::Stored, Refusal::Again))
    }

    pub(crate) fn begin(&mut self, run: RunKey, program: RunningProgram) {
        self.pids.insert(program.pid, run);
        self.running.insert(run, program);
        self.reschedule(run);
    }

    /// The run whose first process this is.
    pub(crate) fn of_pid(&self, pid: i32) -> Option<RunKey> {
        self.pids.get(&pid).copied()
    }

    /// The first process of a run was waited for, so its number may be reused.
    pub(crate) fn release(&mut self, pid: i32) {
        self.pids.remove(&pid);
    }

    pub(crate) fn running(&self, run: RunKey) -> Option<&RunningProgram> {
        self.running.get(&run)
    }

    /// A program to be changed. The caller calls `reschedule` after it changed the ending.
    pub(crate) fn running_mut(&mut self, run: RunKey) -> Option<&mut RunningProgram> {
        self.running.get_mut(&run)
    }

    pub(crate) fn all_running(&mut self) -> impl Iterator<Item = (RunKey, &mut RunningProgram)> {
        self.running.iter_mut().map(|(run, program)| (*run, program))
    }

    pub(crate) fn running_count(&self) -> usize {
        self.running.len()
    }

    /// Updates when the next action for a program is due.
    pub(crate) fn reschedule(&mut self, run: RunKey) {
        let Some(program) = self.running.get_mut(&run) else { return };
        let due = program.ending.due();
        if program.due != due {
            program.due.map(|old| self.dues.remove(&(old, run)));
            due.map(|new| self.dues.insert((new, run)));
            program.due = due;
        }
    }

    /// When the next action for any program is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// Programs with an action that is due now.
    pub(crate) fn due(&self, now: u64) -> Vec<RunKey> {
        self.dues.iter().take_while(|(due, _)| *due <= now).map(|(_, run)| *run).collect()
    }

    /// Removes a program that has ended, or that did not become one.
    pub(crate) fn remove(&mut self, run: RunKey) -> Option<RunningProgram> {
        let program = self.running.remove(&run)?;
        program.due.map(|due| self.dues.remove(&(due, run)));
        if self.pids.get(&program.pid) == Some(&run) {
            self.pids.remove(&program.pid);
        }
        Some(program)
    }

    /// Programs that are over and not forgotten.
    pub(crate) fn finished(&self) -> impl Iterator<Item = RunKey> {
        self.finished.keys().copied()
    }

    pub(crate) fn is_finished(&self, run: RunKey) -> bool {
        self.finished.contains_key(&run)
    }

    pub(crate) fn finish(&mut self, run: RunKey, finished: FinishedProgram) {
        self.finished.insert(run, finished);
    }

    /// Forgets a program that has ended. Returns `false` if it has not.
    pub(crate) fn forget(&mut self, run: RunKey) -> bool {
        let was_finished = self.finished.remove(&run).is_some();
        if was_finished {
            self.remember(run, None);
        }
        was_finished
    }

    /// Remembers that a run was refused, and why.
    pub(crate) fn refuse(&mut self, run: RunKey, why: &str) {
        self.remember(run, Some(why.to_owned()));
    }

    /// All programs that a daemon has to know.
    pub(crate) fn list(&self) -> Vec<ListedProgram> {
        let running = self.running.iter().map(|(run, program)| {
            let pid = u32::try_from(program.pid).expect("a process is positive");
            ListedProgram { run: *run, stage: ProgramStage::Running { pid } }
        });
        let finished = self.finished.iter().map(|(run, finished)| ListedProgram {
            run: *run,
            stage: match *finished {
                FinishedProgram::Ended(end) => ProgramStage::Ended(end),
                FinishedProgram::Lost => ProgramStage::Lost,
            },
        });
        running.chain(finished).collect()
    }

    /// The entries for a new journal, and the number of their runs.
    pub(crate) fn entries(&self) -> (Vec<JournalEntry>, u64) {
        let mut entries = Vec::new();
        for (run, program) in &self.running {
            entries.push(JournalEntry::Intent { run: *run, output: Some(program.pipes.output.id()) });
            entries.push(JournalEntry::Spawned { run: *run, pid: program.pid, start: program.start });
        }
        entries.extend(self.finished.iter().map(|(run, finished)| match *finished {
            FinishedProgram::Ended(end) => JournalEntry::Exit { run: *run, end },
            FinishedProgram::Lost => JournalEntry::Lost(*run),
        }));
        (entries, (self.running.len() + self.finished.len()) as u64)
    }

    fn remember(&mut self, run: RunKey, why: Option<String>) {
        if self.recent.insert(run, why).is_none() {
            self.recent_order.push_back(run);
        }
        if self.recent_order.len() > RECENT_MAX
            && let Some(oldest) = self.recent_order.pop_front()
        {
            self.recent.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OutputLimits;

    const RUN: RunKey = RunKey(1);

    fn program(lease: Option<u64>) -> RunningProgram {
        let spawned = SpawnedProcess { pid: 7, start: 1, report: None };
        RunningProgram::new(
            spawned,
            ProcessTree::new(RUN, Some((7, 1)), None, None),
            OutputSize::new(OutputLimits::default()),
            Rc::new(ProgramPipes::create(false).unwrap().0),
            Ending::new(15, 0, lease),
        )
    }

    #[test]
    fn run_is_refused_while_it_runs_after_it_ended_and_after_it_was_forgotten() {
        let mut table = ProgramTable::default();
        assert_eq!(table.refusal(RUN), None);
        table.begin(RUN, program(Some(50)));
        assert_eq!(table.refusal(RUN), Some(Refusal::Running(7)));
        assert_eq!((table.next_due(), table.of_pid(7)), (Some(50), Some(RUN)));
        assert!(!table.forget(RUN));
        table.remove(RUN);
        assert_eq!((table.next_due(), table.of_pid(7)), (None, None));
        table.finish(RUN, FinishedProgram::Lost);
        assert_eq!(table.refusal(RUN), Some(Refusal::Ended));
        assert!(table.forget(RUN) && !table.forget(RUN));
        assert_eq!(table.refusal(RUN), Some(Refusal::Stored));
        table.refuse(RunKey(2), "no such file");
        assert_eq!(table.refusal(RunKey(2)), Some(Refusal::Again("no such file".to_owned())));
        assert!(table.list().is_empty() && table.entries().0.is_empty());
    }

    #[test]
    fn remembered_runs_are_limited() {
        let mut table = ProgramTable::default();
        for run in 0..=RECENT_MAX as u128 {
            table.refuse(RunKey(run), "no");
        }
        assert_eq!((table.recent.len(), table.recent_order.len()), (RECENT_MAX, RECENT_MAX));
        assert_eq!(table.refusal(RunKey(0)), None);
        assert!(table.refusal(RunKey(1)).is_some());
    }
}
