//! The journal: what a keeper must not forget when it dies. Each program is written down before it is started and when
//! it has ended. All lines of a turn of the loop are one write and one flush.
//!
//! The file is as large as it will become, and filled with zeros: then a flush writes the lines alone and no metadata of
//! the file system. It is never continued after a restart and never changed in its past; a new one is written beside it
//! and takes its name.

mod entry;
mod read;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Mode, OFlags};

pub(crate) use entry::Entry;
pub(crate) use read::{Found, Left, read};

/// The name of the journal.
pub(crate) const NAME: &str = "journal";
/// The name of the next one until it is complete.
const NEW_NAME: &str = "journal.new";
/// The lines of a run beyond its intent: spawned, its end, forgotten.
const LATER_LINES: u64 = 3;
/// The longest that is written of one run.
const LIFE: u64 = (LATER_LINES + 1) * entry::LINE_MAX as u64;
/// The smallest journal: runs that are told and forgotten need no larger one.
const SIZE_MIN: u64 = 1024 * 1024;
/// How much is written at once when a file is filled with zeros.
const FILL: usize = 256 * 1024;

/// The journal that is written to.
///
/// Invariant: between `end` and `size` there is room for all later lines of every run of `lives`, so that the end of a
/// program that was started can always be written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    size: u64,
    end: u64,
    /// Where it ended when it was new.
    begun: u64,
    /// Runs that are written down and neither refused nor forgotten.
    lives: u64,
    max: u64,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    /// Whether one of them must be on disk before anything is done or told.
    is_urgent: bool,
}

impl Journal {
    /// Writes a new journal with these entries, and puts it in the place of the old one when it is on disk.
    pub(crate) fn create(home: &OwnedFd, boot: &str, entries: &[Entry], lives: u64, max: u64) -> io::Result<Self> {
        let mut text = Vec::new();
        Entry::Boot(boot.to_owned()).append(&mut text);
        entries.iter().for_each(|entry| entry.append(&mut text));
        let end = text.len() as u64;
        let size = (2 * (end + lives * LIFE)).max(SIZE_MIN).min(max).max(end);
        let created = fill(home, text, size).and_then(|file| {
            rustix::fs::renameat(home, NEW_NAME, home, NAME)?;
            rustix::fs::fsync(home)?;
            Ok(file)
        });
        let file = created.inspect_err(|_| {
            // Nothing is lost when it stays: the next one is written over it.
            let _ = rustix::fs::unlinkat(home, NEW_NAME, AtFlags::empty());
        })?;
        Ok(Self { file, size, end, begun: end, lives, max, pending: Vec::new(), is_urgent: false })
    }

    /// How many more runs there is room for.
    pub(crate) fn room(&self) -> u64 {
        let used = self.end + self.pending.len() as u64 + self.lives * LIFE;
        self.size.saturating_sub(used) / LIFE
    }

    /// Whether a new journal would have more room: because much was written since, or because it may be larger.
    pub(crate) fn would_gain(&self) -> bool {
        self.end - self.begun > self.size / 4 || (self.size < self.max && self.end > self.begun)
    }

    /// Adds a line, to be written with the next `flush` or `commit`.
    pub(crate) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Intent(_) => self.lives += 1,
            Entry::Refused(_) | Entry::Forgotten(_) => self.lives = self.lives.saturating_sub(1),
            Entry::Boot(_) | Entry::Spawned { .. } | Entry::Exit { .. } | Entry::Lost(_) => {}
        }
        self.is_urgent |= matches!(entry, Entry::Intent(_) | Entry::Exit { .. });
        entry.append(&mut self.pending);
    }

    /// Writes what was added; it survives this process, and the machine with the next commit.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.end + self.pending.len() as u64 > self.size {
            self.pending.clear();
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the journal is full"));
        }
        let written = self.file.write_all_at(&self.pending, self.end);
        // After a failure the end may be torn, and what follows a torn line is not read: the next lines overwrite it.
        if written.is_ok() {
            self.end += self.pending.len() as u64;
        }
        self.pending.clear();
        written
    }

    /// Writes what was added, and returns when it is on disk, if something must be.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        let is_urgent = std::mem::take(&mut self.is_urgent);
        self.flush()?;
        if is_urgent {
            rustix::fs::fdatasync(&self.file)?;
        }
        Ok(())
    }
}

/// A file that begins with a text, is that long, and is on disk.
fn fill(home: &OwnedFd, mut text: Vec<u8>, size: u64) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::openat(home, NEW_NAME, flags, Mode::from_raw_mode(0o600))?);
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
    use crate::protocol::{End, Exit, RunKey};
    use crate::scratch::Scratch;

    #[test]
    fn what_is_committed_is_read_and_room_for_ends_is_kept() {
        let scratch = Scratch::new();
        let home = scratch.open();
        let max = 20 * LIFE;
        let mut journal = Journal::create(&home, "boot", &[], 0, max).unwrap();
        let mut started = 0;
        while journal.room() > 0 {
            journal.add(&Entry::Intent(RunKey(started)));
            journal.commit().unwrap();
            started += 1;
        }
        assert!((10..20).contains(&started), "{started}");
        for run in (0..started).map(RunKey) {
            journal.add(&Entry::Spawned { run, pid: i32::MAX, start: u64::MAX });
            let end = End { exit: Exit::Signal(9), output: u64::MAX, by_lease: true };
            journal.add(&Entry::Exit { run, end });
            journal.flush().unwrap();
        }
        let found = read(&std::fs::read(scratch.path().join(NAME)).unwrap());
        assert!(found.is_whole);
        assert_eq!(found.runs.len() as u128, started);
        assert!(found.runs.values().all(|left| matches!(left, Left::Ended(_))));
        assert_eq!(std::fs::metadata(scratch.path().join(NAME)).unwrap().len(), max);
    }

    #[test]
    fn a_new_journal_takes_the_place_of_the_old_one_only_when_it_is_whole() {
        let scratch = Scratch::new();
        let home = scratch.open();
        let entries = [Entry::Lost(RunKey(1))];
        drop(Journal::create(&home, "old", &entries, 1, SIZE_MIN).unwrap());
        std::fs::create_dir(scratch.path().join(NEW_NAME)).unwrap();
        assert!(Journal::create(&home, "new", &[], 0, SIZE_MIN).is_err());
        let found = read(&std::fs::read(scratch.path().join(NAME)).unwrap());
        assert_eq!(found.boot.as_deref(), Some("old"));
        assert_eq!(found.runs.get(&RunKey(1)), Some(&Left::Lost));
    }
}
