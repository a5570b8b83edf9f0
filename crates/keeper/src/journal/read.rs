//! Reads the journal of an earlier keeper. Reading is apart from writing, because a new keeper reads the old file once
//! and then writes a new one: it never continues after a torn end.

use std::collections::BTreeMap;

use super::entry::JournalEntry;
use crate::protocol::{ProgramEnd, RunKey};

/// The recorded state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournaledRun {
    /// The program may have been started; its process and the clock tick at which it began, if they were recorded.
    Open(Option<(i32, u64)>),
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
    /// Whether every line is complete.
    pub(crate) is_whole: bool,
}

/// Reads a journal up to its end, or up to the first torn line. Nothing after a torn line was acted upon, because
/// nothing is started or reported before its line is on disk.
pub(crate) fn read(bytes: &[u8]) -> JournalContents {
    let mut found = JournalContents::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let Some(entry) = JournalEntry::parse(&rest[..end]) else { return found };
        rest = &rest[end + 1..];
        apply(&mut found, entry);
    }
    // Reserved space that was not used is zeros.
    found.is_whole = found.boot.is_some() && rest.iter().all(|byte| *byte == 0);
    found
}

fn apply(found: &mut JournalContents, entry: JournalEntry) {
    match entry {
        JournalEntry::Boot(boot) => found.boot = Some(boot),
        JournalEntry::Intent(run) => {
            found.runs.insert(run, JournaledRun::Open(None));
        }
        JournalEntry::Spawned { run, pid, start } => {
            found.runs.insert(run, JournaledRun::Open(Some((pid, start))));
        }
        JournalEntry::Exit { run, end } => {
            found.runs.insert(run, JournaledRun::Ended(end));
        }
        JournalEntry::Lost(run) => {
            found.runs.insert(run, JournaledRun::Lost);
        }
        JournalEntry::Refused(run) | JournalEntry::Forgotten(run) => {
            found.runs.remove(&run);
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

    fn life() -> Vec<JournalEntry> {
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(RunKey);
        vec![
            JournalEntry::Boot("b".to_owned()),
            JournalEntry::Intent(a),
            JournalEntry::Intent(b),
            JournalEntry::Spawned { run: b, pid: 7, start: 9 },
            JournalEntry::Intent(c),
            JournalEntry::Exit { run: c, end: ProgramEnd { exit: ProcessExit::Code(3), output: 5, by_lease: false } },
            JournalEntry::Intent(d),
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
        assert_eq!(
            runs,
            [(1, JournaledRun::Open(None)), (2, JournaledRun::Open(Some((7, 9)))), (3, ended), (5, JournaledRun::Lost)]
        );
        assert!(found.is_whole);
        assert_eq!(found.boot.as_deref(), Some("b"));
    }

    #[test]
    fn lines_before_a_torn_one_are_read() {
        let bytes = journal(&life());
        let whole_until = |length: usize| bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        for length in 0..bytes.len() {
            let found = read(&bytes[..length]);
            let expected = read(&journal(&life()[..whole_until(length)]));
            assert_eq!(found.runs, expected.runs, "cut at {length}");
            let mut torn = bytes[..length].to_vec();
            torn.extend_from_slice(b"\xFFgarbage\n");
            torn.extend_from_slice(&bytes);
            assert_eq!(read(&torn).runs, expected.runs, "torn at {length}");
            assert!(!read(&torn).is_whole);
        }
    }
}
