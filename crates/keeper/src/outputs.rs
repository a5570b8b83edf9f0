//! The output files of programs: one for each run. The collector appends to it what comes out of the program's pipe. A
//! file that grows too long loses its middle: the blocks are punched out, and all offsets stay as they are.
//!
//! A file that is not needed any more is reused for another run, if no process has it open. Some file systems need long
//! to create a file after many were removed: ext4 skips every inode number that was released in the last minute.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::protocol::{OutputLimits, RunKey};
use crate::sole::is_sole;
use crate::stderr_index;

/// The directory of the outputs, below the keeper's.
pub(crate) const FOLDER: &str = "outputs";
/// Holes begin and end at multiples of this; a part of a block would be zeroed and kept.
const BLOCK: u64 = 4096;
/// How many outputs may wait to be removed.
const UNNEEDED_MAX: usize = 10_000;
/// How many are removed in one turn.
const CLEARED_MAX: usize = 64;
/// How many empty files are kept for other runs.
const SPARE_MAX: usize = 1_024;
/// The names of empty files: this and a number.
const SPARE: &str = "spare-";
/// Truncating a longer file takes longer than creating one.
const TRUNCATED_MAX: i64 = 64 * 1024;
/// Permissions of an output: its owner, and the group of the data directory for reading.
const MODE: u32 = 0o640;

/// The output files in a directory.
#[derive(Debug)]
pub(crate) struct OutputFiles {
    folder: OwnedFd,
    /// The owner of the data directory, if that is not the keeper's user.
    owner: Option<(u32, u32)>,
    /// OutputFiles that are not needed any more, the oldest first.
    unneeded: VecDeque<RunKey>,
    /// Runs that are over while a process may still write to their pipe. Their files are not reused.
    written: BTreeSet<RunKey>,
    /// How many empty files there are for other runs.
    spare: usize,
}

/// The size of an output at the last check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputSize {
    limits: OutputLimits,
    bytes: u64,
    /// Up to where the middle was punched out.
    punched: u64,
}

impl OutputSize {
    /// Of an empty file.
    pub(crate) fn new(limits: OutputLimits) -> Self {
        Self { limits, bytes: 0, punched: limits.head.div_ceil(BLOCK).saturating_mul(BLOCK) }
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl OutputFiles {
    /// Output files in a directory.
    pub(crate) fn new(folder: OwnedFd, owner: Option<(u32, u32)>) -> Self {
        Self { folder, owner, unneeded: VecDeque::new(), written: BTreeSet::new(), spare: 0 }
    }

    /// The directory.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Runs that have an output.
    pub(crate) fn runs(&self) -> Vec<RunKey> {
        let Ok(folder) = rustix::fs::Dir::read_from(&self.folder) else { return Vec::new() };
        folder.flatten().filter_map(|entry| RunKey::parse(entry.file_name().to_str().ok()?)).collect()
    }

    /// A run is over while a process may still write to its pipe.
    pub(crate) fn mark_written(&mut self, run: RunKey) {
        self.written.insert(run);
    }

    /// Creates the output of a run. Fails if there is one: two programs never share an output.
    pub(crate) fn create(&mut self, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let reused = match self.spare.checked_sub(1) {
            Some(left) => {
                self.spare = left;
                self.reuse(&spare_name(left), run).ok()
            }
            None => self.unneeded.pop_front().and_then(|old| {
                self.unlink(&stderr_index::name(old));
                let file = self.reuse(&old.to_string(), run);
                // What cannot be reused now is removed later.
                file.inspect_err(|_| self.unneeded.push_back(old)).ok()
            }),
        };
        if let Some(file) = reused {
            return Ok(file);
        }
        self.create_file(&run.to_string())
    }

    /// Creates the file that says which parts of the output are standard error, which this pipe carries.
    pub(crate) fn create_stderr_index(&self, run: RunKey, pipe: u64) -> rustix::io::Result<()> {
        let file = self.create_file(&stderr_index::name(run))?;
        let pipe = pipe.to_le_bytes();
        // A part of a few bytes is written only if the disk is full.
        if rustix::io::write(&file, &pipe)? == pipe.len() { Ok(()) } else { Err(Errno::NOSPC) }
    }

    fn create_file(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::from_raw_mode(MODE))?;
        if let Some((uid, gid)) = self.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
            rustix::fs::fchown(&file, Some(uid), Some(gid))?;
        }
        Ok(file)
    }

