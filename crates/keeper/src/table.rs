//! What the keeper knows: programs that run, and runs that are over and not yet forgotten. It also remembers the last
//! that were forgotten or refused, so that a launch that comes twice is never carried out twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

use crate::ending::Ending;
use crate::journal::Entry;
use crate::outputs::Growth;
use crate::protocol::{End, Program, RunKey, Stage};
use crate::spawn::Spawned;
use crate::tree::Tree;

/// How many forgotten and refused runs are remembered. A launch is refused by itself some seconds after it was decided,
/// so that only what was launched within those could come again.
const PAST_MAX: usize = 65_536;

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Living {
    pub(crate) pid: i32,
    /// The tick at which it began.
    start: u64,
    /// It, and all that belongs to it.
    pub(crate) tree: Tree,
    /// Where its second stage tells what went wrong, until it is the program.
    pub(crate) report: Option<OwnedFd>,
    /// Whether its second stage has nothing left to do but to become the program.
    pub(crate) is_prepared: bool,
    pub(crate) growth: Growth,
    pub(crate) ending: Ending,
    /// When it is next looked at.
    due: Option<u64>,
}

/// A run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Ended(End),
    Lost,
}

/// All that is known.
///
/// Invariant: `pids` holds exactly the first processes of `living` that were not waited for; `dues` holds exactly the
/// `due` of `living`; a run is in at most one of `living` and `over`.
#[derive(Debug, Default)]
pub(crate) struct Table {
    living: BTreeMap<RunKey, Living>,
    over: BTreeMap<RunKey, Over>,
    pids: BTreeMap<i32, RunKey>,
    dues: BTreeSet<(u64, RunKey)>,
    /// Forgotten and refused runs, with why they were refused.
    past: BTreeMap<RunKey, Option<String>>,
    past_order: VecDeque<RunKey>,
}

impl Living {
    pub(crate) fn new(spawned: Spawned, tree: Tree, growth: Growth, ending: Ending) -> Self {
        let Spawned { pid, start, report } = spawned;
        Self { pid, start, tree, report, is_prepared: false, growth, ending, due: None }
    }

    /// Its process group, as long as its first process was not waited for: its number cannot be another's until then.
    pub(crate) fn group(&self) -> Option<i32> {
        self.ending.exit().is_none().then_some(self.pid)
    }
}

impl Table {
    /// Why a run may not be launched, if it is known.
    pub(crate) fn why_known(&self, run: RunKey) -> Option<String> {
        if let Some(living) = self.living.get(&run) {
            return Some(format!("the run is known already: it runs as process {}", living.pid));
        }
        if self.over.contains_key(&run) {
            return Some("the run is known already: it is over".to_owned());
        }
        let why = self.past.get(&run)?;
        Some(why.clone().unwrap_or_else(|| "the run is known already: it is over and stored".to_owned()))
    }

    pub(crate) fn begin(&mut self, run: RunKey, living: Living) {
        self.pids.insert(living.pid, run);
        self.living.insert(run, living);
        self.reschedule(run);
    }

    /// The run whose first process this is.
    pub(crate) fn of_pid(&self, pid: i32) -> Option<RunKey> {
        self.pids.get(&pid).copied()
    }

    /// The first process of a run was waited for: its number may soon be another's.
    pub(crate) fn release(&mut self, pid: i32) {
        self.pids.remove(&pid);
    }

    pub(crate) fn living(&self, run: RunKey) -> Option<&Living> {
        self.living.get(&run)
    }

    /// A program to be changed; `reschedule` has to follow when its ending was.
    pub(crate) fn living_mut(&mut self, run: RunKey) -> Option<&mut Living> {
        self.living.get_mut(&run)
    }

    pub(crate) fn all_living(&mut self) -> impl Iterator<Item = (RunKey, &mut Living)> {
        self.living.iter_mut().map(|(run, living)| (*run, living))
    }

    pub(crate) fn living_count(&self) -> usize {
        self.living.len()
    }

    /// Notes when a program is next to be looked at.
    pub(crate) fn reschedule(&mut self, run: RunKey) {
        let Some(living) = self.living.get_mut(&run) else { return };
        let due = living.ending.due();
        if living.due != due {
            living.due.map(|old| self.dues.remove(&(old, run)));
            due.map(|new| self.dues.insert((new, run)));
            living.due = due;
        }
    }

    /// When the first program is to be looked at.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// Programs that are to be looked at by now.
    pub(crate) fn due(&self, now: u64) -> Vec<RunKey> {
        self.dues.iter().take_while(|(due, _)| *due <= now).map(|(_, run)| *run).collect()
    }

