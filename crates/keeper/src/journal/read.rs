//! What an earlier keeper left in its journal. Reading is apart from writing, because a new keeper reads the old file
//! once and then writes a new one: it never continues behind a torn end.

use std::collections::BTreeMap;

use super::entry::Entry;
use crate::protocol::{End, RunKey};

/// What is known of a run from the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It may have been started; its process and the tick at which that began, when they were written.
    Open(Option<(i32, u64)>),
    /// It has ended.
    Ended(End),
    /// A keeper was lost with it.
    Lost,
}

/// A journal as it was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The start of the machine that it belongs to.
    pub(crate) boot: Option<String>,
    /// What became of the runs.
    pub(crate) runs: BTreeMap<RunKey, Left>,
    /// Whether every line was whole.
    pub(crate) is_whole: bool,
}

/// Reads a journal up to its end, or up to the first line that was not written whole: what stands behind it was never
/// acted upon, because nothing is started or told before its line is on disk.
pub(crate) fn read(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let Some(entry) = Entry::parse(&rest[..end]) else { return found };
        rest = &rest[end + 1..];
        take(&mut found, entry);
    }
    // Room that was reserved and not used is zeros.
    found.is_whole = found.boot.is_some() && rest.iter().all(|byte| *byte == 0);
    found
}

fn take(found: &mut Found, entry: Entry) {
    match entry {
        Entry::Boot(boot) => found.boot = Some(boot),
        Entry::Intent(run) => {
            found.runs.insert(run, Left::Open(None));
        }
        Entry::Spawned { run, pid, start } => {
            found.runs.insert(run, Left::Open(Some((pid, start))));
        }
        Entry::Exit { run, end } => {
            found.runs.insert(run, Left::Ended(end));
        }
        Entry::Lost(run) => {
            found.runs.insert(run, Left::Lost);
        }
        Entry::Refused(run) | Entry::Forgotten(run) => {
            found.runs.remove(&run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Exit;

    fn journal(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.append(&mut bytes));
        bytes
    }

    fn life() -> Vec<Entry> {
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(RunKey);
        vec![
            Entry::Boot("b".to_owned()),
            Entry::Intent(a),
            Entry::Intent(b),
            Entry::Spawned { run: b, pid: 7, start: 9 },
            Entry::Intent(c),
            Entry::Exit { run: c, end: End { exit: Exit::Code(3), output: 5, by_lease: false } },
            Entry::Intent(d),
            Entry::Refused(d),
            Entry::Lost(e),
        ]
    }

    #[test]
    fn the_last_line_of_a_run_counts() {
        let mut bytes = journal(&life());
        bytes.extend_from_slice(&[0; 100]);
        let found = read(&bytes);
        let runs: Vec<_> = found.runs.into_iter().map(|(run, left)| (run.0, left)).collect();
        let ended = Left::Ended(End { exit: Exit::Code(3), output: 5, by_lease: false });
        assert_eq!(runs, [(1, Left::Open(None)), (2, Left::Open(Some((7, 9)))), (3, ended), (5, Left::Lost)]);
        assert!(found.is_whole);
        assert_eq!(found.boot.as_deref(), Some("b"));
    }

    #[test]
    fn a_torn_end_hides_nothing_before_it() {
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
