//! Checks all files of all directories together: names, references between jobs, and cycles. Most files are known only by
//! an outline. If one of them turns out to have a wrong reference, it is read again, because a mistake needs its place.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::JobId;

use super::DirectoryReport;
use super::calendars::CalendarFiles;
use super::check::{JobConflict, JobIndex, LinkFindings, check_draft, check_links, check_pools, find_cycles, guess};
use super::file::{FullJobFile, JobContent, job_id};
use super::outline::JobOutline;
use super::parallel;
use super::root::{KeptJobFile, RootFiles};
use crate::mistake::Mistake;
use crate::read::JobPlaces;

/// Where a job file is in the lists of the last scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePosition {
    /// Index of its directory.
    pub(super) root: usize,
    /// Index in the job files of the directory.
    pub(super) at: usize,
}

/// A job file whose path is a valid id.
struct NamedFile<'a> {
    id: Cow<'a, str>,
    position: FilePosition,
    kept: &'a KeptJobFile,
}

/// The check of all files.
pub(super) struct WholeCheck<'a> {
    roots: &'a [RootFiles],
    elsewhere: &'a BTreeSet<JobId>,
    /// Files that define a job of their own, by id.
    files: Vec<NamedFile<'a>>,
    /// Files whose job another file defines as well, each with that file.
    doubles: Vec<(NamedFile<'a>, FilePosition)>,
    /// Ids of jobs that are not complete, and of jobs in directories whose defaults are invalid.
    unknown: BTreeSet<JobId>,
    /// Numbers in `files` of complete jobs, by id.
    complete: Vec<usize>,
    /// What was found in the references of complete jobs.
    links: Vec<(usize, LinkFindings)>,
    /// Cycles, and pools of different sizes.
    conflicts: Vec<JobConflict>,
}