    /// Reuses a file for a run.
    fn reuse(&self, old: &str, run: RunKey) -> rustix::io::Result<OwnedFd> {
        let file = self.truncate(old)?;
        rustix::fs::renameat_with(&self.folder, old, &self.folder, run.to_string(), RenameFlags::NOREPLACE)?;
        Ok(file)
    }

    /// Keeps an output that is not needed any more as an empty file for another run.
    fn keep(&mut self, run: RunKey) -> rustix::io::Result<()> {
        let name = run.to_string();
        self.truncate(&name)?;
        self.unlink(&stderr_index::name(run));
        rustix::fs::renameat(&self.folder, name, &self.folder, spare_name(self.spare))?;
        self.spare += 1;
        Ok(())
    }

    /// Truncates an output that is not needed any more. Fails if the program changed its permissions or links, or if a
    /// background process has it open.
    fn truncate(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if !is_regular(&stat) || !self.is_unchanged(&stat) || stat.st_size > TRUNCATED_MAX || !is_sole(&file) {
            return Err(Errno::BUSY);
        }
        if stat.st_size > 0 {
            rustix::fs::ftruncate(&file, 0)?;
        }
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(file)
    }

    /// Whether owner and permissions of a file are those of a new one.
    fn is_unchanged(&self, stat: &Stat) -> bool {
        let owner = self.owner.map_or(rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        let group = self.owner.map_or(stat.st_gid, |(_, gid)| gid);
        let permissions = Mode::from_raw_mode(stat.st_mode).as_raw_mode();
        (stat.st_uid, stat.st_gid) == (owner, group) && permissions & !MODE == 0
    }

    /// Updates the size of an output, and punches out its middle if it became too long. Returns whether it has grown.
    pub(crate) fn update(&self, run: RunKey, size: &mut OutputSize) -> bool {
        let bytes = self.size(run);
        let has_grown = bytes > size.bytes;
        if bytes < size.bytes {
            // The program truncated it, and nothing of what is there now is punched out.
            *size = OutputSize::new(size.limits);
        }
        size.bytes = bytes;
        let end = bytes.saturating_sub(size.limits.tail) / BLOCK * BLOCK;
        if has_grown && end > size.punched && self.punch(run, size.punched, end).is_ok() {
            size.punched = end;
        }
        has_grown
    }

    /// The length of an output; zero if the program removed it.
    pub(crate) fn size(&self, run: RunKey) -> u64 {
        let stat = rustix::fs::statat(&self.folder, run.to_string(), AtFlags::SYMLINK_NOFOLLOW);
        stat.ok().filter(is_regular).and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0)
    }

    /// Removes an output when there is time for it: file systems need longer to remove a file than to create one, and
    /// programs that are due do not wait for that.
    pub(crate) fn remove_later(&mut self, run: RunKey) {
        if self.written.remove(&run) {
            return self.remove(run);
        }
        self.unneeded.push_back(run);
    }

    /// Removes outputs that are not needed any more, or keeps them as empty files for other runs: all in a quiet
    /// moment, and otherwise those beyond [`UNNEEDED_MAX`]. Returns whether some are left.
    pub(crate) fn clear(&mut self, is_quiet: bool) -> bool {
        let count = if is_quiet { self.unneeded.len() } else { self.unneeded.len().saturating_sub(UNNEEDED_MAX) };
        for _ in 0..count.min(CLEARED_MAX) {
            let Some(run) = self.unneeded.pop_front() else { break };
            if self.spare >= SPARE_MAX || self.keep(run).is_err() {
                self.remove(run);
            }
        }
        !self.unneeded.is_empty()
    }

