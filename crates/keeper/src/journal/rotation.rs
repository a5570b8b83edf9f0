//! The journal that is written to, and its replacement by a new one when it has little space left. A new journal
//! contains only the runs that are still known.

use std::io;
use std::os::fd::OwnedFd;

use super::{Journal, JournalEntry};
use crate::log;
use crate::table::ProgramTable;

/// How long after a new journal could not be written it is tried again, in microseconds.
const RETRY_AFTER: u64 = 1_000_000;

/// A journal that is replaced when it is full.
#[derive(Debug)]
pub(crate) struct RotatingJournal {
    journal: Journal,
    /// The keeper's directory.
    folder: OwnedFd,
    /// The id of the current boot.
    boot: String,
    /// How large a journal may become.
    max: u64,
    /// A new journal is not tried before this time.
    not_before: u64,
}

impl RotatingJournal {
    /// Writes a new journal with everything that the table knows.
    pub(crate) fn create(folder: OwnedFd, boot: String, table: &ProgramTable, max: u64) -> io::Result<Self> {
        let (entries, runs) = table.entries();
        let journal = Journal::create(&folder, &boot, &entries, runs, max)?;
        Ok(Self { journal, folder, boot, max, not_before: 0 })
    }

    /// The number of further runs that fit into the journal.
    pub(crate) fn room(&self) -> u64 {
        self.journal.room()
    }

    /// Adds a line, to be written with the next `flush` or `commit`.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        self.journal.add(entry);
    }

    /// Writes what was added. It survives the keeper at once, and the machine after the next commit.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.journal.flush()
    }

    /// Writes what was added, and returns when everything is on disk that must be before it is acted upon.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.journal.commit()
    }

    /// Checks whether the journal can be written to disk, after it could not.
    pub(crate) fn probe(&mut self) -> io::Result<()> {
        self.journal.is_urgent = true;
        self.journal.commit()
    }

    /// Replaces the journal by a new one, if that has more space.
    pub(crate) fn rotate(&mut self, table: &ProgramTable, now: u64) {
        if !self.journal.would_gain() || now < self.not_before {
            return;
        }
        let (entries, runs) = table.entries();
        match Journal::create(&self.folder, &self.boot, &entries, runs, self.max) {
            Ok(journal) => self.journal = journal,
            Err(error) => {
                self.not_before = now + RETRY_AFTER;
                log::line(&format!("cannot write a new journal: {error}"));
            }
        }
    }
}
