//! The outputs of programs: one file each, to which a program appends by itself, so that no byte passes through us and
//! none is lost when we die. A file that became too long loses its middle: the blocks are punched out, and all offsets
//! stay as they are.
//!
//! A file that nobody needs any more becomes the output of another run, if nobody has it open. Some file systems take long
//! to make a file after many were removed: ext4 passes by every number that was given back in the last minute.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::protocol::{OutputLimits, RunKey};
use crate::sole::is_sole;

/// The folder of the outputs.
pub(crate) const FOLDER: &str = "outputs";
/// Holes begin and end at multiples of this; a part of a block would be filled with zeros and kept.
const BLOCK: u64 = 4096;
/// How many outputs may wait to be removed.
const DOOMED_MAX: usize = 10_000;
/// How many are removed at once.
const CLEARED_MAX: usize = 64;
/// How many stay for other runs when there is nothing to do.
const SPARE_MAX: usize = 1_024;
/// Their names begin with this, and a number follows.
const SPARE: &str = "spare-";
/// Emptying a longer one takes longer than making a file.
const EMPTIED_MAX: i64 = 64 * 1024;
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
    /// How many files are there that are empty and can be those of other runs.
    spare: usize,
}

/// What was last seen of an output that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    rule: OutputLimits,
    size: u64,
    /// Up to where the middle is gone.
    punched: u64,
}

impl Growth {
    /// Of a file that is empty.
    pub(crate) fn new(rule: OutputLimits) -> Self {
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
        Self { folder, owner, doomed: VecDeque::new(), spare: 0 }
    }

    /// Creates the output of a run. It must not be there: two programs never share one.
    pub(crate) fn create(&mut self, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let reused = match self.spare.checked_sub(1) {
            Some(left) => {
                self.spare = left;
                self.reuse(&spare_name(left), run).ok()
            }
            None => self.doomed.pop_front().and_then(|old| {
                let file = self.reuse(&old.to_string(), run);
                // What cannot be used now is removed later.
                file.inspect_err(|_| self.doomed.push_back(old)).ok()
            }),
        };
        if let Some(file) = reused {
            return Ok(file);
        }
        self.make(run)
    }

