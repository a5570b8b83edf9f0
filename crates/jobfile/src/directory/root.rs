//! One directory that is scanned repeatedly. Unchanged files are not read again, and files in folders that cannot be read
//! for a while are kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::job::JobDefaults;
use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};
use cronhold_schedule::Span;

use super::cache::{CachedFile, CachedFileRef};
use super::file::{JobContent, JobFileReader, SharedContent, SharedFile, job_id};
use super::outline::SharedValues;
use super::walk::{DEFAULTS, FileKind, FilePath, FileStamp, FoundFile, WalkResult, walk};
use super::{CheckContext, Options, parallel};
use crate::mistake::Mistake;

/// Resolution of timestamps of coarse file systems. A younger file can change without a change of its timestamp.
const STAMP_TICK: Span = Span::from_secs(2);
/// Files that are read before their jobs are dropped.
const BATCH: usize = 1_024;
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
    pub(super) fn name_of<'a>(&self, id: &'a JobId) -> Option<&'a str> {
        let prefix = self.prefix.as_deref();
        prefix.map_or(Some(id.as_str()), |prefix| id.as_str().strip_prefix(prefix)?.strip_prefix('/'))
    }

    /// The id of the file at a path without suffix.
    pub(super) fn id_text<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.prefix {
            Some(prefix) => Cow::Owned(format!("{prefix}/{name}")),
            None => Cow::Borrowed(name),
        }
    }

    /// Whether there is certainly no file of that name.
    pub(super) fn is_without(&self, name: &str) -> bool {
        name == DEFAULTS || SUFFIXES.iter().all(|suffix| is_nothing(&self.path.join(format!("{name}.{suffix}"))))
    }
}

fn is_nothing(path: &Path) -> bool {
    let nothing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    fs::symlink_metadata(path).is_err_and(|error| nothing(&error))
}

/// The last scan of one directory.
pub(super) struct RootFiles {
    pub(super) root: JobsRoot,
    /// Job files as they were read last, in their order.
    pub(super) jobs: Vec<KeptJobFile>,
    /// Calendars and defaults as they were read last.
    pub(super) shared: BTreeMap<FilePath, KeptSharedFile>,
    /// Mistakes about files and folders that could not be read.
    pub(super) mistakes: Vec<Mistake>,
    pub(super) places: BTreeSet<PathBuf>,
    /// Whether the directory is missing, or empty after it was not. Then it is more likely unmounted than emptied.
    pub(super) is_absent: bool,
    /// The last valid defaults, with which the jobs were read.
    defaults: JobDefaults,
    /// Whether the defaults are invalid. Then its jobs stay as they are.
    pub(super) has_broken_defaults: bool,
    /// Number of the calendars with which the jobs were checked.
    calendars: u64,
}

/// A job file as it was read last.
#[derive(Debug)]
pub(super) struct KeptJobFile {
    pub(super) path: FilePath,
    /// `None` if it must be read again whatever its text is.
    stamp: Option<FileStamp>,
    /// Digest of its text.
    digest: u64,
    pub(super) content: JobContent,
    /// Whether it was changed so recently that a further change may not show in its metadata.
    pub(super) is_young: bool,
    /// Whether it defines a job that has no mistake.
    pub(super) is_valid: bool,
}

impl KeptJobFile {
    /// A file as the cache has it. It must be checked against the others.
    pub(super) fn cached(file: &CachedFile, values: &mut SharedValues) -> Self {
        let CachedFile { path, stamp, digest, outline, .. } = file;
        let content = JobContent::Outline(values.compact(outline));
        let (path, stamp) = (path.clone(), Some(*stamp));
        Self { path, stamp, digest: *digest, content, is_young: false, is_valid: false }
    }
}

/// A calendar or defaults, as they were read last.
pub(super) struct KeptSharedFile {
    pub(super) kind: FileKind,
    stamp: FileStamp,
    pub(super) file: SharedFile,
    is_young: bool,
}

/// What a walk has found, by what is read first.
pub(super) struct RootScan {
    shared: Vec<FoundFile>,
    jobs: Vec<FoundFile>,
    /// Folders and files that could not be read.
    closed: Vec<PathBuf>,
}

/// Where the results of reading go.
pub(super) struct ReadTarget<'a> {
    pub(super) values: &'a mut SharedValues,
    pub(super) recent: &'a mut RecentJobs,
    pub(super) changes: &'a mut JobFileChanges,
}

/// What the last scan has changed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct JobFileChanges {
    pub(super) is_any: bool,
    /// Whether something has changed that concerns the checks across files.
    pub(super) has_links: bool,
    /// Files that were read, and files that are gone.
    pub(super) files: usize,
}

/// Jobs that were read recently. They are not read again to be applied.
#[derive(Debug)]
pub(super) struct RecentJobs {
    jobs: BTreeMap<JobId, Arc<Job>>,
    most: usize,
}

impl RecentJobs {
    pub(super) fn new(most: usize) -> Self {
        Self { jobs: BTreeMap::new(), most }
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.jobs.get(id)
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }

