//! The journal: what a keeper must not forget when it dies. Each program is recorded before it is started and when it
//! has ended. All lines of a turn of the loop are one write and one flush.
//!
//! The file has its final size from the start and is filled with zeros, so that a flush writes the lines alone and no
//! metadata of the file system. A keeper never continues the journal of an earlier one, and never changes a line: it
//! writes a new journal beside the old one and renames it.

mod entry;
mod read;
mod rotation;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Mode, OFlags};

pub(crate) use entry::JournalEntry;
pub(crate) use read::{JournalContents, JournaledRun, read};
pub(crate) use rotation::RotatingJournal;

/// The name of the journal.
pub(crate) const NAME: &str = "journal";
/// The name of a new journal until it is complete.
const NEW_NAME: &str = "journal.new";
/// The lines of a run after its intent: spawned, its end, forgotten.
const LATER_LINES: u64 = 3;
/// Bytes that all lines of one run take at most.
const RUN_MAX: u64 = (LATER_LINES + 1) * entry::LINE_MAX as u64;
/// The smallest journal.
const SIZE_MIN: u64 = 1024 * 1024;
/// Bytes of one write when a file is filled with zeros.
const FILL: usize = 256 * 1024;

/// A journal that is written to.
///
/// Invariant: between `end` and `size` there is space for all later lines of every open run, so that the end of a
/// program that was started can always be recorded.
#[derive(Debug)]
struct Journal {
    file: File,
    size: u64,
    end: u64,
    /// `end` when the journal was new.
    first_end: u64,
    /// How many runs are recorded and neither refused nor forgotten.
    open_runs: u64,
    max: u64,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    /// Whether one of them must be on disk before it is acted upon.
    is_urgent: bool,
}

impl Journal {
    /// Writes a new journal with these entries of `open_runs` runs, and replaces the old one when it is on disk.
    fn create(folder: &OwnedFd, boot: &str, entries: &[JournalEntry], open_runs: u64, max: u64) -> io::Result<Self> {
        let mut text = Vec::new();
        // Twice, because all other lines depend on it, and one line may be damaged.
        (0..2).for_each(|_| JournalEntry::Boot(boot.to_owned()).append(&mut text));
        entries.iter().for_each(|entry| entry.append(&mut text));
        let end = text.len() as u64;
        let size = (2 * (end + open_runs * RUN_MAX)).max(SIZE_MIN).min(max).max(end);
        let created = fill(folder, text, size).and_then(|file| {
            rustix::fs::renameat(folder, NEW_NAME, folder, NAME)?;
            rustix::fs::fsync(folder)?;
            Ok(file)
        });
        let file = created.inspect_err(|_| {
            // If it stays, the next one overwrites it.
            let _ = rustix::fs::unlinkat(folder, NEW_NAME, AtFlags::empty());
        })?;
        Ok(Self { file, size, end, first_end: end, open_runs, max, pending: Vec::new(), is_urgent: false })
    }

    /// The number of further runs that fit into the journal.
    fn room(&self) -> u64 {
        let used = self.end + self.pending.len() as u64 + self.open_runs * RUN_MAX;
        self.size.saturating_sub(used) / RUN_MAX
    }

    /// Whether a new journal would have more space: because much was written since, or because it may be larger.
    fn would_gain(&self) -> bool {
        self.end - self.first_end > self.size / 4 || (self.size < self.max && self.end > self.first_end)
    }

    /// Adds a line, to be written with the next `flush` or `commit`.
    fn add(&mut self, entry: &JournalEntry) {
        match entry {
            JournalEntry::Intent { .. } => self.open_runs += 1,
            JournalEntry::Refused(_) | JournalEntry::Forgotten(_) => self.open_runs = self.open_runs.saturating_sub(1),
            JournalEntry::Boot(_)
            | JournalEntry::Spawned { .. }
            | JournalEntry::Exit { .. }
            | JournalEntry::Lost(_) => {}
        }
        self.is_urgent |= matches!(entry, JournalEntry::Intent { .. } | JournalEntry::Exit { .. });
        entry.append(&mut self.pending);
    }

    /// Writes what was added. It survives the keeper at once, and the machine after the next commit.
    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.end + self.pending.len() as u64 > self.size {
            self.pending.clear();
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the journal is full"));
        }
        let written = self.file.write_all_at(&self.pending, self.end);
        // After a failure the last line may be torn. The next lines overwrite it.
        if written.is_ok() {
            self.end += self.pending.len() as u64;
        }
        self.pending.clear();
        written
    }

    /// Writes what was added, and returns when everything is on disk that must be before it is acted upon.
    fn commit(&mut self) -> io::Result<()> {
        let is_urgent = std::mem::take(&mut self.is_urgent);
        self.flush()?;
        if is_urgent {
            rustix::fs::fdatasync(&self.file)?;
        }
        Ok(())
    }
}

/// Creates a file of `size` bytes that begins with a text, and returns when it is on disk.
fn fill(folder: &OwnedFd, mut text: Vec<u8>, size: u64) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::openat(folder, NEW_NAME, flags, Mode::from_raw_mode(0o600))?);
    let mut at = 0;
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(FILL.max(text.len()));
        text.resize(length, 0);
        file.write_all_at(&text, at)?;
        at += length as u64;
        text.clear();
    }
    rustix::fs::fdatasync(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ProcessExit, ProgramEnd, RunKey};
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn full_journal_has_room_for_the_ends_of_all_runs() {
        let scratch = ScratchDir::new();
        let home = scratch.open();
        let max = 20 * RUN_MAX;
        let mut journal = Journal::create(&home, "boot", &[], 0, max).unwrap();
        let mut started = 0;
        while journal.room() > 0 {
            journal.add(&JournalEntry::Intent { run: RunKey(started), output: Some(u64::MAX) });
            journal.commit().unwrap();
            started += 1;
        }
        assert!((10..20).contains(&started), "{started}");
        for run in (0..started).map(RunKey) {
            journal.add(&JournalEntry::Spawned { run, pid: i32::MAX, start: u64::MAX });
            let end = ProgramEnd { exit: ProcessExit::Signal(9), output: u64::MAX, by_lease: true };
            journal.add(&JournalEntry::Exit { run, end });
            journal.flush().unwrap();
        }
        let found = read(&std::fs::read(scratch.path().join(NAME)).unwrap());
        assert!(found.is_whole);
        assert_eq!(found.runs.len() as u128, started);
        assert!(found.runs.values().all(|left| matches!(left, JournaledRun::Ended(_))));
        assert_eq!(std::fs::metadata(scratch.path().join(NAME)).unwrap().len(), max);
    }

    #[test]
    fn incomplete_new_journal_does_not_replace_the_old_one() {
        let scratch = ScratchDir::new();
        let home = scratch.open();
        let entries = [JournalEntry::Lost(RunKey(1))];
        drop(Journal::create(&home, "old", &entries, 1, SIZE_MIN).unwrap());
        std::fs::create_dir(scratch.path().join(NEW_NAME)).unwrap();
        assert!(Journal::create(&home, "new", &[], 0, SIZE_MIN).is_err());
        let found = read(&std::fs::read(scratch.path().join(NAME)).unwrap());
        assert_eq!(found.boot.as_deref(), Some("old"));
        assert_eq!(found.runs.get(&RunKey(1)), Some(&JournaledRun::Lost));
    }
}
