//! Directories that are scanned repeatedly. Of valid job files, only outlines are kept in memory. A job is read again when
//! it is to be applied.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};

use super::cache::JobFileCache;
use super::calendars::CalendarFiles;
use super::file::JobContent;
use super::outline::SharedValues;
use super::root::{JobFileChanges, JobsRoot, KeptJobFile, ReadTarget, RecentJobs, RootFiles, RootScan};
use super::whole::{FilePosition, WholeCheck};
use super::{CheckContext, DirectoryReport, Options, parallel};
use crate::definition::DefinitionDigest;

/// Jobs that are kept after they were read, so that they are not read again to be applied.
const RECENT_MAX: usize = 2_000;
/// The cache is written when as many files have changed, and at least one in [`UNCACHED_PART`]. Fewer files are read in
/// a moment.
const UNCACHED_MAX: usize = 256;
const UNCACHED_PART: usize = 20;
/// Rounds of reading files again, because a mistake was found and only the outline of the job was kept. One round is
/// enough unless files change meanwhile.
const ROUNDS_MAX: usize = 3;

/// Directories that are scanned repeatedly.
pub struct LiveDirectories {
    roots: Vec<RootFiles>,
    calendars: CalendarFiles,
    /// Changes when calendars do.
    calendars_number: u64,
    values: SharedValues,
    recent: RecentJobs,
    /// What an earlier process has learned from the files.
    cache: Option<JobFileCache>,
    /// Whether the cache has been read.
    is_restored: bool,
    /// Changed files since the cache was written.
    uncached: usize,
    /// Whether the report may be outdated.
    is_unchecked: bool,
    report: DirectoryReport,
}

/// A job file that defines a valid job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidJobFile<'a> {
    /// The id of the job, which is valid.
    pub id: Cow<'a, str>,
    /// Index of its directory.
    pub root: usize,
    pub definition: DefinitionDigest,
}

/// What the directories say about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFileState {
    /// A file defines it.
    Valid {
        /// Index of the directory.
        root: usize,
        definition: DefinitionDigest,
    },
    /// Its file has mistakes, or its directory has invalid defaults.
    Invalid,
    /// No file was found.
    Absent,
}

impl LiveDirectories {
    /// Directories that have not been scanned yet.
    pub fn new(roots: impl IntoIterator<Item = JobsRoot>) -> Self {
        Self::keeping(roots, RECENT_MAX)
    }

    /// Directories that keep some jobs in memory.
    pub(super) fn keeping(roots: impl IntoIterator<Item = JobsRoot>, most: usize) -> Self {
        Self {
            roots: roots.into_iter().map(RootFiles::new).collect(),
            calendars: CalendarFiles::default(),
            calendars_number: 0,
            values: SharedValues::default(),
            recent: RecentJobs::new(most),
            cache: None,
            is_restored: false,
            uncached: 0,
            is_unchecked: true,
            report: DirectoryReport::default(),
        }
    }