    fn put(&mut self, id: JobId, job: Arc<Job>) {
        if self.jobs.len() < self.most || self.jobs.contains_key(&id) {
            self.jobs.insert(id, job);
        }
    }
}

impl RootFiles {
    pub(super) fn new(root: JobsRoot) -> Self {
        Self {
            root,
            jobs: Vec::new(),
            shared: BTreeMap::new(),
            mistakes: Vec::new(),
            places: BTreeSet::new(),
            is_absent: false,
            defaults: JobDefaults::default(),
            has_broken_defaults: false,
            calendars: 0,
        }
    }

    /// Walks through the directory. Returns what was found, unless the directory is absent, and whether its mistakes
    /// have changed.
    pub(super) fn scan(&mut self) -> (Option<RootScan>, bool) {
        let WalkResult { found, mut mistakes, closed, places, has_root } = walk(&self.root.path);
        self.places = places;
        let was_absent = self.is_absent;
        let has_none = !self.jobs.is_empty() && !found.iter().any(|found| found.kind == FileKind::Job);
        self.is_absent = !has_root || has_none;
        if self.is_absent && has_root {
            let message = "it contains no job files any more, so all its jobs are kept";
            let hint = "check whether it is mounted; once it contains a job file, jobs without a file are removed";
            mistakes.push(Mistake::new(self.root.path.to_string_lossy(), 0..0, message).hint(hint));
        }
        let is_changed = self.mistakes != mistakes || was_absent && !self.is_absent;
        self.mistakes = mistakes;
        if self.is_absent {
            return (None, is_changed);
        }
        let (jobs, shared) = found.into_iter().partition(|found| found.kind == FileKind::Job);
        (Some(RootScan { shared, jobs, closed }), is_changed)
    }

    /// Reads calendars and defaults that have changed. Returns whether any has.
    pub(super) fn take_shared(&mut self, scan: &mut RootScan, options: &Options<'_>) -> bool {
        let mut before = std::mem::take(&mut self.shared);
        let mut is_changed = false;
        for FoundFile { kind, path, stamp } in scan.shared.drain(..) {
            let old = before.remove(&path).filter(|old| old.kind == kind);
            let is_same = old.as_ref().is_some_and(|old| old.stamp == stamp && !old.is_young);
            let digest = old.as_ref().map(|old| old.file.digest);
            let read =
                if is_same { None } else { SharedFile::read_unless(&self.root.path, &path, kind, options, digest) };
            is_changed |= read.is_some();
            let file = read.or(old.map(|old| old.file)).expect("a file that was not read is as it was before");
            let is_young = is_young(stamp, options);
            self.shared.insert(path, KeptSharedFile { kind, stamp, file, is_young });
        }
        let is_hidden = |path: &FilePath| scan.is_closed(&path.below(&self.root.path));
        let (hidden, gone): (Vec<_>, Vec<_>) = before.into_iter().partition(|(path, _)| is_hidden(path));
        self.shared.extend(hidden);
        is_changed || !gone.is_empty()
    }

    /// Reads job files that have changed, and all of them if the defaults or the calendars have.
    pub(super) fn take_jobs(
        &mut self,
        scan: RootScan,
        (calendars, world): (u64, &Bindings),
        around: CheckContext<'_>,
        options: &Options<'_>,
        target: &mut ReadTarget<'_>,
    ) {
        let has_new_defaults = self.take_defaults(target.changes);
        let is_stale = has_new_defaults || std::mem::replace(&mut self.calendars, calendars) != calendars;
        let mut before = std::mem::take(&mut self.jobs).into_iter().peekable();
        let mut jobs = Vec::with_capacity(scan.jobs.len());
        let mut doubtful = Vec::new();
        let mut left = Vec::new();
        let RootScan { jobs: found, closed, .. } = scan;
        for found in found {
            while let Some(earlier) = before.next_if(|kept| kept.path < found.path) {
                left.push(earlier);
            }
            match before.next_if(|kept| kept.path == found.path) {
                Some(kept) if kept.stamp == Some(found.stamp) && !kept.is_young && !is_stale => jobs.push(kept),
                old => doubtful.push((found, old)),
            }
        }
        left.extend(before);
        let reader = self.reader(around, world);
        while !doubtful.is_empty() {
            let batch = doubtful.split_off(doubtful.len().saturating_sub(BATCH));
            read_batch(&reader, batch, is_stale, options, target, &mut jobs);
        }
        for mut kept in left {
            let path = kept.path.below(&self.root.path);
            if closed.iter().any(|closed| path.starts_with(closed)) {
                kept.stamp = kept.stamp.filter(|_| !is_stale);
                jobs.push(kept);
            } else {
                (target.changes.is_any, target.changes.has_links) = (true, true);
                target.changes.files += 1;
            }
        }
        jobs.sort_by(|a, b| a.path.cmp(&b.path));
        self.jobs = jobs;
    }

