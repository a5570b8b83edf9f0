//! Directories that are scanned repeatedly. Unchanged files are not read again, checks across jobs work on what is in
//! memory, and jobs in folders that cannot be read for a while are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_schedule::Span;

use super::file::ReadFile;
use super::load::{DirectoryLoader, FileOrigin};
use super::walk::{DEFAULTS, FileKind, FoundFile, WalkResult, walk};
use super::{Directory, Options, parallel};
use crate::mistake::Mistake;

/// Resolution of timestamps of coarse file systems. A younger file can change without a change of its timestamp.
const STAMP_TICK: Span = Span::from_secs(2);
/// Rounds of reading files again, because a mistake was found and only the job was kept in memory. One round is enough
/// unless files change meanwhile.
const ROUNDS_MAX: usize = 3;
/// Suffixes of job files.
const SUFFIXES: [&str; 2] = ["yaml", "yml"];

/// A directory of job files, and the prefix of its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsRoot {
    pub path: PathBuf,
    /// Prefix of all ids; `team` turns `backup` into `team/backup`.
    pub prefix: Option<String>,
}

impl JobsRoot {
    /// Whether a job may have a file here. Returns false only if there is certainly no file: a folder may be unreadable, and
    /// a missing directory may be an unmounted one.
    pub fn may_have_file(&self, id: &JobId) -> bool {
        self.name_of(id).is_some_and(|name| !self.path.is_dir() || !self.is_without(name))
    }

    /// The path of a job's file below the directory, without its suffix. `None` if the job does not belong to this
    /// directory.
    fn name_of<'a>(&self, id: &'a JobId) -> Option<&'a str> {
        let prefix = self.prefix.as_deref();
        prefix.map_or(Some(id.as_str()), |prefix| id.as_str().strip_prefix(prefix)?.strip_prefix('/'))
    }

    /// Whether there is certainly no file of that name.
    fn is_without(&self, name: &str) -> bool {
        name == DEFAULTS || SUFFIXES.iter().all(|suffix| is_nothing(&self.path.join(format!("{name}.{suffix}"))))
    }
}

/// Directories that are scanned repeatedly.
pub struct LiveDirectories {
    roots: Vec<RootFiles>,
}

/// The last scan of one directory.
struct RootFiles {
    root: JobsRoot,
    /// Files as they were read last, in the order in which they are loaded.
    kept: BTreeMap<(Arc<str>, Arc<str>), KeptFile>,
    /// Mistakes about files and folders that could not be read.
    mistakes: Vec<Mistake>,
    places: BTreeSet<PathBuf>,
    /// Whether the directory is missing, or empty after it was not. Then it is more likely unmounted than emptied.
    is_absent: bool,
}

struct KeptFile {
    found: FoundFile,
    read: ReadFile,
    is_young: bool,
}

impl LiveDirectories {
    /// Directories that have not been scanned yet.
    pub fn new(roots: impl IntoIterator<Item = JobsRoot>) -> Self {
        Self { roots: roots.into_iter().map(RootFiles::new).collect() }
    }

    pub fn roots(&self) -> impl Iterator<Item = &JobsRoot> {
        self.roots.iter().map(|files| &files.root)
    }

    /// Scans all directories. Returns whether anything has changed.
    pub fn refresh(&mut self, options: &Options<'_>) -> bool {
        // All directories are scanned: no short circuit.
        self.roots.iter_mut().map(|files| files.refresh(options)).fold(false, |before, changed| before | changed)
    }

    /// The result of the last scan, checked as a whole. Jobs in `elsewhere` exist, but their definitions are unknown.
    pub fn directory(&mut self, options: &Options<'_>, elsewhere: &BTreeSet<JobId>) -> Directory {
        let mut directory = self.gather(options, elsewhere);
        for _ in 1..ROUNDS_MAX {
            if !self.thicken(&directory, options) {
                break;
            }
            directory = self.gather(options, elsewhere);
        }
        directory
    }

    /// Folders whose changes matter.
    pub fn places(&self) -> BTreeSet<&Path> {
        self.roots.iter().flat_map(|files| &files.places).map(PathBuf::as_path).collect()
    }

    /// Whether the file of a job is certainly gone from a directory; false if its folder cannot be read.
    pub fn is_gone(&self, root: usize, id: &JobId) -> bool {
        let Some(files) = self.roots.get(root).filter(|files| !files.is_absent && files.has_jobs()) else {
            return false;
        };
        let is_kept = |name: &str| {
            let first = (Arc::from(name), Arc::from(""));
            files.kept.range(first..).take_while(|((own, _), _)| **own == *name).any(|(_, kept)| kept.is_job())
        };
        files.root.name_of(id).is_some_and(|name| !is_kept(name) && files.root.is_without(name))
    }