    /// Uses a cache. It must be set before the first scan.
    #[must_use]
    pub fn with_cache(self, cache: JobFileCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    pub fn roots(&self) -> impl Iterator<Item = &JobsRoot> {
        self.roots.iter().map(|files| &files.root)
    }

    /// Folders whose changes matter.
    pub fn places(&self) -> BTreeSet<&Path> {
        self.roots.iter().flat_map(|files| &files.places).map(|place| &**place).collect()
    }

    /// Scans all directories, and reads what has changed. Returns whether anything has.
    pub fn refresh(&mut self, options: &Options<'_>) -> bool {
        let (scans, mut changes) = self.scan(options);
        if !std::mem::replace(&mut self.is_restored, true) {
            self.restore(options);
        }
        let named = self.calendars.named();
        let around = context(options, &named);
        let world = around.bindings();
        let mut target = ReadTarget { values: &mut self.values, recent: &mut self.recent, changes: &mut changes };
        for (files, scan) in self.roots.iter_mut().zip(scans) {
            if let Some(scan) = scan {
                files.take_jobs(scan, (self.calendars_number, &world), around, options, &mut target);
            }
        }
        self.is_unchecked |= changes.has_links;
        self.uncached += changes.files;
        changes.is_any
    }

    /// Takes up the files that the cache has, if it was made with the same defaults and calendars.
    fn restore(&mut self, options: &Options<'_>) {
        let Some(cache) = &self.cache else { return };
        let mut jobs: Vec<Vec<KeptJobFile>> = self.roots.iter().map(|_| Vec::new()).collect();
        let is_whole = cache.read(&self.basis(options), |file| {
            if let Some(jobs) = jobs.get_mut(file.root) {
                jobs.push(KeptJobFile::cached(&file, &mut self.values));
            }
        });
        if is_whole {
            for (files, jobs) in self.roots.iter_mut().zip(jobs) {
                files.restore(jobs, self.calendars_number);
            }
        }
    }

    /// Writes the cache, if there is one and many files have changed since it was written. A cache that is a little old is
    /// as good: files that have changed are read.
    pub fn save_cache(&mut self, options: &Options<'_>) -> io::Result<()> {
        let all: usize = self.roots.iter().map(|files| files.jobs.len()).sum();
        let is_outdated = self.uncached >= UNCACHED_MAX.max(all / UNCACHED_PART);
        let Some(cache) = self.cache.as_ref().filter(|_| is_outdated) else { return Ok(()) };
        if self.roots.iter().all(|files| files.is_current(self.calendars_number)) {
            let files = self.roots.iter().enumerate().flat_map(|(root, files)| files.cacheable(root));
            cache.write(&self.basis(options), files)?;
            // Files that were changed just now are not in the cache yet.
            self.uncached = self.roots.iter().flat_map(|files| &files.jobs).filter(|kept| kept.is_young).count();
        }
        Ok(())
    }

    /// What the outlines depend on, as text.
    fn basis(&self, options: &Options<'_>) -> String {
        let roots: Vec<String> = self.roots.iter().map(RootFiles::basis).collect();
        format!("{} {roots:?}", options.zone.name())
    }

    /// Scans all directories, and reads only calendars.
    pub(super) fn refresh_calendars(&mut self, options: &Options<'_>) {
        self.scan(options);
        self.roots.iter_mut().for_each(RootFiles::drop_defaults);
    }

    /// Walks through all directories, and reads what jobs need: calendars and defaults.
    fn scan(&mut self, options: &Options<'_>) -> (Vec<Option<RootScan>>, JobFileChanges) {
        let mut changes = JobFileChanges::default();
        let mut scans = Vec::new();
        let mut has_new_calendars = false;
        // All directories are scanned: no short circuit.
        for files in &mut self.roots {
            let (mut scan, is_changed) = files.scan();
            let has_new = scan.as_mut().is_some_and(|scan| files.take_shared(scan, options));
            changes.is_any |= is_changed || has_new;
            changes.has_links |= is_changed || has_new;
            has_new_calendars |= has_new;
            scans.push(scan);
        }
        if has_new_calendars {
            let calendars = CalendarFiles::new(&self.roots);
            self.calendars_number += u64::from(calendars.named() != self.calendars.named());
            self.calendars = calendars;
        }
        (scans, changes)
    }

    /// Reads all files, whether they have changed or not: whether a job is valid can depend on the time.
    pub fn refresh_all(&mut self, options: &Options<'_>) {
        self.calendars_number += 1;
        self.refresh(options);
    }

    /// Whether something has changed since the last check that can matter to other files.
    pub fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }

    /// Checks all files together. Jobs in `elsewhere` exist, but their definitions are unknown.
    pub fn check(&mut self, options: &Options<'_>, elsewhere: &BTreeSet<JobId>) {
        let named = self.calendars.named();
        let around = context(options, &named);
        let world = around.bindings();
        // Whether a file has such a mistake can depend on the time.
        let has_own_mistake =
            |kept: &KeptJobFile| kept.content.outline().is_some() && !kept.content.mistakes().is_empty();
        let wrong = self.positions(has_own_mistake);
        self.read_in_full(&wrong, around, &world);
        for round in 1.. {
            let check = WholeCheck::new(&self.roots, elsewhere);
            let missing = check.without_places();
            if missing.is_empty() || round == ROUNDS_MAX {
                let (report, invalid) = check.finish(&self.calendars);
                self.report = report;
                self.set_valid(&invalid);
                break;
            }
            self.read_in_full(&missing, around, &world);
        }
        self.is_unchecked = false;
    }

    /// The result of the last check.
    pub fn report(&self) -> &DirectoryReport {
        &self.report
    }

    pub(super) fn into_report(self) -> DirectoryReport {
        self.report
    }