    /// Takes up the defaults as they were read. Returns whether they differ from those with which the jobs were read.
    fn take_defaults(&mut self, changes: &mut JobFileChanges) -> bool {
        let read = self.shared.values().find_map(|kept| match &kept.file.content {
            SharedContent::Defaults(defaults) => Some(defaults.clone()),
            SharedContent::Calendar(_) => None,
        });
        let is_broken = read == Some(None);
        changes.has_links |= std::mem::replace(&mut self.has_broken_defaults, is_broken) != is_broken;
        let Some(defaults) = read.unwrap_or_else(|| Some(JobDefaults::default())) else { return false };
        let is_new = defaults != self.defaults;
        self.defaults = defaults;
        is_new
    }

    /// Keeps only calendars.
    pub(super) fn drop_defaults(&mut self) {
        self.shared.retain(|_, kept| kept.kind != FileKind::Defaults);
    }

    /// What the outlines of its jobs depend on, as text. Calendars of other directories are part of their text.
    pub(super) fn basis(&self) -> String {
        let shared: Vec<(&str, u64)> = self.shared.iter().map(|(path, kept)| (path.name(), kept.file.digest)).collect();
        format!("{:?} {shared:?}", self.root)
    }

    /// Whether all its outlines were made with its defaults and with these calendars as they are now.
    pub(super) fn is_current(&self, calendars: u64) -> bool {
        !self.is_absent && !self.has_broken_defaults && self.calendars == calendars
    }

    /// Job files that need not be read again as long as they do not change.
    pub(super) fn cacheable(&self, root: usize) -> impl Iterator<Item = CachedFileRef<'_>> {
        self.jobs.iter().filter(|kept| !kept.is_young).filter_map(move |kept| match &kept.content {
            JobContent::Outline(outline) => {
                Some(CachedFileRef { root, path: &kept.path, stamp: kept.stamp?, digest: kept.digest, outline })
            }
            JobContent::Full(_) => None,
        })
    }

    /// Takes up job files of a cache that was made with the defaults and calendars that were read just now.
    pub(super) fn restore(&mut self, jobs: Vec<KeptJobFile>, calendars: u64) {
        self.take_defaults(&mut JobFileChanges::default());
        self.calendars = calendars;
        self.jobs = jobs;
    }

    /// A reader of its job files.
    pub(super) fn reader<'a>(&'a self, around: CheckContext<'a>, world: &'a Bindings) -> JobFileReader<'a> {
        let JobsRoot { path, prefix } = &self.root;
        JobFileReader { root: path, prefix: prefix.as_deref(), defaults: &self.defaults, around, world }
    }

    /// Reads job files again, and keeps all that is needed to report mistakes in them.
    pub(super) fn read_in_full(&mut self, wanted: &[usize], around: CheckContext<'_>, world: &Bindings) {
        let reader = self.reader(around, world);
        let read = parallel::map(wanted, |at| reader.read(&self.jobs[*at].path));
        for (at, read) in wanted.iter().zip(read) {
            let kept = &mut self.jobs[*at];
            kept.digest = read.digest;
            kept.content = JobContent::Full(Box::new(read.full));
        }
    }

    /// The job file of a name.
    pub(super) fn job_file(&self, name: &str) -> Option<&KeptJobFile> {
        let at = self.jobs.partition_point(|kept| kept.path.name() < name);
        self.jobs.get(at).filter(|kept| kept.path.name() == name)
    }
}

impl RootScan {
    fn is_closed(&self, path: &Path) -> bool {
        self.closed.iter().any(|closed| path.starts_with(closed))
    }
}

fn is_young(stamp: FileStamp, options: &Options<'_>) -> bool {
    stamp.is_after(options.now.minus(STAMP_TICK))
}

/// Reads files on several threads, and keeps what is needed of each.
fn read_batch(
    reader: &JobFileReader<'_>,
    batch: Vec<(FoundFile, Option<KeptJobFile>)>,
    is_stale: bool,
    options: &Options<'_>,
    target: &mut ReadTarget<'_>,
    jobs: &mut Vec<KeptJobFile>,
) {
    let read = parallel::map(&batch, |(found, old)| {
        let before = old.as_ref().filter(|old| !is_stale && old.stamp.is_some()).map(|old| old.digest);
        reader.read_unless(&found.path, before)
    });
    for ((FoundFile { path, stamp, .. }, old), read) in batch.into_iter().zip(read) {
        let is_young = is_young(stamp, options);
        let stamp = Some(stamp);
        let Some(read) = read else {
            let old = old.expect("a file that was not read is as it was before");
            jobs.push(KeptJobFile { stamp, is_young, ..old });
            continue;
        };
        if let Some(job) = &read.job
            && let Ok(id) = job_id(reader.prefix, path.name())
        {
            target.recent.put(id, Arc::clone(job));
        }
        let digest = read.digest;
        let content = match read.into_content() {
            JobContent::Outline(outline) => JobContent::Outline(target.values.compact(&outline)),
            full @ JobContent::Full(_) => full,
        };
        let is_valid = old.is_some_and(|old| match (&old.content, &content) {
            (JobContent::Outline(old_outline), JobContent::Outline(new)) => {
                old.is_valid && old_outline.has_same_links(new)
            }
            _ => false,
        });
        target.changes.is_any = true;
        target.changes.has_links |= !is_valid;
        target.changes.files += 1;
        jobs.push(KeptJobFile { path, stamp, digest, content, is_young, is_valid });
    }
}
