//! Loads a directory: reads files on several threads, then checks names, then checks across jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use cronhold_core::job::JobDefaults;
use cronhold_core::{Job, JobId};
use cronhold_schedule::TextError;
use cronhold_schedule::calendar::{Calendar, CalendarSet, check_name};

use super::file::{FileContent, ReadFile, at_place};
use super::walk::{FileKind, FoundFile, WalkResult, walk};
use super::{CheckContext, Directory, LoadedJob, Options, check, check_drafts, parallel};
use crate::mistake::Mistake;

/// Reads a directory and checks it as a whole.
pub fn load(root: &Path, options: &Options<'_>) -> Directory {
    load_some(root, options, |_| true)
}

/// Reads the calendars of a directory, and no job.
pub fn load_calendars(root: &Path, options: &Options<'_>) -> Directory {
    load_some(root, options, |kind| matches!(kind, FileKind::Dates | FileKind::Ics))
}

fn load_some(root: &Path, options: &Options<'_>, wanted: impl Fn(FileKind) -> bool) -> Directory {
    let WalkResult { mut found, mistakes, .. } = walk(root);
    found.retain(|found| wanted(found.kind));
    let files = parallel::map(&found, |found| ReadFile::new(found, options));
    let mut loading = DirectoryLoader { mistakes, ..DirectoryLoader::default() };
    for (found, file) in found.iter().zip(&files) {
        loading.take(found, file, FileOrigin::default());
    }
    loading.finish(options, &BTreeSet::new())
}

/// The name of a calendar: its path below the root without a leading `calendars/`.
fn calendar_name(path: &str) -> &str {
    path.strip_prefix("calendars/").unwrap_or(path)
}

/// The directory that a file belongs to.
#[derive(Clone, Copy, Default)]
pub(super) struct FileOrigin<'a> {
    /// Index of the directory.
    pub(super) root: usize,
    /// Prefix of all ids and names.
    pub(super) prefix: Option<&'a str>,
}

/// Collects the files of a directory.
#[derive(Default)]
pub(super) struct DirectoryLoader {
    jobs: BTreeMap<JobId, LoadedJob>,
    broken: BTreeSet<JobId>,
    /// The valid parts of broken jobs.
    drafts: BTreeMap<JobId, LoadedJob>,
    calendars: CalendarSet,
    /// The job of each file.
    owners: BTreeMap<String, JobId>,
    /// Names of calendars that have mistakes. Naming one is not a mistake of a job.
    broken_calendars: BTreeSet<String>,
    /// The defaults of each root; `None` if they are invalid.
    defaults: BTreeMap<usize, Option<JobDefaults>>,
    pub(super) mistakes: Vec<Mistake>,
    texts: BTreeMap<String, String>,
    /// The file of each job's id and calendar's name.
    taken: BTreeMap<(bool, String), Arc<str>>,
}