    fn gather(&self, options: &Options<'_>, elsewhere: &BTreeSet<JobId>) -> Directory {
        let mut loading = DirectoryLoader::default();
        for (root, files) in self.roots.iter().enumerate() {
            loading.mistakes.extend(files.mistakes.iter().cloned());
            let origin = FileOrigin { root, prefix: files.root.prefix.as_deref() };
            for kept in files.kept.values() {
                loading.take(&kept.found, &kept.read, origin);
            }
        }
        loading.finish(options, elsewhere)
    }

    /// Reads files again that have mistakes and of which only the job was kept. Returns whether there were any.
    fn thicken(&mut self, directory: &Directory, options: &Options<'_>) -> bool {
        let wrong: BTreeSet<&str> = directory.mistakes.iter().map(|mistake| mistake.file.as_str()).collect();
        let kept = self.roots.iter_mut().flat_map(|files| files.kept.values_mut());
        let thin = kept.filter(|kept| kept.read.is_thin && wrong.contains(&*kept.found.file));
        let mut is_any = false;
        for kept in thin {
            kept.read = ReadFile::new(&kept.found, options);
            is_any = true;
        }
        is_any
    }
}

impl RootFiles {
    fn new(root: JobsRoot) -> Self {
        Self { root, kept: BTreeMap::new(), mistakes: Vec::new(), places: BTreeSet::new(), is_absent: false }
    }

    fn has_jobs(&self) -> bool {
        self.kept.values().any(KeptFile::is_job)
    }

    fn refresh(&mut self, options: &Options<'_>) -> bool {
        let WalkResult { found, mut mistakes, closed, places, has_root } = walk(&self.root.path);
        self.places = places;
        let was_absent = self.is_absent;
        self.is_absent = !has_root || self.has_jobs() && !found.iter().any(|found| found.kind == FileKind::Job);
        if self.is_absent {
            if has_root {
                let message = "it contains no job files any more, so all its jobs are kept";
                let hint = "check whether it is mounted; once it contains a job file, jobs without a file are removed";
                mistakes.push(Mistake::new(self.root.path.to_string_lossy(), 0..0, message).hint(hint));
            }
            let is_changed = self.mistakes != mistakes;
            self.mistakes = mistakes;
            return is_changed;
        }
        let mut is_changed = was_absent || self.mistakes != mistakes;
        self.mistakes = mistakes;
        let (changed, removed) = self.take(found, &closed, options);
        is_changed |= changed > 0 || removed > 0;
        is_changed
    }

    /// Stores the result of a scan, and returns how many files have changed and how many are gone.
    fn take(&mut self, found: Vec<FoundFile>, closed: &[PathBuf], options: &Options<'_>) -> (usize, usize) {
        let mut before = std::mem::take(&mut self.kept);
        let mut doubtful = Vec::new();
        for found in found {
            let key = (found.name.clone(), found.file.clone());
            match before.remove(&key) {
                Some(kept) if kept.found == found && !kept.is_young => drop(self.kept.insert(key, kept)),
                old => doubtful.push((key, found, old)),
            }
        }
        let read = parallel::map(&doubtful, |(_, found, old)| {
            ReadFile::unless(found, options, old.as_ref().map(|kept| kept.read.digest)).map(ReadFile::thinned)
        });
        let mut changed = 0;
        let young = options.now.minus(STAMP_TICK);
        for ((key, found, old), read) in doubtful.into_iter().zip(read) {
            changed += usize::from(read.is_some());
            let read = read
                .map(ReadFile::compacted)
                .or(old.map(|kept| kept.read))
                .expect("a file that was not read is as it was before");
            let is_young = found.stamp.is_after(young);
            self.kept.insert(key, KeptFile { found, read, is_young });
        }
        // Files below an unreadable folder are kept as they were.
        let is_closed = |kept: &KeptFile| closed.iter().any(|closed| kept.found.path.starts_with(closed));
        let (hidden, gone): (Vec<_>, Vec<_>) = before.into_iter().partition(|(_, kept)| is_closed(kept));
        self.kept.extend(hidden);
        (changed, gone.len())
    }
}

impl KeptFile {
    fn is_job(&self) -> bool {
        self.found.kind == FileKind::Job
    }
}

fn is_nothing(path: &Path) -> bool {
    let nothing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    fs::symlink_metadata(path).is_err_and(|error| nothing(&error))
}

impl fmt::Debug for LiveDirectories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.roots.iter().map(|files| (&files.root, files.kept.len()))).finish()
    }
}