    /// A program is over, or was none after all.
    pub(crate) fn remove(&mut self, run: RunKey) -> Option<Living> {
        let living = self.living.remove(&run)?;
        living.due.map(|due| self.dues.remove(&(due, run)));
        if self.pids.get(&living.pid) == Some(&run) {
            self.pids.remove(&living.pid);
        }
        Some(living)
    }

    pub(crate) fn is_over(&self, run: RunKey) -> bool {
        self.over.contains_key(&run)
    }

    pub(crate) fn finish(&mut self, run: RunKey, over: Over) {
        self.over.insert(run, over);
    }

    /// Forgets a run that is over; false when it is not.
    pub(crate) fn forget(&mut self, run: RunKey) -> bool {
        let was_over = self.over.remove(&run).is_some();
        if was_over {
            self.pass(run, None);
        }
        was_over
    }

    /// Remembers that a run was refused, and why.
    pub(crate) fn refuse(&mut self, run: RunKey, why: &str) {
        self.pass(run, Some(why.to_owned()));
    }

    /// All that a daemon has to know.
    pub(crate) fn list(&self) -> Vec<Program> {
        let living = self.living.iter().map(|(run, living)| {
            let pid = u32::try_from(living.pid).expect("a process is positive");
            Program { run: *run, stage: Stage::Running { pid } }
        });
        let over = self.over.iter().map(|(run, over)| Program {
            run: *run,
            stage: match *over {
                Over::Ended(end) => Stage::Ended(end),
                Over::Lost => Stage::Lost,
            },
        });
        living.chain(over).collect()
    }

    /// All that a new journal has to hold, and how many runs that are.
    pub(crate) fn entries(&self) -> (Vec<Entry>, u64) {
        let mut entries = Vec::new();
        for (run, living) in &self.living {
            entries.push(Entry::Intent(*run));
            entries.push(Entry::Spawned { run: *run, pid: living.pid, start: living.start });
        }
        entries.extend(self.over.iter().map(|(run, over)| match *over {
            Over::Ended(end) => Entry::Exit { run: *run, end },
            Over::Lost => Entry::Lost(*run),
        }));
        (entries, (self.living.len() + self.over.len()) as u64)
    }

    fn pass(&mut self, run: RunKey, why: Option<String>) {
        if self.past.insert(run, why).is_none() {
            self.past_order.push_back(run);
        }
        if self.past_order.len() > PAST_MAX
            && let Some(oldest) = self.past_order.pop_front()
        {
            self.past.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OutputLimits;

    const RUN: RunKey = RunKey(1);

    fn living(lease: Option<u64>) -> Living {
        let spawned = Spawned { pid: 7, start: 1, report: None };
        Living::new(
            spawned,
            Tree::new(RUN, Some((7, 1)), None),
            Growth::new(OutputLimits::default()),
            Ending::new(15, 0, lease),
        )
    }

    #[test]
    fn a_run_is_known_through_its_whole_life_and_after_it() {
        let mut table = Table::default();
        assert_eq!(table.why_known(RUN), None);
        table.begin(RUN, living(Some(50)));
        assert!(table.why_known(RUN).is_some_and(|why| why.contains("process 7")));
        assert_eq!((table.next_due(), table.of_pid(7)), (Some(50), Some(RUN)));
        assert!(!table.forget(RUN));
        table.remove(RUN);
        assert_eq!((table.next_due(), table.of_pid(7)), (None, None));
        table.finish(RUN, Over::Lost);
        assert!(table.why_known(RUN).is_some_and(|why| why.ends_with("over")));
        assert!(table.forget(RUN) && !table.forget(RUN));
        assert!(table.why_known(RUN).is_some_and(|why| why.ends_with("stored")));
        table.refuse(RunKey(2), "no such file");
        assert_eq!(table.why_known(RunKey(2)).as_deref(), Some("no such file"));
        assert!(table.list().is_empty() && table.entries().0.is_empty());
    }

    #[test]
    fn the_past_is_bounded() {
        let mut table = Table::default();
        for run in 0..=PAST_MAX as u128 {
            table.refuse(RunKey(run), "no");
        }
        assert_eq!((table.past.len(), table.past_order.len()), (PAST_MAX, PAST_MAX));
        assert_eq!(table.why_known(RunKey(0)), None);
        assert!(table.why_known(RunKey(1)).is_some());
    }
}