impl<'a> WholeCheck<'a> {
    pub(super) fn new(roots: &'a [RootFiles], elsewhere: &'a BTreeSet<JobId>) -> Self {
        let (files, doubles) = by_id(roots);
        let mut unknown = BTreeSet::new();
        let mut complete = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            if roots[file.position.root].has_broken_defaults || file.kept.content.outline().is_none() {
                unknown.extend(JobId::parse(&file.id));
            } else {
                complete.push(number);
            }
        }
        let mut check =
            Self { roots, elsewhere, files, doubles, unknown, complete, links: Vec::new(), conflicts: Vec::new() };
        let jobs = check.index();
        let found = parallel::map(&check.complete, |number| check.check_links(*number, &jobs));
        let links = check.complete.iter().copied().zip(found);
        let links = links.filter(|(_, found)| !found.mistakes.is_empty()).collect();
        let mut conflicts = find_cycles(&jobs);
        conflicts.extend(check_pools(&jobs));
        drop(jobs);
        (check.links, check.conflicts) = (links, conflicts);
        check
    }

    fn index(&self) -> JobIndex<'_> {
        let outline = |number: &usize| {
            let file = &self.files[*number];
            Some((Cow::Borrowed(&*file.id), file.kept.content.outline()?))
        };
        let jobs: Vec<(Cow<'_, str>, &JobOutline)> = self.complete.iter().filter_map(outline).collect();
        JobIndex::new(jobs, vec![&self.unknown, self.elsewhere])
    }

    fn check_links(&self, number: usize, jobs: &JobIndex<'_>) -> LinkFindings {
        let file = &self.files[number];
        match &file.kept.content {
            // Without places; whether there is a mistake does not depend on them.
            JobContent::Outline(outline) => check_links(outline, "", &JobPlaces::none(), jobs),
            JobContent::Full(full) => match &full.outline {
                Some(outline) => check_links(outline, &self.shown(file), &full.places, jobs),
                None => LinkFindings::default(),
            },
        }
    }

    fn shown(&self, file: &NamedFile<'_>) -> String {
        file.kept.path.shown(&self.roots[file.position.root].root.path)
    }

    /// The file that gets the mistake of a conflict.
    fn of_conflict(&self, conflict: &JobConflict) -> &NamedFile<'a> {
        &self.files[self.complete[conflict.number]]
    }

    /// Files that have mistakes, and of which only an outline is known.
    pub(super) fn without_places(&self) -> Vec<FilePosition> {
        let wrong = self.links.iter().map(|(number, _)| &self.files[*number]);
        let wrong = wrong.chain(self.conflicts.iter().map(|conflict| self.of_conflict(conflict)));
        let wrong = wrong.chain(self.doubles.iter().map(|(double, _)| double));
        let thin = wrong.filter(|file| matches!(file.kept.content, JobContent::Outline(_)));
        let positions: BTreeSet<FilePosition> = thin.map(|file| file.position).collect();
        positions.into_iter().collect()
    }

    /// All mistakes, and the files that do not define a valid job.
    pub(super) fn finish(mut self, calendars: &CalendarFiles) -> (DirectoryReport, BTreeSet<FilePosition>) {
        let mut mistakes = self.of_references();
        mistakes.extend(self.roots.iter().flat_map(|files| &files.mistakes).cloned());
        mistakes.extend(calendars.mistakes.iter().cloned());
        mistakes.extend(self.of_doubles());
        let mut report = DirectoryReport {
            calendars: calendars.set.clone(),
            broken_calendars: calendars.broken.clone(),
            ..DirectoryReport::default()
        };
        let mut own = Vec::new();
        for files in self.roots {
            let shared = files.shared.iter().filter(|(_, kept)| !kept.file.mistakes.is_empty());
            own.extend(shared.flat_map(|(_, kept)| &kept.file.mistakes).cloned());
            own.extend(files.jobs.iter().flat_map(|kept| kept.content.mistakes()).cloned());
        }
        // The mistakes of a file itself come first among those of one place.
        own.append(&mut mistakes);
        own.sort_by(|a, b| (&a.file, a.at.start).cmp(&(&b.file, b.at.start)));
        report.mistakes = own;
        let invalid = self.describe_files(&mut report);
        report.broken = self.unknown;
        (report, invalid)
    }

    /// Wrong references, conflicts, and unknown jobs in jobs that are not complete.
    fn of_references(&mut self) -> Vec<Mistake> {
        let links = std::mem::take(&mut self.links);
        let jobs = self.index();
        // A file that has changed while it was checked has no places. The next scan finds it.
        let mut found: Vec<LinkFindings> =
            links.into_iter().filter(|(number, _)| self.full(*number).is_some()).map(|(_, found)| found).collect();
        guess(&mut found, &jobs);
        let drafts = self.files.iter().filter_map(|file| match &file.kept.content {
            JobContent::Full(full) => Some((file, full, full.draft.as_ref()?)),
            JobContent::Outline(_) => None,
        });
        let mut of_drafts: Vec<LinkFindings> =
            drafts.map(|(file, full, draft)| check_draft(draft, &self.shown(file), &full.places, &jobs)).collect();
        guess(&mut of_drafts, &jobs);
        let conflicts = self.conflicts.iter().filter_map(|conflict| {
            let full = self.full(self.complete[conflict.number])?;
            Some(conflict.mistake(&self.shown(self.of_conflict(conflict)), &full.places))
        });
        let mut mistakes: Vec<Mistake> = found.into_iter().flat_map(|found| found.mistakes).collect();
        mistakes.extend(conflicts);
        mistakes.extend(of_drafts.into_iter().flat_map(|found| found.mistakes));
        mistakes
    }

    fn full(&self, number: usize) -> Option<&FullJobFile> {
        match &self.files[number].kept.content {
            JobContent::Full(full) => Some(full),
            JobContent::Outline(_) => None,
        }
    }

    fn of_doubles(&self) -> Vec<Mistake> {
        let mistake = |(double, first): &(NamedFile<'_>, FilePosition)| {
            let files = &self.roots[first.root];
            let first = files.jobs[first.at].path.shown(&files.root.path);
            let message = format!("the job `{}` is in {first} already", double.id);
            Mistake::new(self.shown(double), 0..0, message).hint("rename or remove one of the files")
        };
        self.doubles.iter().map(mistake).collect()
    }

    /// Adds texts and jobs of the files that have mistakes to the report. Returns the files that do not define a valid
    /// job.
    fn describe_files(&mut self, report: &mut DirectoryReport) -> BTreeSet<FilePosition> {
        let wrong: BTreeSet<String> = report.mistakes.iter().map(|mistake| mistake.file.clone()).collect();
        let mut invalid: BTreeSet<FilePosition> = self.doubles.iter().map(|(double, _)| double.position).collect();
        let mut ids: BTreeMap<FilePosition, JobId> = BTreeMap::new();
        for (root, files) in self.roots.iter().enumerate() {
            for (path, kept) in &files.shared {
                let shown = path.shown(&files.root.path);
                if wrong.contains(&shown) {
                    report.texts.insert(shown, kept.file.text.clone());
                }
            }
            for (at, kept) in files.jobs.iter().enumerate() {
                let JobContent::Full(full) = &kept.content else { continue };
                let shown = kept.path.shown(&files.root.path);
                if wrong.contains(&shown) {
                    let position = FilePosition { root, at };
                    invalid.insert(position);
                    if let Ok(id) = job_id(files.root.prefix.as_deref(), kept.path.name()) {
                        report.owners.insert(shown.clone(), id.clone());
                        ids.insert(position, id);
                    }
                    report.texts.insert(shown, full.text.clone());
                }
            }
        }
        for (double, _) in &self.doubles {
            if let Ok(id) = JobId::parse(&double.id) {
                report.owners.insert(self.shown(double), id);
            }
            ids.remove(&double.position);
        }
        // A file that has changed while it was checked.
        let thin = self.without_places();
        invalid.extend(thin);
        self.unknown.extend(ids.into_values());
        invalid
    }
}

/// Files that define a job of their own, by id, and those whose job another file defines as well. The file of the first
/// directory counts, and in it the first by name.
fn by_id(roots: &[RootFiles]) -> (Vec<NamedFile<'_>>, Vec<(NamedFile<'_>, FilePosition)>) {
    let mut files = Vec::with_capacity(roots.iter().map(|files| files.jobs.len()).sum());
    for (root, own) in roots.iter().enumerate() {
        for (at, kept) in own.jobs.iter().enumerate() {
            let id = own.root.id_text(kept.path.name());
            // The path of a complete job was checked when its file was read.
            if kept.content.outline().is_some() || JobId::parse(&id).is_ok() {
                files.push(NamedFile { id, position: FilePosition { root, at }, kept });
            }
        }
    }
    files.sort_by(|a, b| (&a.id, a.position).cmp(&(&b.id, b.position)));
    let mut doubles = Vec::new();
    let mut unique: Vec<NamedFile<'_>> = Vec::with_capacity(files.len());
    for file in files {
        match unique.last().filter(|first| first.id == file.id) {
            Some(first) => {
                let first = first.position;
                doubles.push((file, first));
            }
            None => unique.push(file),
        }
    }
    (unique, doubles)
}