    fn make(&self, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, run.to_string(), flags, Mode::from_raw_mode(MODE))?;
        if let Some((uid, gid)) = self.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            rustix::fs::fchown(&file, Some(uid), Some(gid))?;
        }
        Ok(file)
    }

    /// Makes a file that nobody needs the output of a run.
    fn reuse(&self, old: &str, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let file = self.empty(old)?;
        rustix::fs::renameat_with(&self.folder, old, &self.folder, run.to_string(), RenameFlags::NOREPLACE)?;
        Ok(file)
    }

    /// Keeps an output that nobody needs for another run.
    fn keep(&mut self, run: RunKey) -> rustix::io::Result<()> {
        let name = run.to_string();
        self.empty(&name)?;
        rustix::fs::renameat(&self.folder, name, &self.folder, spare_name(self.spare))?;
        self.spare += 1;
        Ok(())
    }

    /// Takes everything out of an output that nobody needs. One that its program has changed, or that what it left behind
    /// has open, stays as it is.
    fn empty(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if !is_plain(&stat) || !self.is_as_made(&stat) || stat.st_size > EMPTIED_MAX || !is_sole(&file) {
            return Err(Errno::BUSY);
        }
        if stat.st_size > 0 {
            rustix::fs::ftruncate(&file, 0)?;
        }
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(file)
    }

    /// Whether a file belongs to whom it should, and nobody may do more with it than with a new one.
    fn is_as_made(&self, stat: &Stat) -> bool {
        let owner = self.owner.map_or(rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        let group = self.owner.map_or(stat.st_gid, |(_, gid)| gid);
        let permissions = Mode::from_raw_mode(stat.st_mode).as_raw_mode();
        (stat.st_uid, stat.st_gid) == (owner, group) && permissions & !MODE == 0
    }

    /// Looks how long an output is, and takes out its middle when that became too long. Says whether it grew.
    pub(crate) fn look(&self, run: RunKey, growth: &mut Growth) -> bool {
        let size = self.size(run);
        let grew = size > growth.size;
        if size < growth.size {
            // Its program has emptied it, and nothing of what is there now is punched out.
            *growth = Growth::new(growth.rule);
        }
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

    /// Removes some of what nobody needs: whatever there is in a quiet moment, but for some that other runs can have, and
    /// what is too much in any. Says whether something is left.
    pub(crate) fn clear(&mut self, is_quiet: bool) -> bool {
        let count = if is_quiet { self.doomed.len() } else { self.doomed.len().saturating_sub(DOOMED_MAX) };
        for _ in 0..count.min(CLEARED_MAX) {
            let Some(run) = self.doomed.pop_front() else { break };
            if self.spare >= SPARE_MAX || self.keep(run).is_err() {
                self.remove(run);
            }
        }
        !self.doomed.is_empty()
    }

    /// Removes an output at once.
    pub(crate) fn remove(&self, run: RunKey) {
        self.unlink(&run.to_string());
    }

    fn unlink(&self, name: &str) {
        // What cannot be removed now is removed at the next start.
        let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes outputs that belong to no known run, and what an earlier life has kept for others.
    pub(crate) fn sweep(&self, is_known: impl Fn(RunKey) -> bool) {
        let Ok(folder) = rustix::fs::Dir::read_from(&self.folder) else { return };
        let names = folder.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let is_stale = |name: &str| RunKey::parse(name).map_or(name.starts_with(SPARE), |run| !is_known(run));
        let stale: Vec<String> = names.filter(|name| is_stale(name)).collect();
        stale.iter().for_each(|name| self.unlink(name));
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

fn spare_name(number: usize) -> String {
    format!("{SPARE}{number}")
}

fn is_plain(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::scratch::Scratch;

    const RUN: RunKey = RunKey(1);

    #[test]
    fn the_middle_is_punched_out_and_offsets_stay() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let mut file = fs::File::from(outputs.create(RUN).unwrap());
        let mut growth = Growth::new(OutputLimits { head: 10_000, tail: 20_000 });
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
    fn the_middle_is_punched_out_again_when_the_file_was_emptied() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let mut file = fs::File::from(outputs.create(RUN).unwrap());
        let mut growth = Growth::new(OutputLimits { head: 10_000, tail: 20_000 });
        for _ in 0..2 {
            file.set_len(0).unwrap();
            outputs.look(RUN, &mut growth);
            file.write_all(&[b'x'; 300_000]).unwrap();
            assert!(outputs.look(RUN, &mut growth));
            let blocks = fs::metadata(scratch.path().join(RUN.to_string())).unwrap().blocks();
            assert!(blocks * 512 < 60_000, "{blocks}");
        }
    }

    #[test]
    fn links_are_neither_followed_nor_changed() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let other = scratch.path().join("other");
        fs::write(&other, vec![b'x'; 100_000]).unwrap();
        fs::hard_link(&other, scratch.path().join(RUN.to_string())).unwrap();
        std::os::unix::fs::symlink(&other, scratch.path().join(RunKey(2).to_string())).unwrap();
        for run in [RUN, RunKey(2)] {
            assert!(!outputs.look(run, &mut Growth::new(OutputLimits { head: 0, tail: 0 })));
            assert!(outputs.punch(run, 0, 8192).is_err());
            assert!(outputs.create(run).is_err());
        }
        assert!(fs::read(&other).unwrap().iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn what_belongs_to_no_run_is_swept() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        drop(outputs.create(RUN).unwrap());
        drop(outputs.create(RunKey(2)).unwrap());
        fs::write(scratch.path().join("notes"), "").unwrap();
        fs::write(scratch.path().join("spare-7"), "").unwrap();
        outputs.sweep(|run| run == RUN);
        let mut names: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [RUN.to_string().as_str(), "notes"]);
        outputs.remove(RUN);
        assert_eq!(outputs.size(RUN), 0);
    }

    /// Runs whose outputs are there.
    fn there(scratch: &Scratch) -> Vec<u128> {
        let names = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut runs: Vec<u128> = names.filter_map(|name| Some(RunKey::parse(name.to_str()?)?.0)).collect();
        runs.sort_unstable();
        runs
    }

    #[test]
    fn removing_waits_for_a_quiet_moment_or_for_too_many() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let held = outputs.create(RUN).unwrap();
        outputs.remove_later(RUN);
        assert!(outputs.clear(false) && there(&scratch) == [1]);
        assert!(!outputs.clear(true) && there(&scratch).is_empty());
        drop(held);
        for run in 0..=DOOMED_MAX as u128 {
            outputs.remove_later(RunKey(run));
        }
        assert!(outputs.clear(false));
        assert_eq!(outputs.doomed.len(), DOOMED_MAX);
    }

    #[test]
    fn a_file_that_nobody_needs_becomes_that_of_another_run() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let path = |run: u128| scratch.path().join(RunKey(run).to_string());
        let mut first = fs::File::from(outputs.create(RUN).unwrap());
        first.write_all(b"secret").unwrap();
        let inode = first.metadata().unwrap().ino();
        drop(first);
        outputs.remove_later(RUN);
        let mut second = fs::File::from(outputs.create(RunKey(2)).unwrap());
        assert_eq!((second.metadata().unwrap().ino(), second.metadata().unwrap().len()), (inode, 0));
        second.write_all(b"text").unwrap();
        assert_eq!((there(&scratch), fs::read(path(2)).unwrap()), (vec![2], b"text".to_vec()));
        drop(second);
        // The same in a quiet moment: it is empty at once, and not called after its run any more.
        outputs.remove_later(RunKey(2));
        assert!(!outputs.clear(true));
        assert!(there(&scratch).is_empty());
        assert_eq!(fs::metadata(scratch.path().join("spare-0")).unwrap().len(), 0);
        let third = fs::File::from(outputs.create(RunKey(3)).unwrap());
        assert_eq!((third.metadata().unwrap().ino(), there(&scratch)), (inode, vec![3]));
    }

    #[test]
    fn what_is_held_or_changed_is_nobody_elses() {
        let change = |what: &str, path: &std::path::Path| match what {
            "longer" => fs::write(path, vec![0; 100_000]).unwrap(),
            "open to others" => fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap(),
            "linked" => fs::hard_link(path, path.with_extension("link")).unwrap(),
            _ => fs::remove_file(path).unwrap(),
        };
        for what in ["longer", "open to others", "linked", "gone"] {
            let scratch = Scratch::new();
            let mut outputs = Outputs::new(scratch.open(), None);
            drop(outputs.create(RUN).unwrap());
            change(what, &scratch.path().join(RUN.to_string()));
            outputs.remove_later(RUN);
            let is_left = fs::metadata(scratch.path().join(RUN.to_string())).is_ok();
            let other = fs::File::from(outputs.create(RunKey(2)).unwrap());
            assert_eq!(other.metadata().unwrap().len(), 0, "{what}");
            assert_eq!(there(&scratch), if is_left { vec![1, 2] } else { vec![2] }, "{what}");
            assert!(!outputs.clear(true), "{what}");
            assert_eq!(there(&scratch), [2], "{what}");
        }
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        let mut held = fs::File::from(outputs.create(RUN).unwrap());
        outputs.remove_later(RUN);
        drop(outputs.create(RunKey(2)).unwrap());
        held.write_all(b"from the background").unwrap();
        assert_eq!(outputs.size(RunKey(2)), 0);
    }

    #[test]
    fn the_output_of_another_run_is_never_taken() {
        let scratch = Scratch::new();
        let mut outputs = Outputs::new(scratch.open(), None);
        drop(outputs.create(RUN).unwrap());
        drop(outputs.create(RunKey(2)).unwrap());
        outputs.remove_later(RUN);
        assert!(outputs.create(RunKey(2)).is_err());
    }
}
