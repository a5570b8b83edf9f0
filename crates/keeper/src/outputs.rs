//! The outputs of programs: one file each, to which a program appends by itself, so that no byte passes through us and
//! none is lost when we die. A file that became too long loses its middle: the blocks are punched out, and all offsets
//! stay as they are.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::protocol::{OutputRule, RunKey};

/// The folder of the outputs.
pub(crate) const FOLDER: &str = "outputs";
/// Holes begin and end at multiples of this; a part of a block would be filled with zeros and kept.
const BLOCK: u64 = 4096;
/// How many outputs may wait to be removed.
const DOOMED_MAX: usize = 10_000;
/// How many are removed at once.
const CLEARED_MAX: usize = 64;
/// Who may read an output: its owner and the group of the data directory.
const MODE: u32 = 0o640;

/// The folder, and who its files are to belong to.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: OwnedFd,
    /// The owner of the data directory, when that is somebody else.
    owner: Option<(u32, u32)>,
    /// Outputs that nobody needs, the oldest first.
    doomed: VecDeque<RunKey>,
}

/// What was last seen of an output that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    rule: OutputRule,
    size: u64,
    /// Up to where the middle is gone.
    punched: u64,
}

impl Growth {
    /// Of a file that is empty.
    pub(crate) fn new(rule: OutputRule) -> Self {
        Self { rule, size: 0, punched: rule.head.div_ceil(BLOCK).saturating_mul(BLOCK) }
    }

    /// How long it was.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

impl Outputs {
    /// Outputs in this folder.
    pub(crate) fn new(folder: OwnedFd, owner: Option<(u32, u32)>) -> Self {
        Self { folder, owner, doomed: VecDeque::new() }
    }

    /// Creates the output of a run. It must not be there: two programs never share one.
    pub(crate) fn create(&self, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, run.to_string(), flags, Mode::from_raw_mode(MODE))?;
        if let Some((uid, gid)) = self.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            rustix::fs::fchown(&file, Some(uid), Some(gid))?;
        }
        Ok(file)
    }

    /// Looks how long an output is, and takes out its middle when that became too long. Says whether it grew.
    pub(crate) fn look(&self, run: RunKey, growth: &mut Growth) -> bool {
        let size = self.size(run);
        let grew = size > growth.size;
        growth.size = size;
        let end = size.saturating_sub(growth.rule.tail) / BLOCK * BLOCK;
        if grew && end > growth.punched && self.punch(run, growth.punched, end).is_ok() {
            growth.punched = end;
        }
        grew
    }

    /// How long an output is; one that its program removed is empty.
    pub(crate) fn size(&self, run: RunKey) -> u64 {
        let stat = rustix::fs::statat(&self.folder, run.to_string(), AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().filter(is_plain).and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0)
    }

    /// Removes an output that nobody needs when there is time for it: file systems take longer to remove a file than to
    /// make one, and programs that are due do not wait for that.
    pub(crate) fn remove_later(&mut self, run: RunKey) {
        self.doomed.push_back(run);
    }

    /// Removes some of what nobody needs: whatever there is in a quiet moment, and what is too much in any. Says whether
    /// something is left.
    pub(crate) fn clear(&mut self, is_quiet: bool) -> bool {
        let count = if is_quiet { self.doomed.len() } else { self.doomed.len().saturating_sub(DOOMED_MAX) };
        for _ in 0..count.min(CLEARED_MAX) {
            if let Some(run) = self.doomed.pop_front() {
                self.remove(run);
            }
        }
        !self.doomed.is_empty()
    }

    /// Removes an output at once.
    pub(crate) fn remove(&self, run: RunKey) {
        // What cannot be removed now is removed at the next start.
        let _ = rustix::fs::unlinkat(&self.folder, run.to_string(), AtFlags::empty());
    }

    /// Removes outputs that belong to no known run.
    pub(crate) fn sweep(&self, is_known: impl Fn(RunKey) -> bool) {
        let Ok(folder) = rustix::fs::Dir::read_from(&self.folder) else { return };
        let names = folder.flatten().filter_map(|entry| RunKey::parse(entry.file_name().to_str().ok()?));
        let stale: Vec<RunKey> = names.filter(|run| !is_known(*run)).collect();
        stale.into_iter().for_each(|run| self.remove(run));
    }

    /// A program may have put another file in the place of its output: only a plain one without other names is changed.
    fn punch(&self, run: RunKey, from: u64, to: u64) -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.folder, run.to_string(), flags, Mode::empty())?;
        if !is_plain(&rustix::fs::fstat(&file)?) {
            return Err(Errno::PERM);
        }
        rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, to - from)
    }
}

fn is_plain(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::scratch::Scratch;

    const RUN: RunKey = RunKey(1);

    #[test]
    fn the_middle_is_punched_out_and_offsets_stay() {
        let scratch = Scratch::new();
        let outputs = Outputs::new(scratch.open(), None);
        let mut file = fs::File::from(outputs.create(RUN).unwrap());
        let mut growth = Growth::new(OutputRule { head: 10_000, tail: 20_000 });
        assert!(!outputs.look(RUN, &mut growth));
        for _ in 0..300 {
            file.write_all(&[b'x'; 1_000]).unwrap();
            assert!(outputs.look(RUN, &mut growth));
        }
        assert_eq!(outputs.size(RUN), 300_000);
        let path = scratch.path().join(RUN.to_string());
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 60_000);
        let bytes = fs::read(&path).unwrap();
        assert!(bytes[..10_000].iter().chain(&bytes[280_000..]).all(|byte| *byte == b'x'));
        assert_eq!(bytes[150_000], 0);
    }

    #[test]
    fn links_are_neither_followed_nor_changed() {
        let scratch = Scratch::new();
        let outputs = Outputs::new(scratch.open(), None);
        let other = scratch.path().join("other");
        fs::write(&other, vec![b'x'; 100_000]).unwrap();
        fs::hard_link(&other, scratch.path().join(RUN.to_string())).unwrap();
        std::os::unix::fs::symlink(&other, scratch.path().join(RunKey(2).to_string())).unwrap();
        for run in [RUN, RunKey(2)] {
            assert!(!outputs.look(run, &mut Growth::new(OutputRule { head: 0, tail: 0 })));
            assert!(outputs.punch(run, 0, 8192).is_err());
            assert!(outputs.create(run).is_err());
        }
        assert!(fs::read(&other).unwrap().iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn what_belongs_to_no_run_is_swept() {
        let scratch = Scratch::new();
        let outputs = Outputs::new(scratch.open(), None);
        drop(outputs.create(RUN).unwrap());
        drop(outputs.create(RunKey(2)).unwrap());
        fs::write(scratch.path().join("notes"), "").unwrap();
        outputs.sweep(|run| run == RUN);
        let mut names: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [RUN.to_string().as_str(), "notes"]);
        outputs.remove(RUN);
        assert_eq!(outputs.size(RUN), 0);
    }

    #[test]
    fn removing_waits_for_a_quiet_moment_or_for_too_many() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        drop(outputs.create(RUN).unwrap());
        outputs.remove_later(RUN);
        assert!(outputs.clear(false) && scratch.path().join(RUN.to_string()).exists());
        assert!(!outputs.clear(true) && !scratch.path().join(RUN.to_string()).exists());
        drop(outputs.create(RUN).unwrap());
        (0..=DOOMED_MAX).for_each(|_| outputs.remove_later(RUN));
        assert!(outputs.clear(false) && !scratch.path().join(RUN.to_string()).exists());
        assert_eq!(outputs.doomed.len(), DOOMED_MAX);
    }
}