    /// Removes an output at once.
    pub(crate) fn remove(&self, run: RunKey) {
        self.unlink(&run.to_string());
        self.unlink(&stderr_index::name(run));
    }

    fn unlink(&self, name: &str) {
        // A file that cannot be removed now is removed by the next keeper.
        let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes outputs of unknown runs, and empty files that an earlier keeper kept.
    pub(crate) fn sweep(&self, is_known: impl Fn(RunKey) -> bool) {
        let Ok(folder) = rustix::fs::Dir::read_from(&self.folder) else { return };
        let names = folder.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let run_of = |name: &str| RunKey::parse(name).or_else(|| stderr_index::run_of(name));
        let is_stale = |name: &str| run_of(name).map_or(name.starts_with(SPARE), |run| !is_known(run));
        let stale: Vec<String> = names.filter(|name| is_stale(name)).collect();
        stale.iter().for_each(|name| self.unlink(name));
    }

    /// A program may have replaced its output by another file: only a regular file without other links is changed.
    fn punch(&self, run: RunKey, from: u64, to: u64) -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.folder, run.to_string(), flags, Mode::empty())?;
        if !is_regular(&rustix::fs::fstat(&file)?) {
            return Err(Errno::PERM);
        }
        rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, to - from)
    }
}

fn spare_name(number: usize) -> String {
    format!("{SPARE}{number}")
}

