//! Reads a directory: files on several threads, then the names, then the checks across jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cronhold_core::JobId;
use cronhold_schedule::TextError;
use cronhold_schedule::calendar::{Calendar, Calendars, check_name};

use super::text::{Unreadable, read_text};
use super::walk::{Found, Kind, walk};
use super::{Around, Directory, LoadedJob, Options, check, check_drafts, parallel};
use crate::mistake::Mistake;
use crate::read::{self, JobRead, read_job};

/// Reads a directory and checks it as a whole.
pub fn load(root: &Path, options: &Options<'_>) -> Directory {
    load_some(root, options, |_| true)
}

/// Reads the calendars of a directory, and no job.
pub fn load_calendars(root: &Path, options: &Options<'_>) -> Directory {
    load_some(root, options, |kind| kind != Kind::Job)
}

fn load_some(root: &Path, options: &Options<'_>, wanted: impl Fn(Kind) -> bool) -> Directory {
    let (mut found, mistakes) = walk(root);
    found.retain(|found| wanted(found.kind));
    let files = parallel::map(&found, |found| read_file(found, options));
    let mut loading = Loading { mistakes, ..Loading::default() };
    for (found, file) in found.iter().zip(files) {
        loading.take(found, file);
    }
    loading.finish(options)
}

/// What came of one file.
struct ReadFile {
    text: String,
    content: Content,
    mistakes: Vec<Mistake>,
}

enum Content {
    Nothing,
    Job(Box<JobRead>),
    Calendar(Option<Calendar>),
}

fn read_file(found: &Found, options: &Options<'_>) -> ReadFile {
    let text = match read_text(&found.file, &found.path) {
        Ok(text) => text,
        Err(unreadable) => {
            let Unreadable { mistake, text } = *unreadable;
            return ReadFile { text, content: Content::Nothing, mistakes: vec![mistake] };
        }
    };
    let calendar = |read: Result<Calendar, Vec<TextError>>| match read {
        Ok(calendar) => (Content::Calendar(Some(calendar)), Vec::new()),
        Err(errors) => {
            let mistakes = errors.into_iter().map(|error| at_place(&found.file, error)).collect();
            (Content::Calendar(None), mistakes)
        }
    };
    let (content, mistakes) = match found.kind {
        Kind::Job => {
            let mut read = read_job(&found.file, &text, &read::Options { zones: options.zones });
            let mistakes = std::mem::take(&mut read.mistakes);
            (Content::Job(Box::new(read)), mistakes)
        }
        Kind::Dates => calendar(Calendar::from_dates(&text)),
        Kind::Ics => calendar(Calendar::from_ics(&text)),
    };
    ReadFile { text, content, mistakes }
}

fn at_place(file: &str, error: TextError) -> Mistake {
    Mistake { hint: error.hint, ..Mistake::new(file, error.at, error.message) }
}

/// The name of a calendar: its path below the root, where a leading `calendars/` says nothing.
fn calendar_name(path: &str) -> &str {
    path.strip_prefix("calendars/").unwrap_or(path)
}

/// A directory that is not complete yet.
#[derive(Default)]
struct Loading {
    jobs: BTreeMap<JobId, LoadedJob>,
    broken: BTreeSet<JobId>,
    /// What could be read of broken jobs.
    drafts: BTreeMap<JobId, LoadedJob>,
    calendars: Calendars,
    /// Names of calendars that have mistakes; no job that names them is wrong because of that.
    broken_calendars: BTreeSet<String>,
    mistakes: Vec<Mistake>,
    texts: BTreeMap<String, String>,
    /// Which file has a job's id or a calendar's name already.
    taken: BTreeMap<(bool, String), String>,
}

impl Loading {
    fn take(&mut self, found: &Found, file: ReadFile) {
        let is_calendar = found.kind != Kind::Job;
        let name = if is_calendar { calendar_name(&found.name) } else { &found.name };
        self.mistakes.extend(file.mistakes);
        self.texts.insert(found.file.clone(), file.text);
        if let Some(first) = self.taken.get(&(is_calendar, name.to_owned())) {
            let what = if is_calendar { "calendar" } else { "job" };
            let message = format!("the {what} `{name}` is in {first} already");
            self.mistakes.push(Mistake::new(&found.file, 0..0, message).hint("rename or remove one of the files"));
            return;
        }
        self.taken.insert((is_calendar, name.to_owned()), found.file.clone());
        if is_calendar {
            self.calendar(found, name, file.content);
        } else {
            self.job(found, name, file.content);
        }
    }

    fn job(&mut self, found: &Found, name: &str, content: Content) {
        let id = match JobId::parse(name) {
            Ok(id) => id,
            Err(error) => {
                let message = format!("the path of the file cannot be a job's id: {}", error.message);
                let hint = error.hint.unwrap_or_else(|| "rename the file".to_owned());
                return self.mistakes.push(Mistake::new(&found.file, 0..0, message).hint(hint));
            }
        };
        let Content::Job(read) = content else {
            self.broken.insert(id);
            return;
        };
        let JobRead { job, draft, places, .. } = *read;
        let loaded = |job| LoadedJob { job, file: found.file.clone(), places };
        match job {
            Some(job) => drop(self.jobs.insert(id, loaded(job))),
            None => {
                self.drafts.extend(draft.map(|draft| (id.clone(), loaded(draft))));
                self.broken.insert(id);
            }
        }
    }

    fn calendar(&mut self, found: &Found, name: &str, content: Content) {
        if let Err(error) = check_name(name) {
            let mistake = at_place(&found.file, TextError { at: 0..0, ..error });
            return self.mistakes.push(mistake);
        }
        match content {
            Content::Calendar(Some(calendar)) => self.calendars.insert(name, calendar),
            _ => drop(self.broken_calendars.insert(name.to_owned())),
        }
    }

    fn finish(mut self, options: &Options<'_>) -> Directory {
        let mut named = self.calendars.clone();
        for name in &self.broken_calendars {
            named.insert(name.clone(), Calendar::all());
        }
        let around = Around { zones: options.zones, zone: options.zone, calendars: &named, now: options.now };
        self.mistakes.extend(check(&self.jobs, &self.broken, &around));
        self.mistakes.extend(check_drafts(&self.drafts, &self.jobs, &self.broken, &around));
        let with_mistakes: BTreeSet<&str> = self.mistakes.iter().map(|mistake| mistake.file.as_str()).collect();
        self.texts.retain(|file, _| with_mistakes.contains(file.as_str()));
        let is_broken = |job: &LoadedJob| with_mistakes.contains(job.file.as_str());
        self.broken.extend(self.jobs.iter().filter(|(_, job)| is_broken(job)).map(|(id, _)| id.clone()));
        self.jobs.retain(|_, job| !is_broken(job));
        self.mistakes.sort_by(|a, b| (&a.file, a.at.start).cmp(&(&b.file, b.at.start)));
        let Self { jobs, broken, calendars, broken_calendars, mistakes, texts, .. } = self;
        Directory { jobs, broken, calendars, broken_calendars, mistakes, texts }
    }
}
