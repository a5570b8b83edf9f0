//! Directories that are looked at again and again. A file that has not changed is not read again, the checks across all
//! jobs are done on what is in memory, and what cannot be looked at for a while is remembered as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cronhold_core::JobId;
use cronhold_schedule::Span;

use super::file::ReadFile;
use super::load::{Loading, Origin};
use super::walk::{Found, Kind, Walked, walk};
use super::{Directory, Options, parallel};
use crate::mistake::Mistake;

/// Stamps of file systems can be as coarse as this, so a file that is younger may change without another stamp.
const STAMP_TICK: Span = Span::from_secs(2);
/// Mistakes may be found in files of which only the job was kept. They are read again, once; the rest is for files that
/// change meanwhile.
const ROUNDS_MAX: usize = 3;
/// Suffixes of job files.
const SUFFIXES: [&str; 2] = ["yaml", "yml"];

/// A directory of job files, and what stands before the names of all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where it is.
    pub path: PathBuf,
    /// What stands before the names; `team` makes `team/backup` of `backup`.
    pub prefix: Option<String>,
}

impl Root {
    /// Whether a job may have a file here. Only what is certainly not there has none: where one may not look nothing is
    /// known, and a directory that is not there may be one that was not mounted.
    pub fn may_have_file(&self, id: &JobId) -> bool {
        self.name_of(id).is_some_and(|name| !self.path.is_dir() || !self.is_without(name))
    }

    /// The path of a job's file below the directory, without its suffix; none for a job that belongs elsewhere.
    fn name_of<'a>(&self, id: &'a JobId) -> Option<&'a str> {
        let prefix = self.prefix.as_deref();
        prefix.map_or(Some(id.as_str()), |prefix| id.as_str().strip_prefix(prefix)?.strip_prefix('/'))
    }

    /// Whether there is certainly no file of that name.
    fn is_without(&self, name: &str) -> bool {
        SUFFIXES.iter().all(|suffix| is_nothing(&self.path.join(format!("{name}.{suffix}"))))
    }
}

/// Directories that are looked at again and again.
pub struct Live {
    roots: Vec<Files>,
}

/// What is known of one directory.
struct Files {
    root: Root,
    /// Files as they were read last, by the order in which they are taken.
    kept: BTreeMap<(String, String), Kept>,
    /// What could not be looked at.
    mistakes: Vec<Mistake>,
    places: BTreeSet<PathBuf>,
    /// Whether there is no directory now, or nothing in it where there was something: it is more likely one that is not
    /// mounted than one that was emptied.
    is_absent: bool,
}

struct Kept {
    found: Found,
    read: ReadFile,
    is_young: bool,
}

impl Live {
    /// Directories of which nothing is known yet.
    pub fn new(roots: impl IntoIterator<Item = Root>) -> Self {
        Self { roots: roots.into_iter().map(Files::new).collect() }
    }

    /// The directories.
    pub fn roots(&self) -> impl Iterator<Item = &Root> {
        self.roots.iter().map(|files| &files.root)
    }

    /// Looks for what has changed. Answers whether anything has.
    pub fn refresh(&mut self, options: &Options<'_>) -> bool {
        // Every directory is looked at, whatever has changed in the others.
        self.roots.iter_mut().map(|files| files.refresh(options)).fold(false, |before, changed| before | changed)
    }

    /// Everything that is known, checked as a whole. Jobs that are `elsewhere` exist, and no more is known of them.
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

    /// Folders in which something can happen that matters.
    pub fn places(&self) -> BTreeSet<&Path> {
        self.roots.iter().flat_map(|files| &files.places).map(PathBuf::as_path).collect()
    }

    /// Whether the file of a job is certainly gone from a directory. Where one may not look nothing is known.
    pub fn is_gone(&self, root: usize, id: &JobId) -> bool {
        let Some(files) = self.roots.get(root).filter(|files| !files.is_absent && files.has_jobs()) else {
            return false;
        };
        let is_kept = |name: &str| {
            let first = (name.to_owned(), String::new());
            files.kept.range(first..).take_while(|((own, _), _)| own == name).any(|(_, kept)| kept.is_job())
        };
        files.root.name_of(id).is_some_and(|name| !is_kept(name) && files.root.is_without(name))
    }

    fn gather(&self, options: &Options<'_>, elsewhere: &BTreeSet<JobId>) -> Directory {
        let mut loading = Loading::default();
        for (root, files) in self.roots.iter().enumerate() {
            loading.mistakes.extend(files.mistakes.iter().cloned());
            let origin = Origin { root, prefix: files.root.prefix.as_deref() };
            for kept in files.kept.values() {
                loading.take(&kept.found, &kept.read, origin);
            }
        }
        loading.finish(options, elsewhere)
    }

    /// Reads files again in which mistakes were found and of which only the job was kept. Answers whether there were any.
    fn thicken(&mut self, directory: &Directory, options: &Options<'_>) -> bool {
        let wrong: BTreeSet<&str> = directory.mistakes.iter().map(|mistake| mistake.file.as_str()).collect();
        let kept = self.roots.iter_mut().flat_map(|files| files.kept.values_mut());
        let thin = kept.filter(|kept| kept.read.is_thin && wrong.contains(kept.found.file.as_str()));
        let mut is_any = false;
        for kept in thin {
            kept.read = ReadFile::new(&kept.found, options);
            is_any = true;
        }
        is_any
    }
}

impl Files {
    fn new(root: Root) -> Self {
        Self { root, kept: BTreeMap::new(), mistakes: Vec::new(), places: BTreeSet::new(), is_absent: false }
    }

    fn has_jobs(&self) -> bool {
        self.kept.values().any(Kept::is_job)
    }

    fn refresh(&mut self, options: &Options<'_>) -> bool {
        let Walked { found, mut mistakes, closed, places, has_root } = walk(&self.root.path);
        self.places = places;
        let was_absent = self.is_absent;
        self.is_absent = !has_root || self.has_jobs() && !found.iter().any(|found| found.kind == Kind::Job);
        if self.is_absent {
            if has_root {
                let message = "there is no job file in it any more, so all its jobs stay as they are";
                let hint = "is it mounted? once one job file is in it, jobs without a file go";
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

    /// Takes over what was found, and answers how many files are others now and how many are gone.
    fn take(&mut self, found: Vec<Found>, closed: &[PathBuf], options: &Options<'_>) -> (usize, usize) {
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
            let read = read.or(old.map(|kept| kept.read)).expect("a file that was not read is as it was before");
            let is_young = found.stamp.is_after(young);
            self.kept.insert(key, Kept { found, read, is_young });
        }
        // Nothing is known of what lies behind a closed door, so that it stays as it was.
        let is_closed = |kept: &Kept| closed.iter().any(|closed| kept.found.path.starts_with(closed));
        let (hidden, gone): (Vec<_>, Vec<_>) = before.into_iter().partition(|(_, kept)| is_closed(kept));
        self.kept.extend(hidden);
        (changed, gone.len())
    }
}

impl Kept {
    fn is_job(&self) -> bool {
        self.found.kind == Kind::Job
    }
}

fn is_nothing(path: &Path) -> bool {
    let nothing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    fs::symlink_metadata(path).is_err_and(|error| nothing(&error))
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.roots.iter().map(|files| (&files.root, files.kept.len()))).finish()
    }
}