pub(crate) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::scratch_dir::ScratchDir;

    const RUN: RunKey = RunKey(1);

    #[test]
    fn middle_of_long_output_is_punched_out_and_offsets_stay() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let mut file = fs::File::from(outputs.create(RUN).unwrap());
        let mut size = OutputSize::new(OutputLimits { head: 10_000, tail: 20_000 });
        assert!(!outputs.update(RUN, &mut size));
        for _ in 0..300 {
            file.write_all(&[b'x'; 1_000]).unwrap();
            assert!(outputs.update(RUN, &mut size));
        }
        assert_eq!(outputs.size(RUN), 300_000);
        let path = scratch.path().join(RUN.to_string());
        assert!(fs::metadata(&path).unwrap().blocks() * 512 < 60_000);
        let bytes = fs::read(&path).unwrap();
        assert!(bytes[..10_000].iter().chain(&bytes[280_000..]).all(|byte| *byte == b'x'));
        assert_eq!(bytes[150_000], 0);
    }

    #[test]
    fn middle_is_punched_out_again_after_the_file_was_truncated() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let mut file = fs::File::from(outputs.create(RUN).unwrap());
        let mut size = OutputSize::new(OutputLimits { head: 10_000, tail: 20_000 });
        for _ in 0..2 {
            file.set_len(0).unwrap();
            outputs.update(RUN, &mut size);
            file.write_all(&[b'x'; 300_000]).unwrap();
            assert!(outputs.update(RUN, &mut size));
            let blocks = fs::metadata(scratch.path().join(RUN.to_string())).unwrap().blocks();
            assert!(blocks * 512 < 60_000, "{blocks}");
        }
    }

    #[test]
    fn links_in_place_of_outputs_are_neither_followed_nor_changed() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let other = scratch.path().join("other");
        fs::write(&other, vec![b'x'; 100_000]).unwrap();
        fs::hard_link(&other, scratch.path().join(RUN.to_string())).unwrap();
        std::os::unix::fs::symlink(&other, scratch.path().join(RunKey(2).to_string())).unwrap();
        for run in [RUN, RunKey(2)] {
            assert!(!outputs.update(run, &mut OutputSize::new(OutputLimits { head: 0, tail: 0 })));
            assert!(outputs.punch(run, 0, 8192).is_err());
            assert!(outputs.create(run).is_err());
        }
        assert!(fs::read(&other).unwrap().iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn outputs_of_unknown_runs_are_swept() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
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

    /// Runs whose outputs exist.
    fn existing(scratch: &ScratchDir) -> Vec<u128> {
        let names = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut runs: Vec<u128> = names.filter_map(|name| Some(RunKey::parse(name.to_str()?)?.0)).collect();
        runs.sort_unstable();
        runs
    }

    #[test]
    fn outputs_are_removed_in_a_quiet_moment_or_if_there_are_too_many() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let held = outputs.create(RUN).unwrap();
        outputs.remove_later(RUN);
        assert!(outputs.clear(false) && existing(&scratch) == [1]);
        assert!(!outputs.clear(true) && existing(&scratch).is_empty());
        drop(held);
        for run in 0..=UNNEEDED_MAX as u128 {
            outputs.remove_later(RunKey(run));
        }
        assert!(outputs.clear(false));
        assert_eq!(outputs.unneeded.len(), UNNEEDED_MAX);
    }

    #[test]
    fn unneeded_file_is_reused_for_another_run() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let path = |run: u128| scratch.path().join(RunKey(run).to_string());
        let mut first = fs::File::from(outputs.create(RUN).unwrap());
        first.write_all(b"secret").unwrap();
        let inode = first.metadata().unwrap().ino();
        drop(first);
        outputs.remove_later(RUN);
        let mut second = fs::File::from(outputs.create(RunKey(2)).unwrap());
        assert_eq!((second.metadata().unwrap().ino(), second.metadata().unwrap().len()), (inode, 0));
        second.write_all(b"text").unwrap();
        assert_eq!((existing(&scratch), fs::read(path(2)).unwrap()), (vec![2], b"text".to_vec()));
        drop(second);
        // In a quiet moment it is truncated and renamed at once.
        outputs.remove_later(RunKey(2));
        assert!(!outputs.clear(true));
        assert!(existing(&scratch).is_empty());
        assert_eq!(fs::metadata(scratch.path().join("spare-0")).unwrap().len(), 0);
        let third = fs::File::from(outputs.create(RunKey(3)).unwrap());
        assert_eq!((third.metadata().unwrap().ino(), existing(&scratch)), (inode, vec![3]));
    }

    #[test]
    fn file_that_is_open_or_changed_is_not_reused() {
        let change = |what: &str, path: &std::path::Path| match what {
            "longer" => fs::write(path, vec![0; 100_000]).unwrap(),
            "open to others" => fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap(),
            "linked" => fs::hard_link(path, path.with_extension("link")).unwrap(),
            _ => fs::remove_file(path).unwrap(),
        };
        for what in ["longer", "open to others", "linked", "gone"] {
            let scratch = ScratchDir::new();
            let mut outputs = OutputFiles::new(scratch.open(), None);
            drop(outputs.create(RUN).unwrap());
            change(what, &scratch.path().join(RUN.to_string()));
            outputs.remove_later(RUN);
            let is_left = fs::metadata(scratch.path().join(RUN.to_string())).is_ok();
            let other = fs::File::from(outputs.create(RunKey(2)).unwrap());
            assert_eq!(other.metadata().unwrap().len(), 0, "{what}");
            assert_eq!(existing(&scratch), if is_left { vec![1, 2] } else { vec![2] }, "{what}");
            assert!(!outputs.clear(true), "{what}");
            assert_eq!(existing(&scratch), [2], "{what}");
        }
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        let mut held = fs::File::from(outputs.create(RUN).unwrap());
        outputs.remove_later(RUN);
        drop(outputs.create(RunKey(2)).unwrap());
        held.write_all(b"from the background").unwrap();
        assert_eq!(outputs.size(RunKey(2)), 0);
    }

    #[test]
    fn existing_output_of_a_run_is_never_replaced() {
        let scratch = ScratchDir::new();
        let mut outputs = OutputFiles::new(scratch.open(), None);
        drop(outputs.create(RUN).unwrap());
        drop(outputs.create(RunKey(2)).unwrap());
        outputs.remove_later(RUN);
        assert!(outputs.create(RunKey(2)).is_err());
    }
}
