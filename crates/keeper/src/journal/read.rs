//! Reads the journal of an earlier keeper. Reading is apart from writing, because a new keeper reads the old file once
//! and then writes a new one: it never continues after a torn end.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{JournalEntry, LINE_MAX};
use crate::protocol::{ProgramEnd, RunKey};

/// The recorded state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournaledRun {
    /// The program may have been started.
    Open {
        /// Its process and the clock tick at which it began, if they were recorded.
        root: Option<(i32, u64)>,
        /// The pipe for its output, if it was recorded.
        output: Option<u64>,
    },
    /// The program has ended.
    Ended(ProgramEnd),
    /// The program was lost with a keeper.
    Lost,
}

/// The contents of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalContents {
    /// The boot id of the machine when it was written.
    pub(crate) boot: Option<String>,
    /// What became of each run.
    pub(crate) runs: BTreeMap<RunKey, JournaledRun>,
    /// Runs that were refused or forgotten.
    pub(crate) settled: BTreeSet<RunKey>,
    /// How many lines cannot be read.
    pub(crate) damaged: usize,
    /// Whether every line is complete.
    pub(crate) is_whole: bool,
}

impl JournalContents {
    /// Adds runs that only a damaged line may have named, as programs that may have been started: those that have an
    /// output, and of which the journal says nothing.
    pub(crate) fn assume_started(&mut self, with_output: impl IntoIterator<Item = RunKey>) {
        for run in with_output.into_iter().filter(|run| !self.settled.contains(run)) {
            self.runs.entry(run).or_insert(JournaledRun::Open { root: None, output: None });
        }
    }
}

/// Reads a journal. A line that is torn or damaged is counted and left out; the lines after it are read.
pub(crate) fn read(bytes: &[u8]) -> JournalContents {
    let mut found = JournalContents::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        read_line(&mut found, &rest[..end]);
        rest = &rest[end + 1..];
    }
    // Reserved space that was not used is zeros.
    let last = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if last > 0 {
        read_line(&mut found, &rest[..last]);
        found.damaged = found.damaged.max(1);
    }
    found.is_whole = found.boot.is_some() && found.damaged == 0;
    found
}

fn read_line(found: &mut JournalContents, line: &[u8]) {
    if let Some(entry) = JournalEntry::parse(line) {
        return apply(found, entry);
    }
    found.damaged += 1;
    // If its newline is damaged, two lines look like one. Each is recognized by its checksum.
    let first = (0..=line.len().min(LINE_MAX)).find_map(|end| JournalEntry::parse(&line[..end]));
    let second = (line.len().saturating_sub(LINE_MAX)..line.len()).find_map(|from| JournalEntry::parse(&line[from..]));
    first.into_iter().chain(second).for_each(|entry| apply(found, entry));
}

fn apply(found: &mut JournalContents, entry: JournalEntry) {
    match entry {
        JournalEntry::Boot(boot) => found.boot = Some(boot),
        JournalEntry::Intent { run, output } => {
            found.runs.insert(run, JournaledRun::Open { root: None, output });
        }
        JournalEntry::Spawned { run, pid, start } => {
            let output = match found.runs.get(&run) {
                Some(JournaledRun::Open { output, .. }) => *output,
                _ => None,
            };
            found.runs.insert(run, JournaledRun::Open { root: Some((pid, start)), output });
        }
        JournalEntry::Exit { run, end } => {
            found.runs.insert(run, JournaledRun::Ended(end));
        }
        JournalEntry::Lost(run) => {
            found.runs.insert(run, JournaledRun::Lost);
        }
        JournalEntry::Refused(run) | JournalEntry::Forgotten(run) => {
            found.runs.remove(&run);
            found.settled.insert(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ProcessExit;

    fn journal(entries: &[JournalEntry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.append(&mut bytes));
        bytes
    }

    fn open(root: Option<(i32, u64)>) -> JournaledRun {
        JournaledRun::Open { root, output: Some(70) }
    }

    fn life() -> Vec<JournalEntry> {
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(RunKey);
        vec![
            JournalEntry::Boot("b".to_owned()),
            JournalEntry::Intent { run: a, output: Some(70) },
            JournalEntry::Intent { run: b, output: Some(70) },
            JournalEntry::Spawned { run: b, pid: 7, start: 9 },
            JournalEntry::Intent { run: c, output: Some(70) },
            JournalEntry::Exit { run: c, end: ProgramEnd { exit: ProcessExit::Code(3), output: 5, by_lease: false } },
            JournalEntry::Intent { run: d, output: Some(70) },
            JournalEntry::Refused(d),
            JournalEntry::Lost(e),
        ]
    }

    #[test]
    fn last_line_of_a_run_counts() {
        let mut bytes = journal(&life());
        bytes.extend_from_slice(&[0; 100]);
        let found = read(&bytes);
        let runs: Vec<_> = found.runs.into_iter().map(|(run, left)| (run.0, left)).collect();
        let ended = JournaledRun::Ended(ProgramEnd { exit: ProcessExit::Code(3), output: 5, by_lease: false });
        assert_eq!(runs, [(1, open(None)), (2, open(Some((7, 9)))), (3, ended), (5, JournaledRun::Lost)]);
        assert!(found.is_whole);
        assert_eq!(found.boot.as_deref(), Some("b"));
    }

    #[test]
    fn lines_before_a_torn_end_are_read() {
        let bytes = journal(&life());
        let whole_until = |length: usize| bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        for length in 0..bytes.len() {
            let found = read(&bytes[..length]);
            let mut whole = whole_until(length);
            // Only the newline of the last line is missing.
            whole += usize::from(bytes[length] == b'\n');
            let expected = read(&journal(&life()[..whole]));
            assert_eq!(found.runs, expected.runs, "cut at {length}");
            let mut torn = bytes[..length].to_vec();
            torn.extend_from_slice(b"\xFFgarbage");
            assert!(!read(&torn).is_whole);
        }
    }

    #[test]
    fn damaged_bit_loses_at_most_its_own_line() {
        let entries = life();
        let mut bytes = journal(&entries);
        bytes.extend_from_slice(&[0; 100]);
        let without = |left_out: usize| {
            let kept: Vec<JournalEntry> =
                entries.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, entry)| entry.clone()).collect();
            read(&journal(&kept))
        };
        let all = read(&bytes);
        for at in 0..bytes.len() {
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            let expected = without(line);
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let found = read(&damaged);
                let is_expected = found.runs == expected.runs && found.boot == expected.boot;
                let is_all = found.runs == all.runs && found.boot == all.boot;
                assert!(is_expected || is_all, "bit {bit} of byte {at}, line {line}: {found:?}");
                // A letter of a checksum may be a capital.
                assert!(is_all || found.damaged > 0, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn run_of_a_damaged_line_is_assumed_to_be_started_if_it_has_an_output() {
        let mut found = read(&journal(&life()[..8]));
        found.assume_started([1, 3, 4, 9].map(RunKey));
        let runs: Vec<u128> = found.runs.keys().map(|run| run.0).collect();
        assert_eq!(runs, [1, 2, 3, 9], "4 was refused");
        assert_eq!(found.runs[&RunKey(1)], open(None));
        assert_eq!(found.runs[&RunKey(9)], JournaledRun::Open { root: None, output: None });
    }
}