impl DirectoryLoader {
    pub(super) fn take(&mut self, found: &FoundFile, file: &ReadFile, origin: FileOrigin<'_>) {
        let is_calendar = matches!(found.kind, FileKind::Dates | FileKind::Ics);
        let name = if is_calendar { calendar_name(&found.name) } else { &found.name };
        let name = origin.prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}/{name}"));
        if !file.mistakes.is_empty() {
            self.mistakes.extend(file.mistakes.iter().cloned());
        }
        if !file.is_thin {
            self.texts.insert(found.file.to_string(), file.text.clone());
        }
        if found.kind == FileKind::Defaults {
            let defaults = if let FileContent::Defaults(defaults) = &file.content { defaults.clone() } else { None };
            self.defaults.insert(origin.root, defaults);
            return;
        }
        let key = (is_calendar, name);
        if let Some(first) = self.taken.get(&key) {
            let (what, name) = (if is_calendar { "calendar" } else { "job" }, key.1);
            let message = format!("the {what} `{name}` is in {first} already");
            self.mistakes.push(Mistake::new(&*found.file, 0..0, message).hint("rename or remove one of the files"));
            self.owners
                .extend(JobId::parse(&name).ok().filter(|_| !is_calendar).map(|id| (found.file.to_string(), id)));
            return;
        }
        if is_calendar {
            self.calendar(found, &key.1, &file.content);
        } else {
            self.job(found, &key.1, &file.content, origin.root);
        }
        self.taken.insert(key, Arc::clone(&found.file));
    }

    fn job(&mut self, found: &FoundFile, name: &str, content: &FileContent, root: usize) {
        let id = match JobId::parse(name) {
            Ok(id) => id,
            Err(error) => {
                let message = format!("the path of the file cannot be a job's id: {}", error.message);
                let hint = error.hint.unwrap_or_else(|| "rename the file".to_owned());
                return self.mistakes.push(Mistake::new(&*found.file, 0..0, message).hint(hint));
            }
        };
        self.owners.insert(found.file.to_string(), id.clone());
        let FileContent::Job { job, draft, places } = content else {
            self.broken.insert(id);
            return;
        };
        let loaded = |job: &Arc<Job>| LoadedJob {
            job: Arc::clone(job),
            file: Arc::clone(&found.file),
            places: Arc::clone(places),
            root,
        };
        match job {
            Some(job) => drop(self.jobs.insert(id, loaded(job))),
            None => {
                self.drafts.extend(draft.as_ref().map(|draft| (id.clone(), loaded(draft))));
                self.broken.insert(id);
            }
        }
    }

    /// Adds the defaults of each directory to its jobs. While they are invalid, its jobs stay as they are.
    fn apply_defaults(&mut self) {
        for (root, defaults) in std::mem::take(&mut self.defaults) {
            let Some(defaults) = defaults else {
                self.broken.extend(self.jobs.iter().filter(|(_, job)| job.root == root).map(|(id, _)| id.clone()));
                self.jobs.retain(|_, job| job.root != root);
                continue;
            };
            for (id, loaded) in self.jobs.iter_mut().filter(|(_, loaded)| loaded.root == root) {
                defaults.apply(id, Arc::make_mut(&mut loaded.job));
            }
        }
    }

    fn calendar(&mut self, found: &FoundFile, name: &str, content: &FileContent) {
        if let Err(error) = check_name(name) {
            let mistake = at_place(&found.file, TextError { at: 0..0, ..error });
            return self.mistakes.push(mistake);
        }
        match content {
            FileContent::Calendar(Some(calendar)) => self.calendars.insert(name, calendar.clone()),
            _ => drop(self.broken_calendars.insert(name.to_owned())),
        }
    }

    /// Checks everything together. Jobs in `elsewhere` exist, but their definitions are unknown.
    pub(super) fn finish(mut self, options: &Options<'_>, elsewhere: &BTreeSet<JobId>) -> Directory {
        self.apply_defaults();
        let mut named = self.calendars.clone();
        for name in &self.broken_calendars {
            named.insert(name.clone(), Calendar::all());
        }
        let around = CheckContext { zones: options.zones, zone: options.zone, calendars: &named, now: options.now };
        let unknown: BTreeSet<JobId> = self.broken.union(elsewhere).cloned().collect();
        self.mistakes.extend(check(&self.jobs, &unknown, &around));
        self.mistakes.extend(check_drafts(&self.drafts, &self.jobs, &unknown, &around));
        let with_mistakes: BTreeSet<&str> = self.mistakes.iter().map(|mistake| mistake.file.as_str()).collect();
        self.texts.retain(|file, _| with_mistakes.contains(file.as_str()));
        self.owners.retain(|file, _| with_mistakes.contains(file.as_str()));
        let is_broken = |job: &LoadedJob| with_mistakes.contains(&*job.file);
        self.broken.extend(self.jobs.iter().filter(|(_, job)| is_broken(job)).map(|(id, _)| id.clone()));
        self.jobs.retain(|_, job| !is_broken(job));
        self.mistakes.sort_by(|a, b| (&a.file, a.at.start).cmp(&(&b.file, b.at.start)));
        let Self { jobs, broken, calendars, broken_calendars, mistakes, texts, owners, .. } = self;
        Directory { jobs, broken, calendars, broken_calendars, mistakes, texts, owners }
    }
}