    /// All valid jobs.
    pub fn jobs(&self) -> impl Iterator<Item = ValidJobFile<'_>> {
        self.roots.iter().enumerate().flat_map(|(root, files)| {
            files.jobs.iter().filter(|kept| kept.is_valid).filter_map(move |kept| {
                let id = files.root.id_text(kept.path.name());
                Some(ValidJobFile { id, root, definition: kept.content.outline()?.definition })
            })
        })
    }

    /// What the directories say about a job.
    pub fn find(&self, id: &JobId) -> JobFileState {
        let Some((root, kept)) = self.file(id) else { return JobFileState::Absent };
        match kept.content.outline().filter(|_| kept.is_valid) {
            Some(outline) => JobFileState::Valid { root, definition: outline.definition },
            None => JobFileState::Invalid,
        }
    }

    /// The name of the file that defines a job.
    pub fn file_of(&self, id: &JobId) -> Option<String> {
        let (root, kept) = self.file(id)?;
        Some(kept.path.shown(&self.roots[root].root.path))
    }

    /// Whether the file of a job is certainly gone from a directory; false if its folder cannot be read.
    pub fn is_gone(&self, root: usize, id: &JobId) -> bool {
        let Some(files) = self.roots.get(root).filter(|files| !files.is_absent && !files.jobs.is_empty()) else {
            return false;
        };
        files.root.name_of(id).is_some_and(|name| files.job_file(name).is_none() && files.root.is_without(name))
    }

    /// Valid jobs, each with the index of its directory; `None` for a job whose file has changed since it was checked.
    pub fn read_jobs(&self, ids: &[JobId], options: &Options<'_>) -> Vec<Option<(usize, Arc<Job>)>> {
        let named = self.calendars.named();
        let around = context(options, &named);
        let world = around.bindings();
        parallel::map(ids, |id| self.read_job(id, around, &world))
    }

    /// Drops the jobs that were kept after they were read.
    pub fn drop_recent(&mut self) {
        self.recent.clear();
    }

    fn read_job(&self, id: &JobId, around: CheckContext<'_>, world: &Bindings) -> Option<(usize, Arc<Job>)> {
        let JobFileState::Valid { root, definition } = self.find(id) else { return None };
        let is_checked = |job: &Arc<Job>| DefinitionDigest::new(job) == definition;
        if let Some(job) = self.recent.get(id).filter(|job| is_checked(job)) {
            return Some((root, Arc::clone(job)));
        }
        let (_, kept) = self.file(id)?;
        let job = self.roots[root].reader(around, world).read(&kept.path).job?;
        is_checked(&job).then_some((root, job))
    }

    /// The file that defines a job. If several directories do, the first of them counts.
    fn file(&self, id: &JobId) -> Option<(usize, &KeptJobFile)> {
        self.roots.iter().enumerate().find_map(|(root, files)| Some((root, files.job_file(files.root.name_of(id)?)?)))
    }

    fn positions(&self, wanted: impl Fn(&KeptJobFile) -> bool) -> Vec<FilePosition> {
        let all = self.roots.iter().enumerate().flat_map(|(root, files)| {
            files.jobs.iter().enumerate().map(move |(at, kept)| (FilePosition { root, at }, kept))
        });
        all.filter(|(_, kept)| wanted(kept)).map(|(position, _)| position).collect()
    }

    fn read_in_full(&mut self, wanted: &[FilePosition], around: CheckContext<'_>, world: &Bindings) {
        for (root, files) in self.roots.iter_mut().enumerate() {
            let own: Vec<usize> =
                wanted.iter().filter(|position| position.root == root).map(|position| position.at).collect();
            if !own.is_empty() {
                files.read_in_full(&own, around, world);
            }
        }
    }

    /// Records which files are valid, and drops texts and places of files that have no mistake any more.
    fn set_valid(&mut self, invalid: &BTreeSet<FilePosition>) {
        for (root, files) in self.roots.iter_mut().enumerate() {
            for (at, kept) in files.jobs.iter_mut().enumerate() {
                kept.is_valid = !files.has_broken_defaults
                    && !invalid.contains(&FilePosition { root, at })
                    && kept.content.outline().is_some();
                if let (true, JobContent::Full(full)) = (kept.is_valid, &kept.content)
                    && let Some(outline) = &full.outline
                {
                    kept.content = JobContent::Outline(self.values.compact(outline));
                }
            }
        }
    }
}

fn context<'a>(options: &Options<'a>, calendars: &'a cronhold_schedule::calendar::CalendarSet) -> CheckContext<'a> {
    CheckContext { zones: options.zones, zone: options.zone, calendars, now: options.now }
}

impl fmt::Debug for LiveDirectories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.roots.iter().map(|files| (&files.root, files.jobs.len()))).finish()
    }
}
